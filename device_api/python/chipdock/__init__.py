# SPDX-License-Identifier: Apache-2.0
"""chipdock: run ONNX models and arrays on any chip that has a plugin.

    >>> import numpy as np, chipdock
    >>> a = chipdock.array(np.arange(3, dtype=np.float32))
    >>> chipdock.run_op("Add", a, a).numpy()
    array([0., 2., 4.], dtype=float32)

Names are imported at their first use, so that `chipdock --help` need not wait for numpy and onnx.
"""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chipdock import errors
    from chipdock._array import array, empty, from_dlpack
    from chipdock._core import (
        Array,
        Device,
        Event,
        Function,
        Graph,
        LocalBytes,
        Module,
        Plugin,
        Stream,
        run_op,
    )
    from chipdock._profile import Profile, profile
    from chipdock._registry import PluginReport, device, devices, open_plugin, plugins
    from chipdock.errors import ChipdockError
    from chipdock.model import (
        Binding,
        CapturedSegment,
        Explanation,
        FallbackWarning,
        Model,
        NodePlacement,
        load,
    )

    __version__: str

__all__ = [
    "Array",
    "Binding",
    "CapturedSegment",
    "ChipdockError",
    "Device",
    "Event",
    "Explanation",
    "FallbackWarning",
    "Function",
    "Graph",
    "LocalBytes",
    "Model",
    "Module",
    "NodePlacement",
    "Plugin",
    "PluginReport",
    "Profile",
    "Stream",
    "array",
    "cmake_dir",
    "device",
    "devices",
    "empty",
    "errors",
    "from_dlpack",
    "include_dir",
    "load",
    "open_plugin",
    "plugins",
    "profile",
    "run_op",
]

_HOMES = {
    "_array": ("array", "empty", "from_dlpack"),
    "_core": (
        "Array",
        "Device",
        "Event",
        "Function",
        "Graph",
        "LocalBytes",
        "Module",
        "Plugin",
        "Stream",
        "run_op",
    ),
    "_profile": ("Profile", "profile"),
    "_registry": ("PluginReport", "device", "devices", "open_plugin", "plugins"),
    "errors": ("ChipdockError",),
    "model": (
        "Binding",
        "CapturedSegment",
        "Explanation",
        "FallbackWarning",
        "Model",
        "NodePlacement",
        "load",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


if not TYPE_CHECKING:  # checkers take the imports above, and so see a name that is not there

    def __getattr__(name: str) -> object:
        """Import a public name at its first use (PEP 562)."""
        if name == "errors":
            return import_module("chipdock.errors")
        if name == "__version__":
            from importlib.metadata import version  # noqa: PLC0415

            value: object = version("chipdock")
        elif name in _HOME_OF:
            value = getattr(import_module(f"chipdock.{_HOME_OF[name]}"), name)
        else:
            raise AttributeError(f"module 'chipdock' has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """Return the public names, also those that are not imported yet."""
    return sorted({*globals(), *__all__})


def include_dir() -> Path:
    """Folder to put on a compiler's include path; the headers are chipdock/*.h in it."""
    return Path(__file__).parent / "include"


def cmake_dir() -> Path:
    """Folder of chipdockConfig.cmake, for CMAKE_PREFIX_PATH or chipdock_DIR."""
    return Path(__file__).parent / "cmake"

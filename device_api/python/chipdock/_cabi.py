# SPDX-License-Identifier: Apache-2.0
"""The C ABI seen from Python by cffi: struct layouts, and a plugin's raw tables.

For tests and for the conformance levels that judge a plugin below the host runtime. No compiler is
needed: the headers are simple enough to be read here, and tests/abi compares the outcome with a
compiler's. Users of devices want `chipdock.device`; the checks, layers and emulation of the runtime
are not here.
"""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["RawError", "RawPlugin", "cdef", "constants", "ffi", "include_dir", "load_raw"]

HEADERS = (
    "base.h", "plugin.h", "device.h", "memory.h", "stream.h", "event.h", "kernel.h", "graph.h",
    "compile.h", "ccl.h", "profiler.h",
)  # fmt: skip
TABLES = (
    "device", "memory", "stream", "event", "kernel", "graph", "compile", "ccl", "profiler",
)  # fmt: skip

_INLINE = re.compile(r"^static inline .*?^\}\n", re.DOTALL | re.MULTILINE)
_DEFINE = re.compile(r"^#define (CHIPDOCK_\w+) (\d+)$", re.MULTILINE)
_QUERY = """
chipdock_status chipdock_plugin_query(const chipdock_host* host, const chipdock_query_desc* desc,
                                      chipdock_plugin** out_plugin, chipdock_error* error);
"""

# A library stays mapped until the process ends, as in the runtime: threads may outlive any handle.
_LOADED: list[Any] = []


class RawError(Exception):
    """A raw slot failed.

    Attributes:
        status: The returned chipdock_status.
        text: The text of the error record, "" if the plugin gave none.
    """

    def __init__(self, what: str, status: int, text: str) -> None:
        """Keeps status and text; the message names `what` was called."""
        super().__init__(f"{what} returned {status}: {text}")
        self.status = status
        self.text = text


def include_dir() -> Path:
    """Returns the folder that holds `chipdock/base.h`, installed or in the source tree.

    Raises:
        FileNotFoundError: Neither place has the headers.
    """
    here = Path(__file__).resolve()
    for folder in (here.parent / "include", here.parents[2] / "include"):
        if (folder / "chipdock" / "base.h").is_file():
            return folder
    raise FileNotFoundError(f"the C headers are not beside {here}; reinstall chipdock")


@functools.cache
def constants(folder: Path | None = None) -> Mapping[str, int]:
    """Returns the number macros of the headers by name, CHIPDOCK_ABI_MAJOR and the like.

    Args:
        folder: Holds `chipdock/`; None takes `include_dir()`.
    """
    root = folder or include_dir()
    found: dict[str, int] = {}
    for name in HEADERS:
        path = root / "chipdock" / name
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            found |= {key: int(value) for key, value in _DEFINE.findall(text)}
    return found


def cdef(folder: Path | None = None) -> str:
    """Returns the declarations of all headers, unstable tables included, as cffi takes them.

    Args:
        folder: Holds `chipdock/`; None takes `include_dir()`. Headers that it lacks are left out,
            so the headers of an older ABI can be read.
    """
    root = folder or include_dir()
    paths = [root / "chipdock" / name for name in HEADERS]
    text = "".join(path.read_text(encoding="utf-8") for path in paths if path.is_file())
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    text = _INLINE.sub("", text)
    # Conditions hold only what a plugin exports, what C++ needs, and unstable tables: wanted.
    text = re.sub(
        r"^#if defined\(CHIPDOCK_PLUGIN_BUILD\).*?^#endif", "", text, flags=re.DOTALL | re.MULTILINE
    )
    text = re.sub(r"^#ifdef __cplusplus.*?^#endif", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^ *#(?:[^\n]*\\\n)*[^\n]*$", "", text, flags=re.MULTILINE)
    for name, value in constants(root).items():
        text = re.sub(rf"\b{name}\b", str(value), text)
    return text.replace("CHIPDOCK_CALL", "") + _QUERY


@functools.cache
def ffi(folder: Path | None = None) -> Any:
    """Returns the `cffi.FFI` that knows every type and constant of the headers.

    Args:
        folder: Holds `chipdock/`; None takes `include_dir()`.

    Raises:
        ImportError: cffi is not installed.
    """
    try:
        cffi = importlib.import_module("cffi")
    except ImportError as cause:
        raise ImportError("the raw view of the C ABI needs cffi: pip install cffi") from cause
    made = cffi.FFI()
    made.cdef(cdef(folder))
    return made


class RawPlugin:
    """One instance of a plugin: its query, its tables, and help to fill structs.

    Attributes:
        ffi: The `cffi.FFI` whose types everything here has.
        path: Of the library.
        plugin: `chipdock_plugin*` after `start`, else None.
        log: (severity, text) of what the plugin logged.
        reports: (device, stream, code, text) of what it reported.
    """

    def __init__(self, path: Path, library: Any, types: Any) -> None:
        """Wraps an opened library; `load_raw` is the way to get one."""
        self.ffi = types
        self.path = path
        self.plugin: Any = None
        self.log: list[tuple[int, str]] = []
        self.reports: list[tuple[Any, Any, int, str]] = []
        self._query = library.chipdock_plugin_query
        self._keep: list[Any] = []
        self.host = self._make_host()

    def _make_host(self) -> Any:
        host = self.new("chipdock_host")
        known = constants()
        host.abi_version = known["CHIPDOCK_ABI_MAJOR"] << 16 | known["CHIPDOCK_ABI_MINOR"]

        def log(_context: Any, severity: int, text: Any) -> None:
            self.log.append((severity, self.text(text)))

        def report(_context: Any, device: Any, stream: Any, error: Any) -> None:
            self.reports.append((device, stream, error.code, self.text(error.text)))

        for name, function in (("log", log), ("report", report)):
            slot = self.ffi.callback(self.ffi.typeof(getattr(host, name)), function)
            self._keep.append(slot)
            setattr(host, name, slot)
        return host

    def text(self, characters: Any) -> str:
        """Returns a C string as str, "" for NULL."""
        if characters == self.ffi.NULL:
            return ""
        return bytes(self.ffi.string(characters)).decode("utf-8", "replace")

    def new(self, name: str, **values: Any) -> Any:
        """Returns a zeroed struct with struct_size and `values` set; the caller keeps it alive.

        Args:
            name: Of the type, "chipdock_alloc_desc".
            values: Fields by name.
        """
        made = self.ffi.new(f"{name}*")
        made.struct_size = self.ffi.sizeof(name)
        for key, value in values.items():
            setattr(made, key, value)
        return made

    def start(
        self,
        *,
        abi_min: tuple[int, int] = (1, 0),
        abi_max: tuple[int, int] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> Any:
        """Calls chipdock_plugin_query and keeps the instance.

        Args:
            abi_min: Oldest base version the host says it speaks, (major, minor).
            abi_max: Newest one; None takes the headers'.
            options: Plugin-wide options.

        Returns:
            `chipdock_plugin*`, also kept as `plugin`.

        Raises:
            RawError: Query failed, or returned OK without an instance.
        """
        known = constants()
        newest = abi_max or (known["CHIPDOCK_ABI_MAJOR"], known["CHIPDOCK_ABI_MINOR"])
        entries = []
        for key, value in (options or {}).items():
            texts = [self.ffi.new("char[]", part.encode()) for part in (key, value)]
            entries.append(self.new("chipdock_option", key=texts[0], value=texts[1]))
            self._keep += [*texts, entries[-1]]
        array = self.ffi.new("const chipdock_option*[]", entries or [self.ffi.NULL])
        desc = self.new(
            "chipdock_query_desc",
            abi_min=abi_min[0] << 16 | abi_min[1],
            abi_max=newest[0] << 16 | newest[1],
            option_count=len(entries),
            options=array,
        )
        out = self.ffi.new("chipdock_plugin**")
        self.call("query", self._query, self.host, desc, out)
        if out[0] == self.ffi.NULL:
            raise RawError("query", 0, "OK without an instance [BASE-8]")
        self.plugin = out[0]
        return self.plugin

    def call(self, what: str, slot: Any, *arguments: Any) -> None:
        """Calls a slot whose last parameter is the error record.

        Raises:
            RawError: The status is not OK.
        """
        error = self.new("chipdock_error")
        status = slot(*arguments, error)
        if status != 0:
            raise RawError(what, status, self.text(error.text))

    def table(self, name: str, version: tuple[int, int] | None = None) -> Any:
        """Returns a table as `chipdock_<name>_api*`.

        The pointer's type is that of these headers: look at `header.struct_size`, or use `slot`,
        before touching a slot.

        Args:
            name: "memory", "stream", ….
            version: Newest one to ask for, (major, minor); None takes the headers'.

        Raises:
            RawError: The plugin has no such table or no such major.
        """
        known = constants()
        major, minor = version or (
            known[f"CHIPDOCK_{name.upper()}_MAJOR"],
            known[f"CHIPDOCK_{name.upper()}_MINOR"],
        )
        out = self.ffi.new("void const**")
        label = self.ffi.new("char[]", f"chipdock.{name}".encode())
        self.call(
            f"get_table {name}", self.plugin.get_table, self.plugin, label, major << 16 | minor, out
        )
        if out[0] == self.ffi.NULL:
            raise RawError(f"get_table {name}", 0, "OK without a table [BASE-8]")
        return self.ffi.cast(f"const chipdock_{name}_api*", out[0])

    def slot(self, table: Any, name: str) -> Any | None:
        """Returns a slot of a table, or None if it is NULL or lies behind the table's end.

        Args:
            table: From `table`.
            name: Of the slot.
        """
        kind = self.ffi.typeof(table).item
        offset = self.ffi.offsetof(kind, name)
        if offset + self.ffi.sizeof("void*") > table.header.struct_size:
            return None
        found = getattr(table, name)
        return None if found == self.ffi.NULL else found

    def shutdown(self) -> None:
        """Ends the instance if it has a shutdown slot. Idempotent.

        Raises:
            RawError: The plugin's shutdown failed; the instance is gone all the same.
        """
        plugin, self.plugin = self.plugin, None
        if plugin is not None and plugin.shutdown != self.ffi.NULL:
            self.call("shutdown", plugin.shutdown, plugin)


def load_raw(path: str | Path, folder: Path | None = None) -> RawPlugin:
    """Opens a plugin's library, symbols kept local, without starting an instance.

    Args:
        path: Of the library.
        folder: Headers whose types are used; None takes `include_dir()`.

    Raises:
        OSError: The library cannot be opened; the text is the linker's.
        AttributeError: It does not export chipdock_plugin_query.
    """
    types = ffi(folder)
    where = Path(path).resolve()
    library = types.dlopen(str(where), types.RTLD_NOW | types.RTLD_LOCAL)
    _LOADED.append(library)
    return RawPlugin(where, library, types)

# SPDX-License-Identifier: Apache-2.0
"""What a case sees of the device under test: the fixture `target`, and the session behind it.

A session lives as long as its worker process; a target lives for one case.
"""

from __future__ import annotations

import difflib
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chipdock.conformance import _raw
from chipdock.conformance.capabilities import (
    Capabilities,
    Kernel,
    is_function,
    missing,
    read_capabilities,
)
from chipdock.conformance.case import Case, NotSupported

if TYPE_CHECKING:
    import numpy as np

    import chipdock
    from chipdock.conformance.recorder import Recorder

__all__ = ["HostLacks", "Session", "Target", "seed_of"]


class HostLacks(NotSupported):
    """This machine lacks what the case needs, which says nothing of the chip: NOT_RUN."""


def seed_of(suite_seed: int, case_id: str, revision: int) -> int:
    """Return the seed of a case, 64 bits: the same on every machine and in every order."""
    text = f"{suite_seed}:{case_id}:{revision}".encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "little")


class Session:
    """The device under test for all cases of a process.

    Attributes:
        name: Of the device, "acme:0".
        seed: Of the suite.
        recorder: Of the record file, None without one.
    """

    def __init__(
        self,
        name: str,
        *,
        plugin: str = "",
        seed: int = 0,
        recorder: Recorder | None = None,
        capabilities: Capabilities | None = None,
    ) -> None:
        """Keeps what is needed to open the device; nothing is loaded yet.

        Args:
            name: "acme:0" or "acme" for its device 0.
            plugin: The library or plugin.toml; "" finds the plugin by its name.
            seed: Of the suite.
            recorder: Where raw calls are recorded.
            capabilities: As an earlier process of the run read them; None reads them when needed.
        """
        base, colon, number = name.rpartition(":")
        self.name = name if colon else f"{name}:0"
        self._base, self.index = (base, int(number)) if colon else (name, 0)
        self._given = plugin
        self.seed = seed
        self.recorder = recorder
        self._capabilities = capabilities
        self._plugin: chipdock.Plugin | None = None
        self._device: chipdock.Device | None = None
        self._options: dict[str, str] = {}

    @property
    def plugin(self) -> chipdock.Plugin:
        """The plugin, loaded through the layers of CHIPDOCK_LAYERS.

        Raises:
            ChipdockError: It cannot be found or loaded.
        """
        if self._plugin is None:
            self._plugin = self._load()
        return self._plugin

    @property
    def device(self) -> chipdock.Device:
        """The device, opened at the first use.

        Raises:
            ChipdockError: The plugin's own error.
        """
        if self._device is None:
            self._device = self.open()
        return self._device

    def open(self) -> chipdock.Device:
        """Open the device once more."""
        import chipdock  # noqa: PLC0415  the runtime is loaded when a case wants it

        return chipdock.Device.open(self.plugin, self.index, sorted(self._options.items()))

    @property
    def capabilities(self) -> Capabilities:
        """What the plugin declares; read once."""
        if self._capabilities is None:
            slots = [name for name, there in self.plugin.slots.items() if there]
            raw = _raw.open_raw(self.plugin.path, None)
            raw.start()
            try:
                self._capabilities = read_capabilities(raw, self.index, slots)
            finally:
                raw.shutdown()
        return self._capabilities

    def _load(self) -> chipdock.Plugin:
        import chipdock  # noqa: PLC0415
        from chipdock._discovery import find_plugins, read_manifest  # noqa: PLC0415

        if self._given:
            path = Path(self._given)
            if path.suffix == ".toml":
                manifest = read_manifest(path, "path")
                path, self._options = manifest.path, manifest.options
            return self._named(chipdock.open_plugin(path))
        found = find_plugins()
        known = [m for m in found if not m.cause and self._base in (m.name, m.id)]
        for manifest in known:
            self._options = manifest.options
            return chipdock.open_plugin(manifest.path)
        # A bare library says its name only once it is loaded.
        for manifest in (m for m in found if not m.cause and not m.name):
            plugin = chipdock.open_plugin(manifest.path)
            if self._base in (plugin.name, plugin.id):
                return plugin
        names = [manifest.name for manifest in found if manifest.name]
        close = difflib.get_close_matches(self._base, names, n=1)
        hint = f"; did you mean '{close[0]}:{self.index}'?" if close else ""
        raise chipdock.errors.InvalidArgumentError(
            f"INVALID_ARGUMENT: no plugin provides {self.name!r}, plugins here are {names}{hint}"
        )

    def _named(self, plugin: chipdock.Plugin) -> chipdock.Plugin:
        import chipdock  # noqa: PLC0415

        if self._base not in (plugin.name, plugin.id):
            raise chipdock.errors.InvalidArgumentError(
                f"INVALID_ARGUMENT: {self._given} provides '{plugin.name}', the device asked for "
                f"is {self.name!r}; write --device {plugin.name}:{self.index}"
            )
        return plugin

    def describe(self) -> dict[str, Any]:
        """Return plugin, device_info and capabilities as plain data, for the journal's run line."""
        plugin = self.plugin
        return {
            "device": f"{plugin.name}:{self.index}",
            "plugin": {
                "name": plugin.name,
                "id": plugin.id,
                "version": plugin.version,
                "uuid": plugin.uuid,
                "sha256": hashlib.sha256(Path(plugin.path).read_bytes()).hexdigest(),
                "abi": ".".join(map(str, plugin.abi_version)),
                "path": plugin.path,
            },
            "device_info": plugin.device_info(self.index),
            "capabilities": self.capabilities.to_json(),
        }


class Target:
    """The device under test, for one case.

    Attributes:
        case: The facts of the running case.
        seed: Of the case.
        evidence: What the case recorded so far.
        remarks: What it warned of; the outcome is QUALITY_WARN if it passes.
    """

    def __init__(self, session: Session, case: Case) -> None:
        """Makes the target of a case."""
        self._session = session
        self.case = case
        self.seed = seed_of(session.seed, case.id, case.revision)
        self.evidence: dict[str, Any] = {}
        self.remarks: list[str] = []
        self._outputs: Any = None
        self._rng: np.random.Generator | None = None
        self._raws: list[_raw.RecordedPlugin] = []

    @property
    def name(self) -> str:
        """Name of the device, "acme:0"."""
        return self._session.name

    @property
    def index(self) -> int:
        """Number of the device within its plugin."""
        return self._session.index

    @property
    def plugin(self) -> chipdock.Plugin:
        """The plugin, loaded once a worker."""
        return self._session.plugin

    @property
    def plugin_path(self) -> Path:
        """The plugin's library."""
        return Path(self._session.plugin.path)

    @property
    def device(self) -> chipdock.Device:
        """The device, opened once a worker."""
        return self._session.device

    def open(self) -> chipdock.Device:
        """Open the device once more, for cases about opening and closing."""
        return self._session.open()

    @property
    def capabilities(self) -> Capabilities:
        """What the plugin declares."""
        return self._session.capabilities

    @property
    def rng(self) -> np.random.Generator:
        """Random numbers that hang on the suite's seed, the case's id and its revision alone."""
        import numpy as np  # noqa: PLC0415  many cases draw nothing

        if self._rng is None:
            self._rng = np.random.default_rng(self.seed)
        return self._rng

    def raw(self, *, start: bool = True, **arguments: Any) -> _raw.RecordedPlugin:
        """Return a fresh instance of the plugin below the host runtime; it ends with the case.

        Args:
            start: False leaves `start` to the case.
            arguments: Of `RawPlugin.start`.
        """
        made = _raw.open_raw(self.plugin_path, self._session.recorder)
        self._raws.append(made)
        if start:
            made.start(**arguments)
        return made

    def has(self, needs: str) -> bool:
        """Whether a capability expression holds, see `capabilities.missing`."""
        return missing(needs, self.capabilities)[0] == ""

    def require(self, needs: str) -> None:
        """Go on only if a capability expression holds.

        A case of level 2 also goes on without a kernel of its operator if that is a function of
        ONNX: the host may put other operators in its place. Whether it can shows when it loads.

        Raises:
            NotSupported: It does not; HostLacks if that is this machine's lack.
        """
        for part in needs.split(" and ") if needs else ():
            term, of_chip = missing(part, self.capabilities)
            if term and not self._expands(term):
                raise (NotSupported if of_chip else HostLacks)(f"lacks {term}")

    def _expands(self, term: str) -> bool:
        wanted = term.startswith(f"op:{self.case.op}:") and self.case.level == "L2"
        return wanted and bool(self.capabilities.kernels) and is_function(self.case.op)

    def kernels(self, op: str, domain: str = "") -> list[Kernel]:
        """Return the kernels that the plugin lists for an operator."""
        found = self.capabilities.kernels
        return [kernel for kernel in found if kernel.op == op and kernel.domain == domain]

    def record(self, **evidence: Any) -> None:
        """Keep figures for the reports, also if the case passes: max_ulp, rel_l2, cosine, ….

        Args:
            evidence: Plain data.
        """
        self.evidence |= evidence

    def warn(self, remark: str) -> None:
        """Remark on the evidence: the outcome is QUALITY_WARN if the case passes."""
        self.remarks.append(remark)

    def digest(self, *arrays: Any) -> None:
        """Add outputs to the digest by which a later run can be compared bit for bit.

        Args:
            arrays: numpy arrays, any shape and dtype.
        """
        if self._outputs is None:
            self._outputs = hashlib.sha256()
        for array in arrays:
            self._outputs.update(f"{array.dtype.name}{array.shape}".encode())
            self._outputs.update(array.tobytes())

    def close(self) -> None:
        """End the raw instances of the case, newest first.

        Raises:
            RawError: A shutdown failed; all were tried.
        """
        failure: Exception | None = None
        while self._raws:
            try:
                self._raws.pop().shutdown()
            except Exception as error:  # the rest has to end all the same
                failure = failure or error
        if failure is not None:
            raise failure

    @property
    def digest_text(self) -> str:
        """The digest so far, "" if the case has none."""
        return self._outputs.hexdigest() if self._outputs is not None else ""

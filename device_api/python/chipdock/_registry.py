# SPDX-License-Identifier: Apache-2.0
"""Plugins and devices of this process: loaded at first use, shut down in order at exit."""

import atexit
import contextlib
import difflib
import os
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from chipdock import _core, errors
from chipdock._discovery import Manifest, find_plugins
from chipdock.errors import ChipdockError, InvalidArgumentError, UnavailableError, make_error

__all__ = [
    "PluginReport",
    "device",
    "devices",
    "fallback_policy",
    "host_device",
    "open_plugin",
    "plugins",
]


@dataclass(frozen=True)
class PluginReport:
    """State of one plugin.

    Attributes:
        manifest: How it was found.
        state: "ready", "unavailable" (driver or device absent), "broken" or "timeout".
        cause: The first failure, word for word; "" if ready.
        notes: What the loader saw and did not mind.
        devices: Names of its devices, accepted by device().
        products: Marketing name of each device.
        plugin: The loaded plugin, None if loading failed.
    """

    manifest: Manifest
    state: str
    cause: str
    notes: tuple[str, ...]
    devices: tuple[str, ...]
    products: tuple[str, ...]
    plugin: "_core.Plugin | None"

    @property
    def id(self) -> str:
        """Identity, "vendor.plugin"."""
        return self.plugin.id if self.plugin is not None else self.manifest.id

    @property
    def name(self) -> str:
        """Device name without the number."""
        return self.plugin.name if self.plugin is not None else self.manifest.name


# Another in a forked child: a plugin is of no use there (FORKED), but must not hang it either.
_lock = threading.RLock()
_reports: dict[str, PluginReport] = {}
_devices: dict[tuple[str, int, str], "_core.Device"] = {}
_first_failure: dict[str, str] = {}
# int() would take the digits of any script, and gives up beyond 4300 of them.
_INDEX = re.compile(r"[0-9]{1,9}")
_TIMEOUT = _core.STATUS_NAMES.index("TIMEOUT")
_hanging: dict[tuple[str, int, str], tuple[str, int]] = {}
# Devices that did not open at the last try, by library and number: (state, cause).
_unopened: dict[tuple[str, int], tuple[str, str]] = {}
# An open that failed with one of these says that the hardware is not at hand, not that the plugin
# is at fault.
_ABSENT = (
    errors.UnavailableError,
    errors.BusyError,
    errors.DeviceLostError,
    errors.ResetRequiredError,
    errors.OutOfMemoryError,
)


def _probe(manifest: Manifest) -> PluginReport:
    if manifest.cause:
        return PluginReport(manifest, "broken", manifest.cause, (), (), (), None)
    report = _core.load_and_probe(str(manifest.path))
    cause = _first_failure.setdefault(str(manifest.path), report.cause) if report.cause else ""
    name = report.plugin.name if report.plugin is not None else manifest.name
    names = tuple(f"{name}:{i}" for i in range(len(report.products)))
    notes, products = tuple(report.notes), tuple(report.products)
    return PluginReport(manifest, report.state, cause, notes, names, products, report.plugin)


def plugins() -> list[PluginReport]:
    """All plugins found, with state and cause; loads each at most once per process.

    A plugin of which a device did not open at the last try has the state and cause of that; the
    next open that works makes it ready again.

    Returns:
        One report per plugin, in order of discovery. Never raises for a broken plugin.
    """
    return [_with_failed_open(report) for report in _probed()]


def _with_failed_open(report: PluginReport) -> PluginReport:
    """The report as it is, or with what happened to the device that did not open."""
    if report.plugin is None or report.state != "ready":
        return report
    with _lock:
        found = [f for (path, _), f in sorted(_unopened.items()) if path == report.plugin.path]
    return replace(report, state=found[0][0], cause=found[0][1]) if found else report


def _probed() -> list[PluginReport]:
    """All plugins as they were when they were loaded."""
    reports = []
    for manifest in find_plugins():
        key = os.path.realpath(manifest.path)
        with _lock:
            if key not in _reports:
                _reports[key] = _probe(manifest)
            reports.append(_reports[key])
    return _distinguish(reports)


def _distinguish(reports: list[PluginReport]) -> list[PluginReport]:
    """Where two plugins share a device name, later ones are called by their full id."""
    seen: dict[str, str] = {}
    out = []
    for report in reports:
        if report.plugin is not None and seen.setdefault(report.name, report.id) != report.id:
            names = tuple(f"{report.id}:{i}" for i in range(len(report.devices)))
            report = PluginReport(  # noqa: PLW2901
                report.manifest, report.state, report.cause, report.notes, names, report.products,
                report.plugin,
            )  # fmt: skip
        out.append(report)
    return out


def devices() -> list["_core.Device"]:
    """Open every device of every plugin that is ready.

    Returns:
        Devices in order of discovery; empty if there are none. Broken plugins are left out here and
        shown with their cause by plugins() and `chipdock doctor`.
    """
    found = []
    for report in _probed():
        for name in report.devices:
            with contextlib.suppress(ChipdockError):  # plugins() shows it
                found.append(device(name))
    return found


def _split(name: object) -> tuple[str, int]:
    if not isinstance(name, str):
        text = f"INVALID_ARGUMENT: a device is a name or a Device, got {type(name).__name__}"
        raise InvalidArgumentError(text)
    base, colon, number = name.rpartition(":")
    if not colon:
        base, number = name, "0"
    if not base or not _INDEX.fullmatch(number):
        text = (
            f"INVALID_ARGUMENT: device name {name!r} must look like 'cpu:0': a plugin and a number"
        )
        raise InvalidArgumentError(text)
    return base, int(number)


def _check_texts(*texts: object) -> None:
    """Refuse a str that is no text, such as a lone surrogate: it has no UTF-8 for the plugin."""
    for text in texts:
        try:
            _ = text.encode() if isinstance(text, str) else b""
        except UnicodeEncodeError as error:
            message = f"{text!r} is not text: a lone surrogate at {error.start}"
            raise InvalidArgumentError(f"INVALID_ARGUMENT: {message}") from error


def device(name: "str | _core.Device" = "cpu:0", **options: str) -> "_core.Device":
    """Open a device, or return the one that is open with the same options.

    Args:
        name: "acme:0", "acme" for its device 0, "vendor.acme:0", or a device, which is returned.
        options: Open options of the plugin, such as threads="2".

    Returns:
        The device; kept open until the process ends.

    Raises:
        InvalidArgumentError: No plugin or device can have that name; similar names are suggested.
        UnavailableError: The plugin is there but broken or without its driver; with its cause.
        ChipdockError: The plugin's own error from opening.
    """
    if isinstance(name, _core.Device):
        return name
    base, index = _split(name)
    _check_texts(*options, *options.values())
    reports = _probed()
    match = next((r for r in reports if base == r.name), None)
    match = match or next((r for r in reports if base == r.id), None)
    if match is None:
        known = [d for r in reports for d in r.devices]
        close = difflib.get_close_matches(name, known, n=1) or difflib.get_close_matches(
            base, [r.name for r in reports if r.name], n=1
        )
        hint = f"; did you mean {close[0]!r}?" if close else ""
        broken = "".join(
            f"; {r.manifest.path} does not load: {r.cause}" for r in reports if r.plugin is None
        )
        how = "" if hint or broken else "; name a plugin's library in CHIPDOCK_PLUGIN_PATH"
        text = f"INVALID_ARGUMENT: no plugin provides {name!r}, devices here are {known}"
        raise InvalidArgumentError(f"{text}{hint}{broken}{how}")
    if match.plugin is None or match.state != "ready":
        raise UnavailableError(f"UNAVAILABLE: {name} cannot be used: {match.cause}")
    if index >= len(match.devices):
        text = f"INVALID_ARGUMENT: {name} does not exist, {match.name} has {list(match.devices)}"
        raise InvalidArgumentError(text)
    return _open(match.plugin, index, {**match.manifest.options, **options})


def _open(plugin: "_core.Plugin", index: int, options: Mapping[str, str]) -> "_core.Device":
    items = sorted(options.items())
    key = (plugin.path, index, repr(items))
    with _lock:
        found = _devices.get(key)
        if key in _hanging:
            raise make_error(*_hanging[key])
        if found is None:
            try:
                found = _devices[key] = _core.Device.open(plugin, index, items)
            except errors.TimeoutError as error:  # a thread hangs in there: one is enough
                _hanging[key] = (str(error), _TIMEOUT)
                _unopened[key[:2]] = ("timeout", str(error))
                raise
            except InvalidArgumentError:  # most often of the options; nothing to hold against it
                raise
            except ChipdockError as error:
                absent = isinstance(error, _ABSENT)
                _unopened[key[:2]] = ("unavailable" if absent else "broken", str(error))
                raise
            _unopened.pop(key[:2], None)
        return found


def open_plugin(path: "str | Path", layers: str = "", **options: str) -> "_core.Plugin":
    """Load a plugin by the path of its library, as an instance of its own.

    Args:
        path: The shared library.
        layers: Layer spec as in CHIPDOCK_LAYERS, such as "validate,mask=required"; "" takes the
            environment's.
        options: Plugin-wide options.

    Returns:
        The plugin; its devices are opened with `chipdock.Device.open(plugin, index)`.

    Raises:
        ChipdockError: It cannot be loaded; the text names the broken rule.
    """
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else ""
    if not isinstance(text, str) or not text or "\0" in text:
        message = f"INVALID_ARGUMENT: path is {path!r}, it must be the path of a plugin's library"
        raise InvalidArgumentError(message)
    _check_texts(text, layers, *options, *options.values())
    return _core.load_plugin(text, layers, sorted(options.items()))


_POLICIES = ("error", "warn", "allow")


def fallback_policy(asked: str) -> str:
    """Policy for nodes without a kernel: as asked, or CHIPDOCK_FALLBACK in place of "error".

    The variable exists for runs of a whole test suite under a mask (CHIPDOCK_LAYERS).

    Raises:
        InvalidArgumentError: No such policy.
    """
    named = os.environ.get("CHIPDOCK_FALLBACK", "error")
    for source, policy in (("fallback", asked), ("CHIPDOCK_FALLBACK", named)):
        if policy not in _POLICIES:
            text = f"INVALID_ARGUMENT: {source} is {policy!r}, allowed are {list(_POLICIES)}"
            raise InvalidArgumentError(text)
    return named if asked == "error" else asked


_host: "_core.Device | None" = None


def host_device(for_device: "_core.Device | None" = None) -> "_core.Device":
    """The device that runs shape work and fallbacks: the embedded plugin, unmasked.

    Args:
        for_device: The device it works beside. A device whose memory the host can read and whose
            kernels read host memory serves as its own host.

    Raises:
        UnavailableError: The embedded plugin is missing or broken.
    """
    global _host  # noqa: PLW0603  one per process by design
    embedded = _embedded_path()
    if for_device is not None and _is_own_host(for_device, embedded):
        return for_device
    with _lock:
        if _host is None:
            plugin = _core.load_plugin(str(embedded), "none", [("strict", "0")])
            _host = _core.Device.open(plugin, 0, [])
        return _host


def _is_own_host(candidate: "_core.Device", embedded: Path) -> bool:
    same = os.path.realpath(candidate.plugin.path) == os.path.realpath(embedded)
    whole = candidate.plugin.slots.get("kernel.launch", False)
    return same and whole and candidate.host_visible and candidate.reads_host


def _embedded_path() -> Path:
    for manifest in find_plugins():
        if manifest.source == "package chipdock" and not manifest.cause:
            return manifest.path
    text = "UNAVAILABLE: the plugin inside the chipdock package was not found; reinstall chipdock"
    raise make_error(text, 6)


def _close_all() -> None:
    """Drop devices before plugins, newest first; later calls return SHUTDOWN."""
    global _host  # noqa: PLW0603
    _core.clear_op_cache()
    with _lock:
        _devices.clear()
        _host = None
    _core.shutdown_all()


def _renew_lock() -> None:
    global _lock  # noqa: PLW0603
    _lock = threading.RLock()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_renew_lock)

# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: PLC0415  the package with its libraries is imported when a command asks
"""Plugins and devices as plain values, and the option and argument types that name them."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from chipdock.cli._command import Failure, given_plugins
from chipdock.cli._progress import working
from chipdock.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    import chipdock

__all__ = [
    "DEVICE",
    "device_data",
    "device_option",
    "open_device",
    "plugin_data",
    "probe_plugins",
]


class _DeviceType(click.types.StringParamType):
    """A device name; what is there is offered by completion, and checked when it is opened."""

    name = "device"

    def shell_complete(
        self, _ctx: click.Context, _param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Offer the names of the devices that are ready."""
        try:
            import chipdock

            names = [name for report in chipdock.plugins() for name in report.devices]
        except Exception:  # a completion that fails offers nothing
            names = []
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]


DEVICE = _DeviceType()

device_option = click.option(
    "--device", "-d", type=DEVICE, default="cpu:0", show_default=True, help="Device to run on."
)


def probe_plugins(opened: bool = False) -> "list[chipdock.PluginReport]":
    """Load what can be loaded; shows a sign of life where a plugin is slow.

    Args:
        opened: Also open every device, so that a plugin that loads but does not start shows.
    """
    import chipdock

    with working("looking at plugins"):
        if opened:
            chipdock.devices()
        return chipdock.plugins()


def plugin_data(report: "chipdock.PluginReport") -> dict[str, Any]:
    """Return one plugin as the schemas of `devices`, `plugins` and `doctor` have it."""
    manifest, loaded = report.manifest, report.plugin
    return {
        "id": report.id,
        "name": report.name,
        "version": loaded.version if loaded is not None else manifest.version,
        "abi": list(loaded.abi_version) if loaded is not None else None,
        "state": report.state,
        "cause": report.cause,
        "notes": list(report.notes),
        "source": manifest.source,
        "path": str(manifest.path),
        "devices": list(report.devices),
    }


def device_data(report: "chipdock.PluginReport", index: int) -> dict[str, Any]:
    """Return one device as the schemas have it; the device is not opened.

    Raises:
        ChipdockError: The plugin's own error.
    """
    assert report.plugin is not None  # only ready plugins have devices
    return {
        "name": report.devices[index],
        "plugin": report.id,
        **report.plugin.device_info(index),
    }


def open_device(name: str) -> "chipdock.Device":
    """Open a device by name.

    Raises:
        Failure: A plugin that does not start, whatever code it gave, or one of --plugin that does
            not load (exit code 4).
        InvalidArgumentError: No device can have that name; similar names are suggested.
    """
    import chipdock

    try:
        with working(f"opening {name}"):
            device = chipdock.device(name)
    except chipdock.errors.InvalidArgumentError:
        _check_given()
        raise
    except chipdock.ChipdockError as error:
        raise Failure(str(error), ExitCode.NOT_STARTED) from error
    _check_given()
    return device


def _check_given() -> None:
    """Refuse to go on without a plugin that was asked for by its path, whatever device is used.

    Raises:
        Failure: What --plugin names is no plugin or does not load; with its cause.
    """
    import chipdock
    from chipdock._discovery import plugins_at

    if not given_plugins():
        return
    reports = {os.path.realpath(r.manifest.path): r for r in chipdock.plugins()}
    for given in given_plugins():
        manifests = plugins_at(Path(given), "--plugin")
        if not manifests:
            text = f"{given} holds no plugin; give a library, a plugin.toml or a folder of one"
            raise Failure(f"UNAVAILABLE: --plugin {text}", ExitCode.NOT_STARTED)
        for manifest in manifests:
            report = reports.get(os.path.realpath(manifest.path))
            if report is not None and report.plugin is None and report.state != "unavailable":
                text = f"--plugin {given} does not load: {report.cause}"
                raise Failure(f"UNAVAILABLE: {text}", ExitCode.NOT_STARTED)

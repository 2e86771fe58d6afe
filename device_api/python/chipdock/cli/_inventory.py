# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: PLC0415  the package with its libraries is imported when a command asks
"""Plugins and devices as plain values, and the option and argument types that name them."""

from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from chipdock.cli._command import Failure
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
        Failure: A plugin that does not start, whatever code it gave (exit code 4).
        InvalidArgumentError: No device can have that name; similar names are suggested.
    """
    import chipdock

    try:
        with working(f"opening {name}"):
            return chipdock.device(name)
    except chipdock.errors.InvalidArgumentError:
        raise
    except chipdock.ChipdockError as error:
        raise Failure(str(error), ExitCode.NOT_STARTED) from error

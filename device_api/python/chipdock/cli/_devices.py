# SPDX-License-Identifier: Apache-2.0
"""`chipdock devices`: what a model can run on here."""

from typing import TYPE_CHECKING, Any

import click

from chipdock.cli._command import Command
from chipdock.cli._inventory import device_data, plugin_data, probe_plugins
from chipdock.cli._output import console, emit_json, json_option, size, table
from chipdock.cli._plugins import print_plugins

if TYPE_CHECKING:
    import chipdock

__all__ = ["devices"]


def _all_devices(reports: "list[chipdock.PluginReport]") -> list[dict[str, Any]]:
    return [device_data(r, i) for r in reports for i in range(len(r.devices))]


@click.command(cls=Command)
@click.option("--all", "everything", is_flag=True, help="Also plugins that are not ready.")
@json_option
def devices(everything: bool, as_json: bool) -> None:
    """List the devices that are ready.

    The names are what --device takes.
    """
    reports = probe_plugins()
    found = _all_devices(reports)
    if as_json:
        listed = [plugin_data(report) for report in reports] if everything else []
        emit_json("devices", {"devices": found, "plugins": listed})
        return
    out = console()
    shown = table("device", "product", "memory", "plugin", right=("memory",), fold=("product",))
    for item in found:
        memory = size(item["heaps"][0]["bytes"]) if item["heaps"] else ""
        shown.add_row(item["name"], item["product"], memory, item["plugin"])
    out.print(shown if found else "no device is ready")
    if everything:
        out.print()
        print_plugins(out, reports)
        return
    bad = [report for report in reports if report.state != "ready"]
    if bad:
        words = "plugin is" if len(bad) == 1 else "plugins are"
        click.echo(f"{len(bad)} {words} not ready: chipdock devices --all says why", err=True)

# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: PLC0415  the package is imported when the command runs
"""`chipdock plugins`: every plugin that was found, with its state and cause."""

from typing import TYPE_CHECKING

import click

from chipdock.cli._command import Command
from chipdock.cli._inventory import plugin_data, probe_plugins
from chipdock.cli._output import STATE_STYLES, console, emit_json, json_option, table

if TYPE_CHECKING:
    from rich.console import Console

    import chipdock

__all__ = ["plugins", "print_plugins"]


def print_plugins(out: "Console", reports: "list[chipdock.PluginReport]") -> None:
    """Print one row per plugin, then causes and notes word for word."""
    from rich.text import Text

    shown = table("plugin", "state", "version", "ABI", "devices", "found in", fold=("found in",))
    for item in map(plugin_data, reports):
        abi = ".".join(map(str, item["abi"])) if item["abi"] else ""
        state = Text(item["state"], STATE_STYLES.get(item["state"], ""))
        name = item["id"] or item["path"].rpartition("/")[2]
        devices = ", ".join(item["devices"])
        shown.add_row(Text(name), state, item["version"], abi, devices, Text(item["source"]))
    out.print(shown)
    for report in reports:
        lines = [report.cause] if report.cause else []
        lines += [f"note: {note}" for note in report.notes]
        for line in lines:
            # Verbatim and unbroken, so that it can be searched for.
            out.print(Text(f"{report.id or report.manifest.path}: {line}"), soft_wrap=True)


@click.command(cls=Command)
@click.option("--scan", is_flag=True, help="Read manifests only; open no library.")
@json_option
def plugins(scan: bool, as_json: bool) -> None:
    """List plugins, with state and cause. Each device is opened once, unless --scan is given.

    They come from installed packages, CHIPDOCK_PLUGIN_PATH, --plugin, and the folders plugins.d of
    the machine's and the user's configuration.
    """
    if scan:
        from chipdock._discovery import find_plugins
        from chipdock._registry import PluginReport

        reports = [
            PluginReport(m, "broken" if m.cause else "found", m.cause, (), (), (), None)
            for m in find_plugins()
        ]
    else:
        reports = probe_plugins(opened=True)
    if as_json:
        emit_json("plugins", {"plugins": [plugin_data(report) for report in reports]})
    else:
        print_plugins(console(), reports)

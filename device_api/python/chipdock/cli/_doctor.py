# SPDX-License-Identifier: Apache-2.0
"""`chipdock doctor`: whether this machine is fit, and what stands in the way.

Looking is left to _checks.py.
"""

from typing import TYPE_CHECKING

import click

from chipdock.cli import _checks
from chipdock.cli._checks import Check
from chipdock.cli._command import Command
from chipdock.cli._inventory import plugin_data, probe_plugins
from chipdock.cli._output import STATE_STYLES, console, emit_json, json_option
from chipdock.cli._plugins import print_plugins
from chipdock.cli._progress import working
from chipdock.cli.exit_codes import worst

if TYPE_CHECKING:
    import chipdock

__all__ = ["doctor"]


@click.command(cls=Command)
@json_option
@click.pass_context
def doctor(ctx: click.Context, as_json: bool) -> None:
    """Check this machine, plugins and devices.

    Every device that is ready gets a small piece of work.
    Ends with 4 when a plugin is broken or a device does not start.
    """
    reports = probe_plugins()
    found = [*_checks.package_checks(), *_checks.host_checks(), *_checks.plugin_checks(reports)]
    with working("trying devices"):
        found += _checks.device_checks(reports)
    code = worst(check.code for check in found)
    if as_json:
        plugins = [plugin_data(report) for report in reports]
        listed = [check.data() for check in found]
        emit_json("doctor", {"exit_code": int(code), "checks": listed, "plugins": plugins})
    else:
        _print(found, reports)
    ctx.exit(int(code))


def _print(found: list[Check], reports: "list[chipdock.PluginReport]") -> None:
    from rich.table import Column, Table  # noqa: PLC0415  drawn here only
    from rich.text import Text  # noqa: PLC0415

    out = console()
    grid = Table.grid("", "", Column(overflow="fold"), padding=(0, 2, 0, 0))
    for check in found:
        detail = Text(check.detail)
        if check.fix:
            detail.append(f"\n→ {check.fix}", "dim")
        grid.add_row(Text(check.status, STATE_STYLES[check.status]), check.name, detail)
    out.print(grid)
    out.print()
    print_plugins(out, reports)
    failed = sum(check.status == "fail" for check in found)
    warned = sum(check.status == "warn" for check in found)
    out.print()
    out.print(f"{failed} failed, {warned} with a warning, {len(found)} checks")

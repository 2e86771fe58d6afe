# SPDX-License-Identifier: Apache-2.0
"""The command `run`: options to a plan, the plan to a run, the run to a summary."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from chipdock.cli._command import Failure
from chipdock.conformance._reports import finish, last_of, report_options, waivers_of
from chipdock.conformance._selection import chosen, selection_options
from chipdock.conformance.journal import RunRecord
from chipdock.conformance.outcomes import FAILED, Outcome

__all__ = ["run"]

_SHOWN = 20


@click.command()
@click.option("--device", required=True, help="Device under test, NAME:N.")
@click.option("--plugin", default="", help="Its library or plugin.toml, if not installed.")
@selection_options
@click.option(
    "-j", "--jobs", type=click.IntRange(1, 64), default=1, show_default=True, help="Workers."
)
@click.option(
    "--timeout-scale", type=click.FloatRange(0.01, 1000), default=1.0, help="For slow machines."
)
@click.option("--mask", default="none", help="Take optional slots away: required, or seed:N.")
@click.option("--reset-cmd", default="", help="Shell command that brings an ill device back.")
@report_options
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), help="Folder of the results."
)
@click.option("--debug", is_flag=True, expose_value=False, help="Show where an error came from.")
def run(**given: Any) -> None:
    """Run cases on a device."""
    from chipdock.conformance.run import NotStarted, Options, execute  # noqa: PLC0415

    manifest, ids = chosen(given)
    out = given["out"] or Path("conformance-results") / time.strftime("%Y%m%d-%H%M%S")
    options = Options(
        device=given["device"],
        plugin=given["plugin"],
        out=out,
        jobs=given["jobs"],
        seed=given["seed"],
        mask=given["mask"],
        timeout_scale=given["timeout_scale"],
        reset_command=given["reset_cmd"],
        last=last_of(waivers_of(given["waivers"]), ids),
    )
    try:
        record, _ = execute(manifest, ids, options)
    except NotStarted as error:
        raise Failure(str(error), error.code) from error
    _summarize(record, out)
    click.get_current_context().exit(int(finish(record, manifest, out, given)))


def _summarize(record: RunRecord, out: Path) -> None:
    """Print what became of the cases: what failed first, then the counts side by side."""
    bad = [case for case in record.cases.values() if case.outcome in FAILED | {Outcome.MISSING}]
    for case in bad[:_SHOWN]:
        click.echo(f"{case.outcome} {case.id}: {case.reason}")
    if len(bad) > _SHOWN:
        click.echo(f"… and {len(bad) - _SHOWN} more")
    counts = ", ".join(f"{count} {name}" for name, count in record.counts.items())
    seconds = record.end["seconds"] if record.end else 0
    click.echo(f"{counts} in {seconds:.1f} s; results in {out}")

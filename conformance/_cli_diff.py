# SPDX-License-Identifier: Apache-2.0
"""The command `diff`: what changed between two runs. What is worse, evidence/diff.py says."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from chipdock.cli._command import Failure
from chipdock.cli._output import emit_json, json_option
from chipdock.cli.exit_codes import ExitCode
from chipdock.conformance._selection import Ratio

__all__ = ["diff"]

_SHOWN = 50


@click.command()
@click.argument("first", metavar="A", type=click.Path(exists=True, path_type=Path))
@click.argument("second", metavar="B", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--slower",
    type=Ratio(1.0, min_open=True),
    help="Ratio of times from which a case is slower; without it times are not judged.",
)
@click.option("--all", "everything", is_flag=True, help=f"More than {_SHOWN} cases of a kind.")
@json_option
@click.option("--debug", is_flag=True, expose_value=False, help="Show where an error came from.")
def diff(first: Path, second: Path, slower: float | None, everything: bool, as_json: bool) -> None:
    """Say what changed from run A to run B; both are folders of runs or their report.json.

    Exit code 1 if anything regressed, 7 if something is only slower, 3 if no case is in both.
    """
    from chipdock.conformance.evidence import diff as compared  # noqa: PLC0415
    from chipdock.conformance.evidence.report import ReportError, load  # noqa: PLC0415

    try:
        found = compared.compare(load(first), load(second), slower)
    except ReportError as error:
        raise Failure(str(error), ExitCode.USAGE) from error
    sections = {name: getattr(found, name) for name in compared.SECTIONS}
    if as_json:
        emit_json(
            "conformance-diff",
            {
                "exit_code": int(found.exit_code),
                "compared": found.compared,
                "remarks": found.remarks,
                **{k: [dataclasses.asdict(c) for c in v] for k, v in sections.items()},
            },
        )
        click.get_current_context().exit(int(found.exit_code))
    for remark in found.remarks:
        click.echo(f"note: {remark}")
    for name, changes in sections.items():
        if not changes:
            continue
        click.echo(f"{name}: {len(changes)}")
        for change in changes if everything else changes[:_SHOWN]:
            way = " -> ".join(part for part in (change.was, change.now) if part)
            click.echo(f"  {change.id}  {way}" + (f"  {change.text}" if change.text else ""))
        if not everything and len(changes) > _SHOWN:
            click.echo(f"  … and {len(changes) - _SHOWN} more; --all shows them")
    counts = ", ".join(f"{len(changes)} {name}" for name, changes in sections.items())
    click.echo(f"{found.compared} cases compared: {counts}")
    click.get_current_context().exit(int(found.exit_code))

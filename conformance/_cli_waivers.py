# SPDX-License-Identifier: Apache-2.0
"""The commands `waivers lint`, `stale` and `renew`. The rules are in waivers.py."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Sequence
from pathlib import Path

import click

from chipdock.cli._command import Failure
from chipdock.cli._output import emit_json, json_option
from chipdock.cli.exit_codes import ExitCode
from chipdock.conformance.case import Case
from chipdock.conformance.waiver_file import WaiverError, read, read_text, renewed
from chipdock.conformance.waivers import SOON, Problem, apply
from chipdock.conformance.waivers import lint as check

__all__ = ["waivers"]

_FILE = click.argument(
    "file", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE"
)
_TODAY = click.option(
    "--today",
    type=click.DateTime(["%Y-%m-%d"]),
    help="The day to judge by, instead of the present one.",
)


def _day(given: datetime.datetime | None) -> datetime.date:
    return (given or datetime.datetime.now(datetime.UTC)).date()


def _rows() -> dict[str, Case]:
    from chipdock.conformance.manifest import read_manifest  # noqa: PLC0415

    return {case_id: row.case for case_id, row in read_manifest().rows.items()}


def _end(problems: Sequence[Problem], good: str, as_json: bool) -> None:
    code = ExitCode.WAIVERS if problems else ExitCode.GOOD
    if as_json:
        emit_json("conformance-waivers", {"problems": [dataclasses.asdict(p) for p in problems]})
    for problem in () if as_json else problems:
        click.echo(f"{problem.kind}: {problem.text}")
    if not problems and not as_json:
        click.echo(good)
    click.get_current_context().exit(int(code))


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def waivers() -> None:
    """Check and renew the file of known failures."""


@waivers.command()
@_FILE
@_TODAY
@json_option
def lint(file: Path, today: datetime.datetime | None, as_json: bool) -> None:
    """Check FILE against the rules and the suite; exit code 6 if it breaks one."""
    try:
        entries = read(file)
    except WaiverError as error:
        raise Failure(str(error), ExitCode.WAIVERS) from error
    _end(check(entries, _rows(), _day(today)), f"{len(entries)} waivers keep every rule", as_json)


@waivers.command()
@_FILE
@click.option(
    "--run",
    "folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Also tell which are not needed in this run.",
)
@_TODAY
@json_option
def stale(file: Path, folder: Path | None, today: datetime.datetime | None, as_json: bool) -> None:
    """Say which waivers of FILE have ended, end soon, match nothing or are not needed.

    Exit code 6 if any has ended, matches nothing or is not needed.
    """
    try:
        entries = read(file)
    except WaiverError as error:
        raise Failure(str(error), ExitCode.WAIVERS) from error
    day = _day(today)
    found = [p for p in check(entries, _rows(), day) if p.kind in {"expired", "no_match"}]
    if folder is not None:
        from chipdock.conformance.evidence.publish import device_of  # noqa: PLC0415
        from chipdock.conformance.journal import read as read_journal  # noqa: PLC0415

        record = read_journal(folder)
        results = {k: (case.outcome, case.evidence) for k, case in record.cases.items()}
        found += apply(results, entries, device_of(record), day).problems
    for waiver in entries:
        left = (waiver.expires - day).days
        if 0 <= left <= SOON:
            again = "was renewed already" if waiver.renewed else "can be renewed once"
            click.echo(f"soon: {waiver.id} ends in {left} days and {again}", err=True)
    _end(found, "no waiver is stale", as_json)


@waivers.command()
@_FILE
@click.argument("waiver_id", metavar="ID")
@click.option("--days", type=click.IntRange(1), help="Shorter than its kind allows.")
@_TODAY
def renew(file: Path, waiver_id: str, days: int | None, today: datetime.datetime | None) -> None:
    """Move the end of the waiver ID in FILE, counted from today; once is all."""
    try:
        text = renewed(read_text(file), waiver_id, _day(today), days)
        file.write_text(text, encoding="utf-8")
        entry = next(entry for entry in read(file) if entry.id == waiver_id)
    except WaiverError as error:
        raise Failure(str(error), ExitCode.WAIVERS) from error
    click.echo(f"{waiver_id} holds until {entry.expires}")

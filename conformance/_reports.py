# SPDX-License-Identifier: Apache-2.0
"""What the command `run` does once its cases have run: waivers, reports, and what to look at."""

from __future__ import annotations

import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from chipdock.cli._command import Failure
from chipdock.cli.exit_codes import ExitCode, worst

if TYPE_CHECKING:
    from chipdock.conformance.journal import RunRecord
    from chipdock.conformance.manifest import Manifest
    from chipdock.conformance.waiver_file import Waiver

__all__ = ["check_outputs", "finish", "last_of", "report_options", "waivers_of"]

_Function = TypeVar("_Function", bound=Callable[..., Any])
_file = click.Path(dir_okay=False, path_type=Path)


def report_options(function: _Function) -> _Function:
    """Add the options about waivers and reports."""
    for option in (
        click.option(
            "--strict",
            is_flag=True,
            help="An entry point that is claimed and was never called fails the run, too.",
        ),
        click.option(
            "--baseline",
            type=click.Path(exists=True, path_type=Path),
            metavar="DIR",
            help="An earlier run; what regressed since fails, see `diff`.",
        ),
        click.option("--html", type=_file, metavar="FILE", help="A copy of the HTML report."),
        click.option("--junit", type=_file, metavar="FILE", help="A copy of the JUnit report."),
        click.option(
            "--waivers",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            metavar="FILE",
            help="Known failures; see `waivers`.",
        ),
    ):
        function = option(function)
    return function


def check_outputs(out: Path, given: Mapping[str, Any]) -> None:
    """See that the results can be written, before hours are spent on them.

    Args:
        out: Folder of the run; made if need be.
        given: The options of `report_options`.

    Raises:
        Failure: They cannot; the exit code is that of usage.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
        for name in ("junit", "html"):
            path: Path | None = given[name]
            if path is not None:
                new = not path.exists()
                with path.open("ab"):
                    pass
                if new:
                    path.unlink()
    except OSError as error:
        text = f"INVALID_ARGUMENT: the results cannot be written: {error.filename}: "
        raise Failure(f"{text}{error.strerror}; name another place", ExitCode.USAGE) from error


def waivers_of(path: Path | None) -> list[Waiver]:
    """Return the waivers of a file, none for None.

    Raises:
        Failure: The file cannot be used; the exit code is that of waivers.
    """
    if path is None:
        return []
    from chipdock.conformance.waiver_file import WaiverError, read  # noqa: PLC0415  slow to import

    try:
        return read(path)
    except WaiverError as error:
        raise Failure(str(error), ExitCode.WAIVERS) from error


def last_of(waivers: Sequence[Waiver], ids: Sequence[str]) -> tuple[str, ...]:
    """Return the cases that are known to crash, which run last."""
    if not waivers:
        return ()
    from chipdock.conformance.waivers import planned  # noqa: PLC0415

    return tuple(case_id for case_id, kind in planned(waivers, ids).items() if kind == "crash")


def finish(record: RunRecord, manifest: Manifest, out: Path, given: Mapping[str, Any]) -> ExitCode:
    """Write the reports of a run, say where they are, and return its exit code.

    Args:
        record: The journal.
        manifest: Of the suite.
        out: Folder of the run.
        given: The options of `report_options`.
    """
    from chipdock.conformance.evidence.publish import conclude, publish  # noqa: PLC0415

    command = shlex.join(["conformance-run", *sys.argv[1:]])
    found = conclude(record, manifest, waivers=waivers_of(given["waivers"]), command=command)
    publish(found, out)
    for name, path in (("junit.xml", given["junit"]), ("report.html", given["html"])):
        if path is not None:
            shutil.copyfile(out / name, path)
    document = found.document
    for problem in document["waivers"]["problems"]:
        click.echo(f"waiver {problem['kind']}: {problem['text']}", err=True)
    repeat = [case["repro"] for case in document["cases"] if case.get("repro")]
    if repeat:
        click.echo(f"repeat the first failure by: {repeat[0]}")
    codes = [found.exit_code]
    if given["strict"]:
        codes.append(_covered(document))
    if given["baseline"] is not None:
        codes.append(_compared(given["baseline"], document))
    click.echo(f"report: {out / 'report.html'}")
    return worst(codes)


def _covered(document: Mapping[str, Any]) -> ExitCode:
    never = document["coverage"]["never_called"]
    if never:
        click.echo(f"never called: {', '.join(never)}")
    for slot, codes in document["coverage"]["unseen_argument_errors"].items():
        click.echo(f"never seen: {', '.join(codes)} of {slot}")
    unseen = document["coverage"]["unseen_argument_errors"]
    return ExitCode.NOT_RUN if never or unseen else ExitCode.GOOD


def _compared(baseline: Path, document: Mapping[str, Any]) -> ExitCode:
    from chipdock.conformance.evidence.diff import SECTIONS, compare  # noqa: PLC0415
    from chipdock.conformance.evidence.report import ReportError, load  # noqa: PLC0415

    try:
        found = compare(load(baseline), document)
    except ReportError as error:
        raise Failure(str(error), ExitCode.USAGE) from error
    for change in found.regressed:
        click.echo(f"regressed: {change.id}  {change.was} -> {change.now}  {change.text}")
    counts = ", ".join(f"{len(getattr(found, name))} {name}" for name in SECTIONS)
    click.echo(f"since {baseline}: {counts}")
    return found.exit_code

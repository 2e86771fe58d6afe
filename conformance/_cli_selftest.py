# SPDX-License-Identifier: Apache-2.0
"""The command `selftest`: does the suite see the faults of a mutant plugin?"""

from __future__ import annotations

import difflib
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chipdock.cli._command import Failure
from chipdock.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from chipdock.conformance.selftest import Report, Verdict

__all__ = ["selftest"]


def _default_table() -> Path | None:
    folder = os.environ.get("CHIPDOCK_TEST_LIBDIR", "")
    return Path(folder) / "mutants" / "mutants.toml" if folder else None


@click.command()
@click.option(
    "--table",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Table of a mutant plugin; by default the one of a build, in CHIPDOCK_TEST_LIBDIR.",
)
@click.option("--mutant", "mutants", multiple=True, metavar="NAME", help="Only this fault.")
@click.option("-j", "--jobs", type=click.IntRange(1, 64), default=2, show_default=True)
@click.option("--fast", is_flag=True, help="Stop at the first red case; look at nothing else.")
@click.option("--list", "only_list", is_flag=True, help="Print the faults and run nothing.")
@click.option("--resume", is_flag=True, help="Go on with the self-test in --out; judge all anew.")
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), metavar="DIR", help="Results."
)
@click.option("--debug", is_flag=True, expose_value=False, help="Show where an error came from.")
def selftest(
    *,
    table: Path | None,
    mutants: tuple[str, ...],
    jobs: int,
    fast: bool,
    only_list: bool,
    resume: bool,
    out: Path | None,
) -> None:
    """Run the suite against faults that it has to see.

    Each fault breaks one duty; a case of that duty has to fail. Exit code 1 if a fault survived, if
    other cases failed that its table does not allow, or if cases fail without a fault.
    """
    from chipdock.conformance.manifest import read_manifest  # noqa: PLC0415
    from chipdock.conformance.mutants import read_table  # noqa: PLC0415
    from chipdock.conformance.selftest import run  # noqa: PLC0415

    path = table or _default_table()
    if path is None:
        raise click.UsageError("missing option '--table'; CHIPDOCK_TEST_LIBDIR is not set either")
    try:
        known = read_table(path)
    except (FileNotFoundError, ValueError) as error:
        raise Failure(f"INVALID_ARGUMENT: {error}", ExitCode.USAGE) from error
    for name in mutants:
        if name not in known.mutants:
            close = difflib.get_close_matches(name, known.mutants, n=1)
            hint = f"; did you mean '{close[0]}'?" if close else ""
            text = f"INVALID_ARGUMENT: {path} has no fault '{name}'{hint}"
            raise Failure(text, ExitCode.USAGE)
    names = list(mutants or known.mutants)
    if only_list:
        for name in names:
            click.echo(f"{name} [{known.mutants[name].duty}]: {known.mutants[name].breaks}")
        return
    if resume and out is None:
        raise click.UsageError("--resume needs --out, the folder of the self-test to go on with")
    folder = out or Path("conformance-results") / time.strftime("selftest-%Y%m%d-%H%M%S")
    try:
        report = run(
            known, names, read_manifest(), folder,
            jobs=jobs, collateral=not fast, resume=resume, told=_tell,
        )  # fmt: skip
    except (FileNotFoundError, RuntimeError) as error:
        raise Failure(f"UNAVAILABLE: {error}", ExitCode.NOT_STARTED) from error
    _summarize(report, folder)
    click.get_current_context().exit(0 if report.clean else int(ExitCode.FAILURES))


def _tell(verdict: Verdict) -> None:
    mutant = verdict.mutant
    seen = f"{len(verdict.red)} of {verdict.ran} cases"
    if verdict.given_up:
        seen += f", then given up: {verdict.given_up.splitlines()[0]}"
    click.echo(f"{verdict.state:8} {mutant.name} [{mutant.duty}] {seen}, {verdict.seconds:.1f} s")
    for case_id, why in verdict.collateral:
        click.echo(f"         not of {mutant.duty}: {case_id} {why}")


def _summarize(report: Report, folder: Path) -> None:
    for case_id, why in report.faultless.items():
        click.echo(f"fails without a fault: {case_id}: {why}")
    for verdict in report.verdicts:
        if verdict.state != "caught":
            mutant = verdict.mutant
            click.echo(f"{verdict.state}: {mutant.name} [{mutant.duty}]: {mutant.breaks}")
    if report.wide:
        text = "faults made cases fail that are not of their duty and not allowed, see above"
        click.echo(f"{report.wide} {text}")
    total = len(report.verdicts)
    share = 100 * report.caught / total if total else 0.0
    click.echo(
        f"mutation score {report.caught} of {total} = {share:.1f} % in {report.seconds:.0f} s; "
        f"details in {folder / 'selftest.json'}"
    )

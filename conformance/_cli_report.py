# SPDX-License-Identifier: Apache-2.0
"""The command `report`: makes the reports of a run anew from its journal."""

from __future__ import annotations

import datetime
from pathlib import Path

import click

from chipdock.cli._command import Failure
from chipdock.cli.exit_codes import ExitCode
from chipdock.conformance._reports import waivers_of

__all__ = ["report"]


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--waivers",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Apply the waivers of this file.",
)
@click.option("--debug", is_flag=True, expose_value=False, help="Show where an error came from.")
def report(folder: Path, waivers: Path | None) -> None:
    """Make the reports of the run in FOLDER from its results.jsonl.

    The exit code is that of the run, with these waivers applied as of today.
    """
    from chipdock.conformance.evidence.publish import conclude, publish  # noqa: PLC0415
    from chipdock.conformance.evidence.report import ReportError  # noqa: PLC0415
    from chipdock.conformance.journal import read  # noqa: PLC0415
    from chipdock.conformance.manifest import read_manifest  # noqa: PLC0415

    manifest = read_manifest()
    try:
        record = read(folder)
        found = conclude(
            record,
            manifest,
            waivers=waivers_of(waivers),
            today=datetime.datetime.now(datetime.UTC).date() if waivers else None,
        )
    except FileNotFoundError as error:
        raise Failure(
            f"INVALID_ARGUMENT: {folder} holds no results.jsonl; name the folder of a run",
            ExitCode.USAGE,
        ) from error
    except ReportError as error:
        raise Failure(str(error), ExitCode.USAGE) from error
    if record.run.get("suite_root") != manifest.root:
        click.echo(
            "the run was made by another suite; facts of its cases are of this one", err=True
        )
    for path in publish(found, folder):
        click.echo(path)
    for problem in found.document["waivers"]["problems"]:
        click.echo(f"{problem['kind']}: {problem['text']}", err=True)
    click.get_current_context().exit(int(found.exit_code))

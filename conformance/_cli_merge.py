# SPDX-License-Identifier: Apache-2.0
"""The command `merge`: the results of shards become those of the whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from chipdock.cli._command import Failure
from chipdock.cli.exit_codes import ExitCode
from chipdock.conformance._reports import check_outputs, finish, report_options
from chipdock.conformance.manifest import read_manifest
from chipdock.conformance.merge import MergeError, merge_runs

__all__ = ["merge"]


@click.command()
@click.argument(
    "folders",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
@click.option(
    "--out", required=True, type=click.Path(file_okay=False, path_type=Path), metavar="DIR"
)
@report_options
def merge(folders: tuple[Path, ...], out: Path, **given: Any) -> None:
    """Merge the results of shards, FOLDERS, into one run in DIR.

    All have to be of one suite, one plugin, one kind of device, one mask and one seed. A case that
    no shard has is MISSING.
    """
    check_outputs(out, given)
    try:
        record, _ = merge_runs(folders, out)
    except MergeError as error:
        raise Failure(f"INVALID_ARGUMENT: {error}", ExitCode.USAGE) from error
    counts = ", ".join(f"{count} {name}" for name, count in record.counts.items())
    click.echo(f"{counts}; results in {out}")
    click.get_current_context().exit(int(finish(record, read_manifest(), out, given)))

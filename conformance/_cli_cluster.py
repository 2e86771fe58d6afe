# SPDX-License-Identifier: Apache-2.0
"""The option `--cluster` of the command `run`: the shards go to the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from chipdock.cli._command import Failure
from chipdock.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from chipdock.conformance.journal import RunRecord
    from chipdock.conformance.manifest import Manifest
    from chipdock.conformance.parts import Parts

__all__ = ["cluster_options", "on_cluster"]

_Function = TypeVar("_Function", bound=Callable[..., Any])


def cluster_options(function: _Function) -> _Function:
    """Add the options about a cluster."""
    for option in (
        click.option(
            "--patience",
            type=click.FloatRange(0),
            default=60.0,
            metavar="SECONDS",
            help="With --cluster: how long to wait for a worker when there is none.",
        ),
        click.option(
            "--mixed",
            is_flag=True,
            help="With --cluster: let workers differ in device, plugin or suite.",
        ),
        click.option(
            "--shards",
            type=click.IntRange(1),
            metavar="N",
            help="With --cluster: cut the cases into so many; two a worker.",
        ),
        click.option(
            "--cluster",
            default="",
            metavar="ADDRESS",
            help="Share the cases between the workers of a Dask scheduler, or scheduler file.",
        ),
    ):
        function = option(function)
    return function


def on_cluster(
    manifest: Manifest, ids: Sequence[str], parts: Parts, out: Path, given: Mapping[str, Any]
) -> RunRecord:
    """Share the cases between the workers of a cluster, or go on with that.

    Raises:
        Failure: Dask is not installed, or an option does not go with `--cluster`.
        FleetError: See `run_cluster`.
    """
    if find_spec("distributed") is None:
        text = "UNAVAILABLE: --cluster needs Dask; pip install 'chipdock[cluster]'"
        raise Failure(text, ExitCode.NOT_STARTED)
    if given["against"]:
        text = "INVALID_ARGUMENT: --against names a file or run of this machine, so it does not go "
        raise Failure(f"{text}with --cluster; run level P on the machine itself", ExitCode.USAGE)
    if given["shard"] != (1, 1) or parts.device.endswith(":all"):
        text = "INVALID_ARGUMENT: --cluster makes its own shards, so neither --shard nor a device "
        raise Failure(f"{text}NAME:all goes with it", ExitCode.USAGE)
    from chipdock.conformance.cluster import Job, run_cluster  # noqa: PLC0415  optional

    job = Job(
        manifest, ids, parts, out,
        patience=given["patience"], say=lambda text: click.echo(text, err=True),
    )  # fmt: skip
    record, _ = run_cluster(job)
    return record

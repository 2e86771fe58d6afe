# SPDX-License-Identifier: Apache-2.0
"""Runs of the command `run` that are shared: all devices of a plugin, a cluster; going on with one.

What is common to a single run and these is in _cli_run.py.
"""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chipdock.cli._command import Failure
from chipdock.cli.exit_codes import ExitCode
from chipdock.conformance._cli_cluster import on_cluster

if TYPE_CHECKING:
    from chipdock.conformance.journal import RunRecord
    from chipdock.conformance.manifest import Manifest
    from chipdock.conformance.parts import Parts
    from chipdock.conformance.run import Options

__all__ = ["begin", "go_on", "parts_of"]


def begin(
    manifest: Manifest, ids: Sequence[str], options: Options, given: Mapping[str, Any]
) -> RunRecord:
    """Share cases between all devices of a plugin, or between the workers of a cluster.

    Raises:
        Failure: An option does not go with that.
        FleetError: Nothing could be started, or the parts do not fit together.
        NotStarted: The plugin cannot be loaded.
    """
    from chipdock.conformance.fleet import count_devices  # noqa: PLC0415
    from chipdock.conformance.parts import Parts, write_plan  # noqa: PLC0415

    clustered = bool(given["cluster"])
    name = options.device if clustered else options.device.removesuffix(":all")
    if not clustered and given["shard"] != (1, 1):
        text = "INVALID_ARGUMENT: --device NAME:all makes its own shards, so --shard does not go "
        raise Failure(f"{text}with it; name one device", ExitCode.USAGE)
    count = given["shards"] or 0 if clustered else count_devices(name, options.plugin)
    shared = _shared(options, given["order"])
    options.out.mkdir(parents=True, exist_ok=True)
    plan = write_plan(options.out, list(ids))
    parts = Parts(
        kind="cluster" if clustered else "devices",
        run=uuid.uuid4().hex,
        suite_root=manifest.root,
        device=name,
        plugin=options.plugin,
        count=count,
        arguments=tuple(shared if clustered else ["--plan", str(plan.absolute()), *shared]),
        options=dataclasses.asdict(options) | {"out": str(options.out)},
        address=given["cluster"],
        mixed=given["mixed"],
    )
    return _run(manifest, ids, parts, options.out, given)


def parts_of(folder: Path | None) -> Parts | None:
    """Return what a shared run in a folder is made of; None if it is no shared run.

    Raises:
        Failure: It was damaged.
    """
    from chipdock.conformance.parts import read_parts  # noqa: PLC0415

    try:
        return read_parts(folder) if folder is not None else None
    except ValueError as error:
        raise Failure(f"INVALID_ARGUMENT: {error}", ExitCode.USAGE) from error


def go_on(manifest: Manifest, parts: Parts, folder: Path, given: Mapping[str, Any]) -> RunRecord:
    """Go on with a shared run that was cut short, and merge its parts anew.

    Args:
        manifest: Of the suite.
        parts: What the run is made of.
        folder: Of the whole.
        given: Options of `run`; `--cluster` names where the cluster is by now.

    Raises:
        Failure: The suite has changed since.
        FleetError: See `begin`.
    """
    from chipdock.conformance.parts import PLAN  # noqa: PLC0415

    if parts.suite_root != manifest.root:
        raise Failure(
            f"INVALID_ARGUMENT: {folder} is a run of another suite, {parts.suite_root[:12]}; this "
            f"one is {manifest.root[:12]}; start a new run",
            ExitCode.USAGE,
        )
    ids = (folder / PLAN).read_text(encoding="utf-8").split()
    if parts.kind == "cluster" and given["cluster"]:
        parts = dataclasses.replace(parts, address=given["cluster"])
    return _run(manifest, ids, parts, folder, given)


def _run(
    manifest: Manifest, ids: Sequence[str], parts: Parts, out: Path, given: Mapping[str, Any]
) -> RunRecord:
    if parts.kind == "cluster":
        return on_cluster(manifest, ids, parts, out, given)
    from chipdock.conformance.fleet import run_fleet  # noqa: PLC0415

    parts.write(out)
    record, _ = run_fleet(parts.device, parts.count, parts.arguments, out)
    return record


def _shared(options: Options, order: str) -> list[str]:
    """The options that all shards of a run have in common."""
    words: dict[str, Any] = {
        "--plugin": options.plugin,
        "--jobs": options.jobs,
        "--seed": options.seed,
        "--order": order,
        "--mask": options.mask,
        "--timeout-scale": options.timeout_scale,
        "--repeat": options.repeat,
        "--reset-cmd": options.reset_command,
        "--worker-memory": options.memory,
    }
    arguments = [str(word) for pair in words.items() for word in pair]
    if options.until_fail:
        arguments.append("--until-fail")
    return arguments

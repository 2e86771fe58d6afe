# SPDX-License-Identifier: Apache-2.0
"""The command `run`: options to a plan, the plan to a run, the run to a summary."""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from chipdock.cli._command import Failure
from chipdock.cli.exit_codes import ExitCode
from chipdock.conformance._cli_cluster import cluster_options
from chipdock.conformance._cli_parts import begin, go_on, parts_of
from chipdock.conformance._reports import check_outputs, finish, last_of, report_options, waivers_of
from chipdock.conformance._selection import Ratio, chosen, described, selection_options
from chipdock.conformance.evidence.side import AGAINST
from chipdock.conformance.journal import RunRecord, read
from chipdock.conformance.outcomes import FAILED, Outcome
from chipdock.conformance.plan import group_of

if TYPE_CHECKING:
    from chipdock.conformance.manifest import Manifest
    from chipdock.conformance.run import Options

__all__ = ["run"]

_SHOWN = 20
_SHOWN_OF_GROUP = 3
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


class _Size(click.ParamType[int]):
    """Bytes: 500M, 2G."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the bytes."""
        match = re.fullmatch(r"([0-9]+)([KMG]?)", str(value))
        if match is None:
            self.fail(
                f"{value!r} is no size; it is a number of bytes, or such as 500M or 2G", param, ctx
            )
        return int(match.group(1)) * _UNITS[match.group(2)]


class _Mask(click.ParamType[str]):
    """Which optional slots are taken away."""

    name = "mask"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text."""
        if not re.fullmatch(r"none|required|seed:[1-9][0-9]{0,17}", str(value)):
            text = f"{value!r} is no mask; it is none, required, or seed:N such as seed:7"
            self.fail(text, param, ctx)
        return str(value)


def _device(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    """Return a device that can be asked for; plugins know which there are."""
    number = value.rpartition(":")[2] if ":" in value else ""
    if number.isdecimal() and not re.fullmatch(r"[0-9]{1,9}", number):
        raise click.BadParameter(f"{value!r} has no number of a device; name one such as cpu:0")
    return value


def _absolute(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    """Return the plugin's path as workers can use it, "" for none."""
    if value and not Path(value).is_file():
        raise click.BadParameter(f"{value!r} does not exist; name a library or plugin.toml")
    return str(Path(value).absolute()) if value else ""


def _against(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    """Leave it to the workers, which inherit the environment; paths as they can use them."""
    name, sign, path = value.rpartition("@")
    if value:
        full = str(Path(path).absolute()) if Path(path).exists() else path
        os.environ[AGAINST] = f"{name}{sign}{full}"
    return value


_folder = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command()
@click.option(
    "--device",
    default="",
    metavar="NAME:N",
    callback=_device,
    help="Device under test; NAME:all shares the cases between all.",
)
@click.option(
    "--plugin",
    default="",
    metavar="FILE",
    callback=_absolute,
    help="Its library or plugin.toml, if not installed.",
)
@selection_options
@click.option("--list", "only_list", is_flag=True, help="Print the chosen ids and run nothing.")
@click.option(
    "-j", "--jobs", type=click.IntRange(1, 64), default=1, show_default=True, help="Workers."
)
@click.option("--repeat", type=click.IntRange(1), default=1, help="Run each case so often.")
@click.option("--until-fail", is_flag=True, help="Repeat until something fails.")
@click.option("--timeout-scale", type=Ratio(0.01, 1000), default=1.0, help="For slow machines.")
@click.option(
    "--worker-memory", type=_Size(), default="0", help="Most memory of a worker: 500M, 2G."
)
@click.option(
    "--mask", type=_Mask(), default="none", help="Take optional slots away: required, or seed:N."
)
@click.option("--reset-cmd", default="", metavar="CMD", help="Brings an ill device back.")
@click.option(
    "--against",
    default="",
    metavar="PLUGIN|DIR",
    callback=_against,
    help="What level P compares with: a library, NAME:N, NAME:N@LIBRARY, or the folder of a run.",
)
@cluster_options
@report_options
@click.option("--resume", type=_folder, metavar="DIR", help="Go on with a run that was cut short.")
@click.option("--rerun-failed", type=_folder, metavar="DIR", help="Run what did not pass there.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Folder of the results.",
)
@click.option("--debug", is_flag=True, expose_value=False, help="Show where an error came from.")
def run(**given: Any) -> None:
    """Run cases on a device.

    Results are in DIR/results.jsonl, by default in a new folder of conformance-results.
    """
    from chipdock.conformance.fleet import FleetError  # noqa: PLC0415
    from chipdock.conformance.manifest import read_manifest  # noqa: PLC0415
    from chipdock.conformance.parts import PLAN  # noqa: PLC0415
    from chipdock.conformance.run import NotStarted, execute  # noqa: PLC0415

    parts = parts_of(given["resume"])
    try:
        if parts is not None:
            manifest, out = read_manifest(), given["resume"]
            if given["only_list"]:
                click.echo((out / PLAN).read_text(encoding="utf-8"), nl=False)
                return
            check_outputs(out, given)
            record = go_on(manifest, parts, out, given)
        else:
            manifest, ids, options = _resumed(given) if given["resume"] else _planned(given)
            if given["only_list"]:
                click.echo("\n".join(ids))
                return
            out = options.out
            check_outputs(out, given)
            if given["cluster"] or options.device.endswith(":all"):
                record = begin(manifest, ids, options, given)
            else:
                record, _ = execute(manifest, ids, options)
    except (NotStarted, FleetError) as error:
        raise Failure(str(error), error.code) from error
    _summarize(record, out)
    click.get_current_context().exit(int(finish(record, manifest, out, given)))


def _planned(given: dict[str, Any]) -> tuple[Manifest, list[str], Options]:
    from chipdock.conformance.run import Options  # noqa: PLC0415

    earlier = _journal(given["rerun_failed"]) if given["rerun_failed"] else None
    if earlier is not None:
        bad = FAILED | {Outcome.NOT_RUN, Outcome.MISSING}
        failed = tuple(case.id for case in earlier.cases.values() if case.outcome in bad)
        if not failed:
            text = f"NOT_RUN: nothing failed in {given['rerun_failed']}, so there is nothing to run"
            raise Failure(text, ExitCode.NOT_RUN)
        given = _earlier(given, earlier.run) | {"cases": (*given["cases"], *failed)}
    manifest, ids = chosen(given)
    if not given["device"] and not given["only_list"] and not given["cluster"]:
        raise click.UsageError("missing option '--device', such as --device cpu:0")
    out = given["out"] or Path("conformance-results") / time.strftime("%Y%m%d-%H%M%S")
    if (out / "results.jsonl").exists() or parts_of(out) is not None:
        text = f"INVALID_ARGUMENT: {out} holds a run already; go on with it by "
        text += f"--resume {out}, or give another folder"
        raise Failure(text, ExitCode.USAGE)
    same = ("device", "plugin", "jobs", "seed", "mask", "timeout_scale", "repeat", "until_fail")
    options = Options(
        **{name: given[name] for name in same},
        out=out,
        reset_command=given["reset_cmd"],
        memory=given["worker_memory"],
        selection=described(given),
        last=last_of(waivers_of(given["waivers"]), ids),
    )
    return manifest, ids, options


def _resumed(given: dict[str, Any]) -> tuple[Manifest, list[str], Options]:
    """Everything is as the journal says, but for options that do not change a result."""
    from chipdock.conformance.manifest import read_manifest  # noqa: PLC0415
    from chipdock.conformance.run import Options  # noqa: PLC0415

    folder = given["resume"]
    known = _journal(folder).run
    manifest = read_manifest()
    if manifest.root != known["suite_root"]:
        raise Failure(
            f"INVALID_ARGUMENT: {folder} is a run of another suite, {known['suite_root'][:12]}; "
            f"this one is {manifest.root[:12]}; start a new run",
            ExitCode.USAGE,
        )
    unknown = [case_id for case_id in known["selected"] if case_id not in manifest.rows]
    if unknown:
        text = f"INVALID_ARGUMENT: the run in {folder} has the case {unknown[0]}, which this suite "
        raise Failure(f"{text}lacks; start a new run", ExitCode.USAGE)
    now = _earlier(given, known)
    if given["cluster"] or now["device"].endswith(":all"):
        text = f"INVALID_ARGUMENT: {folder} is the run of one device, so neither --cluster nor a "
        raise Failure(f"{text}device NAME:all goes with it", ExitCode.USAGE)
    kept = {name: known["options"][name] for name in ("plugin", "seed", "mask", "selection")}
    options = Options(
        **kept,
        device=now["device"],
        out=folder,
        jobs=now["jobs"],
        timeout_scale=now["timeout_scale"],
        reset_command=now["reset_cmd"],
        memory=now["worker_memory"],
        last=last_of(waivers_of(given["waivers"]), known["selected"]),
    )
    return manifest, list(known["selected"]), options


def _journal(folder: Path) -> RunRecord:
    try:
        record = read(folder)
    except FileNotFoundError as error:
        text = f"INVALID_ARGUMENT: {folder} holds no results.jsonl, so it is no folder of a run"
        raise Failure(text, ExitCode.USAGE) from error
    if not record.run:
        text = f"INVALID_ARGUMENT: the run in {folder} never started a device; start a new one"
        raise Failure(text, ExitCode.USAGE)
    return record


def _earlier(given: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """The options as given, and those that were not given as in an earlier run."""
    names = {"reset_cmd": "reset_command", "worker_memory": "memory"}
    ctx = click.get_current_context()
    taken = dict(given)
    for name in ("device", "plugin", "jobs", "seed", "mask", "timeout_scale", *names):
        if ctx.get_parameter_source(name) is ParameterSource.DEFAULT:
            taken[name] = known["options"][names.get(name, name)]
    return taken


def _summarize(record: RunRecord, out: Path) -> None:
    """Print what became of the cases: what failed first, then the counts side by side."""
    bad = [case for case in record.cases.values() if case.outcome in FAILED | {Outcome.MISSING}]
    lines: list[str] = []
    shown: Counter[str] = Counter()
    for case in bad:
        group = group_of(case.id)
        if shown[group] < _SHOWN_OF_GROUP and len(lines) < _SHOWN:
            shown[group] += 1
            first = case.reason.split("\n", 1)[0].rstrip(": ")
            lines.append(f"{case.outcome} {case.id}: {first}")
    if len(bad) > len(lines):
        lines.append(f"… and {len(bad) - len(lines)} more that failed, see {out}")
    click.echo("\n".join(lines), nl=bool(lines))
    late = [e["detail"] for e in record.events if "idle or at its end" in e["detail"]]
    if late:
        click.echo(f"note: {len(late)} workers died behind their last case: {late[0]}")
    left = [case.reason for case in record.cases.values() if case.outcome is Outcome.NOT_RUN]
    for reason in sorted(set(left))[:_SHOWN]:
        click.echo(f"NOT_RUN {left.count(reason)} cases: {reason}")
    counts = ", ".join(f"{count} {name}" for name, count in record.counts.items())
    seconds = record.end["seconds"] if record.end else 0
    click.echo(f"{counts} in {seconds:.1f} s; results in {out}")

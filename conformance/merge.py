# SPDX-License-Identifier: Apache-2.0
"""Merging the journals of shards, which ran on one machine or on many, into one journal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from chipdock.cli.exit_codes import ExitCode, worst
from chipdock.conformance.journal import FILE, CaseRecord, Journal, RunRecord, read
from chipdock.conformance.manifest import Manifest, read_manifest
from chipdock.conformance.outcomes import Outcome, exit_code
from chipdock.conformance.plan import Selection, select

__all__ = ["MergeError", "identity", "merge_runs"]

_OF_SHARD = ("env", "device", "device_info", "plugin", "suite_root")


class MergeError(ValueError):
    """These journals are no parts of one run."""


def merge_runs(
    folders: Sequence[Path], out: Path, *, mixed: bool = False
) -> tuple[RunRecord, ExitCode]:
    """Write the journal of the whole.

    Args:
        folders: Of the shards, in any order.
        out: Folder of the whole; made if need be, and without a journal as yet.
        mixed: Allow different suites, plugins and devices; each shard's are in the run line.

    Returns:
        The journal, and the exit code that one run of all cases would have had.

    Raises:
        MergeError: A folder has no journal, two of them do not belong together or overlap, or `out`
            has a journal.
    """
    parts = [(folder, _read(folder)) for folder in folders]
    _check_folders(folders)
    first, whole = parts[0]
    for folder, part in parts[1:]:
        _check_same(
            first, whole.run, folder, part.run, ("mask", "seed", "selection") if mixed else ()
        )
    _check_apart(parts)
    if (out / FILE).exists():
        raise MergeError(f"{out} holds a run already; choose another folder for the whole")
    ids = _expected(whole.run, read_manifest()) or [i for _, p in parts for i in p.run["selected"]]
    out.mkdir(parents=True, exist_ok=True)
    journal = Journal(out)
    options = whole.run["options"]
    selection = options["selection"] | {"shard": [1, 1]}
    shards = [
        {"folder": str(folder)} | {key: part.run[key] for key in _OF_SHARD}
        for folder, part in parts
    ]
    started = min(part.run["started"] for _, part in parts)
    journal.write(
        whole.run
        | {"selected": ids, "started": started, "shards": shards}
        | {"options": options | {"selection": selection, "out": str(out)}}
    )
    for _, part in parts:
        for event in part.events:
            journal.write(event)
        for record in part.cases.values():
            journal.write(record.to_json())
    for case_id in ids:
        if case_id not in journal.record.cases:
            missing = CaseRecord(case_id, Outcome.MISSING, reason="no shard has it")
            journal.write(missing.to_json())
    code = _code(parts, [record.outcome for record in journal.record.cases.values()])
    ends = [part.end for _, part in parts if part.end is not None]
    journal.write(
        {
            "type": "end",
            "counts": journal.record.counts,
            "exit_code": int(code),
            "seconds": max((end["seconds"] for end in ends), default=0.0),
            "coverage": _sum(end["coverage"] for end in ends),
        }
    )
    journal.close()
    return journal.record, code


def _read(folder: Path) -> RunRecord:
    try:
        record = read(folder)
    except FileNotFoundError:
        raise MergeError(f"{folder} holds no {FILE}, so it is no folder of a run") from None
    if not record.run:
        raise MergeError(f"the run in {folder} never started a device; run that shard again")
    return record


def identity(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is tested by what: suite, plugin, product, architecture and driver.

    Args:
        run: Has suite_root, plugin and device_info, as the run line of a journal does.
    """
    info = run["device_info"]
    return {
        "suite": run["suite_root"],
        "plugin": run["plugin"]["sha256"],
        "product": info["product"],
        "architecture": info["architecture"],
        "driver": info["driver"],
    }


def _identity(run: Mapping[str, Any]) -> dict[str, Any]:
    asked = {key: value for key, value in run["options"]["selection"].items() if key != "shard"}
    return identity(run) | {
        "mask": run["mask"],
        "seed": run["seed"],
        "selection": asked,
    }


def _check_same(
    one: Path, first: Mapping[str, Any], other: Path, second: Mapping[str, Any], only: Sequence[str]
) -> None:
    for what, value in _identity(first).items():
        if only and what not in only:
            continue
        found = _identity(second)[what]
        if found != value:
            raise MergeError(
                f"{one} and {other} are no shards of one run: the {what} is {value!r} in the first "
                f"and {found!r} in the second"
            )


def _check_folders(folders: Sequence[Path]) -> None:
    """See that no shard is given twice, whatever its path is written as."""
    owner: dict[Path, Path] = {}
    for folder in folders:
        place = folder.resolve()
        if place in owner:
            raise MergeError(f"{owner[place]} and {folder} are one folder; give each shard once")
        owner[place] = folder


def _check_apart(parts: Sequence[tuple[Path, RunRecord]]) -> None:
    owner: dict[str, Path] = {}
    for folder, part in parts:
        for case_id in part.run["selected"]:
            if owner.setdefault(case_id, folder) != folder:
                raise MergeError(
                    f"{case_id} is in {owner[case_id]} and in {folder}; give each shard once"
                )


def _expected(run: Mapping[str, Any], manifest: Manifest) -> list[str]:
    """The ids of the whole, if this is the suite that was run; [] if it is another."""
    if manifest.root != run["suite_root"]:
        return []
    asked = run["options"]["selection"]
    lists = {key: tuple(value) for key, value in asked.items() if isinstance(value, list)}
    try:
        return select(manifest, Selection(**(asked | lists | {"shard": (1, 1)})))
    except (TypeError, ValueError) as cause:
        raise MergeError(
            f"the selection of the shards is none that this suite knows: {cause}; run them anew"
        ) from cause


def _code(parts: Sequence[tuple[Path, RunRecord]], outcomes: Sequence[Outcome]) -> ExitCode:
    codes = [exit_code(outcomes)]
    for _, part in parts:
        ended = ExitCode(part.end["exit_code"]) if part.end else ExitCode.INTERRUPTED
        if ended in (ExitCode.INTERRUPTED, ExitCode.NOT_STARTED, ExitCode.INFRASTRUCTURE):
            codes.append(ended)
    return worst(codes)


def _sum(coverages: Any) -> dict[str, dict[str, int]]:
    total: dict[str, dict[str, int]] = {}
    for coverage in coverages:
        for slot, row in coverage.items():
            known = total.setdefault(slot, {})
            for status, count in row.items():
                known[status] = known.get(status, 0) + count
    return total

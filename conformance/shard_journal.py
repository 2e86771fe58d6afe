# SPDX-License-Identifier: Apache-2.0
"""Journals of shards as the owner of a cluster's run completes them: events, and what never ran."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from chipdock.cli.exit_codes import ExitCode
from chipdock.conformance.journal import FILE, CaseRecord, Journal
from chipdock.conformance.manifest import Manifest
from chipdock.conformance.outcomes import Outcome
from chipdock.conformance.parts import journal_of
from chipdock.conformance.run import unsettled

__all__ = ["add_events", "complete", "run_line"]


def add_events(folder: Path, events: Iterable[tuple[str, str]]) -> None:
    """Add events, (what, detail), to a shard's journal."""
    journal = Journal(folder)
    for what, detail in events:
        journal.event(what, detail)
    journal.close()


def complete(
    folder: Path, line: Mapping[str, Any], events: Iterable[tuple[str, str]], manifest: Manifest,
    *, reason: str, code: ExitCode,
) -> None:  # fmt: skip
    """Complete the journal of a shard that came to no end anywhere.

    Args:
        folder: Of the shard; its journal may hold a part, or not be there.
        line: The run line, for a journal that has none.
        events: What happened to it, (what, detail).
        manifest: Of the suite.
        reason: Why what is left is NOT_RUN.
        code: Exit code of the shard.
    """
    folder.mkdir(exist_ok=True)
    if journal_of(folder) is None:
        (folder / FILE).unlink(missing_ok=True)
    add_events(folder, events)
    journal = Journal(folder)
    if not journal.record.run:
        journal.write(line)
    for case_id in journal.record.run["selected"]:
        if unsettled(journal.record, case_id):
            facts = manifest.rows[case_id].case
            record = CaseRecord(
                case_id, Outcome.NOT_RUN, revision=facts.revision, duties=facts.duties,
                reason=reason,
            )  # fmt: skip
            journal.write(record.to_json())
    end = {"exit_code": int(code), "seconds": 0.0, "coverage": {}}
    journal.write({"type": "end", "counts": journal.record.counts, **end})
    journal.close()


def run_line(
    device: Mapping[str, Any], options: dict[str, Any], whole: Sequence[str], ids: Sequence[str],
    place: tuple[int, int],
) -> dict[str, Any]:  # fmt: skip
    """Return the run line of a shard that no worker began.

    Args:
        device: Suite, plugin and device as the first worker described them.
        options: As `Options` has them.
        whole: Ids of the whole.
        ids: Of the shard.
        place: Its number, from 1, and how many there are.
    """
    asked = {"level": "", "tier": "submit", "globs": [], "order": "manifest"}
    kept = {key: value for key, value in options["selection"].items() if key in ("order", "seed")}
    selection = asked | kept | {"cases": [*whole], "shard": [*place]}
    return (
        {"type": "run", "schema": 1, "suite_version": version("chipdock"), **device}
        | {"seed": options["seed"], "mask": options["mask"]}
        | {"options": options | {"selection": selection}, "selected": [*ids]}
        | {"started": datetime.now(UTC).isoformat(timespec="seconds")}
    )

# SPDX-License-Identifier: Apache-2.0
"""The journal of a run, results.jsonl: appended to while the run goes on, read by everything else.

One JSON object a line, "type" first: run, start, case, event, end. The last case line of an id
counts. A line that a crash of the owner cut short is ignored.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chipdock.conformance.outcomes import Outcome

__all__ = ["FILE", "CaseRecord", "Journal", "RunRecord", "plain", "read"]

FILE = "results.jsonl"


@dataclass(frozen=True, slots=True)
class CaseRecord:
    """What became of one case.

    Attributes:
        id: Of the case.
        outcome: See outcomes.py.
        revision: Of the case.
        ms: How long it took, 0 if it did not end by itself.
        worker: Number of the worker process, -1 if it never started.
        attempt: 1 for the first, more for re-runs.
        reason: Why it is not PASS, in words.
        evidence: Plain data: metric, value, limit, index, expected, got, ….
        duties: That the case judges.
        calls: The last ABI calls, [slot, status], oldest first; empty for PASS.
        digest: SHA-256 of the outputs, or "".
        signal: That ended the process, or "".
        stdout: Tail of what was written; empty for PASS.
        stderr: As stdout.
        fallback: Nodes that ran on the host.
    """

    id: str
    outcome: Outcome
    revision: int = 1
    ms: float = 0.0
    worker: int = -1
    attempt: int = 1
    reason: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    duties: tuple[str, ...] = ()
    calls: tuple[tuple[str, str], ...] = ()
    digest: str = ""
    signal: str = ""
    stdout: str = ""
    stderr: str = ""
    fallback: int = 0

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> CaseRecord:
        """Return the record of a case line; keys of later schemas are ignored."""
        known = {name: row[name] for name in cls.__slots__ if name in row}
        known["outcome"] = Outcome(row["outcome"])
        known["duties"] = tuple(row.get("duties", ()))
        known["calls"] = tuple((slot, status) for slot, status in row.get("calls", ()))
        return cls(**known)

    def to_json(self) -> dict[str, Any]:
        """Return the record as a case line."""
        row = {name: getattr(self, name) for name in self.__slots__}
        return {"type": "case", **row, "ms": round(self.ms, 3)}


@dataclass
class RunRecord:
    """A journal in memory.

    Attributes:
        run: The run line; empty if the journal has none.
        cases: The last record by id.
        events: Event lines in order.
        started: Ids with a start line and no case line after it.
        end: The last end line, None if the run did not end.
    """

    run: dict[str, Any] = field(default_factory=dict)
    cases: dict[str, CaseRecord] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    started: set[str] = field(default_factory=set)
    end: dict[str, Any] | None = None

    def add(self, row: Mapping[str, Any]) -> None:
        """Take a line."""
        kind = row.get("type")
        if kind == "run":
            self.run = dict(row)
        elif kind == "start":
            self.started.add(row["id"])
        elif kind == "case":
            self.started.discard(row["id"])
            self.cases[row["id"]] = CaseRecord.from_json(row)
        elif kind == "event":
            self.events.append(dict(row))
        elif kind == "end":
            self.end = dict(row)

    @property
    def counts(self) -> dict[str, int]:
        """Number of cases by outcome, without zeros, in the order of Outcome."""
        found = Counter(record.outcome for record in self.cases.values())
        return {str(outcome): found[outcome] for outcome in Outcome if found[outcome]}


class Journal:
    """The journal of a run in progress: each line is on disk when the call returns.

    Attributes:
        record: What was written so far.
    """

    def __init__(self, folder: Path) -> None:
        """Opens the journal in a folder, appending to what is there."""
        self.record = read(folder) if (folder / FILE).is_file() else RunRecord()
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self._file = os.open(folder / FILE, flags, 0o644)
        if _cut_short(folder / FILE):
            os.write(self._file, b"\n")

    def write(self, row: Mapping[str, Any]) -> None:
        """Append a line; "type" stands first."""
        self.record.add(row)
        line = json.dumps(plain(row), separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        os.write(self._file, f"{line}\n".encode("utf-8", "replace"))

    def event(self, what: str, detail: str) -> None:
        """Append an event."""
        self.write({"type": "event", "what": what, "detail": detail})

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def _cut_short(path: Path) -> bool:
    with path.open("rb") as file:
        if file.seek(0, os.SEEK_END) == 0:
            return False
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


def read(path: Path) -> RunRecord:
    """Read a journal.

    Args:
        path: The file, or the folder of a run.

    Raises:
        FileNotFoundError: There is none.
    """
    found = RunRecord()
    file = path / FILE if path.is_dir() else path
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            try:
                row = json.loads(line)
            except json.JSONDecodeError:
                continue
            if isinstance(row, dict):
                found.add(row)
    return found


def plain(value: Any) -> Any:
    """Return what JSON can hold: numbers of numpy become Python's, NaN and infinities text."""
    if isinstance(value, str | bool | int) or value is None:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    listed = getattr(value, "tolist", None)
    return (
        plain(listed()) if listed is not None and type(value).__module__ == "numpy" else str(value)
    )

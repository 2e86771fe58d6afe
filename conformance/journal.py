# SPDX-License-Identifier: Apache-2.0
"""The journal of a run, results.jsonl: appended to while the run goes on, read by everything else.

One JSON object a line, "type" first: run, start, case, event, end. The last case line of an id
counts. A line that a crash of the owner cut short is ignored.
"""

from __future__ import annotations

import datetime
import fcntl
import json
import math
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chipdock.cli.exit_codes import ExitCode
from chipdock.conformance.ids import check_id
from chipdock.conformance.outcomes import Outcome

__all__ = ["FILE", "CaseRecord", "Journal", "JournalError", "RunRecord", "plain", "read"]

FILE = "results.jsonl"


class JournalError(Exception):
    """A journal that was not written by a run, or was damaged since."""


_NUMBER = (int, float)
_FORMS: dict[str, dict[str, type | tuple[type, ...]]] = {
    "run": {
        "suite_root": str, "device": str, "plugin": dict, "device_info": dict, "options": dict,
        "selected": list, "started": str,
    },
    "start": {"id": str},
    "case": {"id": str, "outcome": str},
    "event": {"what": str, "detail": str},
    "end": {"exit_code": int, "seconds": _NUMBER, "coverage": dict},
}  # fmt: skip
"""What a line of each type has at least."""
_PARTS: dict[str, dict[str, type | tuple[type, ...]]] = {
    "plugin": {"sha256": str},
    "device_info": {"product": str, "architecture": str, "driver": str},
    "options": {
        "device": str, "plugin": str, "jobs": int, "seed": int, "mask": str, "memory": int,
        "timeout_scale": _NUMBER, "reset_command": str, "selection": dict,
    },
}  # fmt: skip
"""What the parts of a run line have at least."""
_OPTIONAL: dict[str, type | tuple[type, ...]] = {
    "revision": int, "ms": _NUMBER, "worker": int, "attempt": int, "reason": str, "evidence": dict,
    "duties": list, "calls": list, "digest": str, "signal": str, "stdout": str, "stderr": str,
    "fallback": int, "capabilities": dict,
}  # fmt: skip
"""What a line may have, and as what."""


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
        """Opens the journal in a folder, appending to what is there.

        Raises:
            JournalError: Another process writes it, or see `read`.
        """
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self._file = os.open(folder / FILE, flags, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._file)
            raise JournalError(
                f"INVALID_ARGUMENT: another run writes {folder / FILE} now; wait for its end, or "
                "choose another folder"
            ) from None
        except OSError:
            pass  # a file system without locks
        self.record = read(folder)
        if _cut_short(folder / FILE):
            os.write(self._file, b"\n")

    def write(self, row: Mapping[str, Any]) -> None:
        """Append a line; "type" stands first."""
        row = plain(row)
        self.record.add(row)
        line = json.dumps(row, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        left = f"{line}\n".encode("utf-8", "backslashreplace")
        while left:  # a full disk takes a part, and says so only the next time
            left = left[os.write(self._file, left) :]

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
        JournalError: It is no regular file, or a whole line of it is none that a run writes.
    """
    found = RunRecord()
    file = path / FILE if path.is_dir() else path
    if file.exists() and not file.is_file():
        raise JournalError(f"INVALID_ARGUMENT: {file} is no regular file; name the folder of a run")
    with file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                row = json.loads(line.decode("utf-8", "replace"))
                if isinstance(row, dict):
                    _check(row)
                    found.add(row)
            except json.JSONDecodeError:
                continue  # a crash of the writer cut it short
            except (KeyError, TypeError, ValueError, RecursionError) as cause:
                what = f"no {cause}" if isinstance(cause, KeyError) else str(cause)
                raise JournalError(
                    f"INVALID_ARGUMENT: {file}, line {number}, is none that a run writes: {what}; "
                    "take that line out, or run it anew"
                ) from cause
    return found


def _typed(row: Mapping[str, Any], name: str, form: type | tuple[type, ...]) -> None:
    value = row[name]
    if not isinstance(value, form) or isinstance(value, bool):
        raise TypeError(f"{name} is {value!r}"[:200])


def _check(row: Mapping[str, Any]) -> None:
    """Look at the form of a line.

    Raises:
        KeyError: Something is missing.
        TypeError: Something is of another type.
        ValueError: A value is none of those that there are.
    """
    kind = row.get("type")
    needed = _FORMS.get(kind, {}) if isinstance(kind, str) else {}
    if not needed:
        return
    for name, form in {**{n: f for n, f in _OPTIONAL.items() if n in row}, **needed}.items():
        _typed(row, name, form)
    if "id" in needed:
        check_id(row["id"])
    if kind == "run":
        for part, names in _PARTS.items():
            for name, form in names.items():
                _typed(row[part], name, form)
        for case_id in row["selected"]:
            if not isinstance(case_id, str):
                raise TypeError(f"selected holds {case_id!r}"[:200])
            check_id(case_id)
        datetime.datetime.fromisoformat(row["started"])
    elif kind == "end":
        ExitCode(row["exit_code"])


def plain(value: Any) -> Any:
    """Return what JSON can hold: numbers of numpy become Python's, NaN and infinities text."""
    if isinstance(value, str) and not value.isascii():
        # A lone surrogate, of bytes that were no text, can stand in no file.
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
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

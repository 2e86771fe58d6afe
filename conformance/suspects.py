# SPDX-License-Identifier: Apache-2.0
"""Failures of a run that wait to be looked into, and groups stopped for failing all alike."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from chipdock.conformance.isolate import BAD, Trials, isolate
from chipdock.conformance.journal import CaseRecord
from chipdock.conformance.plan import group_of

__all__ = ["CONFIRMED", "IDENTICAL", "Suspects", "Trial"]

IDENTICAL = 20
"""So many identical failures stop a group."""
CONFIRMED = 3
"""So many identical failures of a group that came again alone stand for the others of it."""


@dataclass
class Trial:
    """A question that waits for its answer.

    Attributes:
        first: The failure that is looked into.
        steps: The rest of the questions.
        cases: To be run in a fresh worker; what becomes of the last is the answer.
        started: How many workers were started for it.
    """

    first: CaseRecord
    steps: Trials
    cases: list[str]
    started: int = 0


class Suspects:
    """Failures and what is asked about them.

    Attributes:
        stopped: Groups that were stopped, with the reason.
    """

    def __init__(self, settle: Callable[[CaseRecord], None]) -> None:
        """Starts empty.

        Args:
            settle: Takes the final record of a failure.
        """
        self._settle = settle
        self._waiting: deque[tuple[CaseRecord, list[str], int]] = deque()
        self._trials: deque[Trial] = deque()
        self._alike: Counter[tuple[str, str]] = Counter()
        self._confirmed: Counter[tuple[str, str]] = Counter()
        self._refuted: set[tuple[str, str]] = set()
        self.stopped: dict[str, str] = {}

    def add(self, record: CaseRecord, before: Sequence[str], batch: int) -> bool:
        """Take a failure.

        Args:
            record: Of the case.
            before: What ran before it in its worker.
            batch: How many of these belong to its batch.

        Returns:
            Whether this one stopped its group.
        """
        self._waiting.append((record, list(before), batch))
        key = _alike(record)
        self._alike[key] += 1
        if self._alike[key] != IDENTICAL:
            return False
        self.stopped[key[0]] = (
            f"{key[0]} was stopped after {IDENTICAL} identical failures: "
            f"{record.outcome}: {record.reason[:200]}"
        )
        return True

    def __len__(self) -> int:
        """Number of failures and questions that wait."""
        return len(self._waiting) + len(self._trials)

    def next(self) -> Trial | None:
        """Return a question to be asked now, None if none waits."""
        while not self._trials and self._waiting:
            record, before, batch = self._waiting.popleft()
            key = _alike(record)
            if self._confirmed[key] < CONFIRMED or key in self._refuted:
                steps = isolate(record, before, batch)
                return Trial(record, steps, next(steps))
        return self._trials.popleft() if self._trials else None

    def again(self, trial: Trial) -> None:
        """Put a question back that got no answer."""
        self._trials.append(trial)

    def answer(self, trial: Trial, record: CaseRecord) -> None:
        """Take what became of the last case of a trial."""
        try:
            trial.cases = trial.steps.send(record)
            trial.started = 0
            self._trials.appendleft(trial)
        except StopIteration as stop:
            final: CaseRecord = stop.value
            key = _alike(trial.first)
            if final.outcome in BAD:
                self._confirmed[key] += 1
            else:
                self._refuted.add(key)
            self._settle(final)

    def forget(self) -> None:
        """Drop all that waits: the first records stay."""
        self._waiting.clear()
        self._trials.clear()


def _alike(record: CaseRecord) -> tuple[str, str]:
    """What identical failures have in common: group, outcome, and the reason without numbers."""
    reason = re.sub(r"0x[0-9a-f]+|\d+(\.\d+)?", "#", record.reason.split("\n", 1)[0][:200])
    return group_of(record.id), f"{record.outcome} {record.signal} {reason}"

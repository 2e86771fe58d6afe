# SPDX-License-Identifier: Apache-2.0
"""Is a failure the case's own, that of another case before it, or chance?

The questions are asked as trials: a list of cases to run in a fresh worker, answered by what became
of the last of them. Nothing here starts a process; the scheduler does.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Generator, Sequence

from chipdock.conformance.journal import CaseRecord
from chipdock.conformance.outcomes import Outcome

__all__ = ["BAD", "Trials", "isolate", "shortest"]

BAD = frozenset({Outcome.FAIL, Outcome.CRASH, Outcome.TIMEOUT, Outcome.CLAIMED_UNSUPPORTED})
"""Outcomes of a single run that are looked into."""

_MOST_TRIALS = 40
"""Of the search for the shortest prefix; what is shortest by then is reported."""

Trials = Generator[list[str], CaseRecord, CaseRecord]


def isolate(first: CaseRecord, prefix: Sequence[str], batch: int) -> Trials:
    """Look into a failure.

    Args:
        first: What became of the case at first.
        prefix: Ids that ran in the same worker before it, in order.
        batch: How many of these belong to the same batch.

    Returns:
        The final record: the failure again, or FLAKY, or ORDER_DEPENDENT with the shortest prefix
        found in evidence["behind"].
    """
    solo = yield [first.id]
    if solo.outcome in BAD:
        return dataclasses.replace(solo, attempt=2)
    # The culprit is most likely near, and a whole worker's life may be long.
    near = list(prefix[len(prefix) - batch :]) if batch else []
    attempt = 2
    for before in [near, list(prefix)] if len(prefix) > batch else [near]:
        if not before:
            continue
        attempt += 1
        again = yield [*before, first.id]
        if again.outcome in BAD:
            needed = yield from shortest(before, first.id)
            return _verdict(
                first, Outcome.ORDER_DEPENDENT, attempt, f"fails behind {', '.join(needed)} only",
                behind=needed,
            )  # fmt: skip
    why = "passed alone" + (
        ", and the same cases before it did not make it fail again" if prefix else ""
    )
    return _verdict(first, Outcome.FLAKY, attempt, why)


def _verdict(
    first: CaseRecord, outcome: Outcome, attempt: int, why: str, **evidence: object
) -> CaseRecord:
    return dataclasses.replace(
        first,
        outcome=outcome,
        attempt=attempt,
        reason=f"{why}; at first: {first.outcome}: {first.reason}",
        evidence={**first.evidence, "first": str(first.outcome), **evidence},
    )


def shortest(prefix: Sequence[str], case_id: str) -> Generator[list[str], CaseRecord, list[str]]:
    """Return the part of a prefix behind which the case fails, and behind no less of it.

    The last case that matters is found by bisection, then the one before it, until those found are
    enough. That takes few trials where few cases matter, as is usual; after _MOST_TRIALS what is
    shortest so far is returned.

    Args:
        prefix: Ids, in order, behind which the case fails.
        case_id: Of the case.
    """
    rest, kept = list(prefix), list[str]()
    tries = 0
    while rest:
        low, high = (
            0,
            len(rest),
        )  # behind rest[:low] and kept it passes, behind rest[:high] it fails
        while high - low > 1:
            if tries >= _MOST_TRIALS:
                return [*rest[:high], *kept]
            tries += 1
            middle = (low + high) // 2
            if (yield [*rest[:middle], *kept, case_id]).outcome in BAD:
                high = middle
            else:
                low = middle
        kept = [rest[high - 1], *kept]
        rest = rest[: high - 1]
        tries += 1
        if not rest or (yield [*kept, case_id]).outcome in BAD:
            break
    return kept

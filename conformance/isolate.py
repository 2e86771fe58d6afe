# SPDX-License-Identifier: Apache-2.0
"""Is a failure the case's own, that of another case before it, or chance?

The questions are asked as trials: a list of cases to run in a fresh worker, answered by what became
of the last of them. Nothing here starts a process; the scheduler does.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Generator, Sequence

from chipdock.conformance.journal import CaseRecord
from chipdock.conformance.outcomes import Outcome

__all__ = ["BAD", "Trials", "ddmin", "isolate", "minimise"]

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
            shortest = yield from ddmin(before, first.id)
            return _verdict(
                first, Outcome.ORDER_DEPENDENT, attempt, f"fails behind {', '.join(shortest)} only",
                behind=shortest,
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


def ddmin(prefix: Sequence[str], case_id: str) -> Generator[list[str], CaseRecord, list[str]]:
    """Return a prefix that makes the case fail and no part of which does, as far as was tried.

    Source:
        Zeller and Hildebrandt, Simplifying and Isolating Failure-Inducing Input, 2002, section 4.
    """
    return (yield from minimise(list(prefix), lambda part: [*part, case_id]))


def minimise(
    found: list[str], trial: Callable[[list[str]], list[str]]
) -> Generator[list[str], CaseRecord, list[str]]:
    """Return the smallest list found whose trial still fails; the list as given does."""
    tries = 0
    parts = 2
    while len(found) >= 2 and tries < _MOST_TRIALS:
        bounds = [len(found) * k // parts for k in range(parts + 1)]
        chunks = [found[a:b] for a, b in itertools.pairwise(bounds)]
        # With two parts, a complement is the other part.
        rest = [[i for i in found if i not in set(chunk)] for chunk in chunks] if parts > 2 else []
        for number, candidate in enumerate([*chunks, *rest]):
            if tries >= _MOST_TRIALS:
                return found
            tries += 1
            if (yield trial(candidate)).outcome in BAD:
                found = candidate
                parts = 2 if number < len(chunks) else max(parts - 1, 2)
                break
        else:
            if parts >= len(found):
                break
            parts = min(len(found), 2 * parts)
    return found

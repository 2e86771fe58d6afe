# SPDX-License-Identifier: Apache-2.0
"""Whether B is slower than A, from samples taken by turns, and when that cannot be told.

On a shared machine the same work takes ten percent more or less from one process to the next, and
keeps to it as long as the process lives: its addresses and its core are drawn once. So samples of
one process are one draw. Both sides start anew for every round, run in turns there, A B B A, each
round gives a ratio, and a verdict needs both the confidence interval of the ratio over the rounds
and a centre that stands out of the noise of the very same run. Counters have no noise and are
compared exactly. What is measured is left to the caller.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum

__all__ = [
    "PAIRS",
    "ROUNDS",
    "Paired",
    "Sample",
    "Verdict",
    "compare_counters",
    "judge",
    "measure",
]

ROUNDS = 5
"""Fewer rounds give no verdict."""

PAIRS = 2
"""Pairs of samples a round: A B, B A."""

Sample = Callable[[], float]
"""Does the work and returns its time in seconds, above 0."""

_SLOWER = 1.05
_STANDS_OUT = 0.10
_MOST_NOISE = 0.10

# Student's t for a two-sided 95 % interval, by degrees of freedom from 1.
_T95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
)  # fmt: skip


class Verdict(StrEnum):
    """What pairs of samples show."""

    SAME = "same"
    FASTER = "faster"
    SLOWER = "slower"
    """The only one that fails."""
    INCONCLUSIVE = "inconclusive"
    """The machine was too noisy to tell."""


@dataclass(frozen=True, slots=True)
class Paired:
    """What was found.

    Attributes:
        verdict: See Verdict.
        ratio: Geometric mean of B's time to A's.
        low: Lower end of its 95 % interval.
        high: Upper end.
        noise: Root mean square of the relative difference of two neighbouring samples of one side.
        pairs: How many.
    """

    verdict: Verdict
    ratio: float
    low: float
    high: float
    noise: float
    pairs: int

    def __str__(self) -> str:
        """Return the finding in words."""
        return (
            f"{self.verdict}: B takes {self.ratio:.3f} of A's time, 95 % interval {self.low:.3f} "
            f"to {self.high:.3f}, noise {100 * self.noise:.1f} %, {self.pairs} pairs"
        )


def _t95(freedom: int) -> float:
    # Above the table, within 0.002 of the exact value and never below it.
    return _T95[freedom - 1] if freedom <= len(_T95) else 1.96 + 2.5 / freedom


def measure(
    start: Callable[[], AbstractContextManager[tuple[Sample, Sample]]],
    *,
    rounds: int = ROUNDS,
    least_of: int = 3,
) -> tuple[list[float], list[float]]:
    """Take samples by turns, A B B A, of two sides that start anew for each round.

    Args:
        start: Starts both sides in processes of their own and ends them afterwards.
        rounds: How often.
        least_of: Calls a sample; the shortest counts, for noise only ever adds. One call of each
            side before the first sample of a round is not timed.

    Returns:
        Samples of A and of B in seconds, in the order taken, each of length rounds x PAIRS.

    Raises:
        ValueError: Fewer than ROUNDS rounds, or no call a sample.
    """
    if rounds < ROUNDS or least_of < 1:
        raise ValueError(
            f"{rounds} rounds of {least_of} calls; at least {ROUNDS} rounds of 1 are needed"
        )
    samples: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        with start() as sides:
            for side in sides:
                side()
            for pair in range(PAIRS):
                for one in (0, 1) if pair % 2 == 0 else (1, 0):
                    samples[one].append(min(sides[one]() for _ in range(least_of)))
    return samples


def _noise(first: Sequence[float], second: Sequence[float]) -> float:
    """Differences of samples of one side that were taken one after the other."""
    # In A B B A A B B A the neighbours are B0 B1, A1 A2, B2 B3, A3 A4, …; those of A are of two
    # processes, which is the noise that matters.
    sides = (second, first)
    squares = [math.log(sides[n % 2][n + 1] / sides[n % 2][n]) ** 2 for n in range(len(first) - 1)]
    return math.sqrt(statistics.fmean(squares))


def judge(first: Sequence[float], second: Sequence[float]) -> Paired:
    """Say whether B is slower than A.

    Slower needs both: the 95 % interval of the ratio over rounds lies above 1.05, and the ratio
    itself above 1 + max(0.10, twice the noise). Noise above 10 % makes every verdict inconclusive.

    Args:
        first: Samples of A in seconds, in the order of `measure`.
        second: Samples of B, as many.

    Raises:
        ValueError: Not as many, no whole rounds, fewer than ROUNDS, or a time that is not above 0.
    """
    rounds, rest = divmod(len(first), PAIRS)
    if len(first) != len(second) or rest or rounds < ROUNDS:
        raise ValueError(
            f"{len(first)} and {len(second)} samples; both sides need the same number, {PAIRS} a "
            f"round and at least {ROUNDS} rounds"
        )
    if not all(math.isfinite(value) and value > 0.0 for value in (*first, *second)):
        raise ValueError("a sample is no time above 0; a clock that coarse cannot be judged by")
    logs = [math.log(b / a) for a, b in zip(first, second, strict=True)]
    draws = [statistics.fmean(logs[n : n + PAIRS]) for n in range(0, len(logs), PAIRS)]
    centre = statistics.fmean(draws)
    half = _t95(rounds - 1) * statistics.stdev(draws) / math.sqrt(rounds)
    ratio, low, high = (math.exp(value) for value in (centre, centre - half, centre + half))
    noise = _noise(first, second)
    if noise > _MOST_NOISE:
        verdict = Verdict.INCONCLUSIVE
    elif low > _SLOWER and ratio > 1.0 + max(_STANDS_OUT, 2.0 * noise):
        verdict = Verdict.SLOWER
    elif high < 1.0 / _SLOWER and ratio < 1.0 / (1.0 + max(_STANDS_OUT, 2.0 * noise)):
        verdict = Verdict.FASTER
    else:
        verdict = Verdict.SAME
    return Paired(verdict, ratio, low, high, noise, len(logs))


def compare_counters(first: Mapping[str, int], second: Mapping[str, int]) -> dict[str, str]:
    """Return each counter that grew from A to B, in words; empty means that B passes.

    Args:
        first: Of A: ABI calls, bytes copied, allocations, ….
        second: Of B; a counter that only one side has is told as well.
    """
    grown = {}
    for name in sorted({*first, *second}):
        if name not in first or name not in second:
            grown[name] = f"counted only in {'A' if name in first else 'B'}"
        elif second[name] > first[name]:
            grown[name] = f"{first[name]} to {second[name]}"
    return grown

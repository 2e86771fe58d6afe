# SPDX-License-Identifier: Apache-2.0
"""Class D: random operators are judged by their distribution, at a chance of 1e-6 to be wrong."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipdock.conformance.case import fail

__all__ = ["ALPHA", "chi2_check", "chi2_limit", "ks_check", "ks_limit", "normal_cdf", "uniform_cdf"]

ALPHA = 1e-6
"""Chance that a right generator fails a test. Seeds are fixed, so a pass stays a pass."""


def ks_limit(count: int) -> float:
    """Return the largest Kolmogorov-Smirnov distance of `count` samples at ALPHA.

    Source:
        Dvoretzky, Kiefer and Wolfowitz with Massart's constant: P(D > d) <= 2 exp(-2 n d^2).
    """
    return math.sqrt(math.log(2.0 / ALPHA) / (2.0 * max(count, 1)))


@cache
def chi2_limit(freedom: int) -> float:
    """Return the value that chi-squared passes with chance ALPHA, by halving intervals."""
    low, high = 0.0, 10.0 * freedom + 100.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _beyond(middle, freedom) > ALPHA else (low, middle)
    return high


def _beyond(value: float, freedom: int) -> float:
    """Chance that chi-squared is above a value: the sums for whole and half gamma functions."""
    half = value / 2
    even = freedom % 2 == 0
    total = math.exp(-half) if even else math.erfc(math.sqrt(half))
    power = 1.0 if even else 0.5
    while power < freedom / 2:
        total += math.exp(power * math.log(half) - half - math.lgamma(power + 1)) if half else 0.0
        power += 1.0
    return total


def uniform_cdf(values: NDArray[Any], low: float, high: float) -> NDArray[Any]:
    """Return the share of a uniform distribution below each value."""
    return np.clip((values - low) / (high - low), 0.0, 1.0)


def normal_cdf(values: NDArray[Any], mean: float, scale: float) -> NDArray[Any]:
    """Return the share of a normal distribution below each value."""
    erf = np.frompyfunc(math.erf, 1, 1)
    share = np.asarray(erf((values - mean) / (scale * math.sqrt(2.0))), np.float64)
    return 0.5 * (1.0 + share)


def ks_check(cdf: NDArray[Any], name: str, resolution: float = 0.0) -> dict[str, Any]:
    """Check that values are spread as their distribution function says.

    Args:
        cdf: The distribution function at each sample, any shape.
        name: For the text.
        resolution: Largest share that lies between two neighbours of the samples' type.

    Returns:
        Evidence.

    Raises:
        CheckError: The distance is above the limit, or a value is no number.
    """
    flat = np.sort(cdf.reshape(-1).astype(np.float64))
    count = flat.size
    steps = np.arange(count + 1) / count
    distance = float(max((flat - steps[:-1]).max(), (steps[1:] - flat).max()))
    limit = ks_limit(count) + resolution
    evidence = {"metric": "kolmogorov_smirnov", "value": distance, "limit": limit}
    if not distance <= limit:
        fail(
            f"{name}: {count} samples are {distance:.4g} away from their distribution, "
            f"{limit:.4g} is passed with chance 1e-6",
            **evidence,
        )
    return evidence


def chi2_check(counts: NDArray[Any], shares: NDArray[Any], name: str) -> dict[str, Any]:
    """Check that classes are drawn as often as they should.

    Args:
        counts: How often each class was drawn, shape (n,).
        shares: Its chance, shape (n,), sum 1. Classes of chance 0 must never be drawn.
        name: For the text.

    Returns:
        Evidence.

    Raises:
        CheckError: The statistic is above the limit.
    """
    possible = shares > 0
    impossible = int(counts[~possible].sum())
    expected = shares[possible] * counts.sum()
    statistic = float((((counts[possible] - expected) ** 2) / expected).sum())
    limit = chi2_limit(max(int(possible.sum()) - 1, 1))
    evidence = {"metric": "chi_squared", "value": statistic, "limit": limit}
    if impossible or not statistic <= limit:
        fail(
            f"{name}: chi-squared is {statistic:.4g}, {limit:.4g} is passed with chance 1e-6; "
            f"{impossible} draws of classes that have no chance",
            **evidence, expected=[float(e) for e in expected[:16]],
            got=[int(c) for c in counts[:16]],
        )  # fmt: skip
    return evidence

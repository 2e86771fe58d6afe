# SPDX-License-Identifier: Apache-2.0
"""Class R: how far a sum of k terms may be off, from the arithmetic that computed it.

A bound is derived from the terms and the type that accumulates them; nothing here is widened until
a plugin passes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipdock.conformance.numerics.dtypes import float_format

__all__ = ["accumulate_unit", "gamma", "reduction_bound", "rel_l2_floor"]

_ACCUMULATE = {"f64": "f64"}
_UNITS = {"tf32": 2.0**-11, "bf16x3": 2.0**-22}


def accumulate_unit(dtype: str, features: Iterable[str] = ()) -> float:
    """Return the unit roundoff of the type that sums are kept in.

    Args:
        dtype: Short name of the operands' float type.
        features: What the plugin declares; "accumulate:f16:f16" says that sums of f16 are kept in
            f16. Without such a word sums of f64 are kept in f64, of every other type in f32.

    Source:
        Reduced-precision modes such as TF32 are values of their own, never an excuse for f32.
    """
    kept = _ACCUMULATE.get(dtype, "f32")
    for feature in features:
        name, _, value = feature.rpartition(":")
        if name == f"accumulate:{dtype}":
            kept = value
    return _UNITS[kept] if kept in _UNITS else float_format(kept).unit


def gamma(terms: int, unit: float) -> float:
    """Bound the relative error of a sum of products: min(k, 6 sqrt(k)) u.

    Args:
        terms: k, how many products are added; below 1 counts as 1.
        unit: Unit roundoff of the accumulator.

    Source:
        Higham, Accuracy and Stability of Numerical Algorithms, section 3.1 (k u for any order);
        Higham and Mary 2019 (sqrt(k) u with a constant for rounding errors that behave randomly).
    """
    count = max(terms, 1)
    return min(count, 6.0 * math.sqrt(count)) * unit


def reduction_bound(
    exact: NDArray[Any],
    magnitude: NDArray[Any],
    terms: int,
    *,
    dtype: str,
    unit: float,
    factor: float = 1.0,
) -> NDArray[Any]:
    """Return c gamma(k) (|A| |B|) + u_out |y| + half of the smallest denormal.

    Args:
        exact: y, any shape.
        magnitude: The same sum over absolute values, the shape of `exact`.
        terms: k.
        dtype: Type of the output.
        unit: Of the accumulator.
        factor: c, how many sums of this kind lie one behind the other.
    """
    form = float_format(dtype)
    least = 2.0 ** (form.least_exponent - form.mantissa)
    with np.errstate(all="ignore"):
        bound = factor * gamma(terms, unit) * magnitude + form.unit * np.abs(exact) + least
    return np.asarray(bound)


def rel_l2_floor(terms: int, *, dtype: str, unit: float, factor: float = 1.0) -> float:
    """Return the relative L2 error below which nobody's result is called worse than another's.

    Two correct orders of summation differ by about sqrt(k) u of the accumulator and a rounding to
    the output type.
    """
    return float_format(dtype).unit + 2.0 * factor * math.sqrt(max(terms, 1)) * unit

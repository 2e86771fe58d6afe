# SPDX-License-Identifier: Apache-2.0
"""Distances in units of the last place, for the tests of numeric operators."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

import chipdock

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]
INTEGERS = [
    np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
]  # fmt: skip


def run(op: str, *inputs: Any, **options: Any) -> NDArray[Any]:
    """The one output of an operator, as a NumPy array."""
    array: NDArray[Any] = chipdock.run_op(op, *inputs, **options).numpy()
    return array


def ulp_distance(got: NDArray[Any], exact: NDArray[np.float64]) -> float:
    """Largest |got - exact| in units of the last place of got's dtype at exact.

    Args:
        got: Floats of any dtype and shape.
        exact: The same shape, correct to well beyond got's precision.

    Returns:
        0.0 for empty arrays; infinity where one is NaN or infinite and the other is not. A value
        that got's dtype rounds to infinity may also be its largest finite one.
    """
    info = ml_dtypes.finfo(got.dtype)
    largest, bits = float(info.max), int(info.nmant)
    lowest = int(info.minexp) - bits
    with np.errstate(over="ignore", invalid="ignore"):
        have = got.astype(np.float64)
        exponent = np.frexp(np.where(np.isfinite(exact) & (exact != 0), exact, 1.0))[1] - 1
        unit = np.ldexp(1.0, np.maximum(exponent - bits, lowest))
        beyond = np.abs(exact) > largest * (1 - 2.0 ** -(bits + 3))
        same = (have == exact) | (np.isnan(have) & np.isnan(exact))
        same |= beyond & (np.sign(have) == np.sign(exact)) & (np.abs(have) >= largest)
        distance = np.where(same, 0.0, np.abs(have - exact) / unit)
    distance = np.where(np.isnan(distance), np.inf, distance)
    return float(distance.max(initial=0.0))


def random(shape: tuple[int, ...], dtype: Any = np.float32, seed: int = 0) -> NDArray[Any]:
    """Normal floats, small integers of either sign if there is one, or fair bools."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype).kind
    if kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if kind in "iu":
        return rng.integers(0 if kind == "u" else -50, 50, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


# Every kind of float32 that arithmetic treats in its own way.
EDGES = np.array(
    [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, np.inf, -np.inf, np.nan, 1e-45, -1e-45,
     1.1754944e-38, -1.1754942e-38, 3.4028235e38, -3.4028235e38, 88.722839, 88.8, -87.4, -103.9,
     -104.5, 0.625, 0.98, 8388609.0, -8388607.5, 1e10, -1e-10], np.float32,
)  # fmt: skip

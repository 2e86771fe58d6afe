# SPDX-License-Identifier: Apache-2.0
"""Class U: distances in units of the last place, and how many each operator may be off.

The limits are those of OpenCL's conformance tests for the same functions; what OpenCL does not
have is derived from the steps of its definition (`COMPOSITES`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chipdock.conformance.numerics.dtypes import float_format

__all__ = ["COMPOSITES", "Limit", "round_to", "ulp_error", "ulp_limit", "ulp_size"]

_EXACT = ("Add", "Sub", "Mul", "Neg", "Abs", "Sum")
_F32 = {
    **dict.fromkeys(_EXACT, 0.0),
    "Reciprocal": 2.5, "Div": 2.5, "Sqrt": 3.0, "Exp": 3.0, "Log": 3.0, "Sin": 4.0, "Cos": 4.0,
    "Tan": 5.0, "Tanh": 5.0, "Asin": 4.0, "Acos": 4.0, "Sinh": 4.0, "Cosh": 4.0, "Asinh": 4.0,
    "Acosh": 4.0, "Atan": 5.0, "Atanh": 5.0, "Erf": 16.0, "Pow": 16.0,
}  # fmt: skip
_F16 = {
    **dict.fromkeys(_EXACT, 0.0),
    "Reciprocal": 1.0, "Div": 1.0, "Sqrt": 1.5, "Exp": 2.0, "Log": 2.0, "Sin": 2.0, "Cos": 2.0,
    "Tan": 2.5, "Tanh": 2.0, "Asin": 2.0, "Acos": 2.0, "Sinh": 2.0, "Cosh": 2.0, "Asinh": 2.0,
    "Acosh": 2.0, "Atan": 2.0, "Atanh": 2.0, "Erf": 4.0, "Pow": 4.0,
}  # fmt: skip

COMPOSITES: dict[str, tuple[float, float]] = {
    "Sigmoid": (6.0, 0.0),  # exp 3, add 0.5, divide 2.5
    "Softplus": (6.0, 6.0),  # exp, log; log(1 + e) loses what e is below 1
    "Softsign": (3.5, 0.0),
    "Elu": (4.0, 4.0),  # exp(x) - 1 cancels near 0
    "Selu": (5.0, 5.0),
    "Celu": (7.0, 7.0),
    "Gelu": (4.0, 20.0),  # erf 16, and 1 + erf cancels for negative x
    "Mish": (5.0, 17.0),
    "HardSigmoid": (2.0, 2.0),
    "HardSwish": (2.0, 4.0),
    "Swish": (8.0, 1.0),
    "LeakyRelu": (1.0, 0.0),
    "PRelu": (1.0, 0.0),
    "ThresholdedRelu": (0.0, 0.0),
    "Shrink": (1.0, 0.0),
    "Mean": (4.0, 4.0),
    "SwiGLU": (9.0, 2.0),
    "DequantizeLinear": (2.0, 0.0),
    "DynamicQuantizeLinear": (1.0, 0.0),
    "Range": (1.0, 4.0),
    "Mod": (1.0, 0.0),
    "BlackmanWindow": (4.0, 12.0),
    "HammingWindow": (4.0, 8.0),
    "HannWindow": (4.0, 8.0),
    "MelWeightMatrix": (8.0, 64.0),
}
"""Operator to (ULP of the result, roundings of the intermediate magnitude that may show in it)."""


class Limit(NamedTuple):
    """What class U allows: ulps * ulp(y) + roundings * u * (intermediate magnitude)."""

    ulps: float
    roundings: float


def ulp_limit(op: str, dtype: str) -> Limit:
    """Return the limit of an operator for an output type.

    Args:
        op: ONNX operator.
        dtype: Short name of the output's type. bf16 follows the fp32 rule and gets one ULP of its
            own on top, so its limit is in ULP of bf16.

    Raises:
        KeyError: The operator is in no table.
    """
    if op in COMPOSITES:
        ulps, roundings = COMPOSITES[op]
        return (
            Limit(1.0 + ulps * 2.0**-16, roundings) if dtype == "bf16" else Limit(ulps, roundings)
        )
    if dtype == "bf16":
        return Limit(1.0 + _F32[op] * 2.0**-16, 0.0)
    return Limit((_F16 if dtype == "f16" else _F32)[op], 0.0)


def ulp_size(exact: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Return the distance between neighbours of a type at given values.

    Args:
        exact: Any shape, float64 or longdouble.
        dtype: Short name of a float type.

    Returns:
        The same shape, positive; at 0, infinity and NaN that of the smallest normal number.
    """
    form = float_format(dtype)
    usable = np.isfinite(exact) & (exact != 0)
    exponent = np.frexp(np.where(usable, exact, 2.0**-1000))[1].astype(np.int64) - 1
    top = np.frexp(form.largest)[1] - 1
    exponent = np.clip(exponent, form.least_exponent, top)
    return np.asarray(np.ldexp(np.ones_like(exact), (exponent - form.mantissa).astype(np.int32)))


def ulp_error(got: NDArray[Any], exact: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Return how far each result is from the exact one in units of the last place.

    Args:
        got: Results as float64 or longdouble, any shape.
        exact: The same shape, with digits to spare.
        dtype: Type the results had.

    Returns:
        The same shape. 0 where both are NaN or the same infinity; infinity where only one is. An
        exact value that the type rounds to infinity may be met by its largest finite one, and a
        value in the last half ULP below that by infinity.
    """
    form = float_format(dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        same = (got == exact) | (np.isnan(got) & np.isnan(exact))
        edge = form.largest * (1 - 2.0 ** -(form.mantissa + 2))
        beyond = (np.abs(exact) > edge) & (np.abs(got) >= form.largest)
        same |= beyond & (np.sign(got) == np.sign(exact))
        distance = np.abs(got - exact) / ulp_size(exact, dtype)
    distance = np.where(np.isnan(distance), np.inf, distance)
    return np.where(same, 0.0, distance)


def round_to(exact: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Round to a float type, to nearest even, without a warning for what overflows."""
    with np.errstate(all="ignore"):
        return exact.astype(dtype)

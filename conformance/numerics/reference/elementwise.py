# SPDX-License-Identifier: Apache-2.0
"""Exact results of operators that work element by element, in float64, longdouble or integers.

Each function takes the operands after `wide` and the attributes, and returns the result, or the
result and the size of its intermediate terms where these are larger than the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["ELEMENTWISE"]

_Array = NDArray[Any]


def _erf(x: _Array) -> _Array:
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(x), dtype=x.dtype)


def _truncated(a: _Array, b: _Array) -> _Array:
    """Divide as the specification says: integers towards zero."""
    if a.dtype.kind not in "iu":
        return np.asarray(a / b)
    quotient = a // b
    return np.asarray(quotient + ((quotient < 0) & (quotient * b != a)).astype(a.dtype))


def _mod(a: _Array, b: _Array, fmod: int = 0) -> _Array:
    return np.asarray(np.fmod(a, b) if fmod else np.mod(a, b))


def _sigmoid(x: _Array) -> _Array:
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small))


def _softplus(x: _Array) -> tuple[_Array, _Array]:
    return np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0), np.maximum(1.0, np.abs(x))


def _elu(x: _Array, alpha: float = 1.0) -> tuple[_Array, _Array]:
    return np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x), np.where(x < 0, abs(alpha), 0.0)


def _selu(
    x: _Array, alpha: float = 1.67326319217681884765625, gamma: float = 1.05070102214813232421875
) -> tuple[_Array, _Array]:
    value, size = _elu(x, alpha)
    return gamma * value, gamma * size


def _celu(x: _Array, alpha: float = 1.0) -> tuple[_Array, _Array]:
    low = alpha * np.expm1(np.minimum(x, 0) / alpha)
    return np.maximum(x, 0) + low, np.where(x < 0, abs(alpha), 0.0)


def _gelu(x: _Array, approximate: str = "none") -> tuple[_Array, _Array]:
    if approximate == "tanh":
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
        return 0.5 * x * (1 + np.tanh(inner)), np.abs(x)
    return 0.5 * x * (1 + _erf(x / np.sqrt(np.asarray(2, x.dtype)))), np.abs(x)


def _mish(x: _Array) -> tuple[_Array, _Array]:
    return x * np.tanh(_softplus(x)[0]), np.abs(x)


def _hard_sigmoid(x: _Array, alpha: float = 0.2, beta: float = 0.5) -> tuple[_Array, _Array]:
    alpha, beta = _f32(alpha), _f32(beta)
    return np.clip(alpha * x + beta, 0, 1), np.abs(alpha * x) + abs(beta)


def _hard_swish(x: _Array) -> tuple[_Array, _Array]:
    return x * np.clip(x / 6 + 0.5, 0, 1), np.abs(x) * np.minimum(np.abs(x) / 6 + 0.5, 2)


def _swish(x: _Array, alpha: float = 1.0) -> tuple[_Array, _Array]:
    # The product alpha x is rounded before the exponential, which turns it into a relative error.
    value = x * _sigmoid(_f32(alpha) * x)
    return value, np.abs(value) * (1 + np.abs(alpha * x))


def _swiglu(a: _Array, b: _Array, alpha: float = 1.0) -> tuple[_Array, _Array]:
    value, size = _swish(a, alpha)
    return value * b, size * np.abs(b)


def _shrink(x: _Array, lambd: float = 0.5, bias: float = 0.0) -> _Array:
    lambd, bias = _f32(lambd), _f32(bias)
    return np.where(x < -lambd, x + bias, np.where(x > lambd, x - bias, np.zeros_like(x)))


def _clip(x: _Array, low: Any = None, high: Any = None, **old: float) -> _Array:
    low = old.get("min", low)
    high = old.get("max", high)
    x = x if low is None else np.maximum(x, low)
    return np.asarray(x if high is None else np.minimum(x, high))


def _is_inf(x: _Array, detect_negative: int = 1, detect_positive: int = 1) -> _Array:
    return np.isinf(x) & np.where(x < 0, bool(detect_negative), bool(detect_positive))


def _bit_shift(x: _Array, y: _Array, direction: str) -> _Array:
    return np.asarray(np.left_shift(x, y) if direction == "LEFT" else np.right_shift(x, y))


def _pow(x: _Array, y: _Array) -> _Array:
    if x.dtype.kind in "iu":
        return np.asarray(np.power(x.astype(object), y.astype(object)), dtype=x.dtype)
    return np.asarray(np.power(x, y.astype(x.dtype)))


def _sum(*terms: _Array) -> tuple[_Array, _Array]:
    return _fold(np.add, *terms), _fold(np.add, *[np.abs(t) for t in terms])


def _mean(*terms: _Array) -> tuple[_Array, _Array]:
    value, size = _sum(*terms)
    return value / len(terms), size / len(terms)


def _fold(function: Callable[[_Array, _Array], _Array], first: _Array, *rest: _Array) -> _Array:
    for term in rest:
        first = function(first, term)
    return np.asarray(first)


def _f32(value: float) -> float:
    """Attributes are stored as float32: 0.2 arrives as 0.200000003."""
    return float(np.float32(value))


def _leaky(x: _Array, alpha: float = 0.01) -> _Array:
    return np.where(x < 0, _f32(alpha) * x, x)


ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "Abs": np.abs, "Neg": np.negative, "Sign": np.sign, "Ceil": np.ceil, "Floor": np.floor,
    "Round": np.rint, "Sqrt": np.sqrt, "Exp": np.exp, "Log": np.log, "Sin": np.sin, "Cos": np.cos,
    "Tan": np.tan, "Asin": np.arcsin, "Acos": np.arccos, "Atan": np.arctan, "Sinh": np.sinh,
    "Cosh": np.cosh, "Tanh": np.tanh, "Asinh": np.arcsinh, "Acosh": np.arccosh,
    "Atanh": np.arctanh, "Erf": _erf, "Reciprocal": lambda x: 1 / x, "Not": np.logical_not,
    "BitwiseNot": np.invert, "IsNaN": np.isnan, "IsInf": _is_inf,
    "Relu": lambda x: np.maximum(x, 0),
    "Sigmoid": _sigmoid, "Softplus": _softplus, "Softsign": lambda x: x / (1 + np.abs(x)),
    "Elu": _elu, "Selu": _selu, "Celu": _celu, "Gelu": _gelu, "Mish": _mish, "Swish": _swish,
    "HardSigmoid": _hard_sigmoid, "HardSwish": _hard_swish, "LeakyRelu": _leaky,
    "ThresholdedRelu": lambda x, alpha=1.0: np.where(x > _f32(alpha), x, np.zeros_like(x)),
    "Shrink": _shrink, "Clip": _clip, "SwiGLU": _swiglu,
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": _truncated, "Mod": _mod,
    "Pow": _pow, "PRelu": lambda x, slope: np.where(x < 0, slope * x, x),
    "And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor,
    "BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or, "BitwiseXor": np.bitwise_xor,
    "BitShift": _bit_shift, "Equal": np.equal, "Less": np.less, "Greater": np.greater,
    "LessOrEqual": np.less_equal, "GreaterOrEqual": np.greater_equal,
    "Max": lambda *x: _fold(np.maximum, *x), "Min": lambda *x: _fold(np.minimum, *x),
    "Sum": _sum, "Mean": _mean, "Where": np.where,
}  # fmt: skip

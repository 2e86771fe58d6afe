# SPDX-License-Identifier: Apache-2.0
"""Exact results of sums: products of matrices, reductions, norms and softmax.

Each function returns outputs, the size of the terms behind each of them, and how many terms a sum
has: what class R needs.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chipdock.conformance.numerics.reference import window

__all__ = ["LINEAR", "Summed"]

_Array = NDArray[Any]


class Summed(NamedTuple):
    """Outputs of sums; magnitudes are None where |y| serves."""

    values: list[_Array]
    magnitudes: list[_Array | None]
    terms: int


def _matmul(inputs: list[Any], attributes: dict[str, Any]) -> Summed:
    a, b = inputs
    return Summed([np.matmul(a, b)], [_sizes(a, b)], a.shape[-1])


def _sizes(a: _Array, b: _Array) -> _Array | None:
    return None if a.dtype.kind in "iu" else np.asarray(np.matmul(np.abs(a), np.abs(b)))


def _gemm(inputs: list[Any], attributes: dict[str, Any]) -> Summed:
    a, b, c = [*inputs, None][:3]
    a = a.T if attributes.get("transA") else a
    b = b.T if attributes.get("transB") else b
    alpha, beta = (float(np.float32(attributes.get(key, 1.0))) for key in ("alpha", "beta"))
    if a.dtype.kind in "iu":
        y = (alpha * (a @ b)).astype(a.dtype)
        return Summed([y if c is None else y + (beta * c).astype(a.dtype)], [None], a.shape[1])
    y, size = alpha * (a @ b), abs(alpha) * (np.abs(a) @ np.abs(b))
    if c is not None:
        y, size = y + beta * c, size + np.abs(beta * c)
    return Summed([y], [size], a.shape[1] + 2)


def _conv(inputs: list[Any], attributes: dict[str, Any]) -> Summed:
    y, size, terms = window.conv(inputs[0], inputs[1], [*inputs, None][2], attributes)
    return Summed([y], [size], terms)


def _conv_transpose(inputs: list[Any], attributes: dict[str, Any]) -> Summed:
    y, size, terms = window.conv_transpose(inputs[0], inputs[1], [*inputs, None][2], attributes)
    return Summed([y], [size], terms)


def _axes(inputs: list[Any], attributes: dict[str, Any], rank: int) -> tuple[int, ...] | None:
    """Axes of a reduction, () for none at all."""
    given = inputs[1] if len(inputs) > 1 and inputs[1] is not None else attributes.get("axes")
    chosen = [int(axis) % rank for axis in np.asarray([] if given is None else given).reshape(-1)]
    if chosen:
        return tuple(chosen)
    return () if attributes.get("noop_with_empty_axes") else tuple(range(rank))


def _reduce(op: str, inputs: list[Any], attributes: dict[str, Any]) -> Summed:
    x = inputs[0]
    axes = _axes(inputs, attributes, x.ndim)
    how: dict[str, Any] = {"axis": axes, "keepdims": bool(attributes.get("keepdims", 1))}
    terms = math.prod(x.shape[axis] for axis in axes or ())
    if op in {"ReduceMax", "ReduceMin"}:
        fold = np.max if op == "ReduceMax" else np.min
        worst: Any
        if x.dtype.kind == "b":
            worst = op == "ReduceMin"
        elif x.dtype.kind in "iu":
            limits = np.iinfo(x.dtype)
            worst = limits.min if op == "ReduceMax" else limits.max
        else:
            worst = -np.inf if op == "ReduceMax" else np.inf
        return Summed([fold(x, initial=worst, **how)], [None], 1)
    whole = x.dtype.kind in "iu"
    how["dtype"] = x.dtype if whole else None
    positive = np.abs(x)
    if op == "ReduceProd":
        y = np.prod(x, **how)
        return Summed([y], [np.abs(y)], terms)
    if op == "ReduceLogSumExp":
        return _log_sum_exp(x, how, terms)
    terms_of = {"ReduceL1": positive, "ReduceL2": x * x, "ReduceSumSquare": x * x}
    total = np.sum(terms_of.get(op, x), **how)
    size = np.sum(np.abs(terms_of.get(op, x)), **how)
    if op == "ReduceMean":
        if whole:
            return Summed([np.trunc(total / max(terms, 1)).astype(x.dtype)], [None], terms)
        return Summed([total / terms], [size / terms], terms)
    if op == "ReduceL2":
        root = np.sqrt(total)
        return Summed([root.astype(x.dtype) if whole else root], [root], terms)
    if op == "ReduceLogSum":
        return Summed([np.log(total)], [np.maximum(size / np.abs(total), np.abs(np.log(total)))],
                      terms)  # fmt: skip
    return Summed([total], [size], terms)


def _log_sum_exp(x: _Array, how: dict[str, Any], terms: int) -> Summed:
    keep = {**how, "keepdims": True}
    top = np.max(x, axis=how["axis"], keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0)
    y = np.log(np.sum(np.exp(x - top), **keep)) + top
    finite = np.where(np.isfinite(x), np.abs(x), 0)
    reach = np.max(finite, axis=how["axis"], keepdims=True, initial=0)
    size = np.maximum(1.0, np.abs(y)) + reach
    if not how["keepdims"]:
        y, size = (np.squeeze(a, axis=how["axis"]) for a in (y, size))
    return Summed([y], [size], terms)


def _softmax(op: str, inputs: list[Any], attributes: dict[str, Any], opset: int) -> Summed:
    x = inputs[0]
    axis = int(attributes.get("axis", 1 if opset < 13 else -1))
    shape = x.shape
    if opset < 13:
        # Before version 13 everything from the axis on is one row.
        axis %= max(x.ndim, 1)
        x, axis = x.reshape(math.prod(shape[:axis]), -1), 1
    if x.size == 0:
        return Summed([x.reshape(shape)], [None], 1)
    shifted = x - np.max(x, axis=axis, keepdims=True)
    power = np.exp(shifted)
    total = power.sum(axis=axis, keepdims=True)
    terms = x.shape[axis] if x.ndim else 1
    finite = np.where(np.isfinite(x), np.abs(x), 0)
    spread = finite + np.max(finite, axis=axis, keepdims=True)
    if op == "Softmax":
        y = power / total
        # The rounding of x - max is an absolute error of the exponent, a relative one of y.
        return Summed([y.reshape(shape)], [(y * (4 + spread)).reshape(shape)], terms)
    y = shifted - np.log(total)
    return Summed([y.reshape(shape)], [(1 + spread + np.abs(y)).reshape(shape)], terms)


def _normalize(
    x: _Array, axes: tuple[int, ...], epsilon: float, *, centred: bool = True
) -> tuple[_Array, _Array, _Array, _Array, int]:
    """Return x hat, its magnitude, mean, 1 / deviation, and the terms of a sum."""
    terms = math.prod(x.shape[a] for a in axes)
    mean = x.mean(axis=axes, keepdims=True) if centred else np.zeros([1] * x.ndim, x.dtype)
    variance = ((x - mean) ** 2).mean(axis=axes, keepdims=True)
    square = (x**2).mean(axis=axes, keepdims=True)
    inverse = 1 / np.sqrt(variance + epsilon)
    hat = (x - mean) * inverse
    reach = np.abs(x).mean(axis=axes, keepdims=True) if centred else 0
    # The variance may be computed in one pass, so its relative error has the size E[x^2] / var.
    size = (np.abs(x) + reach) * inverse + np.abs(hat) * (1 + square * inverse**2)
    return hat, size, mean, inverse, terms


def _layer_norm(op: str, inputs: list[Any], attributes: dict[str, Any]) -> Summed:
    x, scale = inputs[0], inputs[1]
    bias = inputs[2] if len(inputs) > 2 else None
    axis = int(attributes.get("axis", -1)) % x.ndim
    epsilon = float(np.float32(attributes.get("epsilon", 1e-5)))
    hat, size, mean, inverse, terms = _normalize(
        x, tuple(range(axis, x.ndim)), epsilon, centred=op == "LayerNormalization"
    )
    y, size = hat * scale, size * np.abs(scale)
    if bias is not None:
        y, size = y + bias, size + np.abs(bias)
    return Summed([y, mean, inverse], [size, np.abs(x).max(initial=0) + 0 * mean,
                                       inverse * (1 + (np.abs(x).max(initial=0) * inverse) ** 2)],
                  terms)  # fmt: skip


def _group_norm(op: str, inputs: list[Any], attributes: dict[str, Any], opset: int) -> Summed:
    x, scale, bias = inputs
    epsilon = float(np.float32(attributes.get("epsilon", 1e-5)))
    groups = int(attributes.get("num_groups", x.shape[1]))
    parts = x.reshape(x.shape[0], groups, -1)
    hat, size, *_, terms = _normalize(parts, (2,), epsilon)
    if op == "GroupNormalization" and opset < 21:
        repeat = x.shape[1] // groups
        scale, bias = np.repeat(scale, repeat), np.repeat(bias, repeat)
    spread = (1, -1, *[1] * (x.ndim - 2))
    scale, bias = scale.reshape(spread), bias.reshape(spread)
    y = hat.reshape(x.shape) * scale + bias
    return Summed([y], [size.reshape(x.shape) * np.abs(scale) + np.abs(bias)], terms)


def _batch_norm(inputs: list[Any], attributes: dict[str, Any]) -> Summed:
    x, scale, bias, mean, variance = inputs
    spread = (1, -1, *[1] * (x.ndim - 2)) if x.ndim > 1 else (-1,)
    epsilon = float(np.float32(attributes.get("epsilon", 1e-5)))
    momentum = float(np.float32(attributes.get("momentum", 0.9)))
    extra: list[_Array] = []
    terms = 4
    if attributes.get("training_mode"):
        axes = (0, *range(2, x.ndim))
        new_mean, new_var = x.mean(axis=axes), x.var(axis=axes)
        extra = [mean * momentum + new_mean * (1 - momentum),
                 variance * momentum + new_var * (1 - momentum)]  # fmt: skip
        mean, variance, terms = new_mean, new_var, x.size // x.shape[1]
    inverse = scale / np.sqrt(variance + epsilon)
    a, m, b = inverse.reshape(spread), mean.reshape(spread), bias.reshape(spread)
    y = (x - m) * a + b
    size = (np.abs(x) + np.abs(m)) * np.abs(a) * 2 + np.abs(b)
    sizes: list[_Array | None] = [size]
    sizes += [np.abs(e) + np.square(x).max(initial=0) + np.abs(x).max(initial=0) for e in extra]
    return Summed([y, *extra], sizes, terms)


def _mean_variance(inputs: list[Any], attributes: dict[str, Any]) -> Summed:
    x = inputs[0]
    axes = tuple(int(axis) for axis in attributes.get("axes", (0, 2, 3)))
    centred = x - x.mean(axis=axes, keepdims=True)
    y = centred / (np.sqrt((centred**2).mean(axis=axes, keepdims=True)) + 1e-9)
    terms = math.prod(x.shape[axis] for axis in axes)
    return Summed([y], [np.full(y.shape, 2 + np.abs(y).max(initial=0) ** 3)], terms)


def _local_response(inputs: list[Any], attributes: dict[str, Any]) -> Summed:
    x, size = inputs[0], int(attributes["size"])
    alpha, beta, bias = (
        float(np.float32(attributes.get(key, default)))
        for key, default in (("alpha", 1e-4), ("beta", 0.75), ("bias", 1.0))
    )
    total = np.zeros_like(x)
    for c in range(x.shape[1]):
        first, last = c - (size - 1) // 2, c + -(-(size - 1) // 2)
        total[:, c] = (x[:, max(first, 0) : last + 1] ** 2).sum(axis=1)
    y = x / (bias + alpha / size * total) ** beta
    return Summed([y], [4 * np.abs(y)], size)


def _lp_norm(inputs: list[Any], attributes: dict[str, Any]) -> Summed:
    x, axis, p = inputs[0], int(attributes.get("axis", -1)), int(attributes.get("p", 2))
    norm = (np.abs(x) ** p).sum(axis=axis, keepdims=True) ** (1.0 / p)
    y = np.where(norm == 0, 0, x / np.where(norm == 0, 1, norm))
    return Summed([y], [2 * np.abs(y)], x.shape[axis])


def _pool(op: str, inputs: list[Any], attributes: dict[str, Any]) -> Summed:
    x = inputs[0]
    if not op.startswith("Global"):
        return Summed(*window.pool(op, x, attributes))
    axes = tuple(range(2, x.ndim))
    terms = math.prod(x.shape[2:])
    if op == "GlobalMaxPool":
        return Summed([x.max(axis=axes, keepdims=True)], [None], 1)
    if op == "GlobalLpPool":
        p = int(attributes.get("p", 2))
        y = (np.abs(x) ** p).sum(axis=axes, keepdims=True) ** (1.0 / p)
        return Summed([y], [2 * y], terms)
    return Summed([x.mean(axis=axes, keepdims=True)], [np.abs(x).mean(axis=axes, keepdims=True)],
                  terms)  # fmt: skip


def _cumulate(op: str, inputs: list[Any], attributes: dict[str, Any]) -> Summed:
    x, axis = inputs[0], int(np.asarray(inputs[1]).reshape(-1)[0])
    start = 0 if op == "CumSum" else 1
    fold = np.cumsum if op == "CumSum" else np.cumprod

    def run(a: _Array) -> _Array:
        a = np.flip(a, axis) if attributes.get("reverse") else a
        y = fold(a, axis=axis, dtype=a.dtype)
        if attributes.get("exclusive"):
            y = np.roll(y, 1, axis)
            first = [slice(None)] * y.ndim
            first[axis] = slice(0, 1)
            y[tuple(first)] = start
        return np.asarray(np.flip(y, axis) if attributes.get("reverse") else y)

    return Summed([run(x)], [run(np.abs(x)) if x.dtype.kind == "f" else None], x.shape[axis])


def _named(function: Any, op: str) -> Any:
    return lambda inputs, attributes, opset: function(op, inputs, attributes)


def _plain(function: Any) -> Any:
    return lambda inputs, attributes, opset: function(inputs, attributes)


LINEAR: dict[str, Any] = {
    "MatMul": _plain(_matmul), "Gemm": _plain(_gemm), "Conv": _plain(_conv),
    "ConvTranspose": _plain(_conv_transpose), "BatchNormalization": _plain(_batch_norm),
    "LpNormalization": _plain(_lp_norm), "LRN": _plain(_local_response),
    "MeanVarianceNormalization": _plain(_mean_variance),
    "Softmax": lambda i, a, v: _softmax("Softmax", i, a, v),
    "LogSoftmax": lambda i, a, v: _softmax("LogSoftmax", i, a, v),
    "GroupNormalization": lambda i, a, v: _group_norm("GroupNormalization", i, a, v),
    "InstanceNormalization": lambda i, a, v: _group_norm("InstanceNormalization", i, a, v),
    **{op: _named(_layer_norm, op) for op in ("LayerNormalization", "RMSNormalization")},
    **{op: _named(_cumulate, op) for op in ("CumSum", "CumProd")},
    **{op: _named(_pool, op) for op in ("MaxPool", "AveragePool", "LpPool", "GlobalMaxPool",
                                        "GlobalAveragePool", "GlobalLpPool")},
    **{f"Reduce{name}": _named(_reduce, f"Reduce{name}")
       for name in ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSum",
                    "LogSumExp")},
}  # fmt: skip
"""Operator to function of (wide inputs, attributes, opset)."""

# SPDX-License-Identifier: Apache-2.0
"""Quantization: integers summed exactly, one rounding to nearest even at the end."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipdock.conformance.numerics.dtypes import ONNX_TYPES, float_format, numpy_dtype, short_name
from chipdock.conformance.numerics.dtypes import wide as wide_values
from chipdock.conformance.numerics.reference import window

__all__ = ["QUANTIZED"]

_Array = NDArray[Any]
_WIDTHS = {"i4": 4, "u4": 4, "i2": 2, "u2": 2}


def _range(dtype: np.dtype[Any]) -> tuple[int, int]:
    name = short_name(dtype)
    width = _WIDTHS.get(name, dtype.itemsize * 8)
    return (-(2 ** (width - 1)), 2 ** (width - 1) - 1) if name[0] == "i" else (0, 2**width - 1)


def _spread(values: _Array, x: _Array, axis: int, block: int) -> _Array:
    """Bring scales or zero points of a tensor, of an axis or of blocks to the shape of x."""
    if values.size == 1:
        return values.reshape([1] * x.ndim)
    axis %= x.ndim
    if block:
        return np.asarray(np.repeat(values, block, axis=axis)[tuple(slice(0, e) for e in x.shape)])
    return values.reshape([-1 if i == axis else 1 for i in range(x.ndim)])


def _saturate(values: _Array, dtype: np.dtype[Any]) -> _Array:
    low, high = _range(dtype)
    return np.asarray(np.clip(values, low, high).astype(np.int64).astype(dtype))


def _quantize(inputs: list[Any], attributes: dict[str, Any]) -> list[_Array]:
    x, scale, zero = [*inputs, None][:3]
    goal = zero.dtype if zero is not None else np.dtype(np.uint8)
    if attributes.get("output_dtype"):
        names = {number: name for name, number in ONNX_TYPES.items()}
        goal = numpy_dtype(names[attributes["output_dtype"]])
    axis, block = int(attributes.get("axis", 1)), int(attributes.get("block_size", 0))
    steps = wide_values(x) / _spread(wide_values(scale), x, axis, block)
    if short_name(goal)[0] == "f":
        if zero is not None and np.any(wide_values(zero) != 0):  # else -0 would become 0
            steps = steps + _spread(wide_values(zero), x, axis, block)
        # Saturated, and never to infinity.
        top = float_format(short_name(goal)).largest
        if attributes.get("saturate", 1):
            steps = np.where(np.isnan(steps), steps, np.clip(steps, -top, top))
        return [steps.astype(np.float32).astype(goal)]
    shift = 0 if zero is None else _spread(wide_values(zero).astype(np.int64), x, axis, block)
    return [_saturate(np.rint(steps) + shift, goal)]


def _dequantize(inputs: list[Any], attributes: dict[str, Any]) -> list[_Array]:
    x, scale, zero = [*inputs, None][:3]
    axis, block = int(attributes.get("axis", 1)), int(attributes.get("block_size", 0))
    values = wide_values(x).astype(np.float64)
    if zero is not None:
        values = values - _spread(wide_values(zero).astype(np.float64), x, axis, block)
    return [values * _spread(wide_values(scale), x, axis, block)]


def _dynamic(inputs: list[Any], attributes: dict[str, Any]) -> list[_Array]:
    x = inputs[0]
    low, high = min(0.0, float(x.min())), max(0.0, float(x.max()))
    scale = np.float32((np.float32(high) - np.float32(low)) / np.float32(255))
    zero = np.clip(np.rint(-low / float(scale)), 0, 255).astype(np.uint8)
    y = np.clip(np.rint(x.astype(np.float64) / float(scale)) + float(zero), 0, 255)
    return [y.astype(np.uint8), np.asarray(scale, np.float64), np.asarray(zero)]


def _shifted(x: _Array, zero: Any, *, rows: bool = False) -> _Array:
    """Subtract a zero point, as whole numbers; one for each row where `rows` says so."""
    whole = x.astype(np.int64)
    if zero is None:
        return whole
    point = zero.astype(np.int64)
    if point.size > 1 and rows:
        point = point.reshape(-1, *[1] * (x.ndim - 1)) if x.ndim != 2 else point.reshape(-1, 1)
    return np.asarray(whole - point)


def _matmul(inputs: list[Any], attributes: dict[str, Any]) -> list[_Array]:
    a, b, zero_a, zero_b = [*inputs, None, None][:4]
    total = np.matmul(_shifted(a, zero_a, rows=True), _shifted(b, zero_b))
    return [total.astype(np.int32)]


def _whole_conv(x: _Array, weight: _Array, attributes: dict[str, Any]) -> _Array:
    # Sums stay far below 2**53, so float64 holds them exactly.
    y, _, _ = window.conv(x.astype(np.float64), weight.astype(np.float64), None, attributes)
    return y


def _conv(inputs: list[Any], attributes: dict[str, Any]) -> list[_Array]:
    x, w, zero_x, zero_w = [*inputs, None, None][:4]
    y = _whole_conv(_shifted(x, zero_x), _shifted(w, zero_w, rows=True), attributes)
    return [y.astype(np.int32)]


def _qlinear_matmul(inputs: list[Any], attributes: dict[str, Any]) -> list[_Array]:
    a, scale_a, zero_a, b, scale_b, zero_b, scale_y, zero_y = inputs
    total = np.matmul(_shifted(a, zero_a), _shifted(b, zero_b)).astype(np.float64)
    factor = wide_values(scale_a) * wide_values(scale_b) / wide_values(scale_y)
    return [_saturate(np.rint(total * factor) + zero_y.astype(np.float64), zero_y.dtype)]


def _qlinear_conv(inputs: list[Any], attributes: dict[str, Any]) -> list[_Array]:
    x, scale_x, zero_x, w, scale_w, zero_w, scale_y, zero_y, bias = [*inputs, None][:9]
    total = _whole_conv(_shifted(x, zero_x), _shifted(w, zero_w, rows=True), attributes)
    each = (1, -1, *[1] * (x.ndim - 2))
    if bias is not None:
        total = total + bias.astype(np.float64).reshape(each)
    factor = wide_values(scale_x) * wide_values(scale_w).reshape(-1) / wide_values(scale_y)
    steps = total * factor.reshape(each if factor.size > 1 else [1] * x.ndim)
    return [_saturate(np.rint(steps) + zero_y.astype(np.float64), zero_y.dtype)]


QUANTIZED: dict[str, Any] = {
    "QuantizeLinear": _quantize, "DequantizeLinear": _dequantize,
    "DynamicQuantizeLinear": _dynamic, "MatMulInteger": _matmul, "ConvInteger": _conv,
    "QLinearMatMul": _qlinear_matmul, "QLinearConv": _qlinear_conv,
}  # fmt: skip
"""Operator to function of (inputs in their own types, attributes)."""

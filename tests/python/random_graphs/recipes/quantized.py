# SPDX-License-Identifier: Apache-2.0
"""Integers as exporters of quantized models use them."""

from __future__ import annotations

import numpy as np

from random_graphs.grow import Graph, Skip, Value


def _point(g: Graph, dtype: type) -> Value:
    return g.new(dtype, (), 0, 20, constant=True)


def _clear_of_ties(v: Value) -> bool:
    """Whether no element lies where rounding may go either way (scales here are 1/8)."""
    parts = np.abs(v.array.astype(np.float64) * 8 % 1 - 0.5)
    return v.exact and v.array.dtype == np.float32 and bool(np.all(parts > 1e-3))


def quantize(g: Graph) -> None:
    x = g.some("f", ok=_clear_of_ties)
    scale = g.add(np.asarray(0.125, np.float32))
    dtype = g.pick((np.uint8, np.int8))
    (q,) = g.node("QuantizeLinear", [x, scale, _point(g, dtype)], exact=True)
    if g.chance(60):
        g.node("DequantizeLinear", [q, scale, _point(g, dtype)], exact=True)


def dequantize_rows(g: Graph) -> None:
    x = g.some("u", 2, 3)
    axis = g.integer(0, x.rank - 1)
    scale = g.new(np.float32, (x.shape[axis],), 0.1, 1, constant=True)
    g.node("DequantizeLinear", [x, scale], axis=axis, exact=True)


def matmul_integer(g: Graph) -> None:
    first, second = g.pick(((np.uint8, np.int8), (np.uint8, np.uint8), (np.int8, np.int8)))
    rows, inner, columns = g.integer(1, 6), g.integer(1, 70), g.integer(1, 9)
    x = g.new(first, (rows, inner), 0 if first is np.uint8 else -128, 127)
    y = g.new(second, (inner, columns), 0 if second is np.uint8 else -128, 127)
    points = [_point(g, first), _point(g, second)] if g.chance(60) else []
    g.node("MatMulInteger", [x, y, *points], exact=True)


def conv_integer(g: Graph) -> None:
    x = g.new(np.uint8, (1, g.integer(1, 3), g.integer(3, 6), g.integer(3, 6)), 0, 255)
    w = g.new(np.uint8, (g.integer(1, 3), x.shape[1], 3, 3), 0, 255)
    pads = [g.integer(0, 1) for _ in range(4)]
    g.node("ConvInteger", [x, w, _point(g, np.uint8)], exact=True, pads=pads)


def qlinear_matmul(g: Graph) -> None:
    if g.opset < 21:
        raise Skip
    rows, inner, columns = g.integer(1, 4), g.integer(1, 20), g.integer(1, 5)
    x = g.new(np.uint8, (rows, inner), 0, 255)
    y = g.new(np.uint8, (inner, columns), 0, 255)
    sx, sy = (g.add(np.asarray(0.0625, np.float32)) for _ in range(2))
    # The scale of the result makes every quotient k / 1000.5: never half way between integers.
    so = g.add(np.asarray(1000.5 / 256, np.float32))
    zx, zy, zo = (_point(g, np.uint8) for _ in range(3))
    g.node("QLinearMatMul", [x, sx, zx, y, sy, zy, so, zo], exact=True)


def dynamic_quantize(g: Graph) -> None:
    x = g.some("f", 1, 3, ok=lambda v: v.exact and v.array.dtype == np.float32 and v.array.size > 1)
    (q, scale, point) = g.node("DynamicQuantizeLinear", [x], 3)
    g.node("DequantizeLinear", [q, scale, point])


RECIPES = (quantize, quantize, dequantize_rows, matmul_integer, conv_integer, qlinear_matmul)

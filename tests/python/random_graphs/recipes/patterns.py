# SPDX-License-Identifier: Apache-2.0
"""Runs of nodes that exporters write and that fusions look for, complete and nearly so."""

from __future__ import annotations

import math

import numpy as np

from random_graphs.grow import Graph, Value
from random_graphs.recipes.windows import picture, window


def _scalar(g: Graph, number: float, like: Value) -> Value:
    return g.add(np.asarray(number, like.array.dtype))


def _f32(g: Graph, low: int, high: int) -> Value:
    def ok(v: Value) -> bool:
        return v.array.dtype == np.float32 and v.array.size > 0 and v.within(-20, 20)

    return g.some("f", low, high, ok)


def _activate(g: Graph, x: Value) -> Value:
    """One of the activations behind a layer, or none."""
    kind = g.pick(("Relu", "Clip", "Sigmoid", "HardSwish", "LeakyRelu", "silu", "none", "Tanh"))
    if kind == "none":
        return x
    if kind == "Clip":
        return g.node("Clip", [x, _scalar(g, 0, x), _scalar(g, 6, x)], exact=True)[0]
    if kind == "silu":
        (gate,) = g.node("Sigmoid", [x])
        return g.node("Mul", [x, gate])[0]
    return g.node(kind, [x])[0]


def conv_block(g: Graph) -> None:
    """Conv, then any of a bias kept apart, BatchNormalization, a residual and an activation."""
    x = picture(g, 2)
    filters = g.pick((1, 4, 8, x.shape[1]))
    attributes = window(g, x)
    depthwise = filters == x.shape[1] and g.chance(40)
    shape = (filters, 1 if depthwise else x.shape[1], *attributes["kernel_shape"])
    w = g.new(np.float32, shape, -1, 1, constant=True)
    (y,) = g.node("Conv", [x, w], group=filters if depthwise else 1, **attributes)
    if g.chance(30):
        bias = g.new(np.float32, g.pick(((1, filters, 1, 1), (filters, 1, 1))), constant=True)
        (y,) = g.node("Add", [y, bias])
    if g.chance(40):
        scale, shift, mean = (g.new(np.float32, (filters,), constant=True) for _ in range(3))
        var = g.new(np.float32, (filters,), 0.5, 3, constant=True)
        (y,) = g.node("BatchNormalization", [y, scale, shift, mean, var])
    if g.chance(30) and y.shape == x.shape:
        (y,) = g.node("Add", [x, y])
    _activate(g, y)


def dense_block(g: Graph) -> None:
    """MatMul or Gemm, bias, activation or GELU, residual."""
    x = _f32(g, 2, 3)
    width = x.shape[-1] if g.chance(60) else g.integer(1, 33)
    w = g.new(np.float32, (x.shape[-1], width), -1, 1, constant=g.chance(90))
    (y,) = g.node("MatMul", [x, w])
    if g.chance(70):
        bias = g.new(np.float32, (width,), constant=g.chance(90))
        (y,) = g.node("Add", [y, bias] if g.chance(50) else [bias, y])
    y = gelu(g, y) if g.chance(40) and y.within(-20, 20) else _activate(g, y)
    if y.shape == x.shape and g.chance(60):
        g.node("Add", [y, x])


def gelu(g: Graph, x: Value) -> Value:
    """x / sqrt(2), Erf, + 1, times x, times 0.5, in one of the usual orders."""
    (scaled,) = g.node("Div", [x, _scalar(g, math.sqrt(2), x)])
    (erf,) = g.node("Erf", [scaled])
    (plus,) = g.node("Add", [erf, _scalar(g, 1, x)])
    if g.chance(50):
        (half,) = g.node("Mul", [x, _scalar(g, 0.5, x)])
        return g.node("Mul", [half, plus])[0]
    (times,) = g.node("Mul", [x, plus])
    return g.node("Mul", [times, _scalar(g, 0.5, x)])[0]


def gelu_alone(g: Graph) -> None:
    gelu(g, _f32(g, 1, 4))


def _spread(x: Value) -> bool:
    return x.shape[-1] > 1 and bool(np.std(x.array, axis=-1).min() > 0.05)


def layer_norm(g: Graph) -> None:
    """LayerNormalization written out: means, Sub, Pow or Mul, Add, Sqrt, Div, scale, shift."""
    x = _f32(g, 2, 3)
    if not _spread(x):
        x = g.new(np.float32, (3, 8), constant=False)
    axes = g.add(np.asarray([-1], np.int64))
    (mean,) = g.node("ReduceMean", [x, axes], keepdims=1)
    (centred,) = g.node("Sub", [x, mean])
    if g.chance(70):
        (square,) = g.node("Pow", [centred, _scalar(g, 2, x)])
    else:
        (square,) = g.node("Mul", [centred, centred])
    (variance,) = g.node("ReduceMean", [square, axes], keepdims=1)
    (plus,) = g.node("Add", [variance, _scalar(g, 1e-3, x)])
    (root,) = g.node("Sqrt", [plus])
    (y,) = g.node("Div", [centred, root])
    (y,) = g.node("Mul", [y, g.new(np.float32, x.shape[-1:], constant=True)])
    if g.chance(70):
        g.node("Add", [y, g.new(np.float32, x.shape[-1:], constant=True)])


def rms_norm(g: Graph) -> None:
    x = _f32(g, 2, 3)
    axes = g.add(np.asarray([-1], np.int64))
    (square,) = g.node("Pow", [x, _scalar(g, 2, x)])
    (mean,) = g.node("ReduceMean", [square, axes], keepdims=1)
    (plus,) = g.node("Add", [mean, _scalar(g, 1e-2, x)])
    (root,) = g.node("Sqrt", [plus])
    if g.chance(50):
        (inverse,) = g.node("Reciprocal", [root])
        (y,) = g.node("Mul", [x, inverse])
    else:
        (y,) = g.node("Div", [x, root])
    g.node("Mul", [g.new(np.float32, x.shape[-1:], constant=True), y])


def attention(g: Graph) -> None:
    """Q K^T, scale, perhaps a mask, Softmax, V, with or without the move of heads."""
    batch, heads, steps, size = g.integer(1, 2), g.integer(1, 3), g.integer(1, 6), g.integer(1, 8)
    shape = (batch, steps, heads, size)
    q, k, v = (g.new(np.float32, shape, constant=False) for _ in range(3))
    (q,) = g.node("Transpose", [q], exact=True, perm=[0, 2, 1, 3])
    (k,) = g.node("Transpose", [k], exact=True, perm=[0, 2, 3, 1])
    (v,) = g.node("Transpose", [v], exact=True, perm=[0, 2, 1, 3])
    (scores,) = g.node("MatMul", [q, k])
    (scores,) = g.node("Mul", [scores, _scalar(g, 1 / math.sqrt(size), q)])
    if g.chance(50):
        mask = g.pick(((steps, steps), (batch, 1, 1, steps), (batch, heads, steps, steps)))
        (scores,) = g.node("Add", [scores, g.new(np.float32, mask)])
    (weights,) = g.node("Softmax", [scores], axis=-1)
    (y,) = g.node("MatMul", [weights, v])
    (y,) = g.node("Transpose", [y], exact=True, perm=[0, 2, 1, 3])
    g.node("Reshape", [y, g.add(np.asarray([0, 0, -1], np.int64))], exact=True)


def qdq_dense(g: Graph) -> None:
    """DequantizeLinear of a weight in front of MatMul."""
    x = _f32(g, 2, 2)
    w = g.new(np.int8, (x.shape[-1], g.integer(1, 8)), -127, 127, constant=True)
    (real,) = g.node("DequantizeLinear", [w, g.add(np.asarray(0.02, np.float32))], exact=True)
    g.node("MatMul", [x, real])


RECIPES = (
    *(conv_block,) * 3,
    *(dense_block,) * 3,
    gelu_alone,
    layer_norm,
    layer_norm,
    rms_norm,
    attention,
    attention,
    qdq_dense,
)

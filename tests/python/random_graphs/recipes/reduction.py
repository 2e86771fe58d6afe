# SPDX-License-Identifier: Apache-2.0
"""Reductions, scans, softmax and normalizations."""

from __future__ import annotations

import numpy as np

from random_graphs.grow import LARGEST, Graph, Value

# Operator and whether its operand must be positive.
REDUCTIONS = (
    ("ReduceSum", False),
    ("ReduceMean", False),
    ("ReduceMax", False),
    ("ReduceMin", False),
    ("ReduceProd", False),
    ("ReduceL1", False),
    ("ReduceL2", False),
    ("ReduceSumSquare", False),
    ("ReduceLogSumExp", False),
    ("ReduceLogSum", True),
)


def reduce(g: Graph) -> None:
    op, positive = g.pick(REDUCTIONS)

    def ok(v: Value) -> bool:
        if positive and not v.within(0.05, 1e4):
            return False
        return v.array.size > 0 and v.within(-50, 50)

    x = g.some("f" if positive or op == "ReduceLogSumExp" else "ffi", 0, 5, ok)
    axes = None
    if g.chance(85) and x.rank:
        chosen = [i for i in range(x.rank) if g.chance(50)]
        chosen = [i - x.rank if g.chance(30) else i for i in chosen]
        axes = g.add(np.asarray(chosen, np.int64))
    g.node(
        op, [x, axes], exact=op in {"ReduceMax", "ReduceMin"} or x.kind == "i",
        keep=lambda y: y.dtype == x.array.dtype,  # numpy sums int32 into int64
        keepdims=g.integer(0, 1), noop_with_empty_axes=int(g.chance(20)),
    )  # fmt: skip


def arg(g: Graph) -> None:
    x = g.some("fi", 1, 4, ok=lambda v: v.array.size > 0, exact=True)
    g.node(
        g.pick(("ArgMax", "ArgMin")), [x], exact=True, axis=g.integer(-x.rank, x.rank - 1),
        keepdims=g.integer(0, 1), select_last_index=g.integer(0, 1),
    )  # fmt: skip


def cumulative(g: Graph) -> None:
    x = g.some("fi", 1, 4, ok=lambda v: v.array.dtype != np.float16)
    axis = g.add(np.asarray(g.integer(-x.rank, x.rank - 1), np.int64))
    g.node(
        "CumSum", [x, axis], exact=x.kind == "i", exclusive=g.integer(0, 1),
        reverse=g.integer(0, 1),
    )  # fmt: skip


def softmax(g: Graph) -> None:
    x = g.some("f", 1, 4, ok=lambda v: v.array.size > 0 and v.within(-50, 50))
    op = g.pick(("Softmax", "Softmax", "LogSoftmax"))
    g.node(op, [x], axis=g.integer(-x.rank, x.rank - 1))


def _spread(v: Value) -> bool:
    """Whether normalising does not divide by next to nothing."""
    return v.array.size > 0 and bool(np.std(v.array.astype(np.float64), axis=-1).min() > 0.05)


def layer_norm(g: Graph) -> None:
    x = g.some("f", 2, 4, ok=lambda v: _spread(v) and v.shape[-1] > 1)
    scale = g.new(x.array.dtype, x.shape[-1:], constant=True)
    bias = g.new(x.array.dtype, x.shape[-1:], constant=True) if g.chance(70) else None
    if g.opset >= 23 and g.chance(40):
        g.node("RMSNormalization", [x, scale], axis=-1, epsilon=1e-3)
    else:
        g.node("LayerNormalization", [x, scale, bias], axis=-1, epsilon=1e-3)


def instance_norm(g: Graph) -> None:
    x = g.new(np.float32, (g.integer(1, 2), 4, g.integer(2, 5), g.integer(2, 5)))
    if g.chance(50) and g.opset >= 21:
        scale, bias = (g.new(np.float32, (4,), constant=True) for _ in range(2))
        g.node("GroupNormalization", [x, scale, bias], num_groups=2, epsilon=1e-3)
    else:
        scale, bias = (g.new(np.float32, (4,), constant=True) for _ in range(2))
        g.node("InstanceNormalization", [x, scale, bias], epsilon=1e-3)


def batch_norm(g: Graph) -> None:
    x = g.some("f", 2, 4, ok=lambda v: v.array.dtype == np.float32 and v.array.size > 0)
    scale, bias, mean = (g.new(np.float32, (x.shape[1],), constant=True) for _ in range(3))
    var = g.new(np.float32, (x.shape[1],), 0.5, 3, constant=True)
    g.node("BatchNormalization", [x, scale, bias, mean, var])


def lp_norm(g: Graph) -> None:
    # The reference sums elements where the norm of order 1 sums magnitudes.
    x = g.some("f", 1, 4, ok=lambda v: v.within(0.05, LARGEST))
    g.node("LpNormalization", [x], axis=g.integer(0, x.rank - 1), p=g.integer(1, 2))


RECIPES = (
    *(reduce,) * 5,
    arg,
    cumulative,
    softmax,
    softmax,
    layer_norm,
    instance_norm,
    batch_norm,
    lp_norm,
)

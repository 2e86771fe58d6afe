# SPDX-License-Identifier: Apache-2.0
"""Matrix products: MatMul of any ranks, Gemm, Einsum; recurrent cells."""

from __future__ import annotations

import numpy as np

from random_graphs.grow import Graph, Value


def _small(v: Value) -> bool:
    return v.within(-100, 100)


def matmul(g: Graph) -> None:
    x = g.some("f", 1, 4, ok=_small)
    inner, outer = x.shape[-1], g.integer(1, 40 if g.chance(15) else 6)
    found = [
        v
        for v in g.values
        if v.array.dtype == x.array.dtype and v.rank >= 2 and v.shape[-2] == inner and _small(v)
        and (v.rank == 2 or x.rank == 2 or v.shape[:-2] == x.shape[:-2])
    ]  # fmt: skip
    if found and g.chance(50):
        y = g.pick(found)
    elif x.rank > 2 and g.chance(40):
        y = g.new(x.array.dtype, (*x.shape[:-2], inner, outer))
    elif g.chance(10):
        y = g.new(x.array.dtype, (inner,))
    else:
        y = g.new(x.array.dtype, (inner, outer))
    g.node("MatMul", [x, y])


def gemm(g: Graph) -> None:
    x = g.some("f", 2, 2, ok=_small)
    across, down = g.integer(0, 1), g.integer(0, 1)
    rows, inner = reversed(x.shape) if across else x.shape
    columns = g.integer(1, 9)
    y = g.new(x.array.dtype, (columns, inner) if down else (inner, columns))
    shape = g.pick(((columns,), (1, columns), (rows, 1), (rows, columns), (), None))
    bias = None if shape is None else g.new(x.array.dtype, shape)
    g.node(
        "Gemm", [x, y, bias], transA=across, transB=down, alpha=g.pick((1.0, 0.5)),
        beta=g.pick((1.0, 2.0)),
    )  # fmt: skip


def einsum(g: Graph) -> None:
    b, i, j, k = (g.integer(1, 4) for _ in range(4))
    equation, first, second = g.pick(
        (
            ("bij,bjk->bik", (b, i, j), (b, j, k)),
            ("bij,bkj->bik", (b, i, j), (b, k, j)),
            ("ij,j->i", (i, j), (j,)),
            ("bij,bij->b", (b, i, j), (b, i, j)),
            ("...ij,jk->...ik", (b, i, j), (j, k)),
        )
    )
    operands = [g.new(np.float32, shape) for shape in (first, second)]
    g.node("Einsum", operands, equation=equation)


def recurrent(g: Graph) -> None:
    op, gates = g.pick((("LSTM", 4), ("GRU", 3), ("RNN", 1)))
    steps, batch, features, hidden = (g.integer(1, 4) for _ in range(4))
    two = g.chance(40)
    count = 1 + two
    x = g.new(np.float32, (steps, batch, features))
    w = g.new(np.float32, (count, gates * hidden, features), -1, 1, constant=True)
    r = g.new(np.float32, (count, gates * hidden, hidden), -1, 1, constant=True)
    bias = g.new(np.float32, (count, 2 * gates * hidden), -1, 1, constant=True)
    more = {"linear_before_reset": g.integer(0, 1)} if op == "GRU" else {}
    g.node(
        op, [x, w, r, bias if g.chance(70) else None], 2, hidden_size=hidden,
        direction="bidirectional" if two else g.pick(("forward", "reverse")), **more,
    )  # fmt: skip


RECIPES = (matmul, matmul, matmul, gemm, gemm, einsum, recurrent)

# SPDX-License-Identifier: Apache-2.0
"""Operators that take indices or give them: gathers, scatters, TopK, NonZero, OneHot."""

from __future__ import annotations

import numpy as np

from random_graphs.grow import Graph, Skip, Value

ANY = "ffiub"


def _indices(g: Graph, shape: tuple[int, ...], extent: int) -> Value:
    dtype = g.pick((np.int64, np.int64, np.int32))
    return g.new(dtype, shape, -extent, extent - 1)


def _source(g: Graph, low: int = 1, kinds: str = ANY) -> tuple[Value, int]:
    x = g.some(kinds, low, 4, ok=lambda v: v.array.size > 0)
    return x, g.integer(0, x.rank - 1)


def gather(g: Graph) -> None:
    x, axis = _source(g)
    at = _indices(g, g.shape(0, 2), x.shape[axis])
    g.node("Gather", [x, at], exact=True, axis=axis - (x.rank if g.chance(40) else 0))


def gather_elements(g: Graph) -> None:
    x, axis = _source(g)
    shape = tuple(g.integer(1, extent) for extent in x.shape)
    at = _indices(g, shape, x.shape[axis])
    g.node("GatherElements", [x, at], exact=True, axis=axis)


def gather_nd(g: Graph) -> None:
    x, _ = _source(g)
    depth = g.integer(1, x.rank)
    rows = [g.fill(np.int64, (g.integer(1, 4),), 0, x.shape[i] - 1) for i in range(depth)]
    count = min(len(row) for row in rows)
    at = np.stack([row[:count] for row in rows], axis=-1)
    g.node("GatherND", [x, g.add(at, constant=g.chance(50))], exact=True)


def scatter_elements(g: Graph) -> None:
    x, axis = _source(g, kinds="ffi")
    shape = tuple(g.integer(1, extent) for extent in x.shape)
    along = np.argsort(g.fill(np.float32, x.shape, 0, 1), axis=axis)  # no index twice
    at = along[tuple(slice(0, extent) for extent in shape)].astype(np.int64)
    updates = g.new(x.array.dtype, shape)
    mode = g.pick(("none", "add", "max", "mul"))
    g.node(
        "ScatterElements", [x, g.add(at), updates], exact=mode in {"none", "max"}, axis=axis,
        reduction=mode,
    )  # fmt: skip


def scatter_nd(g: Graph) -> None:
    x, _ = _source(g, kinds="ffi")
    rows = np.argsort(g.fill(np.float32, (x.shape[0],), 0, 1))[: g.integer(1, x.shape[0])]
    updates = g.new(x.array.dtype, (len(rows), *x.shape[1:]))
    g.node("ScatterND", [x, g.add(rows[:, None].astype(np.int64)), updates], exact=True)


def top_k(g: Graph) -> None:
    x, axis = _source(g, kinds="fi")
    if not x.exact or len(np.unique(x.array)) < x.array.size:
        raise Skip
    k = g.add(np.asarray([g.integer(1, x.shape[axis])], np.int64))
    g.node("TopK", [x, k], 2, exact=True, axis=axis, largest=g.integer(0, 1))


def non_zero(g: Graph) -> None:
    x = g.some("fib", 1, 3, exact=True)
    g.node("NonZero", [x], exact=True)


def one_hot(g: Graph) -> None:
    at = g.new(np.int64, g.shape(1, 2), -5, 4)
    depth = g.add(np.asarray(5, np.int64))
    g.node("OneHot", [at, depth, g.add(np.asarray([0, 1], np.float32))], exact=True,
           axis=g.integer(-1, at.rank))  # fmt: skip


def range_(g: Graph) -> None:
    dtype = g.pick((np.int64, np.int32))
    start, step = g.integer(-5, 5), g.pick((1, 2, -1, 3))
    limit = start + step * g.integer(0, 8)
    g.node("Range", [g.add(np.asarray(v, dtype)) for v in (start, limit, step)], exact=True)


def reverse_sequence(g: Graph) -> None:
    x = g.some("f", 2, 4, ok=lambda v: v.array.size > 0)
    lengths = g.new(np.int64, (x.shape[1],), 1, x.shape[0])
    g.node("ReverseSequence", [x, lengths], exact=True, time_axis=0, batch_axis=1)


RECIPES = (
    gather,
    gather,
    gather_elements,
    gather_nd,
    scatter_elements,
    scatter_nd,
    top_k,
    non_zero,
    one_hot,
    range_,
    reverse_sequence,
)

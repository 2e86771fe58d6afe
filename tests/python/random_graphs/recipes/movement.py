# SPDX-License-Identifier: Apache-2.0
"""Operators that only move elements: views, transposition, concatenation, slices, padding."""

from __future__ import annotations

import numpy as np

from random_graphs.grow import Graph, Skip, Value

ANY = "ffiub"


def _ints(g: Graph, values: list[int]) -> Value:
    return g.add(np.asarray(values, np.int64))


def transpose(g: Graph) -> None:
    x = g.some(ANY, 1)
    order = list(range(x.rank))
    for i in range(len(order)):
        j = g.integer(i, len(order) - 1)
        order[i], order[j] = order[j], order[i]
    if g.chance(10):
        g.node("Transpose", [x], exact=True)
    else:
        g.node("Transpose", [x], exact=True, perm=order)


def reshape(g: Graph) -> None:
    x = g.some(ANY, ok=lambda v: v.array.size > 0)
    left, shape = x.array.size, []
    while left > 1 and len(shape) < 4:
        divisors = [d for d in range(1, left + 1) if left % d == 0]
        shape.append(g.pick(divisors))
        left //= shape[-1]
    if left > 1:
        shape.append(left)
    if shape and g.chance(40):
        shape[g.integer(0, len(shape) - 1)] = -1
    elif shape and x.rank and shape[0] == x.shape[0]:
        shape[0] = 0
    g.node("Reshape", [x, _ints(g, shape)], exact=True)


def flatten(g: Graph) -> None:
    x = g.some(ANY)
    g.node("Flatten", [x], exact=True, axis=g.integer(-x.rank, x.rank))


def squeeze(g: Graph) -> None:
    x = g.some(ANY, 1, ok=lambda v: 1 in v.shape)
    axes = [i for i, extent in enumerate(x.shape) if extent == 1]
    chosen = g.pick(axes)
    given = _ints(g, [chosen - (x.rank if g.chance(50) else 0)]) if g.chance(80) else None
    g.node("Squeeze", [x, given], exact=True)


def unsqueeze(g: Graph) -> None:
    x = g.some(ANY, 0, 4)
    at = g.integer(-x.rank - 1, x.rank)
    g.node("Unsqueeze", [x, _ints(g, [at])], exact=True)


def concat(g: Graph) -> None:
    x = g.some(ANY, 1)
    axis = g.integer(0, x.rank - 1)

    def fits(v: Value) -> bool:
        if v.array.dtype != x.array.dtype or v.rank != x.rank:
            return False
        return all(v.shape[i] == x.shape[i] for i in range(x.rank) if i != axis)

    found = [v for v in g.values if fits(v)]
    parts = [x, *(g.pick(found) for _ in range(g.integer(0, 3)))]
    g.node("Concat", parts, exact=True, axis=axis - (x.rank if g.chance(40) else 0))


def split(g: Graph) -> None:
    x = g.some(ANY, 1, ok=lambda v: max(v.shape) > 1)
    axis = g.pick([i for i, extent in enumerate(x.shape) if extent > 1])
    first = g.integer(0, x.shape[axis])
    sizes = _ints(g, [first, x.shape[axis] - first])
    g.node("Split", [x, sizes], 2, exact=True, axis=axis)


def slice_(g: Graph) -> None:
    x = g.some(ANY, 1)
    axis = g.integer(-x.rank, x.rank - 1)
    extent = x.shape[axis]
    step = g.pick((1, 1, 2, -1, -2, 3))
    start, end = g.integer(-extent - 1, extent), g.integer(-extent - 1, extent + 1)
    if g.chance(30):
        end = 2**31 if step > 0 else -(2**31)
    if step < 0:  # the reference does not clamp a start that lies in front of the first element
        start = max(start, -extent)
    g.node(
        "Slice",
        [x, _ints(g, [start]), _ints(g, [end]), _ints(g, [axis]), _ints(g, [step])],
        exact=True,
    )


def expand(g: Graph) -> None:
    x = g.some(ANY, 0, 4)
    shape = [g.integer(2, 4) if extent == 1 and g.chance(60) else extent for extent in x.shape]
    shape = [g.integer(1, 3), *shape] if g.chance(40) else shape
    g.node("Expand", [x, _ints(g, shape)], exact=True)


def tile(g: Graph) -> None:
    x = g.some(ANY, 1, 4)
    g.node("Tile", [x, _ints(g, [g.integer(0 if g.chance(5) else 1, 3) for _ in x.shape])],
           exact=True)  # fmt: skip


def pad(g: Graph) -> None:
    x = g.some("ffi", 1, 4, ok=lambda v: v.array.size > 0)
    mode = g.pick(("constant", "constant", "edge", "reflect", "wrap"))
    if mode == "wrap" and g.opset < 19:
        raise Skip
    room = [extent - 1 if mode == "reflect" else 2 for extent in x.shape]
    pads = [g.integer(0, min(room[i % x.rank], 2)) for i in range(2 * x.rank)]
    filler = g.add(np.asarray(2, x.array.dtype)) if mode == "constant" and g.chance(60) else None
    g.node("Pad", [x, _ints(g, pads), filler], exact=True, mode=mode)


def depth(g: Graph) -> None:
    n, c, h, w = (g.integer(1, 3) for _ in range(4))
    if g.chance(50):
        x = g.some("f", 4, 4, ok=lambda v: v.shape[1] % 4 == 0 and v.array.size > 0) if g.chance(
            50
        ) else g.new(np.float32, (n, 4 * c, h, w))  # fmt: skip
        g.node("DepthToSpace", [x], exact=True, blocksize=2, mode=g.pick(("DCR", "CRD")))
    else:
        x = g.new(np.float32, (n, c, 2 * h, 2 * w))
        g.node("SpaceToDepth", [x], exact=True, blocksize=2)


def trilu(g: Graph) -> None:
    x = g.some("ffi", 2)
    k = g.add(np.asarray(g.integer(-2, 2), np.int64)) if g.chance(60) else None
    g.node("Trilu", [x, k], exact=True, upper=g.integer(0, 1))


def shape_steers_reshape(g: Graph) -> None:
    """Shape, Gather, Concat, Reshape, as exporters write it."""
    x = g.some("f", 2, 4, ok=lambda v: v.array.size > 0)
    (shape,) = g.node("Shape", [x], exact=True)
    (first,) = g.node("Gather", [shape, _ints(g, [0])], exact=True, axis=0)
    (target,) = g.node("Concat", [first, _ints(g, [-1])], exact=True, axis=0)
    g.node("Reshape", [x, target], exact=True)


def shape_slice(g: Graph) -> None:
    x = g.some(ANY, 1)
    start = g.integer(-x.rank, x.rank - 1)
    g.node("Shape", [x], exact=True, start=start, end=g.integer(start, x.rank))


def constant_of_shape(g: Graph) -> None:
    x = g.some(ANY, 0, 3)
    (shape,) = g.node("Shape", [x], exact=True)
    g.node("ConstantOfShape", [shape], exact=True)


RECIPES = (
    *(transpose,) * 3,
    *(reshape,) * 2,
    flatten,
    squeeze,
    unsqueeze,
    *(concat,) * 2,
    split,
    *(slice_,) * 3,
    expand,
    tile,
    pad,
    depth,
    trilu,
    shape_steers_reshape,
    shape_slice,
    constant_of_shape,
)

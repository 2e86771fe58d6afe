# SPDX-License-Identifier: Apache-2.0
"""Derivatives of operators that move elements: their gradients move back, met ones are added."""

import numpy as np
from onnx import TensorProto

from chipdock._gradient.step import Parts, Rules, Step
from chipdock._gradient.values import Value

__all__ = ["RULES"]


def _moved(s: Step) -> Parts:
    """Any operator whose output elements are input elements: move their numbers to see which."""
    places = s.b(s.op, s.b.numbered(s.x), *s.inputs[1:], **s.attributes())
    return [s.b.scattered(s.dy, places, s.x)]


def _gather(s: Step) -> Parts:
    if s.attribute("axis") != 0:
        return _moved(s)
    indices = s.b("Cast", s.required(1), to=TensorProto.INT64)  # ScatterND takes no others
    rows = s.b("Unsqueeze", indices, s.b.ints(-1))  # whole rows, as embeddings have them
    zeros = s.b.filled(0.0, s.x)
    return [s.b("ScatterND", zeros, rows, s.dy, reduction="add")]


def _transpose(s: Step) -> Parts:
    perm = s.attribute("perm")
    if perm is None:  # reversed, which is its own inverse
        return [s.b("Transpose", s.dy)]
    return [s.b("Transpose", s.dy, perm=[int(p) for p in np.argsort(perm)])]


def _concat(s: Step) -> Parts:
    axis = s.attribute("axis")
    given = [x for x in s.inputs if x is not None]
    extents = [s.b("Gather", s.b.extents(x), s.b.ints(axis)) for x in given]
    known = [_extent(x, axis) for x in given]
    sizes = (
        s.b.ints(*(k for k in known if k is not None))
        if None not in known
        else s.b("Concat", *extents, axis=0)
    )
    return s.b.many(len(given), "Split", s.dy, sizes, axis=axis)


def _extent(x: Value, axis: int) -> int | None:
    extent = x.dims[axis] if x.dims is not None else None
    return extent if isinstance(extent, int) else None


def _split(s: Step) -> Parts:
    parts = []
    for index, gradient in enumerate(s.gradients):
        parts.append(gradient or s.b.filled(0.0, s.output(index)))
    return [s.b("Concat", *parts, axis=s.attribute("axis"))]


def _pad(s: Step) -> Parts:
    pads, axes = s.required(1), s.input(3)
    if s.attribute("mode") != "constant":
        return _moved(s)
    dx = s.b("Pad", s.dy, -pads, None, axes)
    constant = s.input(2)
    if constant is None:
        return [dx]
    outside = s.b("ReduceSum", s.dy, keepdims=0) - s.b("ReduceSum", dx, keepdims=0)
    return [dx, None, s.b.shaped(outside, constant)]


def _scatter(s: Step) -> Parts:
    """ScatterElements and ScatterND that store or add."""
    reduction = s.attribute("reduction")
    if reduction not in {"none", "add"}:
        raise s.refused(f"reduction is {reduction!r}, 'none' and 'add' have a gradient")
    places, updates = s.required(1), s.required(2)
    along = {} if s.op == "ScatterND" else {"axis": s.attribute("axis")}
    kept = s.dy
    if reduction == "none":
        kept = s.b(s.op, s.dy, places, s.b.filled(0.0, updates), **along)
    taken = s.b("GatherND" if s.op == "ScatterND" else "GatherElements", s.dy, places, **along)
    return [kept, None, taken]


def _top_k(s: Step) -> Parts:
    zeros, axis = s.b.filled(0.0, s.x), s.attribute("axis")
    return [s.b("ScatterElements", zeros, s.output(1), s.dy, axis=axis)]


def _one_hot(s: Step) -> Parts:
    """Of the two values: what lies at hot places, and what lies elsewhere."""
    zero_one = s.b("CastLike", s.b.ints(0, 1), s.dy)
    hot = s.b("OneHot", s.x, s.required(1), zero_one, axis=s.attribute("axis"))
    total, on = s.b("ReduceSum", s.dy, keepdims=0), s.b("ReduceSum", s.dy * hot, keepdims=0)
    parts = (s.b("Unsqueeze", part, s.b.ints(0)) for part in (total - on, on))
    return [None, None, s.b("Concat", *parts, axis=0)]


def _trilu(s: Step) -> Parts:
    return [s.b("Trilu", s.dy, s.input(1), **s.attributes())]


def _reshaped(s: Step) -> Parts:
    return [s.b.shaped(s.dy, s.x)]


RULES: Rules = {
    "Compress": _moved,
    "Concat": _concat,
    "DepthToSpace": _moved,
    "Expand": lambda s: [s.b.sum_to(s.dy, s.x, s.y.dims)],
    "Flatten": _reshaped,
    "Gather": _gather,
    "GatherElements": _moved,
    "GatherND": _moved,
    "OneHot": _one_hot,
    "Pad": _pad,
    "Reshape": _reshaped,
    "ReverseSequence": _moved,
    "ScatterElements": _scatter,
    "ScatterND": _scatter,
    "Slice": _moved,
    "SpaceToDepth": _moved,
    "Split": _split,
    "Squeeze": _reshaped,
    "Tile": _moved,
    "TopK": _top_k,
    "Transpose": _transpose,
    "Trilu": _trilu,
    "Unsqueeze": _reshaped,
}

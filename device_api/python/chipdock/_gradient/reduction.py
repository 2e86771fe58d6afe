# SPDX-License-Identifier: Apache-2.0
"""Derivatives of reductions, running sums and softmax."""

from collections.abc import Callable, Mapping

from chipdock._gradient.step import Parts, Rule, Rules, Step
from chipdock._gradient.values import Value

__all__ = ["RULES"]


def _restored(s: Step, value: Value) -> Value:
    """What was reduced, with its axes of extent 1 again, so that it broadcasts against x."""
    if s.attribute("keepdims"):
        return value
    axes = s.input(1)
    if axes is None or (axes.array is not None and axes.array.size == 0):
        return value  # all are reduced and a scalar is left, or none is
    if axes.array is not None:
        return s.b("Unsqueeze", value, axes)
    ones = s.b("Expand", s.b.ints(1), s.b("Shape", axes))
    extents = s.b.extents(s.x)
    kept = s.b("ScatterElements", extents, axes, ones, axis=0)
    if not s.attribute("noop_with_empty_axes"):  # none means all
        none = s.b("Equal", s.b("Size", axes), s.b.constant(0))
        kept = s.b("Where", none, s.b("Expand", s.b.ints(1), s.b("Shape", extents)), kept)
    return s.b("Reshape", value, kept, allowzero=1)


def _count(s: Step) -> Value:
    """How many elements went into one, in x's dtype."""
    count = s.b("Div", s.b.size(s.x), s.b.size(s.y))
    if count.array is not None and s.x.dtype:
        return s.b.constant(count.array, s.x.dtype)
    return s.b("CastLike", count, s.x)


def _extreme(s: Step, dy: Value, y: Value) -> Value:
    """ReduceMax and ReduceMin: equal ones share, as subgradients may."""
    hits = s.b("CastLike", s.b("Equal", s.x, y), dy)
    axes = s.input(1)
    empty = s.attribute("noop_with_empty_axes")
    total = s.b("ReduceSum", hits, axes, keepdims=1, noop_with_empty_axes=empty)
    return hits * (dy / total)


def _norm(s: Step, dy: Value, y: Value) -> Value:
    """ReduceL2, whose gradient at a row of zeros is taken as 0."""
    divisor = s.b.where(y > 0.0, y, 1.0)
    return s.x * (dy / divisor)


def _product(s: Step, dy: Value, _: Value) -> Value:
    """ReduceProd: the product of the others, also where one or several elements are 0."""
    zero = s.b("Equal", s.x, s.b.like(0.0, s.x))
    ways = {"keepdims": 1, "noop_with_empty_axes": s.attribute("noop_with_empty_axes")}
    count = s.b("ReduceSum", s.b("CastLike", zero, s.x), s.input(1), **ways)
    filled = s.b.where(zero, 1.0, s.x)
    others = s.b("ReduceProd", filled, s.input(1), **ways)
    none, one = (s.b("Equal", count, s.b.like(n, s.x)) for n in (0.0, 1.0))
    at_zero = s.b.where(one, others, 0.0)
    return dy * s.b("Where", zero, at_zero, s.b.where(none, others / filled, 0.0))


# Gradient of x from what is reduced, with its axes restored.
_FORMS: Mapping[str, Callable[[Step, Value, Value], Value]] = {
    "ReduceL1": lambda s, dy, _: s.b("Sign", s.x) * dy,
    "ReduceL2": _norm,
    "ReduceLogSum": lambda s, dy, y: dy * s.b("Exp", -y),
    "ReduceLogSumExp": lambda s, dy, y: dy * s.b("Exp", s.x - y),
    "ReduceMax": _extreme,
    "ReduceMean": lambda s, dy, _: dy / _count(s),
    "ReduceMin": _extreme,
    "ReduceProd": _product,
    "ReduceSum": lambda _s, dy, _y: dy,
    "ReduceSumSquare": lambda s, dy, _: s.x * (dy * 2.0),
}
_NARROW = {"ReduceLogSum", "ReduceMean", "ReduceSum"}  # to be spread over x


def _reduction(form: Callable[[Step, Value, Value], Value]) -> Rule:
    def rule(s: Step) -> Parts:
        part = form(s, _restored(s, s.dy), _restored(s, s.y))
        return [s.b("Expand", part, s.b.extents(s.x)) if s.op in _NARROW else part]

    return rule


def _softmax(s: Step) -> Parts:
    axis = s.b.ints(s.attribute("axis"))
    return [s.y * (s.dy - s.b("ReduceSum", s.dy * s.y, axis, keepdims=1))]


def _log_softmax(s: Step) -> Parts:
    axis = s.b.ints(s.attribute("axis"))
    return [s.dy - s.b("Exp", s.y) * s.b("ReduceSum", s.dy, axis, keepdims=1)]


def _cumsum(s: Step) -> Parts:
    ways = {"exclusive": s.attribute("exclusive"), "reverse": 1 - s.attribute("reverse")}
    return [s.b("CumSum", s.dy, s.required(1), **ways)]


RULES: Rules = {
    **{op: _reduction(form) for op, form in _FORMS.items()},
    "CumSum": _cumsum,
    "LogSoftmax": _log_softmax,
    "Softmax": _softmax,
}

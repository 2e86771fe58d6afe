# SPDX-License-Identifier: Apache-2.0
"""Operators on elements: unary, binary with broadcasting, comparisons, Cast, Where, Clip."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import helper

from random_graphs.grow import Graph, Skip, Value

Domain = Callable[[Value], bool]


def _anything(_: Value) -> bool:
    return True


def _inside(low: float, high: float) -> Domain:
    return lambda value: value.within(low, high)


# Operator, kinds of element, what its operand may hold, whether exact stays exact.
UNARY: tuple[tuple[str, str, Domain, bool], ...] = (
    ("Abs", "fi", _anything, True),
    ("Neg", "fi", _anything, True),
    ("Identity", "fiub", _anything, True),
    ("Relu", "f", _anything, True),
    ("Sign", "fi", _anything, True),
    ("Floor", "f", _anything, True),
    ("Ceil", "f", _anything, True),
    ("Round", "f", _anything, True),
    ("Sigmoid", "f", _anything, False),
    ("Tanh", "f", _anything, False),
    ("Erf", "f", _anything, False),
    ("Exp", "f", _inside(-20, 4), False),
    ("Log", "f", _inside(0.05, 1e4), False),
    ("Sqrt", "f", _inside(0.05, 1e4), False),
    ("Reciprocal", "f", Value.away_from_zero, False),
    ("Softplus", "f", _inside(-20, 50), False),
    ("Softsign", "f", _anything, False),
    ("Sin", "f", _inside(-50, 50), False),
    ("Cos", "f", _inside(-50, 50), False),
    ("Atan", "f", _anything, False),
    ("Sinh", "f", _inside(-4, 4), False),
    ("Cosh", "f", _inside(-4, 4), False),
    ("Asinh", "f", _anything, False),
    ("Acos", "f", _inside(-0.9, 0.9), False),
    ("Asin", "f", _inside(-0.9, 0.9), False),
    ("HardSwish", "f", _anything, False),
    ("Mish", "f", _inside(-20, 20), False),
    ("Not", "b", _anything, True),
)
# These jump where a rounding error is enough to take the other side.
JUMPS = {"Floor", "Ceil", "Round", "Sign"}


def unary(g: Graph) -> None:
    op, kinds, domain, exact = g.pick(UNARY)
    x = g.some(kinds, ok=domain, exact=op in JUMPS)
    if op == "HardSwish" and x.array.dtype == np.float64:
        raise Skip  # the reference has a sixth with the digits of float32
    g.node(op, [x], exact=exact)


def activation(g: Graph) -> None:
    op, attributes = g.pick(
        (
            ("LeakyRelu", {"alpha": 0.1}),
            ("Elu", {"alpha": 1.5}),
            ("Selu", {}),
            ("Celu", {"alpha": 0.7}),
            ("HardSigmoid", {"alpha": 0.3, "beta": 0.4}),
            ("ThresholdedRelu", {"alpha": 0.5}),
            ("Gelu", {"approximate": "tanh"}),
            ("Gelu", {}),
        )
    )
    if op == "Gelu" and g.opset < 20:
        raise Skip
    x = g.some("f", ok=_inside(-20, 50), exact=op == "ThresholdedRelu")
    if op == "Gelu" and x.array.dtype == np.float64:
        raise Skip  # the reference has the root of 2 with the digits of float32
    if op == "Celu" and x.array.dtype != np.float32:
        raise Skip
    g.node(op, [x], **attributes)


def partner(g: Graph, x: Value, ok: Domain = _anything) -> Value:
    """A value of the same type that broadcasts with `x`: one there is, or a new one."""

    def fits(value: Value) -> bool:
        if value.array.dtype != x.array.dtype or not ok(value):
            return False
        pairs = zip(reversed(value.shape), reversed(x.shape), strict=False)
        return all(a == b or 1 in {a, b} for a, b in pairs)

    found = [v for v in g.values if fits(v)]
    if found and g.chance(60):
        return g.pick(found)
    shape = [1 if g.chance(30) else extent for extent in x.shape]
    shape = shape[g.integer(0, len(shape)) :] if g.chance(30) else shape
    made = g.new(x.array.dtype, shape, 0.25 if g.chance(50) else -3, 3)
    if ok(made):
        return made
    raise Skip


def binary(g: Graph) -> None:
    op = g.pick(("Add", "Mul", "Sub", "Div", "Max", "Min", "Add", "Mul", "Pow", "PRelu", "Mod"))
    kinds = {"Pow": "f", "PRelu": "f", "Mod": "i", "Div": "f"}.get(op, "fi")
    x = g.some(kinds)
    if op == "Pow":
        x = g.some("f", ok=_inside(0.1, 10))
        y = partner(g, x, _inside(-3, 3))
    elif op in {"Div", "Mod"}:
        y = partner(g, x, Value.away_from_zero)
    else:
        y = partner(g, x)
    if op == "PRelu":
        if np.broadcast_shapes(x.shape, y.shape) != x.shape:
            raise Skip
    elif g.chance(30) and op not in {"Pow", "Div", "Mod"}:
        x, y = y, x
    g.node(op, [x, y], exact=op in {"Max", "Min", "Mod"} or x.kind == "i")


def several(g: Graph) -> None:
    x = g.some("f")
    rest = [partner(g, x) for _ in range(g.integer(0, 3))]
    op = g.pick(("Sum", "Mean", "Max", "Min"))
    g.node(op, [x, *rest], exact=op in {"Max", "Min"})


def compare(g: Graph) -> None:
    op = g.pick(("Less", "Greater", "Equal", "LessOrEqual", "GreaterOrEqual"))
    x = g.some("fi", exact=True)
    y = partner(g, x, lambda v: v.exact)
    g.node(op, [x, y], exact=True)


def logic(g: Graph) -> None:
    x = g.some("b")
    g.node(g.pick(("And", "Or", "Xor")), [x, partner(g, x)], exact=True)


def bits(g: Graph) -> None:
    x = g.some("iu")
    g.node(g.pick(("BitwiseAnd", "BitwiseOr", "BitwiseXor")), [x, partner(g, x)], exact=True)


def where(g: Graph) -> None:
    x = g.some("fi")
    y = partner(g, x)
    shape = np.broadcast_shapes(x.shape, y.shape)
    masks = [v for v in g.values if v.kind == "b" and v.shape == shape]
    mask = g.pick(masks) if masks else g.new(np.bool_, shape)
    g.node("Where", [mask, x, y], exact=True)


def clip(g: Graph) -> None:
    x = g.some("f")
    low = g.add(np.asarray(-1.5, x.array.dtype)) if g.chance(70) else None
    high = g.add(np.asarray(1.25, x.array.dtype)) if g.chance(70) else None
    g.node("Clip", [x, low, high], exact=True)


def cast(g: Graph) -> None:
    to: Any = g.pick((np.float32, np.float64, np.float16, np.int64, np.int32, np.bool_, np.uint8))
    x = g.some("fiub", exact=np.dtype(to).kind != "f")
    if to is np.float16 and x.kind == "f" and not x.within(-6e4, 6e4):
        raise Skip
    if to is np.uint8 and not x.within(0, 255):
        raise Skip
    if to is np.float16 and x.kind == "i" and not x.within(-2048, 2048):
        raise Skip
    g.node("Cast", [x], to=helper.np_dtype_to_tensor_dtype(np.dtype(to)), exact=True)


def is_nan(g: Graph) -> None:
    g.node(g.pick(("IsNaN", "IsInf")), [g.some("f", ok=lambda v: v.array.dtype != np.float16)])


RECIPES = (
    *(unary,) * 6,
    *(binary,) * 8,
    activation,
    activation,
    several,
    compare,
    compare,
    logic,
    bits,
    where,
    clip,
    cast,
    cast,
    is_nan,
)

# SPDX-License-Identifier: Apache-2.0
"""Operators of one input that work element by element."""

from __future__ import annotations

from typing import Any, NamedTuple

from chipdock.conformance.opcases.spec import (
    FLOATS,
    HALVES,
    INTEGERS,
    SIGNED,
    Cases,
    In,
    pick,
    variant,
)

__all__ = ["cases"]


class _Unary(NamedTuple):
    """What a unary operator takes."""

    tolerance: str = "U"
    fill: str = "normal"
    special: str = "special"
    """Fill of the case of special values; "" where the specification leaves them open."""
    integers: tuple[str, ...] = ()
    opset: int = 22
    floats: tuple[str, ...] = FLOATS
    settings: tuple[dict[str, Any], ...] = ()
    """Attribute values that get a case of their own."""


_OPERATORS: dict[str, _Unary] = {
    "Abs": _Unary("E", integers=INTEGERS), "Neg": _Unary("E", integers=SIGNED),
    "Sign": _Unary("E", "nonzero", "ordered", INTEGERS), "Ceil": _Unary("E", "halves"),
    "Floor": _Unary("E", "halves"), "Round": _Unary("E", "halves"),
    "Relu": _Unary("E", special="ordered", integers=SIGNED),
    "Sqrt": _Unary(fill="positive"), "Reciprocal": _Unary(fill="nonzero"),
    "Exp": _Unary(), "Log": _Unary(fill="positive"), "Sin": _Unary(), "Cos": _Unary(),
    "Tan": _Unary(), "Asin": _Unary(fill="unit"), "Acos": _Unary(fill="unit"), "Atan": _Unary(),
    "Sinh": _Unary(), "Cosh": _Unary(), "Tanh": _Unary(), "Asinh": _Unary(),
    "Acosh": _Unary(fill="above1"), "Atanh": _Unary(fill="unit"), "Erf": _Unary(),
    "Sigmoid": _Unary(), "Softplus": _Unary(special="finite"), "Softsign": _Unary(special="finite"),
    "Elu": _Unary(special="finite", settings=({"alpha": 0.5}, {"alpha": 2.0})),
    "Selu": _Unary(special="finite", settings=({"alpha": 1.5, "gamma": 2.0},)),
    "Celu": _Unary(special="finite", opset=28, settings=({"alpha": 0.5}, {"alpha": 2.0})),
    "Gelu": _Unary(special="finite", settings=({"approximate": "tanh"},)),
    "Mish": _Unary(special="finite"), "HardSwish": _Unary(special="ordered"),
    "Swish": _Unary(special="finite", opset=24, settings=({"alpha": 0.5}, {"alpha": 1.702})),
    "HardSigmoid": _Unary(special="ordered", settings=({"alpha": 0.25, "beta": 0.5},)),
    "LeakyRelu": _Unary(special="ordered", settings=({"alpha": 0.25}, {"alpha": 1.5})),
    "ThresholdedRelu": _Unary("E", special="ordered", settings=({"alpha": 0.5},)),
    "Shrink": _Unary(special="ordered", floats=("f32", "f64", "f16"),
                     settings=({"lambd": 1.5, "bias": 0.5},)),
    "IsNaN": _Unary("E", fill="special"),
    "IsInf": _Unary("E", fill="special", settings=({"detect_negative": 0}, {"detect_positive": 0})),
    "Not": _Unary("E", special="", integers=("bool",), floats=()),
    "BitwiseNot": _Unary("E", "full", "", INTEGERS, floats=()),
}  # fmt: skip

_SHAPES: dict[str, tuple[str, tuple[int, ...], str]] = {
    "scalar": ("scalar", (), ""), "one": ("scalar", (1,), ""), "empty": ("empty", (0, 3), ""),
    "n17": ("odd", (17,), ""), "n1023": ("odd", (1023,), ""), "nd": ("nd", (2, 3, 5), ""),
    "rank5": ("nd", (2, 1, 3, 2, 2), ""), "step": ("strided", (5, 7), "step"),
    "back": ("strided", (4, 9), "back"), "inner": ("strided", (3, 5), "inner"),
    "large": ("large", (37, 251), ""),
}  # fmt: skip
_COMMON = frozenset({"Abs", "Relu", "Sigmoid", "Exp", "Sqrt", "Tanh", "Not", "Neg", "Erf"})
"""Operators of most models: their f32 cases have every shape."""
_SIGN_OF_ZERO = frozenset({"Abs", "Neg", "Ceil", "Floor", "Round"})
_OLD = {
    "Celu": 12,
    "Abs": 6,
    "Exp": 6,
    "Relu": 6,
    "Sqrt": 6,
    "Sigmoid": 6,
    "Tanh": 6,
    "Erf": 9,
    "Not": 1,
}


def cases() -> Cases:
    """Yield the cases."""
    for op, facts in _OPERATORS.items():
        for dtype in facts.floats:
            count = (11 if op in _COMMON else 5) if dtype == "f32" else 2 if dtype == "f64" else 1
            names = pick(list(_SHAPES), op, dtype, count=count)
            for name in names:
                yield _one(op, facts, dtype, name)
            yield from _values(op, facts, dtype)
            for i, setting in enumerate(facts.settings):
                if dtype == "f32" or i == 0:
                    yield _one(op, facts, dtype, "n17", setting, f"set{i}")
        for dtype in facts.integers:
            for name in pick(list(_SHAPES), op, dtype):
                yield _one(op, facts, dtype, name)
        if op in _OLD:
            dtype = "bool" if op == "Not" else "f32"
            yield _one(op, facts, dtype, "nd", None, f"v{_OLD[op]}", opset=_OLD[op])


def _one(
    op: str, facts: _Unary, dtype: str, shape: str, setting: dict[str, Any] | None = None,
    name: str = "", **extra: Any,
) -> Any:  # fmt: skip
    shape_class, extents, view = _SHAPES[shape]
    extra.setdefault("opset", facts.opset)
    wanted = In(dtype, extents, facts.fill, view)
    return variant(op, dtype, name or shape, [wanted], setting, shape_class=shape_class,
                   tolerance=facts.tolerance, zero_sign=op in _SIGN_OF_ZERO, **extra)  # fmt: skip


def _values(op: str, facts: _Unary, dtype: str) -> Cases:
    """Special values, denormals, and a wide range of exponents."""
    chosen = {"special": facts.special, "denormal": "denormal", "wide": "wide"}
    for name, fill in chosen.items():
        if not fill or (name != "special" and dtype in HALVES):
            continue
        if name == "denormal" and op in {"Round", "ThresholdedRelu"}:
            continue  # all zero, which any plugin gets right
        if dtype == "f64" and name not in pick(tuple(chosen), op, count=2):
            continue
        yield variant(op, dtype, name, [In(dtype, (3, 13), fill)], None, shape_class="special",
                      tolerance=facts.tolerance, zero_sign=op in _SIGN_OF_ZERO,
                      opset=facts.opset)  # fmt: skip

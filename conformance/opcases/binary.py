# SPDX-License-Identifier: Apache-2.0
"""Operators of two and more inputs with broadcasting: arithmetic, comparison, logic, bits."""

from __future__ import annotations

from typing import Any, NamedTuple

from chipdock.conformance.opcases.spec import (
    FLOATS,
    INTEGERS,
    Cases,
    In,
    const,
    pick,
    variant,
)

__all__ = ["cases"]


class _Binary(NamedTuple):
    """What a binary operator takes."""

    tolerance: str = "U"
    floats: tuple[str, ...] = FLOATS
    others: tuple[str, ...] = INTEGERS
    left: str = "normal"
    right: str = "normal"
    special: str = "special"
    opset: int = 22
    attributes: dict[str, Any] = {}  # noqa: RUF012  never written


_ORDERED = (*INTEGERS, "bool")
_UNSIGNED = ("u8", "u16", "u32", "u64")
_OPERATORS: dict[str, _Binary] = {
    "Add": _Binary(), "Sub": _Binary(others=("i8", "i16", "i32", "i64")), "Mul": _Binary(),
    "Div": _Binary(right="nonzero"),
    "Pow": _Binary(others=("i32", "i64"), left="positive", right="normal", special=""),
    "PRelu": _Binary(others=("i32", "i64", "u32", "u64"), special="ordered"),
    "Max": _Binary("E", special="ordered"), "Min": _Binary("E", special="ordered"),
    "Equal": _Binary("E", others=_ORDERED, left="ints", right="ints"),
    "Less": _Binary("E", left="ints", right="ints"),
    "Greater": _Binary("E", left="ints", right="ints"),
    "LessOrEqual": _Binary("E", left="ints", right="ints"),
    "GreaterOrEqual": _Binary("E", left="ints", right="ints"),
    "And": _Binary("E", (), ("bool",)), "Or": _Binary("E", (), ("bool",)),
    "Xor": _Binary("E", (), ("bool",)),
    "BitwiseAnd": _Binary("E", (), INTEGERS, "full", "full"),
    "BitwiseOr": _Binary("E", (), INTEGERS, "full", "full"),
    "BitwiseXor": _Binary("E", (), INTEGERS, "full", "full"),
    "SwiGLU": _Binary(others=(), special="", opset=28),
}  # fmt: skip

_SHAPES: dict[str, tuple[str, tuple[int, ...], tuple[int, ...], str, str]] = {
    "same": ("nd", (3, 4, 5), (3, 4, 5), "", ""),
    "scalars": ("scalar", (), (), "", ""),
    "scalar_right": ("broadcast", (17,), (), "", ""),
    "scalar_left": ("broadcast", (), (2, 9), "", ""),
    "row": ("broadcast", (5, 7), (7,), "", ""),
    "column": ("broadcast", (5, 7), (5, 1), "", ""),
    "outer": ("broadcast", (6, 1), (1, 11), "", ""),
    "middle": ("broadcast", (2, 3, 4), (2, 1, 4), "", ""),
    "rank5": ("broadcast", (2, 1, 3, 1, 2), (1, 4, 3, 2, 1), "", ""),
    "empty": ("empty", (0, 4), (4,), "", ""),
    "n1023": ("odd", (1023,), (1023,), "", ""),
    "step": ("strided", (5, 7), (5, 7), "step", ""),
    "back": ("strided", (4, 9), (4, 9), "", "back"),
    "inner": ("strided", (3, 5), (3, 5), "inner", "step"),
    "large": ("large", (61, 137), (61, 137), "", ""),
}  # fmt: skip
_COMMON = frozenset({"Add", "Sub", "Mul", "Div"})
# PRelu's slope broadcasts to x only; SwiGLU's inputs have one shape.
_ONE_WAY = ("same", "scalars", "scalar_right", "row", "column", "middle", "empty", "step", "back")
_ONE_SHAPE = ("same", "scalars", "empty", "n1023", "step", "back", "inner", "large")


def cases() -> Cases:
    """Yield the cases."""
    for op, facts in _OPERATORS.items():
        shapes = {"PRelu": _ONE_WAY, "SwiGLU": _ONE_SHAPE}.get(op, tuple(_SHAPES))
        main = facts.floats[:1] or facts.others[:1]
        for dtype in (*facts.floats, *facts.others):
            count = (15 if op in _COMMON else 7) if dtype in main else 2 if dtype in FLOATS else 1
            for name in pick(shapes, op, dtype, count=count):
                yield _one(op, facts, dtype, name)
        for dtype in facts.floats:
            yield from _values(op, facts, dtype)
            yield from _nans(op, facts, dtype)
    yield from _integers()
    yield from _mod()
    yield from _shift()
    yield from _pow_mixed()
    yield from _variadic()
    for op in ("Add", "Sub", "Mul", "Div"):
        yield _one(op, _OPERATORS[op], "f32", "row", name="v7", opset=7)
        yield _one(op, _OPERATORS[op], "i32", "row", name="v13", opset=13)
    for op in ("Equal", "Less", "Greater"):
        yield _one(op, _OPERATORS[op], "i32", "row", name="v9", opset=9)


def _one(
    op: str, facts: _Binary, dtype: str, shape: str, *, name: str = "", **extra: Any
) -> Any:  # fmt: skip
    shape_class, left, right, view_left, view_right = _SHAPES[shape]
    # A sum of two int8 between -50 and 50 fits; a product does not, and what happens then is open.
    small = "ints:0:6" if dtype[0] == "u" else "ints:-5:6"
    narrow = op == "Mul" and dtype in INTEGERS
    fills = (small, small) if narrow else (facts.left, facts.right)
    if op == "Pow" and dtype in INTEGERS:
        fills = ("ints:-3:4", "ints:0:4")
    extra.setdefault("opset", facts.opset)
    pair = [In(dtype, left, fills[0], view_left), In(dtype, right, fills[1], view_right)]
    return variant(op, dtype, name or shape, pair, facts.attributes, shape_class=shape_class,
                   tolerance=facts.tolerance, **extra)  # fmt: skip


def _values(op: str, facts: _Binary, dtype: str) -> Cases:
    def one(name: str, left: In, right: In) -> Any:
        return variant(op, dtype, name, [left, right], facts.attributes, shape_class="special",
                       tolerance=facts.tolerance, opset=facts.opset)  # fmt: skip

    if facts.special:
        yield one("special", In(dtype, (29, 31) if op == "PRelu" else (31,), facts.special),
                  In(dtype, (29, 1), facts.special))  # fmt: skip
    if op in {"PRelu", "SwiGLU"} or not facts.special:
        return
    if dtype in {"f16", "bf16"}:
        return
    yield one("denormal", In(dtype, (37,), "denormal"), In(dtype, (37,), "denormal"))
    if dtype in {"f32", "f64"}:
        yield one("wide", In(dtype, (5, 31), "wide"), In(dtype, (5, 31), "wide"))


def _nans(op: str, facts: _Binary, dtype: str) -> Cases:
    """NaN on either side and on both, at one index: it wins a maximum and equals nothing."""
    if op not in {"Max", "Min", "Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"}:
        return
    nan, inf = float("nan"), float("inf")
    pair = [const(dtype, (8,), nan, 1.0, nan, nan, -inf, inf, 2.0, -0.5),
            const(dtype, (8,), nan, nan, 2.0, inf, nan, -inf, 2.0, nan)]  # fmt: skip
    yield variant(op, dtype, "nan", pair, facts.attributes, shape_class="special",
                  tolerance=facts.tolerance, opset=facts.opset)  # fmt: skip


def _integers() -> Cases:
    """Sums wrap around, quotients are cut towards zero."""
    for op in ("Add", "Sub"):
        for dtype in _OPERATORS[op].others:
            pair = [In(dtype, (6, 11), "full"), In(dtype, (6, 11), "full")]
            yield variant(op, dtype, "wraps", pair, {}, shape_class="special", tolerance="E")
    for dtype in ("i8", "i16", "i32", "i64"):
        pair = [const(dtype, (10,), 7, -7, 7, -7, 1, -1, -1, -100, 100, 0),
                const(dtype, (10,), 2, 2, -2, -2, 3, 3, -3, 7, -7, -5)]  # fmt: skip
        yield variant("Div", dtype, "signs", pair, {}, shape_class="special", tolerance="E")


def _mod() -> Cases:
    for dtype in INTEGERS:
        for name in pick(("same", "row", "outer", "step"), "Mod", dtype, count=2):
            shape_class, left, right, view, _ = _SHAPES[name]
            signed = dtype[0] == "i"
            divisor = In(dtype, right, "ints:1:9") if not signed else In(dtype, right, "values", "",
                False, (-3,)) if name == "outer" else In(dtype, right, "ints:2:9")  # fmt: skip
            pair = [In(dtype, left, view=view), divisor]
            yield variant("Mod", dtype, name, pair, {"fmod": 0}, shape_class=shape_class,
                          tolerance="E")  # fmt: skip
        if dtype[0] == "i":
            pair = [In(dtype, (41,)), In(dtype, (41,), "ints:2:9")]
            yield variant("Mod", dtype, "fmod", pair, {"fmod": 1}, shape_class="odd",
                          tolerance="E")  # fmt: skip
    for dtype in FLOATS:
        for name in ("same", "row"):
            shape_class, left, right, *_ = _SHAPES[name]
            pair = [In(dtype, left, "ints:-40:41"), In(dtype, right, "ints:1:9")]
            yield variant("Mod", dtype, f"fmod_{name}", pair, {"fmod": 1}, shape_class=shape_class,
                          tolerance="E")  # fmt: skip


def _shift() -> Cases:
    for dtype in _UNSIGNED:
        for direction in ("LEFT", "RIGHT"):
            for name in pick(("same", "row", "scalar_right", "step"), dtype, direction, count=2):
                shape_class, left, right, view, _ = _SHAPES[name]
                pair = [In(dtype, left, "full", view), In(dtype, right, "ints:0:8")]
                yield variant("BitShift", dtype, f"{direction.lower()}_{name}", pair,
                              {"direction": direction}, shape_class=shape_class,
                              tolerance="E")  # fmt: skip


def _pow_mixed() -> Cases:
    """An exponent of another type, and exponents that plugins treat in ways of their own."""
    for dtype, exponent in (
        ("f32", "i32"),
        ("f32", "i64"),
        ("f32", "f64"),
        ("f64", "f32"),
        ("f16", "f32"),
        ("i32", "f32"),
        ("i64", "i32"),
        ("f32", "u8"),
    ):
        base = In(dtype, (23,), "ints:1:6")
        power = In(exponent, (23,), "ints:0:4")
        tolerance = "U" if dtype[0] == "f" else "E"
        yield variant("Pow", dtype, f"by_{exponent}", [base, power], shape_class="odd",
                      tolerance=tolerance)  # fmt: skip
    for value in (0.0, 0.5, 1.0, 2.0, 3.0, -1.0, -0.5, 7.0):
        text = str(value).replace("-", "m").replace(".", "_")
        for dtype in ("f32", *pick(("f64", "f16", "bf16"), value)):
            pair = [In(dtype, (67,), "positive"), const(dtype, (), value)]
            yield variant("Pow", dtype, f"to_{text}", pair, shape_class="broadcast",
                          tolerance="U")  # fmt: skip
    pair = [In("f32", (33,)), const("f32", (), 3.0)]
    yield variant("Pow", "f32", "odd_of_negative", pair, shape_class="special", tolerance="U")


def _variadic() -> Cases:
    for op in ("Max", "Min", "Sum", "Mean"):
        exact = op in {"Max", "Min"}
        for dtype in (*FLOATS, *(("i32", "i64", "u8") if exact else ())):
            for count in (1, 3, 5):
                if dtype != "f32" and count not in pick((1, 3, 5), op, dtype, count=2):
                    continue
                shapes: list[tuple[int, ...]] = [(3, 1, 5), (4, 1), (5,), (), (3, 4, 5)]
                given = [In(dtype, shape) for shape in shapes[:count]]
                yield variant(op, dtype, f"of{count}", given, shape_class="broadcast",
                              tolerance="E" if exact or count == 1 else "R")  # fmt: skip
        for name in ("same", "empty", "step", "n1023", "scalars"):
            if exact:
                continue
            shape_class, left, right, view, _ = _SHAPES[name]
            pair = [In("f32", left, view=view), In("f32", right)]
            yield variant(op, "f32", name, pair, shape_class=shape_class, tolerance="R")

# SPDX-License-Identifier: Apache-2.0
"""Casts between all types, with what the specification says of their edges."""

from __future__ import annotations

from typing import Any

from chipdock.conformance.numerics.dtypes import ONNX_TYPES
from chipdock.conformance.opcases.spec import (
    FLOAT6,
    FLOATS,
    INTEGERS,
    SMALL,
    Cases,
    In,
    const,
    pick,
    variant,
)

__all__ = ["cases"]

_PLAIN = (*FLOATS, *INTEGERS, "bool")
_F8 = ("f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz")


# Everywhere else all of them become zero.
_KEEPS_DENORMALS = {("f32", "f64"), ("f32", "bf16"), ("f16", "f32"), ("f16", "f64"),
                    ("f16", "bf16"), ("bf16", "f32"), ("bf16", "f64")}  # fmt: skip


def cases() -> Cases:
    """Yield the cases."""
    for source in _PLAIN:
        for goal in _PLAIN:
            if source != goal:
                yield _one(source, goal)
    for small in (*SMALL, *FLOAT6):
        for other in ("f32", "f16", "bf16") if small[0] == "f" and small != "f8e8m0" else ("f32",):
            if small not in {"f8e8m0"}:
                yield _one(small, other)
            yield _one(other, small)
    for source in ("i4", "u4"):
        for goal in pick(("i8", "u8", "i32"), source, count=2):
            yield _one(source, goal)
    yield from _edges()
    for source, goal in (
        ("f32", "f16"),
        ("f32", "i32"),
        ("i64", "f32"),
        ("bool", "f32"),
        ("f16", "f32"),
        ("f32", "bool"),
        ("i32", "i64"),
        ("bf16", "f32"),
    ):
        given = [In(source, (3, 5), _fill(source, goal)), In(goal, (1,))]
        yield variant("CastLike", source, f"to_{goal}", given, {}, shape_class="nd", tolerance="E",
                      opset=25, zero_sign=True)  # fmt: skip
        for name, shape, view in (
            ("scalar", (), ""),
            ("empty", (0, 3), ""),
            ("step", (3, 5), "step"),
            ("n1023", (1023,), ""),
        ):
            yield _one(source, goal, shape, view, name)


def _fill(source: str, goal: str) -> str:
    """Values that the goal can hold: what happens to others is for each case to say."""
    if goal in {"u4", "u2"} or (goal[0] == "u" and source not in INTEGERS):
        return "ints:0:12" if goal == "u4" else "uniform:0:100"
    if goal == "i4":
        return "ints:-8:8"
    if goal in INTEGERS:
        return "ints:0:50" if goal[0] == "u" else "normal:30" if source in FLOATS else "normal"
    if goal == "bool":
        return "ints:-1:2"
    if goal == "f8e8m0":
        return "positive"
    return "halves" if source in FLOATS and goal in FLOATS else "normal"


def _one(
    source: str, goal: str, shape: tuple[int, ...] = (3, 17), view: str = "", name: str = ""
) -> Any:  # fmt: skip
    fill = _fill(source, goal)
    if source[0] == "u" and "-" in fill:
        fill = "ints:0:2"
    suffix = f"_{name}" if name else ""
    shape_class = {"step": "strided", "n1023": "odd"}.get(name, name) or "nd"
    return variant("Cast", source, f"to_{goal}{suffix}", [In(source, shape, fill, view)],
                   {"to": ONNX_TYPES[goal]}, shape_class=shape_class, tolerance="E",
                   opset=28 if {source, goal} & {*FLOAT6} else 25, zero_sign=True)  # fmt: skip


def _edges() -> Cases:
    def edge(source: str, goal: str, name: str, given: In, **more: Any) -> Any:
        return variant("Cast", source, f"to_{goal}_{name}", [given],
                       {"to": ONNX_TYPES[goal]} | more, shape_class="special", tolerance="E",
                       opset=28 if goal in FLOAT6 else 25, zero_sign=True)  # fmt: skip

    for source in FLOATS:
        for goal in FLOATS:
            if source != goal:
                yield edge(source, goal, "special", In(source, (31,), "special"))
                if (source, goal) in _KEEPS_DENORMALS:
                    yield edge(source, goal, "denormal", In(source, (31,), "denormal"))
        yield edge(source, "bool", "special", In(source, (31,), "special"))
        # Towards zero, whatever the sign.
        yield edge(
            source,
            "i32",
            "fractions",
            const(source, (8,), 0.9, -0.9, 1.5, -1.5, 2.99, -2.99, 0.0, -0.0),
        )
        yield edge(source, "u8", "fractions", const(source, (4,), 0.9, 1.5, 2.75, 255.0))
    # Ties to even, and the first value beyond the range.
    yield edge("f32", "f16", "ties", const("f32", (6,), 2049.0, 2051.0, 65519.0, 65520.0, 1e-8,
                                           6.1e-5))  # fmt: skip
    yield edge(
        "f32",
        "bf16",
        "ties",
        const("f32", (6,), 257.0, 259.0, 3.3961775e38, 1e-40, 1.00390625, 1.01171875),
    )
    yield edge("i64", "f32", "large", In("i64", (33,), "full"))
    yield edge("i64", "f64", "large", In("i64", (33,), "full"))
    yield edge("i32", "f32", "large", In("i32", (33,), "full"))
    yield edge("u64", "f32", "large", In("u64", (33,), "full"))
    for source, goal in (("i32", "i8"), ("i64", "i32"), ("i32", "u8"), ("i8", "u8"), ("u32", "i16"),
                         ("i64", "u32"), ("u8", "i8")):  # fmt: skip
        # The upper bits are dropped.
        yield edge(source, goal, "wraps", In(source, (33,), "full"))
    for small in _F8:
        for saturate in (0, 1):
            wide = const("f32", (9,), 0.0, 1.0, -2.5, 1e6, -1e6, 480.0, 0.001, float("inf"),
                         float("nan"))  # fmt: skip
            yield edge("f32", small, f"saturate{saturate}", wide, saturate=saturate)
        yield edge("f16", small, "ties", In("f16", (41,), "halves"))
    for small in FLOAT6:
        # No infinity and no NaN: what is too large is the largest number.
        yield edge("f32", small, "saturates", const("f32", (7,), 0.0, -0.0, 7.75, -30.0, 1e6,
                                                    float("inf"), -float("inf")))  # fmt: skip
        yield edge("f16", small, "ties", In("f16", (41,), "halves"))
    for opset in (6, 9, 13):
        yield variant("Cast", "f32", f"to_i32_v{opset}", [In("f32", (3, 5), "normal:30")],
                      {"to": ONNX_TYPES["i32"]}, shape_class="old_version", tolerance="E",
                      opset=max(opset, 7))  # fmt: skip

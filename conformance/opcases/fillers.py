# SPDX-License-Identifier: Apache-2.0
"""Operators that make values from sizes and numbers, and Clip with its many forms."""

from __future__ import annotations

from typing import Any

from chipdock.conformance.numerics.dtypes import ONNX_TYPES
from chipdock.conformance.opcases.spec import (
    FLOATS,
    INTEGERS,
    Cases,
    In,
    const,
    ints,
    pick,
    variant,
)

__all__ = ["cases"]


def cases() -> Cases:
    """Yield the cases."""
    yield from _constant_of_shape()
    yield from _range()
    yield from _eye()
    yield from _clip()
    yield from _windows()
    yield from _dropout()


def _constant_of_shape() -> Cases:
    for dtype in (*FLOATS, *INTEGERS, "bool"):
        value = ("tensor", dtype, (1,), (1 if dtype in {"bool", "u8"} else 3,))
        shapes: dict[str, tuple[int, ...]] = {"matrix": (3, 4), "line": (17,), "empty": (0, 3),
                                              "one": (1, 1, 1)}  # fmt: skip
        for name in tuple(shapes) if dtype == "f32" else pick(tuple(shapes), dtype):
            made = _op("ConstantOfShape", dtype, name, [ints(*shapes[name])], {"value": value},
                       "empty" if name == "empty" else "nd", opset=25)  # fmt: skip
            yield made
    yield _op("ConstantOfShape", "f32", "default", [ints(2, 3)], {}, "nd", opset=9)
    yield _op("ConstantOfShape", "f32", "scalar", [In("i64", (0,))], {}, "scalar", opset=9)


def _op(op: str, dtype: str, name: str, given: list[Any], attributes: dict[str, Any],
        shape_class: str, tolerance: str = "E", **extra: Any) -> Any:  # fmt: skip
    return variant(op, dtype, name, given, attributes, shape_class=shape_class,
                   tolerance=tolerance, **extra)  # fmt: skip


def _range() -> Cases:
    rows: dict[str, tuple[float, float, float]] = {
        "up": (1, 10, 3), "down": (10, -2, -4), "one": (3, 4, 5), "nothing": (5, 5, 1),
        "wrong_way": (5, 9, -1), "long": (0, 1031, 1),
    }  # fmt: skip
    for dtype in ("f32", "f64", "i16", "i32", "i64"):
        for name, numbers in rows.items():
            given = [const(dtype, (), number) for number in numbers]
            yield _op("Range", dtype, name, given, {}, "empty" if name in {"nothing", "wrong_way"}
                      else "nd", dynamic=True, opset=11)  # fmt: skip
    for dtype in ("f32", "f64"):
        given = [const(dtype, (), number) for number in (0.5, 7.25, 0.3)]
        yield _op("Range", dtype, "fractions", given, {}, "odd", "U", dynamic=True, opset=11)


def _eye() -> Cases:
    for dtype in ("f32", "f64", "f16", "i32", "i64", "u8", "bool"):
        for name, shape, attributes in (("square", (4, 4), {}), ("wide", (3, 5), {"k": 1}),
            ("tall", (5, 3), {"k": -2}), ("outside", (3, 3), {"k": 7})):  # fmt: skip
            if dtype == "f32" or name in pick(("square", "wide", "tall"), dtype):
                yield _op("EyeLike", dtype, name, [In(dtype, shape)], attributes, "nd", opset=9)
    for goal in ("f64", "i32", "f16"):
        yield _op("EyeLike", "f32", f"as_{goal}", [In("f32", (3, 4))], {"dtype": ONNX_TYPES[goal]},
                  "nd", opset=9)  # fmt: skip


def _clip() -> Cases:
    for dtype in (*FLOATS, *INTEGERS):
        low = const(dtype, (), 5 if dtype[0] == "u" else -5)
        high = const(dtype, (), 20)
        rows: dict[str, tuple[list[Any], tuple[int, ...], str, str]] = {
            "both": ([low, high], (3, 17), "", "nd"), "low": ([low], (41,), "", "odd"),
            "high": ([None, high], (3, 5), "", "nd"), "open": ([], (3, 5), "", "nd"),
            "scalar": ([low, high], (), "", "scalar"), "empty": ([low, high], (0, 2), "", "empty"),
            "step": ([low, high], (5, 7), "step", "strided"),
            "crossed": ([high, low], (3, 5), "", "special"),
        }  # fmt: skip
        for name in tuple(rows) if dtype == "f32" else pick(tuple(rows)[:7], dtype, count=3):
            limits, shape, view, shape_class = rows[name]
            yield _op("Clip", dtype, name, [In(dtype, shape, "normal:12", view), *limits], {},
                      shape_class, opset=13)  # fmt: skip
    for dtype in FLOATS:
        given = [In(dtype, (31,), "ordered"), const(dtype, (), -1.0), const(dtype, (), 1.0)]
        yield _op("Clip", dtype, "special", given, {}, "special", opset=13)
    for opset, name in ((6, "both"), (6, "low")):
        bounds = {"min": -1.0} | ({"max": 1.5} if name == "both" else {})
        yield _op("Clip", "f32", f"v{opset}_{name}", [In("f32", (3, 7))], bounds, "old_version",
                  opset=max(opset, 7))  # fmt: skip
    relu6 = [In("f32", (2, 3, 5), "normal:5"), const("f32", (), 0.0)._replace(constant=True),
             const("f32", (), 6.0)._replace(constant=True)]  # fmt: skip
    yield _op("Clip", "f32", "relu6", relu6, {}, "real", opset=13)


def _windows() -> Cases:
    for op in ("HannWindow", "HammingWindow", "BlackmanWindow"):
        for size in (1, 16, 31):
            for periodic in (0, 1):
                yield _op(op, "i32", f"n{size}_{'periodic' if periodic else 'symmetric'}",
                          [ints(size, dtype="i32", scalar=True)], {"periodic": periodic},
                          "odd", "U", opset=17, dynamic=True)  # fmt: skip
    mel = [ints(8, scalar=True), ints(64, scalar=True), ints(8000, scalar=True),
           const("f32", (), 0.0), const("f32", (), 4000.0)]  # fmt: skip
    yield _op("MelWeightMatrix", "i64", "n8", mel, {}, "real", "U", opset=17, dynamic=True)


def _dropout() -> Cases:
    """Without training it is a copy; training is judged among the random operators."""
    for dtype in FLOATS:
        for name, others in (("plain", []), ("ratio", [const("f32", (), 0.3)]),
                             ("off", [const("f32", (), 0.7), const("bool", (), 0)])):  # fmt: skip
            yield _op("Dropout", dtype, name, [In(dtype, (3, 7), "special"), *others], {}, "nd",
                      zero_sign=True, opset=22 if dtype == "bf16" else 13)  # fmt: skip
    yield _op("Dropout", "f32", "v7", [In("f32", (3, 7))], {"ratio": 0.4}, "old_version", opset=7)
    yield _op("Dropout", "f32", "mask", [In("f32", (3, 7))], {}, "nd", outputs=2, opset=13)

# SPDX-License-Identifier: Apache-2.0
"""Operators that read or write by indices, masks and order."""

from __future__ import annotations

from typing import Any

from chipdock.conformance.opcases.spec import (
    FLOATS,
    INTEGERS,
    MOVABLE,
    Cases,
    In,
    const,
    ints,
    pick,
    variant,
)

__all__ = ["cases"]

_INDEX = ("i64", "i32")


def cases() -> Cases:
    """Yield the cases."""
    yield from _gather()
    yield from _scatter()
    yield from _where()
    yield from _top_k()
    yield from _dynamic()
    yield from _one_hot()
    yield from _trilu()
    yield from _cache()


def _move(op: str, dtype: str, name: str, given: list[Any], attributes: dict[str, Any],
          shape_class: str, **extra: Any) -> Any:  # fmt: skip
    return variant(op, dtype, name, given, attributes, shape_class=shape_class, tolerance="E",
                   zero_sign=True, **extra)  # fmt: skip


def _gather() -> Cases:
    gathers: dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], int, str, str]] = {
        # data, shape of indices, their values, axis, view, class
        "rows": ((7, 5), (3,), (0, 6, 2), 0, "", "nd"),
        "columns": ((4, 6), (4,), (5, 0, 0, 3), 1, "", "nd"),
        "negative": ((7, 5), (3,), (-1, -7, 2), 0, "", "negative_axis"),
        "negative_axis": ((3, 4, 5), (2,), (1, -2), -1, "", "negative_axis"),
        "matrix": ((9, 4), (2, 3), (8, 1, 0, 0, 5, -1), 0, "", "real"),
        "scalar": ((4, 5), (), (2,), 0, "", "scalar"),
        "nothing": ((4, 5), (0,), (), 1, "", "empty"),
        "step": ((6, 4), (2,), (3, 1), 0, "step", "strided"),
        "back": ((6, 4), (2,), (3, 1), 1, "back", "strided"),
        "embedding": ((64, 16), (1, 7), (0, 63, 5, 17, 17, 2, 40), 0, "", "real"),
    }  # fmt: skip
    for dtype in MOVABLE:
        for name in tuple(gathers) if dtype == "f32" else pick(tuple(gathers), dtype, count=3):
            shape, extents, values, axis, view, shape_class = gathers[name]
            index = pick(_INDEX, name, dtype)[0]
            given = [In(dtype, shape, "special", view),
                     In(index, extents, "values", values=values)]  # fmt: skip
            yield _move("Gather", dtype, name, given, {"axis": axis}, shape_class)
    elements: dict[str, tuple[tuple[int, ...], tuple[int, ...], int, str]] = {
        "rows": ((4, 3), (2, 3), 0, ""), "columns": ((3, 5), (3, 2), 1, ""),
        "smaller": ((5, 5), (2, 3), 0, ""), "rank3": ((2, 3, 4), (2, 3, 2), -1, ""),
        "step": ((3, 4), (3, 2), 1, "step"),
    }  # fmt: skip
    for dtype in MOVABLE:
        for name in tuple(elements) if dtype == "f32" else pick(tuple(elements), dtype, count=2):
            shape, extents, axis, view = elements[name]
            top = shape[axis]
            given = [In(dtype, shape, "special", view), In("i64", extents, f"ints:{-top}:{top}")]
            yield _move("GatherElements", dtype, name, given, {"axis": axis},
                        "strided" if view else "nd")  # fmt: skip
    nds: dict[str, tuple[tuple[int, ...], In, int]] = {
        "elements": ((3, 4), ints(0, 1, 2, 3, -1, -4)._replace(shape=(3, 2)), 0),
        "rows": ((3, 4), ints(2, 0)._replace(shape=(2, 1)), 0),
        "batch": ((2, 3, 4), ints(1, 2)._replace(shape=(2, 1)), 1),
        "deep": ((2, 3, 4), ints(0, 1, 1, 2)._replace(shape=(2, 1, 2)), 0),
    }  # fmt: skip
    for dtype in MOVABLE:
        for name in tuple(nds) if dtype == "f32" else pick(tuple(nds), dtype, count=2):
            shape, index_in, batch = nds[name]
            yield _move("GatherND", dtype, name, [In(dtype, shape, "special"), index_in],
                        {"batch_dims": batch}, "nd")  # fmt: skip


def _scatter() -> Cases:
    index = ints(1, 0, 2, 0, 2, 1)._replace(shape=(2, 3))
    negative = ints(-1, 0, 1, -3, 1, 2)._replace(shape=(2, 3))
    for dtype in MOVABLE:
        for name, where, axis in (("rows", index, 0), ("columns", index, 1),
                                  ("negative", negative, 0), ("last", negative, -1)):  # fmt: skip
            if dtype != "f32" and name not in pick(("rows", "columns", "negative", "last"), dtype,
                                                   count=2):  # fmt: skip
                continue
            given = [In(dtype, (3, 4), "special"), where, In(dtype, (2, 3))]
            yield _move("ScatterElements", dtype, name, given, {"axis": axis},
                        "negative_axis" if axis < 0 else "nd", opset=18)  # fmt: skip
        given = [In(dtype, (4, 5)), ints(3, 1)._replace(shape=(2, 1)), In(dtype, (2, 5), "special")]
        yield _move("ScatterND", dtype, "rows", given, {}, "nd", opset=18)
        if dtype in pick(MOVABLE, "scatter_nd", count=6):
            given = [In(dtype, (4, 5)), ints(3, 1, -1, 0, 0, -5)._replace(shape=(3, 2)),
                     In(dtype, (3,), "special")]  # fmt: skip
            yield _move("ScatterND", dtype, "elements", given, {}, "negative_axis", opset=18)
    twice = ints(1, 1, 0, 1, 0, 1)._replace(shape=(2, 3))
    for reduction in ("add", "mul", "max", "min"):
        for dtype in ("f32", "f64", "i32", "i64", *pick(("f16", "bf16", "u8", "i8"), reduction)):
            small = "ints:1:4" if dtype not in FLOATS else "exact"
            exact = [In(dtype, (3, 3), small), twice, In(dtype, (2, 3), small)]
            yield variant("ScatterElements", dtype, f"{reduction}_twice", exact, {
                "reduction": reduction}, shape_class="special", tolerance="E",
                opset=18)  # fmt: skip
            rows = [In(dtype, (3, 3), small), ints(1, 1)._replace(shape=(2, 1)),
                    In(dtype, (2, 3), small)]  # fmt: skip
            yield variant("ScatterND", dtype, f"{reduction}_twice", rows, {"reduction": reduction},
                          shape_class="special", tolerance="E", opset=18)  # fmt: skip
    given = [In("f32", (3, 4)), index, In("f32", (2, 3))]
    yield _move("Scatter", "f32", "v9", given, {"axis": 0}, "old_version", opset=9)
    yield _move("ScatterElements", "f32", "v11", given, {"axis": 1}, "old_version", opset=11)
    for op, others in (("Gather", [ints(2, 0)]), ("GatherElements", [index])):
        opset = 7 if op == "Gather" else 11
        yield _move(op, "f32", f"v{opset}", [In("f32", (4, 3)), *others], {}, "old_version",
                    opset=opset)  # fmt: skip


def _where() -> Cases:
    shapes: dict[str, tuple[str, tuple[int, ...], tuple[int, ...], tuple[int, ...], str]] = {
        "same": ("nd", (3, 5), (3, 5), (3, 5), ""),
        "mask_row": ("broadcast", (5,), (3, 5), (3, 1), ""),
        "scalars": ("broadcast", (4, 6), (), (), ""),
        "all": ("broadcast", (3, 1, 1), (4, 1), (5,), ""),
        "scalar": ("scalar", (), (), (), ""), "empty": ("empty", (0, 3), (3,), (1,), ""),
        "step": ("strided", (3, 4), (3, 4), (4,), "step"),
        "n1023": ("odd", (1023,), (1023,), (), ""),
    }  # fmt: skip
    for dtype in MOVABLE:
        for name in tuple(shapes) if dtype == "f32" else pick(tuple(shapes), dtype, count=3):
            shape_class, mask, left, right, view = shapes[name]
            given = [In("bool", mask), In(dtype, left, "special", view), In(dtype, right)]
            yield _move("Where", dtype, name, given, {}, shape_class, opset=16)
    yield _move("Where", "f32", "v9", [In("bool", (3,)), In("f32", (2, 3)), In("f32", (3,))], {},
                "old_version", opset=9)  # fmt: skip


def _top_k() -> Cases:
    rows: dict[str, tuple[tuple[int, ...], int, dict[str, Any], str, str]] = {
        "largest": ((5, 13), 4, {}, "", "nd"), "smallest": ((5, 13), 4, {"largest": 0}, "", "nd"),
        "first_axis": ((9, 4), 3, {"axis": 0}, "", "nd"), "all": ((3, 7), 7, {}, "", "odd"),
        "one": ((3, 7), 1, {"axis": -1}, "", "negative_axis"), "none": ((3, 7), 0, {}, "", "empty"),
        "long": ((2, 4099), 17, {}, "", "large_k"), "step": ((4, 9), 3, {}, "step", "strided"),
    }  # fmt: skip
    for dtype in (*FLOATS, *INTEGERS):
        for name in tuple(rows) if dtype == "f32" else pick(tuple(rows), dtype, count=2):
            shape, k, attributes, view, shape_class = rows[name]
            # Ties go to the lower index, which the specification demands.
            fill = "distinct" if dtype in {"f32", "f64", "i32", "i64"} else "ints:0:100"
            yield variant("TopK", dtype, name, [In(dtype, shape, fill, view), ints(k)], attributes,
                          shape_class=shape_class, tolerance="E", opset=24, outputs=2)  # fmt: skip
    for name in ("largest", "smallest"):
        given = [In("f32", (4, 31), "ints:0:6"), ints(9)]
        yield variant("TopK", "f32", f"ties_{name}", given, {"largest": int(name == "largest")},
                      shape_class="special", tolerance="E", outputs=2)  # fmt: skip
    yield variant("TopK", "f32", "v1", [In("f32", (3, 8), "distinct")], {"k": 3, "axis": 1},
                  shape_class="old_version", tolerance="E", opset=9, outputs=2)  # fmt: skip
    yield variant("TopK", "f32", "v10", [In("f32", (3, 8), "distinct"), ints(3)], {"axis": 0},
                  shape_class="old_version", tolerance="E", opset=10, outputs=2)  # fmt: skip


def _dynamic() -> Cases:
    """Outputs whose shape hangs on values."""
    for dtype in ("f32", "i32", "i64", "bool", "u8", "f16", "f64"):
        for name, shape in (("matrix", (4, 5)), ("line", (17,)), ("rank3", (2, 3, 4)),
                            ("empty", (0, 3)), ("none", (3, 3))):  # fmt: skip
            if dtype in {"f32", "bool"} or name in pick(("matrix", "line", "rank3"), dtype):
                fill = "zero" if name == "none" else "ints:0:2"
                wanted = const(dtype, shape, 0) if name == "none" else In(dtype, shape, fill)
                yield variant("NonZero", dtype, name, [wanted], {}, shape_class=name if name ==
                              "empty" else "nd", tolerance="E", dynamic=True)  # fmt: skip
    for dtype in MOVABLE:
        for name, axis, count in (("rows", 0, 4), ("columns", 1, 5), ("flat", None, 20),
                                  ("negative", -1, 3), ("nothing", 0, 4)):  # fmt: skip
            if dtype != "f32" and name not in pick(("rows", "columns", "flat", "negative"), dtype):
                continue
            mask = const("bool", (count,), *([0] * count if name == "nothing" else
                         [(i * 7) % 3 > 0 for i in range(count)]))  # fmt: skip
            yield _move("Compress", dtype, name, [In(dtype, (4, 5), "special"), mask],
                        {} if axis is None else {"axis": axis}, "negative_axis" if axis == -1
                        else "nd", opset=28 if dtype == "bf16" else 11, dynamic=True)  # fmt: skip
    for dtype in ("f32", "i64", "i32", "u8", "f64", "i8"):
        for name, shape, attributes in (("flat", (5, 7), {}), ("unsorted", (31,), {"sorted": 0}),
            ("rows", (6, 2), {"axis": 0}), ("columns", (2, 7), {"axis": -1})):  # fmt: skip
            yield variant("Unique", dtype, name, [In(dtype, shape, "ints:0:3")], attributes,
                          shape_class="nd", tolerance="E", outputs=4, dynamic=True)  # fmt: skip
    boxes = In("f32", (1, 4, 4), "values", values=(
        0, 0, 1, 1, 0, 0.1, 1, 1.1, 0, 10, 1, 11, 0, 10.1, 1, 11.1))  # fmt: skip
    scores = const("f32", (1, 1, 4), 0.9, 0.75, 0.6, 0.95)
    limits = [ints(3), const("f32", (1,), 0.5), const("f32", (1,), 0.0)]
    for name, center in (("corners", 0), ("centers", 1)):
        yield variant("NonMaxSuppression", "f32", name, [boxes, scores, *limits],
                      {"center_point_box": center}, shape_class="real", tolerance="E",
                      opset=11, dynamic=True)  # fmt: skip


def _one_hot() -> Cases:
    for dtype in ("f32", "i64", "i32", "bool", "f16", "u8", "f64"):
        for name, axis in (("last", -1), ("first", 0), ("middle", 1)):
            if dtype != "f32" and name not in pick(("last", "first", "middle"), dtype):
                continue
            given = [ints(0, 3, -1, 5, 9, -6)._replace(shape=(2, 3)), ints(6, scalar=True),
                     const(dtype, (2,), 0, 1)]  # fmt: skip
            yield _move("OneHot", dtype, name, given, {"axis": axis}, "negative_axis" if axis < 0
                        else "nd", opset=11)  # fmt: skip


def _trilu() -> Cases:
    for dtype in MOVABLE:
        if dtype in {"c64", "c128"}:
            continue
        rows = {
            "upper": ((4, 5), {}, None), "lower": ((4, 5), {"upper": 0}, None),
            "above": ((4, 4), {}, 2), "below": ((5, 3), {"upper": 0}, -1),
            "batch": ((2, 3, 4), {}, -1), "outside": ((3, 3), {}, 9), "empty": ((0, 3), {}, None),
        }  # fmt: skip
        for name in tuple(rows) if dtype == "f32" else pick(tuple(rows), dtype, count=2):
            shape, attributes, k = rows[name]
            given = [In(dtype, shape)] + ([ints(k, scalar=True)] if k is not None else [])
            yield _move("Trilu", dtype, name, given, attributes, "empty" if 0 in shape else "nd",
                        opset=14)  # fmt: skip


def _cache() -> Cases:
    for dtype in ("f32", "f16", "bf16"):
        for name, mode in (("linear", "linear"), ("circular", "circular")):
            given = [In(dtype, (2, 1, 6, 4)), In(dtype, (2, 1, 2, 4)), ints(1, 3)]
            yield _move("TensorScatter", dtype, name, given, {"mode": mode}, "real", opset=24)

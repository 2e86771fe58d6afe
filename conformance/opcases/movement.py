# SPDX-License-Identifier: Apache-2.0
"""Operators that move elements from place to place: shapes, slices, joins, repeats, pads."""

from __future__ import annotations

from typing import Any

from chipdock.conformance.opcases.spec import (
    MOVABLE,
    SMALL,
    Cases,
    In,
    const,
    ints,
    pick,
    variant,
)

__all__ = ["cases"]

_ALL = (*MOVABLE, *SMALL)
_RARE = ("f8e4m3fn", "i4")
_BIG = 2**31 - 1


def _moves(
    op: str, table: dict[str, tuple[str, Any, list[Any], dict[str, Any]]], *, count: int = 2,
    opset: int = 25, outputs: int = 1, dtypes: tuple[str, ...] = _ALL,
) -> Cases:  # fmt: skip
    """Yield all rows for f32 and a few for every other type.

    Args:
        op: Operator.
        table: name to shape class, data (shape or (shape, view)), further inputs, attributes.
        count: Rows for each other type; one for types of SMALL.
        opset: Version.
        outputs: Of every row.
        dtypes: All types.
    """
    for dtype in dtypes:
        names = tuple(table)
        if dtype != "f32":
            names = pick(names, op, dtype, count=1 if dtype in SMALL else count)
        for name in names:
            yield _row(op, dtype, name, table[name], opset, outputs)


def _row(op: str, dtype: str, name: str, row: Any, opset: int, outputs: int = 1) -> Any:
    shape_class, data, others, attributes = row
    shape, view = data if data and isinstance(data[-1], str) else (data, "")
    # Sub-byte arrays have no views that start inside of a byte.
    view = "" if dtype in {"i4", "u4", "f4e2m1"} else view
    first = In(dtype, tuple(shape), "special" if dtype not in SMALL else "normal", view)
    return variant(op, dtype, name, [first, *others], attributes, shape_class=shape_class,
                   tolerance="E", zero_sign=True, opset=opset, outputs=outputs)  # fmt: skip


def cases() -> Cases:
    """Yield the cases."""
    yield from _moves(
        "Identity",
        {
            "nd": ("nd", (2, 3, 5), [], {}),
            "scalar": ("scalar", (), [], {}),
            "empty": ("empty", (0, 3), [], {}),
            "step": ("strided", ((3, 5), "step"), [], {}),
        },
    )
    yield from _shapes()
    yield from _moves("Transpose", {
        "matrix": ("nd", (7, 11), [], {"perm": [1, 0]}),
        "default": ("nd", (2, 3, 5), [], {}),
        "to_last": ("real", (1, 5, 6, 7), [], {"perm": [0, 2, 3, 1]}),
        "to_first": ("real", (1, 6, 7, 5), [], {"perm": [0, 3, 1, 2]}),
        "heads": ("real", (2, 9, 3, 8), [], {"perm": [0, 2, 1, 3]}),
        "rank5": ("nd", (2, 3, 2, 3, 2), [], {"perm": [4, 1, 3, 0, 2]}),
        "rank6": ("nd", (2, 1, 3, 2, 1, 2), [], {"perm": [5, 0, 3, 2, 4, 1]}),
        "same": ("nd", (3, 4), [], {"perm": [0, 1]}), "scalar": ("scalar", (), [], {}),
        "empty": ("empty", (3, 0, 2), [], {"perm": [2, 0, 1]}),
        "large": ("large", (65, 130), [], {"perm": [1, 0]}),
        "step": ("strided", ((5, 6), "step"), [], {"perm": [1, 0]}),
        "back": ("strided", ((5, 6), "back"), [], {"perm": [1, 0]}),
        "inner": ("strided", ((3, 4, 5), "inner"), [], {"perm": [1, 2, 0]})}, count=3)  # fmt: skip
    yield from _slices()
    yield from _joins()
    yield from _repeats()
    yield from _pads()
    yield from _blocks()
    yield from _versions()


def _shapes() -> Cases:
    yield from _moves("Reshape", {
        "flat": ("nd", (2, 3, 4), [ints(24)], {}), "infer": ("nd", (2, 3, 4), [ints(4, -1)], {}),
        "keep": ("nd", (2, 3, 4), [ints(0, 12)], {}),
        "rank5": ("nd", (24,), [ints(2, 1, 3, 2, 2)], {}),
        "to_scalar": ("scalar", (1, 1), [In("i64", (0,))], {}),
        "from_scalar": ("scalar", (), [ints(1, 1)], {}),
        "zero": ("empty", (0, 3), [ints(0, 3)], {"allowzero": 1}),
        "zero_infer": ("empty", (0, 3), [ints(3, -1)], {}),
        "step": ("strided", ((4, 6), "step"), [ints(3, 8)], {}),
        "back": ("strided", ((4, 6), "back"), [ints(24)], {})})  # fmt: skip
    yield from _moves("Flatten", {
        "one": ("nd", (2, 3, 4), [], {"axis": 1}), "zero": ("nd", (2, 3, 4), [], {"axis": 0}),
        "all": ("nd", (2, 3, 4), [], {"axis": 3}),
        "negative": ("negative_axis", (2, 3, 4), [], {"axis": -1}),
        "scalar": ("scalar", (), [], {"axis": 0}), "empty": ("empty", (2, 0, 4), [], {}),
        "step": ("strided", ((2, 3, 4), "step"), [], {"axis": 1})})  # fmt: skip
    yield from _moves("Squeeze", {
        "one": ("nd", (1, 3, 1, 5), [ints(0)], {}), "two": ("nd", (1, 3, 1, 5), [ints(0, 2)], {}),
        "all": ("nd", (1, 3, 1, 5), [], {}),
        "negative": ("negative_axis", (1, 3, 1, 5), [ints(-2)], {}),
        "to_scalar": ("scalar", (1, 1), [ints(0, 1)], {}),
        "empty": ("empty", (1, 0), [ints(0)], {})}, count=1)  # fmt: skip
    yield from _moves("Unsqueeze", {
        "front": ("nd", (3, 5), [ints(0)], {}), "two": ("nd", (3, 5), [ints(0, 3)], {}),
        "unsorted": ("nd", (3, 5), [ints(2, 0)], {}),
        "negative": ("negative_axis", (3, 5), [ints(-1)], {}),
        "scalar": ("scalar", (), [ints(0)], {}), "empty": ("empty", (0, 2), [ints(1)], {}),
        "step": ("strided", ((3, 4), "step"), [ints(1)], {})}, count=1)  # fmt: skip
    for op, table in (("Shape", {
        "all": {}, "from": {"start": 1}, "part": {"start": 1, "end": 2}, "negative": {"start": -2},
        "beyond": {"start": -9, "end": 9}}), ("Size", {"all": {}})):  # fmt: skip
        for dtype in _ALL:
            names = tuple(table) if dtype == "f32" else pick(tuple(table), op, dtype)
            for name in names:
                yield _row(op, dtype, name, ("nd", (2, 3, 5), [], table[name]), 25)
        for name, shape in (("scalar", ()), ("empty", (0, 4))):
            yield _row(op, "f32", name, (name, shape, [], {}), 25)


def _slices() -> Cases:
    def row(
        shape: Any, starts: tuple[int, ...], ends: tuple[int, ...], axes: tuple[int, ...] | None,
        steps: tuple[int, ...] | None, shape_class: str = "nd", dtype: str = "i64",
    ) -> Any:  # fmt: skip
        given: list[In | None] = [ints(*starts, dtype=dtype), ints(*ends, dtype=dtype)]
        given += [ints(*axes, dtype=dtype)] if axes is not None else [None] if steps else []
        given += [ints(*steps, dtype=dtype)] if steps is not None else []
        return shape_class, shape, given, {}

    yield from _moves("Slice", {
        "plain": row((6, 7), (1, 2), (4, 6), None, None),
        "one_axis": row((6, 7), (2,), (5,), (1,), None),
        "stepped": row((9, 10), (0, 1), (9, 10), (0, 1), (2, 3)),
        "reversed": row((5, 6), (-1,), (-_BIG,), (1,), (-1,), "negative_axis"),
        "reversed_both": row((5, 6), (4, 5), (-99, -99), (0, 1), (-1, -2), "negative_axis"),
        "negative": row((6, 7), (-4,), (-1,), (-2,), (1,), "negative_axis"),
        "to_end": row((6, 7), (3,), (2**63 - 1,), (0,), (1,)),
        "before_start": row((6, 7), (-100,), (3,), (0,), (1,)),
        "nothing": row((6, 7), (4,), (4,), (0,), (1,), "empty"),
        "of_nothing": row((0, 7), (0,), (3,), (1,), (1,), "empty"),
        "no_axes": row((6, 7), (5, 0), (0, 7), None, (-2, 3)),
        "rank5": row((2, 3, 4, 2, 3), (1, 0), (3, 2), (2, 4), (1, 1)),
        "int32": row((6, 7), (1,), (5,), (1,), (2,), dtype="i32"),
        "step_view": row(((6, 8), "step"), (1,), (5,), (1,), (2,), "strided"),
        "back_view": row(((6, 8), "back"), (1,), (5,), (0,), (2,), "strided")},
        opset=13, count=3, dtypes=MOVABLE)  # fmt: skip
    for op, opset in (("Split", 18),):
        for dtype in MOVABLE:
            splits: dict[str, tuple[tuple[int, ...], list[Any], dict[str, Any], int, str]] = {
                "equal": ((6, 4), [], {"axis": 0, "num_outputs": 3}, 3, "nd"),
                "uneven": ((7, 4), [], {"axis": 0, "num_outputs": 3}, 3, "odd"),
                "sizes": ((3, 9), [ints(2, 4, 3)], {"axis": 1}, 3, "nd"),
                "negative": ((3, 6), [ints(5, 1)], {"axis": -1}, 2, "negative_axis"),
                "with_nothing": ((3, 6), [ints(6, 0)], {"axis": 1}, 2, "empty"),
                "one": ((5,), [ints(5)], {"axis": 0}, 1, "nd"),
            }  # fmt: skip
            for name in tuple(splits) if dtype == "f32" else pick(tuple(splits), dtype, count=2):
                shape, others, attributes, outputs, shape_class = splits[name]
                yield _row(op, dtype, name, (shape_class, shape, others, attributes), opset,
                           outputs)  # fmt: skip


def _joins() -> Cases:
    shapes: dict[str, tuple[str, tuple[tuple[int, ...], ...], int, str]] = {
        "rows": ("nd", ((2, 5), (3, 5)), 0, ""), "columns": ("nd", ((4, 2), (4, 3), (4, 1)), 1, ""),
        "middle": ("nd", ((2, 1, 3), (2, 4, 3)), 1, ""),
        "negative": ("negative_axis", ((2, 3), (2, 4)), -1, ""),
        "one": ("nd", ((3, 4),), 0, ""), "with_nothing": ("empty", ((2, 0), (2, 3)), 1, ""),
        "channels": ("real", ((1, 3, 5, 5), (1, 4, 5, 5), (1, 2, 5, 5)), 1, ""),
        "many": ("large", ((3, 7),) * 17, 1, ""), "step": ("strided", ((3, 4), (3, 2)), 1, "step"),
        "back": ("strided", ((3, 4), (2, 4)), 0, "back"),
    }  # fmt: skip
    for dtype in MOVABLE:
        for name in tuple(shapes) if dtype == "f32" else pick(tuple(shapes), dtype, count=3):
            shape_class, extents, axis, view = shapes[name]
            yield variant("Concat", dtype, name, [In(dtype, e, "special", view) for e in extents],
                          {"axis": axis}, shape_class=shape_class, tolerance="E",
                          zero_sign=True)  # fmt: skip


def _repeats() -> Cases:
    yield from _moves(
        "Expand",
        {
            "row": ("broadcast", (1, 5), [ints(3, 5)], {}),
            "column": ("broadcast", (4, 1), [ints(4, 6)], {}),
            "both": ("broadcast", (3, 1), [ints(2, 1, 6)], {}),
            "scalar": ("scalar", (), [ints(2, 3)], {}),
            "same": ("nd", (2, 3), [ints(2, 3)], {}),
            "ones": ("broadcast", (3, 4), [ints(1, 1)], {}),
            "to_nothing": ("empty", (1, 3), [ints(0, 3)], {}),
            "step": ("strided", ((1, 4), "step"), [ints(3, 4)], {}),
        },
        opset=13,
        dtypes=MOVABLE,
    )
    yield from _moves(
        "Tile",
        {
            "both": ("nd", (2, 3), [ints(2, 3)], {}),
            "one": ("nd", (2, 3), [ints(1, 4)], {}),
            "none": ("nd", (2, 3), [ints(1, 1)], {}),
            "rank3": ("nd", (1, 2, 3), [ints(2, 1, 2)], {}),
            "nothing": ("empty", (2, 3), [ints(0, 1)], {}),
            "step": ("strided", ((2, 3), "step"), [ints(2, 2)], {}),
        },
        opset=13,
        dtypes=MOVABLE,
    )


def _pads() -> Cases:
    for dtype in MOVABLE:
        if dtype in {"c64", "c128"}:
            number: Any = const(dtype, (), 2.0)
        else:
            number = const(dtype, (), 1 if dtype in {"bool", "u8"} else 3)
        rows: dict[str, tuple[str, Any, list[Any], dict[str, Any]]] = {
            "zeros": ("nd", (3, 4), [ints(1, 2, 0, 1)], {}),
            "number": ("nd", (3, 4), [ints(0, 1, 2, 0), number], {}),
            "axes": ("nd", (2, 3, 4), [ints(1, 2), number, ints(1)], {}),
            "axes_negative": ("negative_axis", (2, 3, 4), [ints(1, 1), number, ints(-1)], {}),
            "cut": ("nd", (4, 5), [ints(-1, 0, 0, -2), number], {}),
            "image": ("real", (1, 2, 5, 6), [ints(0, 0, 1, 1, 0, 0, 1, 1), number], {}),
            "reflect": ("nd", (4, 5), [ints(1, 2, 2, 1)], {"mode": "reflect"}),
            "edge": ("nd", (3, 4), [ints(1, 2, 2, 1)], {"mode": "edge"}),
            "wrap": ("nd", (3, 4), [ints(1, 2, 2, 1)], {"mode": "wrap"}),
            "line": ("odd", (17,), [ints(3, 5), number], {}),
            "scalar_empty": ("empty", (0, 3), [ints(1, 0, 1, 0), number], {}),
            "step": ("strided", ((3, 4), "step"), [ints(1, 1, 1, 1), number], {}),
        }  # fmt: skip
        for name in tuple(rows) if dtype == "f32" else pick(tuple(rows), dtype, count=3):
            yield _row("Pad", dtype, name, rows[name], 25)


def _blocks() -> Cases:
    for op in ("DepthToSpace", "SpaceToDepth"):
        deep = op == "DepthToSpace"
        for dtype in MOVABLE:
            rows: dict[str, tuple[tuple[int, ...], dict[str, Any], str]] = {
                "b2": ((1, 8, 3, 4) if deep else (1, 2, 6, 8), {"blocksize": 2}, ""),
                "b3": ((2, 9, 2, 1) if deep else (2, 1, 6, 9), {"blocksize": 3}, ""),
                "step": ((1, 4, 3, 4) if deep else (1, 3, 4, 4), {"blocksize": 2}, "step"),
            }  # fmt: skip
            if deep:
                rows["crd"] = ((1, 8, 3, 4), {"blocksize": 2, "mode": "CRD"}, "")
            for name in tuple(rows) if dtype == "f32" else pick(tuple(rows), op, dtype):
                shape, attributes, view = rows[name]
                yield _row(op, dtype, name, ("strided" if view else "real", (shape, view), [],
                           attributes), 13)  # fmt: skip
    for dtype in MOVABLE:
        for name, attributes, shape in (("time_first", {"time_axis": 0, "batch_axis": 1}, (5, 3)),
            ("batch_first", {"time_axis": 1, "batch_axis": 0}, (3, 5, 2))):  # fmt: skip
            if dtype == "f32" or name in pick(("time_first", "batch_first"), dtype):
                yield _row("ReverseSequence", dtype, name, ("nd", shape, [ints(5, 1, 3)],
                           attributes), 28 if dtype == "bf16" else 10)  # fmt: skip


def _versions() -> Cases:
    """What were attributes in older versions."""
    old: tuple[tuple[str, str, Any, list[Any], dict[str, Any], int], ...] = (
        ("Slice", "v1", (6, 7), [], {"starts": [1, -3], "ends": [4, 99], "axes": [0, 1]}, 9),
        ("Slice", "v10", (6, 7), [ints(1), ints(5), ints(0), ints(2)], {}, 10),
        ("Squeeze", "v1", (1, 3, 1), [], {"axes": [0]}, 9),
        ("Squeeze", "v11", (1, 3, 1), [], {"axes": [-1]}, 11),
        ("Unsqueeze", "v1", (3, 2), [], {"axes": [0, 2]}, 9),
        ("Unsqueeze", "v11", (3, 2), [], {"axes": [-1]}, 11),
        ("Pad", "v2", (3, 4), [], {"pads": [1, 0, 0, 2], "value": 1.5}, 9),
        ("Pad", "v11", (3, 4), [ints(1, 0, 0, 2), const("f32", (), 2.5)], {"mode": "constant"}, 11),
        ("Pad", "v2_edge", (3, 4), [], {"pads": [1, 0, 0, 2], "mode": "edge"}, 9),
        ("Reshape", "v5", (2, 6), [ints(3, -1)], {}, 7),
        ("Tile", "v6", (2, 3), [ints(2, 2)], {}, 7), ("Flatten", "v1", (2, 3, 4), [], {}, 7),
        ("Transpose", "v1", (2, 3, 4), [], {"perm": [2, 0, 1]}, 7),
        ("DepthToSpace", "v1", (1, 4, 2, 3), [], {"blocksize": 2}, 9),
        ("Expand", "v8", (3, 1), [ints(2, 1, 4)], {}, 8), ("Identity", "v1", (3, 4), [], {}, 7),
        ("Shape", "v1", (3, 4), [], {}, 7), ("Size", "v1", (3, 4), [], {}, 7),
    )  # fmt: skip
    for op, name, shape, others, attributes, opset in old:
        yield _row(op, "f32", name, ("old_version", shape, others, attributes), opset)
    yield _row("Split", "f32", "v2", ("old_version", (6, 4), [], {"axis": 0, "split": [1, 5]}), 9,
               2)  # fmt: skip
    yield _row("Split", "f32", "v13", ("old_version", (6, 4), [ints(2, 4)], {"axis": 0}), 13, 2)
    for name, axis in (("v4", 1), ("v11", -1)):
        pair = [In("f32", (2, 3)), In("f32", (2, 1))]
        yield variant("Concat", "f32", name, pair, {"axis": axis}, shape_class="old_version",
                      tolerance="E", zero_sign=True, opset=7 if name == "v4" else 11)  # fmt: skip

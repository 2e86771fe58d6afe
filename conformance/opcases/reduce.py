# SPDX-License-Identifier: Apache-2.0
"""Reductions, cumulative sums, and the places of the largest and smallest elements."""

from __future__ import annotations

from typing import Any

from chipdock.conformance.opcases.spec import (
    FLOATS,
    HALVES,
    INTEGERS,
    Cases,
    In,
    ints,
    pick,
    variant,
)

__all__ = ["cases"]

_SUMS = ("Sum", "Mean", "L1", "L2", "SumSquare", "LogSum", "LogSumExp", "Prod")
_WIDE = ("i32", "i64", "u32", "u64")
_COMPARED = (*_WIDE, "i8", "u8")
_POSITIVE = frozenset({"LogSum"})

# name: shape class, shape, axes or None, attributes, view
_SHAPES: dict[str, tuple[str, tuple[int, ...], tuple[int, ...] | None, dict[str, Any], str]] = {
    "all": ("nd", (3, 4, 5), None, {}, ""),
    "all_flat": ("nd", (3, 4, 5), None, {"keepdims": 0}, ""),
    "last": ("odd", (7, 13), (-1,), {}, ""),
    "first": ("nd", (13, 7), (0,), {"keepdims": 0}, ""),
    "middle": ("nd", (3, 11, 5), (1,), {}, ""),
    "outer": ("nd", (3, 4, 5), (0, 2), {}, ""),
    "negative": ("negative_axis", (3, 4, 5), (-3, -1), {"keepdims": 0}, ""),
    "noop": ("nd", (3, 5), (), {"noop_with_empty_axes": 1}, ""),
    "rank5": ("nd", (2, 3, 2, 3, 2), (1, 3), {}, ""),
    "one": ("scalar", (1,), (0,), {}, ""),
    "scalar": ("scalar", (), None, {}, ""),
    "no_rows": ("empty", (0, 5), (1,), {}, ""),
    "over_nothing": ("empty", (4, 0), (1,), {}, ""),
    "long": ("large_k", (3, 16411), (1,), {"keepdims": 0}, ""),
    "tall": ("large_k", (4099, 5), (0,), {"keepdims": 0}, ""),
    "images": ("real", (2, 17, 9, 11), (2, 3), {}, ""),
    "step": ("strided", (9, 14), (1,), {}, "step"),
    "back": ("strided", (9, 14), (0,), {}, "back"),
}  # fmt: skip


def cases() -> Cases:
    """Yield the cases."""
    for kind in (*_SUMS, "Max", "Min"):
        op = f"Reduce{kind}"
        exact = kind in {"Max", "Min"}
        for dtype in (*FLOATS, *(_COMPARED if exact else _WIDE)):
            usable = [name for name in _SHAPES if _usable(kind, dtype, name)]
            whole = kind in {"Sum", "Mean", "Max"}
            count = (18 if whole else 9) if dtype == "f32" else 4 if dtype in FLOATS else 2
            for name in pick(usable, op, dtype, count=count):
                yield _one(op, kind, dtype, name)
        if exact:
            for name in ("last", "all", "negative"):
                yield _one(op, kind, "bool", name, opset=20)
        else:
            for dtype in ("f32", "f64"):
                yield _one(op, kind, dtype, "long", name="exact", fill="exact")
        yield from _old(op, kind)
    yield from _special()
    yield from _cumulative()
    yield from _arg()


def _usable(kind: str, dtype: str, name: str) -> bool:
    if kind in {"Max", "Min", "Mean"} and name == "over_nothing":
        return False  # the opsets before 20 and a mean of nothing say nothing of it
    if name in {"long", "tall"} and (kind == "Prod" or (dtype in HALVES and kind in _NO_HALF)):
        return False
    if dtype in INTEGERS and kind not in {"Max", "Min", "Sum", "L1", "SumSquare"}:
        return name in {"last", "first", "negative"} and kind == "Prod"
    return not (dtype[0] == "u" and name in {"long", "tall"} and kind == "SumSquare")


# Sums of squares leave the range of f16.
_NO_HALF = frozenset({"SumSquare", "L1", "Sum", "LogSum", "L2"})


def _one(
    op: str, kind: str, dtype: str, shape: str, *, name: str = "", fill: str = "", **extra: Any
) -> Any:  # fmt: skip
    shape_class, extents, axes, attributes, view = _SHAPES[shape]
    fill = fill or ("positive" if kind in _POSITIVE else "normal")
    if kind == "Prod":
        fill = "ints:1:4" if dtype in INTEGERS else "uniform:0.5:1.5"
    given: list[In | None] = [In(dtype, extents, fill, view)]
    axes_name = "axes" if axes is not None else ""
    opset = extra.setdefault("opset", 22)
    if axes_name and opset >= 18:
        given.append(ints(*axes)) if axes is not None else None
    elif axes_name:
        attributes = attributes | {"axes": list(axes or ())}
    tolerance = "E" if kind in {"Max", "Min"} or dtype in INTEGERS else "R"
    return variant(op, dtype, name or shape, given, attributes, shape_class=shape_class,
                   tolerance=tolerance, factor=4.0 if kind.startswith("Log") else 2.0,
                   **extra)  # fmt: skip


def _old(op: str, kind: str) -> Cases:
    """Before version 18 (13 for sums) axes are an attribute."""
    version = 11
    for shape in ("last", "outer", "negative"):
        _, extents, axes, attributes, _ = _SHAPES[shape]
        fill = (
            "positive" if kind in _POSITIVE else "uniform:0.5:1.5" if kind == "Prod" else "normal"
        )
        yield variant(op, "f32", f"v{version}_{shape}", [In("f32", extents, fill)],
                      attributes | {"axes": list(axes or ())}, shape_class="old_version",
                      tolerance="E" if kind in {"Max", "Min"} else "R", opset=version,
                      factor=4.0)  # fmt: skip


def _special() -> Cases:
    for dtype in FLOATS:
        for kind in ("Max", "Min"):
            yield variant(f"Reduce{kind}", dtype, "special", [In(dtype, (3, 17), "ordered"),
                          ints(1)], {}, shape_class="special", tolerance="E")  # fmt: skip
        yield variant("ReduceSum", dtype, "infinite", [In(dtype, (2, 5), "values", values=(
            1.0, float("inf"), 2.0, 3.0, 4.0, 1.0, -1.0, float("nan"), 2.0, 0.0)), ints(1)], {},
            shape_class="special", tolerance="R")  # fmt: skip
        yield variant("ReduceLogSumExp", dtype, "large_values", [
            In(dtype, (4, 9), "offset" if dtype in {"f32", "f64"} else "normal:20"), ints(1)], {},
            shape_class="special", tolerance="R", factor=4.0)  # fmt: skip
        yield variant("ReduceSum", dtype, "denormal", [In(dtype, (3, 8), "denormal"), ints(1)], {},
                      shape_class="special", tolerance="R")  # fmt: skip


def _cumulative() -> Cases:
    settings: dict[str, dict[str, Any]] = {
        "plain": {}, "reverse": {"reverse": 1}, "exclusive": {"exclusive": 1},
        "both": {"reverse": 1, "exclusive": 1},
    }  # fmt: skip
    for op, opset in (("CumSum", 14), ("CumProd", 26)):
        for dtype in (*FLOATS, *_WIDE):
            for name, setting in settings.items():
                if dtype != "f32" and name not in pick(tuple(settings), op, dtype, count=2):
                    continue
                fill = "exact" if op == "CumSum" else "uniform:0.8:1.2"
                fill = fill if dtype in FLOATS else "ints:1:3"
                for axis in (0, -1) if dtype == "f32" else (1,):
                    suffix = {0: "first", -1: "last", 1: "inner"}[axis]
                    yield variant(op, dtype, f"{name}_{suffix}", [
                        In(dtype, (5, 7), fill), ints(axis, scalar=True)], setting,
                        shape_class="negative_axis" if axis < 0 else "nd",
                        tolerance="R" if dtype in FLOATS else "E", opset=opset)  # fmt: skip
        for name, shape, view, dtype in (
            ("long", (2051,), "", "f32"),
            ("step", (4, 9), "step", "f32"),
            ("one", (1,), "", "f64"),
            ("empty", (0,), "", "f32"),
        ):
            fill = "normal" if op == "CumSum" else "uniform:0.9:1.1"
            yield variant(op, dtype, name, [In(dtype, shape, fill, view), ints(0, dtype="i32",
                          scalar=True)], {}, shape_class=name if name == "empty" else "large_k",
                          tolerance="R", opset=opset)  # fmt: skip


def _arg() -> Cases:
    for op in ("ArgMax", "ArgMin"):
        for dtype in (*FLOATS, *INTEGERS):
            shapes = ("last", "first", "middle", "negative", "step", "back", "long", "one")
            for name in pick(shapes, op, dtype, count=8 if dtype == "f32" else 2):
                shape_class, extents, axes, attributes, view = _SHAPES[name]
                setting = {"axis": (axes or (0,))[0], "keepdims": attributes.get("keepdims", 1)}
                # int8 holds 90 different values and f16 more, so nothing is equal by chance.
                fill = "distinct" if dtype in {"f32", "f64", "i32", "i64"} else "full"
                fill = "normal" if dtype in HALVES else fill
                yield variant(op, dtype, name, [In(dtype, extents, fill, view)], setting,
                              shape_class=shape_class, tolerance="E")  # fmt: skip
        for last in (0, 1):
            for dtype in ("f32", "i32", "u8"):
                yield variant(op, dtype, f"ties_{'last' if last else 'first'}", [
                    In(dtype, (5, 33), "ints:0:3")], {"axis": 1, "select_last_index": last},
                    shape_class="special", tolerance="E")  # fmt: skip
        yield variant(op, "f32", "v11", [In("f32", (4, 6), "distinct")], {"axis": -1},
                      shape_class="old_version", tolerance="E", opset=11)  # fmt: skip

# SPDX-License-Identifier: Apache-2.0
"""Pooling over windows and over whole images, and the way back from indices."""

from __future__ import annotations

from typing import Any

from chipdock.conformance.opcases.spec import FLOATS, Cases, In, ints, pick, variant

__all__ = ["cases"]

_SETTINGS: dict[str, tuple[tuple[int, ...], dict[str, Any], str]] = {
    "k2": ((1, 3, 8, 10), {"kernel_shape": [2, 2], "strides": [2, 2]}, "real"),
    "k3_stride2": ((1, 4, 11, 13), {
        "kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}, "real"),
    "k3_stride1": ((2, 3, 7, 9), {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}, "real"),
    "k5": ((1, 2, 12, 12), {"kernel_shape": [5, 5], "pads": [2, 2, 2, 2]}, "real"),
    "k13": ((1, 2, 15, 15), {"kernel_shape": [13, 13], "pads": [6, 6, 6, 6]}, "real"),
    "row_kernel": ((1, 3, 5, 20), {"kernel_shape": [1, 4], "strides": [1, 4]}, "real"),
    "ceil": ((1, 3, 8, 9), {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}, "odd"),
    "ceil_pads": ((1, 2, 7, 8), {
        "kernel_shape": [3, 3], "strides": [3, 3], "pads": [1, 1, 1, 1], "ceil_mode": 1}, "odd"),
    "dilated": ((1, 2, 11, 11), {"kernel_shape": [3, 3], "dilations": [2, 2]}, "nd"),
    "asymmetric": ((1, 2, 7, 8), {"kernel_shape": [3, 2], "pads": [0, 1, 2, 0]}, "nd"),
    "same_upper": ((1, 2, 9, 10), {
        "kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"}, "nd"),
    "same_lower": ((1, 2, 9, 10), {
        "kernel_shape": [2, 2], "strides": [2, 2], "auto_pad": "SAME_LOWER"}, "nd"),
    "auto_valid": ((1, 2, 9, 10), {"kernel_shape": [3, 3], "auto_pad": "VALID"}, "nd"),
    "line": ((2, 4, 37), {"kernel_shape": [3], "strides": [2], "pads": [1, 1]}, "real"),
    "line_k2": ((1, 16, 30), {"kernel_shape": [2], "strides": [2]}, "real"),
    "volume": ((1, 2, 5, 6, 7), {"kernel_shape": [2, 2, 2], "strides": [2, 2, 2]}, "nd"),
    "one": ((1, 1, 1, 1), {"kernel_shape": [1, 1]}, "scalar"),
    "no_batch": ((0, 2, 5, 5), {"kernel_shape": [2, 2]}, "empty"),
    "whole": ((1, 3, 6, 5), {"kernel_shape": [6, 5]}, "odd"),
    "large": ((1, 3, 64, 65), {"kernel_shape": [3, 3], "strides": [2, 2]}, "large"),
}  # fmt: skip

_NO_DILATION = 18
"""AveragePool and LpPool have no dilations before version 19 and 18."""


def cases() -> Cases:
    """Yield the cases."""
    for op in ("MaxPool", "AveragePool", "LpPool"):
        for dtype in (*FLOATS, *(("i8", "u8") if op == "MaxPool" else ())):
            names = tuple(_SETTINGS)
            count = len(names) if dtype == "f32" else 7 if dtype in FLOATS else 5
            for name in pick(names, op, dtype, count=count):
                yield _one(op, dtype, name)
        yield _one(op, "f32", "k3_stride2", name="v11", opset=11)
        for view in ("step", "back", "inner"):
            yield _one(op, "f32", "k2", name=view, view=view)
    for name in ("k3_stride2", "ceil_pads", "asymmetric", "same_upper", "line"):
        yield _one("AveragePool", "f32", name, name=f"{name}_padding_counts",
                   more={"count_include_pad": 1})  # fmt: skip
    for p in (1, 3):
        yield _one("LpPool", "f32", "k2", name=f"p{p}", more={"p": p})
    yield from _indices()
    yield from _global()
    yield from _way_back()


def _one(
    op: str, dtype: str, setting: str, *, name: str = "", view: str = "",
    more: dict[str, Any] | None = None, **extra: Any,
) -> Any:  # fmt: skip
    shape, attributes, shape_class = _SETTINGS[setting]
    fill = "distinct" if op == "MaxPool" and dtype in {"f32", "f64"} else "normal"
    return variant(op, dtype, name or setting, [In(dtype, shape, fill, view)],
                   attributes | (more or {}), shape_class="strided" if view else shape_class,
                   tolerance="E" if op == "MaxPool" else "R",
                   factor=6.0 if op == "LpPool" else 2.0, **extra)  # fmt: skip


def _indices() -> Cases:
    for name in ("k2", "k3_stride2", "ceil", "dilated", "line", "volume", "asymmetric"):
        for dtype in ("f32", *pick(("f64", "f16", "i8"), name)):
            for order in (0, 1):
                if order and (dtype != "f32" or len(_SETTINGS[name][0]) != 4):
                    continue
                shape, attributes, shape_class = _SETTINGS[name]
                yield variant("MaxPool", dtype, f"indices_{name}{'_columns' if order else ''}",
                              [In(dtype, shape, "distinct" if dtype != "i8" else "full")],
                              attributes | {"storage_order": order}, shape_class=shape_class,
                              tolerance="E", outputs=2)  # fmt: skip
    for dtype in FLOATS:
        yield variant("MaxPool", dtype, "special", [In(dtype, (1, 2, 9, 9), "ordered")],
                      {"kernel_shape": [3, 3], "strides": [3, 3]}, shape_class="special",
                      tolerance="E")  # fmt: skip


def _global() -> Cases:
    shapes: dict[str, tuple[tuple[int, ...], str, str]] = {
        "image": ((2, 5, 7, 9), "real", ""), "line": ((2, 3, 33), "odd", ""),
        "volume": ((1, 2, 3, 4, 5), "nd", ""), "one": ((1, 1, 1, 1), "scalar", ""),
        "large": ((1, 4, 65, 67), "large_k", ""), "step": ((2, 3, 5, 6), "strided", "step"),
        "back": ((2, 3, 5, 6), "strided", "back"),
    }  # fmt: skip
    for op in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"):
        for dtype in FLOATS:
            for name in (
                tuple(shapes) if dtype == "f32" else pick(tuple(shapes), op, dtype, count=3)
            ):
                shape, shape_class, view = shapes[name]
                yield variant(op, dtype, name, [In(dtype, shape, "normal", view)],
                              shape_class=shape_class, factor=6.0 if "Lp" in op else 2.0,
                              tolerance="E" if "Max" in op else "R")  # fmt: skip
    yield variant("GlobalLpPool", "f32", "p3", [In("f32", (2, 3, 5, 6))], {"p": 3},
                  shape_class="nd", tolerance="R", factor=6.0)  # fmt: skip


def _way_back() -> Cases:
    for dtype in ("f32", "f64", "f16"):
        given = [In(dtype, (1, 1, 2, 2)), ints(5, 7, 13, 15)._replace(shape=(1, 1, 2, 2))]
        yield variant("MaxUnpool", dtype, "k2", given, {"kernel_shape": [2, 2], "strides": [2, 2]},
                      shape_class="nd", tolerance="E")  # fmt: skip

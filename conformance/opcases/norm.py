# SPDX-License-Identifier: Apache-2.0
"""Normalization and softmax."""

from __future__ import annotations

from typing import Any

from chipdock.conformance.opcases.spec import FLOATS, Cases, In, const, pick, variant

__all__ = ["cases"]

_ROWS: dict[str, tuple[str, tuple[int, ...], str]] = {
    "odd": ("odd", (5, 13), ""), "tokens": ("real", (2, 7, 48), ""),
    "heads": ("real", (1, 3, 9, 17), ""), "long": ("large_k", (2, 4099), ""),
    "one": ("scalar", (1, 1), ""), "empty": ("empty", (0, 8), ""), "wide": ("nd", (3, 256), ""),
    "step": ("strided", (4, 9), "step"), "back": ("strided", (6, 8), "back"),
    "inner": ("strided", (4, 9), "inner"),
}  # fmt: skip
_IMAGES: dict[str, tuple[str, tuple[int, ...], str]] = {
    "image": ("real", (2, 6, 7, 9), ""), "line": ("real", (2, 6, 31), ""),
    "volume": ("nd", (1, 6, 3, 4, 5), ""), "large": ("large_k", (1, 6, 41, 43), ""),
    "step": ("strided", (2, 6, 5, 6), "step"), "back": ("strided", (2, 6, 5, 6), "back"),
}  # fmt: skip


def cases() -> Cases:
    """Yield the cases."""
    for op in ("Softmax", "LogSoftmax", "Hardmax"):
        yield from _softmax(op)
    yield from _layer()
    yield from _channels()
    yield from _batch()
    yield from _lp()
    for dtype in FLOATS:
        for name in ("image", "line"):
            shape_class, shape, _ = _IMAGES[name]
            axes = {"axes": [0, *range(2, len(shape))]}
            yield variant("MeanVarianceNormalization", dtype, name, [In(dtype, shape)], axes,
                          shape_class=shape_class, tolerance="R", factor=8.0)  # fmt: skip
    for dtype in FLOATS:
        for size in (3, 5) if dtype == "f32" else (3,):
            for name in ("image", "line"):
                shape_class, shape, _ = _IMAGES[name]
                yield variant("LRN", dtype, f"size{size}_{name}", [In(dtype, shape)],
                              {"size": size, "alpha": 0.0002, "beta": 0.5, "bias": 2.0},
                              shape_class=shape_class, tolerance="R", factor=2.0)  # fmt: skip


def _softmax(op: str) -> Cases:
    exact = op == "Hardmax"
    facts: dict[str, Any] = {"tolerance": "E" if exact else "R", "factor": 2.0}
    fill = "distinct" if exact else "normal:3"
    for dtype in FLOATS:
        for name in tuple(_ROWS) if dtype == "f32" else pick(tuple(_ROWS), op, dtype, count=5):
            shape_class, shape, view = _ROWS[name]
            dense = "normal" if exact and dtype in {"f16", "bf16"} else fill
            yield variant(op, dtype, name, [In(dtype, shape, dense, view)], {"axis": -1},
                          shape_class=shape_class, **facts)  # fmt: skip
        for axis in (0, 1, -2) if dtype == "f32" else (1,):
            text = f"axis_{axis}".replace("-", "m")
            yield variant(op, dtype, text, [In(dtype, (3, 4, 5), fill)], {"axis": axis},
                          shape_class="negative_axis" if axis < 0 else "nd", **facts)  # fmt: skip
        if not exact:
            masked = In(dtype, (2, 6), "values", values=(
                0.0, float("-inf"), 1.0, float("-inf"), -2.0, 0.5,
                1.0, 1.0, 1.0, float("-inf"), float("-inf"), 1.0))  # fmt: skip
            yield variant(op, dtype, "masked", [masked], {"axis": -1}, shape_class="special",
                          **facts)  # fmt: skip
            yield variant(op, dtype, "large_values", [In(dtype, (3, 9), "normal:100")],
                          {"axis": -1}, shape_class="special", **facts)  # fmt: skip
            yield variant(op, dtype, "equal", [const(dtype, (2, 7), 3.0)], {"axis": -1},
                          shape_class="special", **facts)  # fmt: skip
    for opset in (7, 11):
        for axis in (1, 2) if opset == 7 else (1, -1):
            text = f"v{opset}_axis_{axis}".replace("-", "m")
            yield variant(op, "f32", text, [In("f32", (3, 4, 5), fill)], {"axis": axis},
                          shape_class="old_version", opset=opset, **facts)  # fmt: skip


def _layer() -> Cases:
    # Stage one is computed in the type that stash_type names, float32 by default, for f64 too.
    for op, opset in (("LayerNormalization", 22), ("RMSNormalization", 23)):
        for dtype in FLOATS:
            for name in tuple(_ROWS) if dtype == "f32" else pick(tuple(_ROWS), op, dtype, count=5):
                shape_class, shape, view = _ROWS[name]
                given = [
                    In(dtype, shape, "normal", view),
                    In(dtype, shape[-1:], "normal", "", True),
                ]
                if op == "LayerNormalization" and name not in {"odd", "wide"}:
                    given.append(In(dtype, shape[-1:], "normal", "", True))
                yield variant(
                    op,
                    dtype,
                    name,
                    given,
                    {"axis": -1, "epsilon": 1e-5},
                    opset=opset,
                    shape_class=shape_class,
                    tolerance="R",
                    factor=4.0,
                    stash=True,
                )
            for axis in (1, -2, 0):
                if dtype != "f32" and axis != 1:
                    continue
                shape = (3, 4, 5)
                scale = In(dtype, shape[axis:])
                text = f"axis_{axis}".replace("-", "m")
                yield variant(op, dtype, text, [In(dtype, shape), scale], {"axis": axis},
                              opset=opset, shape_class="negative_axis" if axis < 0 else "nd",
                              tolerance="R", factor=4.0, stash=True)  # fmt: skip
            yield variant(op, dtype, "offset", [
                In(dtype, (3, 64), "offset" if dtype in {"f32", "f64"} else "normal:4"),
                In(dtype, (64,))], {"axis": -1}, opset=opset, shape_class="special", tolerance="R",
                factor=4.0, stash=True)  # fmt: skip
            yield variant(op, dtype, "epsilon", [In(dtype, (3, 16), "normal:0.01"),
                In(dtype, (16,))], {"axis": -1, "epsilon": 0.1}, opset=opset, shape_class="nd",
                tolerance="R", factor=4.0, stash=True)  # fmt: skip
    for name in ("tokens", "odd", "step"):
        shape_class, shape, view = _ROWS[name]
        given = [In("f32", shape, "normal", view), *[In("f32", shape[-1:])] * 2]
        yield variant("LayerNormalization", "f32", f"statistics_{name}", given, {"axis": -1},
                      shape_class=shape_class, tolerance="R", factor=4.0, outputs=3)  # fmt: skip


def _channels() -> Cases:
    for op in ("InstanceNormalization", "GroupNormalization"):
        grouped = op == "GroupNormalization"
        for dtype in FLOATS:
            for name in (
                tuple(_IMAGES) if dtype == "f32" else pick(tuple(_IMAGES), op, dtype, count=3)
            ):
                shape_class, shape, view = _IMAGES[name]
                given = [
                    In(dtype, shape, "normal", view),
                    *[In(dtype, (6,), "normal", "", True)] * 2,
                ]
                for groups in (2, 6, 1) if grouped and dtype == "f32" else (3,):
                    attributes: dict[str, Any] = {"num_groups": groups} if grouped else {}
                    yield variant(op, dtype, f"{name}_g{groups}" if grouped else name, given,
                                  attributes | {"epsilon": 1e-4}, shape_class=shape_class,
                                  tolerance="R", factor=4.0, stash=True)  # fmt: skip
    per_group = [In("f32", (2, 6, 5, 5)), In("f32", (3,)), In("f32", (3,))]
    yield variant("GroupNormalization", "f32", "v18", per_group, {"num_groups": 3}, opset=18,
                  shape_class="old_version", tolerance="R", factor=4.0, stash=True)  # fmt: skip
    given = [In("f32", (2, 6, 5, 5)), *[In("f32", (6,))] * 2]
    yield variant("InstanceNormalization", "f32", "v6", given, {}, opset=7,
                  shape_class="old_version", tolerance="R", factor=4.0, stash=True)  # fmt: skip


def _batch() -> Cases:
    op = "BatchNormalization"
    for dtype in FLOATS:
        for name in tuple(_IMAGES) if dtype == "f32" else pick(tuple(_IMAGES), op, dtype, count=4):
            shape_class, shape, view = _IMAGES[name]
            yield variant(op, dtype, name, [In(dtype, shape, "normal", view), *_statistics(dtype)],
                          {}, shape_class=shape_class, tolerance="R")  # fmt: skip
        yield variant(op, dtype, "rows", [In(dtype, (5, 6)), *_statistics(dtype)],
                      {"epsilon": 0.001}, shape_class="nd", tolerance="R")  # fmt: skip
        if dtype in {"f32", "f64"}:
            for name in ("image", "line"):
                yield variant(op, dtype, f"training_{name}", [
                    In(dtype, _IMAGES[name][1]), *_statistics(dtype, constant=False)],
                    {"training_mode": 1, "momentum": 0.75}, shape_class="nd", tolerance="R",
                    factor=8.0, outputs=3)  # fmt: skip
    for opset in (7, 9, 14):
        yield variant(op, "f32", f"v{opset}", [In("f32", (2, 6, 4, 4)), *_statistics("f32")],
                      {"epsilon": 0.01}, opset=opset, shape_class="old_version",
                      tolerance="R")  # fmt: skip


def _statistics(dtype: str, *, constant: bool = True) -> list[In]:
    fills = ("normal", "normal", "normal", "positive")
    return [In(dtype, (6,), fill, "", constant) for fill in fills]


def _lp() -> Cases:
    for dtype in FLOATS:
        for p in (1, 2):
            for axis in (-1, 0) if dtype == "f32" else (1,):
                text = f"p{p}_axis_{axis}".replace("-", "m")
                yield variant("LpNormalization", dtype, text, [In(dtype, (5, 7))],
                              {"p": p, "axis": axis}, shape_class="negative_axis" if axis < 0
                              else "nd", tolerance="R", factor=2.0)  # fmt: skip
    rows = In("f32", (2, 3), "values", values=(0.0, 0.0, 0.0, 3.0, 4.0, 0.0))
    yield variant("LpNormalization", "f32", "zero_row", [rows], {"p": 2, "axis": -1},
                  shape_class="special", tolerance="R")  # fmt: skip

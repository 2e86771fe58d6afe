# SPDX-License-Identifier: Apache-2.0
"""Resizing of images, in all modes, and the older Upsample.

Scales are exact in binary: with others a place may fall on either side of a tie.
"""

from __future__ import annotations

from typing import Any

from chipdock.conformance.opcases.spec import Cases, In, const, ints, pick, variant

__all__ = ["cases"]

_FLOATS = ("f32", "f64", "f16", "bf16")
_COORDINATES = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                "asymmetric")  # fmt: skip
_ROUNDING = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


def cases() -> Cases:
    """Yield the cases."""
    for mode in ("nearest", "linear", "cubic"):
        for coordinates in _COORDINATES:
            for name, scales in (("up", (2.0, 3.0)), ("down", (0.5, 0.625)), ("both", (1.5, 0.75))):
                kinds = ("f32", *pick(_FLOATS[1:], mode, coordinates, name))
                for dtype in kinds:
                    yield _one(dtype, f"{mode}_{coordinates}_{name}", mode, scales,
                               {"coordinate_transformation_mode": coordinates})  # fmt: skip
    for rounding in _ROUNDING:
        for dtype in ("f32", *pick(("f16", "i8", "u8", "i32"), rounding)):
            yield _one(
                dtype,
                f"nearest_{rounding}",
                "nearest",
                (1.5, 2.5),
                {"nearest_mode": rounding, "coordinate_transformation_mode": "asymmetric"},
            )
    yield from _sizes()
    given = [In("f32", (1, 1, 5, 7)), None, const("f32", (4,), 1, 1, 1.5, 0.625)]
    for mode in ("nearest", "linear"):
        yield variant("Resize", "f32", f"{mode}_symmetric_uneven", given, {
            "mode": mode, "coordinate_transformation_mode": "half_pixel_symmetric"},
            shape_class="odd", tolerance="E" if mode == "nearest" else "R", factor=4.0)  # fmt: skip
    for dtype in ("u8", "i8", "i32", "i64"):
        yield _one(dtype, "nearest_up", "nearest", (2.0, 2.0), {})
    yield _one("f32", "cubic_coefficient", "cubic", (1.75, 2.25), {"cubic_coeff_a": -0.5})
    yield _one("f32", "cubic_exclude", "cubic", (0.75, 1.75), {"exclude_outside": 1})
    for mode in ("linear", "cubic"):
        yield _one("f32", f"antialias_{mode}", mode, (0.375, 0.625), {"antialias": 1})
    for dtype in _FLOATS:
        roi = const("f32", (8,), 0, 0, 0.2, 0.1, 1, 1, 0.9, 0.8)
        given = [In(dtype, (1, 2, 6, 7)), roi, None, ints(1, 2, 5, 5)]
        yield variant("Resize", dtype, "crop", given, {
            "mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize",
            "extrapolation_value": 2.0}, shape_class="real", tolerance="R")  # fmt: skip
    for view in ("step", "back"):
        yield _one("f32", f"linear_{view}", "linear", (2.0, 2.0), {}, view=view)
    old = [In("f32", (1, 1, 3, 4)), const("f32", (4,), 1, 1, 2, 2)]
    yield variant("Resize", "f32", "v10_nearest", old, {"mode": "nearest"}, opset=10,
                  shape_class="old_version", tolerance="E")  # fmt: skip
    given = [In("f32", (1, 1, 3, 4)), In("f32", (0,)), const("f32", (4,), 1, 1, 2, 2)]
    yield variant("Resize", "f32", "v11_linear", given, {"mode": "linear"}, opset=11,
                  shape_class="old_version", tolerance="R")  # fmt: skip
    for mode in ("nearest", "linear"):
        yield variant(
            "Upsample",
            "f32",
            f"v9_{mode}",
            old,
            {"mode": mode},
            opset=9,
            shape_class="old_version",
            tolerance="E" if mode == "nearest" else "R",
        )
        yield variant(
            "Upsample",
            "f32",
            f"v7_{mode}",
            old[:1],
            {"mode": mode, "scales": [1.0, 1.0, 2.0, 3.0]},
            opset=7,
            shape_class="old_version",
            tolerance="E" if mode == "nearest" else "R",
        )


def _one(
    dtype: str, name: str, mode: str, scales: tuple[float, float], attributes: dict[str, Any],
    *, view: str = "",
) -> Any:  # fmt: skip
    given = [In(dtype, (1, 2, 8, 8), "normal", view), None, const("f32", (4,), 1, 1, *scales)]
    return variant(
        "Resize",
        dtype,
        name,
        given,
        {"mode": mode} | attributes,
        shape_class="strided" if view else "real",
        factor=4.0,
        tolerance="E" if mode == "nearest" else "R",
    )


def _sizes() -> Cases:
    for mode in ("nearest", "linear", "cubic"):
        for name, size in (("sizes_up", (9, 11)), ("sizes_down", (3, 2)), ("sizes_same", (5, 6))):
            given = [In("f32", (1, 2, 5, 6)), None, None, ints(1, 2, *size)]
            yield variant(
                "Resize",
                "f32",
                f"{mode}_{name}",
                given,
                {"mode": mode},
                shape_class="real",
                factor=4.0,
                tolerance="E" if mode == "nearest" else "R",
            )
    for policy in ("not_larger", "not_smaller"):
        given = [In("f32", (1, 2, 5, 6)), None, None, ints(9, 9)]
        yield variant("Resize", "f32", f"keep_{policy}", given, {
            "mode": "linear", "axes": [2, 3], "keep_aspect_ratio_policy": policy},
            shape_class="real", tolerance="R", factor=4.0)  # fmt: skip
    given = [In("f32", (2, 7)), None, const("f32", (1,), 2.0)]
    yield variant("Resize", "f32", "one_axis", given, {"mode": "linear", "axes": [1]},
                  shape_class="odd", tolerance="R", factor=4.0)  # fmt: skip
    line = [In("f32", (1, 3, 11)), None, const("f32", (3,), 1, 1, 2)]
    yield variant("Resize", "f32", "line", line, {"mode": "linear"}, shape_class="real",
                  tolerance="R", factor=4.0)  # fmt: skip
    volume = [In("f32", (1, 1, 3, 4, 3)), None, const("f32", (5,), 1, 1, 2, 1, 2)]
    yield variant("Resize", "f32", "volume", volume, {"mode": "linear"}, shape_class="nd",
                  tolerance="R", factor=4.0)  # fmt: skip

# SPDX-License-Identifier: Apache-2.0
"""Resize in float64: one matrix of weights for each axis.

`onnx.reference` returns some of these results with the digits of float32 only.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["resize"]

_Array = NDArray[Any]


def _place(
    name: str, at: int, scale: float, extent: int, out: int, ends: tuple[float, float]
) -> float:  # fmt: skip
    """Return the coordinate in the input of an output element."""
    if name == "asymmetric":
        return at / scale
    if name == "align_corners":
        length = extent * scale
        return 0.0 if length == 1 else at * (extent - 1) / (length - 1)
    if name == "tf_crop_and_resize":
        begin, end = ends
        if out > 1:
            return begin * (extent - 1) + at * (end - begin) * (extent - 1) / (out - 1)
        return 0.5 * (begin + end) * (extent - 1)
    half = (at + 0.5) / scale - 0.5
    if name == "half_pixel_symmetric":
        return half + extent / 2 * (1 - out / (extent * scale))
    if name == "pytorch_half_pixel" and extent * scale <= 1:
        return 0.0
    return half


def _nearest(place: float, how: str) -> int:
    low = math.floor(place)
    if how == "floor":
        return low
    if how == "ceil":
        return math.ceil(place)
    tie = place - low == 0.5
    if tie:
        return low if how == "round_prefer_floor" else low + 1
    return math.floor(place + 0.5)


def _kernel(distance: float, mode: str, a: float) -> float:
    x = abs(distance)
    if mode == "linear":
        return max(1 - x, 0.0)
    if x <= 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0.0


def _weights(place: float, extent: int, scale: float, attributes: dict[str, Any]) -> _Array:
    """Return the weight of each input element along an axis for one output."""
    row = np.zeros(extent)
    mode = attributes.get("mode", "nearest")
    if mode == "nearest":
        found = _nearest(place, attributes.get("nearest_mode", "round_prefer_floor"))
        row[min(max(found, 0), extent - 1)] = 1
        return row
    a = float(np.float32(attributes.get("cubic_coeff_a", -0.75)))
    shrink = min(scale, 1.0) if attributes.get("antialias") else 1.0
    reach = (2 if mode == "cubic" else 1) / shrink
    taps = range(math.ceil(place - reach) - 1, math.floor(place + reach) + 2)
    found_weights = [_kernel((tap - place) * shrink, mode, a) for tap in taps]
    if attributes.get("exclude_outside"):
        found_weights = [
            w if 0 <= tap < extent else 0.0 for w, tap in zip(found_weights, taps, strict=True)
        ]
    total = sum(found_weights)
    for weight, tap in zip(found_weights, taps, strict=True):
        row[min(max(tap, 0), extent - 1)] += weight / total
    return row


def resize(inputs: list[Any], attributes: dict[str, Any]) -> tuple[_Array, _Array, int]:
    """Resize.

    Args:
        inputs: X, roi, scales, sizes; None or absent if not given.
        attributes: Of ONNX's Resize.

    Returns:
        The result, the sum of |weight x|, and how many terms a sum has.
    """
    x, roi, scales, sizes = [*inputs, None, None, None][:4]
    axes = [int(axis) % x.ndim for axis in attributes.get("axes", range(x.ndim))]
    scale = dict.fromkeys(range(x.ndim), 1.0)
    out = dict(enumerate(x.shape))
    if scales is not None and np.asarray(scales).size:
        for axis, factor in zip(axes, scales, strict=True):
            scale[axis] = float(factor)
            out[axis] = math.floor(x.shape[axis] * float(factor))
    else:
        wanted = [int(size) for size in sizes]
        policy = attributes.get("keep_aspect_ratio_policy", "stretch")
        shares = [size / x.shape[axis] for axis, size in zip(axes, wanted, strict=True)]
        if policy != "stretch":
            shares = [(min if policy == "not_larger" else max)(shares)] * len(axes)
            wanted = [math.floor(shares[0] * x.shape[axis] + 0.5) for axis in axes]
        scale |= dict(zip(axes, shares, strict=True))
        out |= dict(zip(axes, wanted, strict=True))
    name = attributes.get("coordinate_transformation_mode", "half_pixel")
    y, size = x.astype(np.float64), np.abs(x.astype(np.float64))
    largest, furthest = float(size.max(initial=0)), 0.0
    outside = np.zeros([1] * x.ndim, bool)
    for i, axis in enumerate(axes):
        if out[axis] == x.shape[axis] and scale[axis] == 1 and name != "tf_crop_and_resize":
            continue
        ends = (0.0, 1.0)
        if roi is not None and np.asarray(roi).size:
            ends = (float(roi[i]), float(roi[len(axes) + i]))
        places = [
            _place(name, at, scale[axis], x.shape[axis], out[axis], ends) for at in range(out[axis])
        ]
        matrix = np.array([_weights(p, x.shape[axis], scale[axis], attributes) for p in places])
        furthest = max(furthest, *[abs(place) for place in places])
        y = np.moveaxis(np.tensordot(matrix, y, (1, axis)), 0, axis)
        size = np.moveaxis(np.tensordot(np.abs(matrix), size, (1, axis)), 0, axis)
        if name == "tf_crop_and_resize":
            beyond = np.array([p < 0 or p > x.shape[axis] - 1 for p in places])
            outside = outside | beyond.reshape([-1 if k == axis else 1 for k in range(x.ndim)])
    if outside.any():
        y = np.where(outside, float(np.float32(attributes.get("extrapolation_value", 0))), y)
    # Places are rounded too: an error u |place| of each goes into four weights of slope 1.5.
    size = size + largest * furthest / 4
    return (y if x.dtype.kind == "f" else np.asarray(y).astype(x.dtype)), size, 16

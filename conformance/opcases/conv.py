# SPDX-License-Identifier: Apache-2.0
"""Convolutions with the shapes that real models have, and their transposes.

Of 1,698 convolutions of real models 1,368 have a bias, 433 groups, 50 dilation, 202 are 1-D and 47
have kernels over 7; ONNX's own cases are six 2-D ones of 3x3.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from chipdock.conformance.opcases.spec import Cases, In, pick, variant

__all__ = ["cases"]

_FLOATS = ("f32", "f64", "f16", "bf16")


class _Conv(NamedTuple):
    """Input, weight and attributes of one convolution."""

    x: tuple[int, ...]
    w: tuple[int, ...]
    attributes: dict[str, Any] = {}  # noqa: RUF012  never written
    bias: bool = True
    packed: bool = True
    shape_class: str = "real"


def _same(kernel: int, rank: int, stride: int = 1, dilation: int = 1) -> dict[str, Any]:
    pad = (kernel - 1) * dilation // 2
    found: dict[str, Any] = {"pads": [pad] * (2 * rank)}
    if stride > 1:
        found["strides"] = [stride] * rank
    if dilation > 1:
        found["dilations"] = [dilation] * rank
    return found


_CONVS: dict[str, _Conv] = {
    # 2-D, the bulk of vision models
    "pointwise": _Conv((1, 24, 9, 9), (16, 24, 1, 1)),
    "pointwise_wide": _Conv((1, 96, 5, 5), (64, 96, 1, 1), bias=False),
    "pointwise_stride2": _Conv((1, 16, 9, 9), (8, 16, 1, 1), {"strides": [2, 2]}),
    "k3": _Conv((1, 8, 11, 13), (12, 8, 3, 3), _same(3, 2)),
    "k3_no_bias": _Conv((2, 5, 7, 9), (7, 5, 3, 3), _same(3, 2), bias=False),
    "k3_stride2": _Conv((1, 6, 13, 15), (9, 6, 3, 3), _same(3, 2, 2)),
    "k3_valid": _Conv((1, 4, 8, 8), (5, 4, 3, 3)),
    "stem": _Conv((1, 3, 32, 32), (16, 3, 3, 3), _same(3, 2, 2)),
    "stem7": _Conv((1, 3, 29, 29), (8, 3, 7, 7), _same(7, 2, 2)),
    "k5": _Conv((1, 6, 12, 10), (4, 6, 5, 5), _same(5, 2)),
    "k9": _Conv((1, 3, 21, 19), (4, 3, 9, 9), _same(9, 2)),
    "k11_stride4": _Conv((1, 3, 35, 35), (6, 3, 11, 11), {"strides": [4, 4], "pads": [2, 2, 2, 2]}),
    "patch16": _Conv((1, 3, 32, 32), (24, 3, 16, 16), {"strides": [16, 16]}),
    "row_kernel": _Conv((1, 6, 5, 24), (6, 6, 1, 9), {"pads": [0, 4, 0, 4]}),
    "column_kernel": _Conv((1, 6, 24, 5), (6, 6, 9, 1), {"pads": [4, 0, 4, 0]}),
    "asymmetric_pads": _Conv((1, 4, 8, 9), (5, 4, 3, 3), {"pads": [0, 1, 2, 0]}),
    "pads_over_kernel": _Conv((1, 2, 4, 4), (3, 2, 2, 2), {"pads": [3, 3, 3, 3]}),
    "stride3": _Conv((1, 4, 14, 17), (5, 4, 3, 3), {"strides": [3, 2]}),
    "same_upper": _Conv((1, 4, 9, 10), (5, 4, 3, 3), {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    "same_lower": _Conv((1, 4, 9, 10), (5, 4, 4, 4), {"auto_pad": "SAME_LOWER"}),
    "auto_valid": _Conv((1, 4, 9, 10), (5, 4, 3, 3), {"auto_pad": "VALID"}),
    "dilated2": _Conv((1, 4, 13, 13), (6, 4, 3, 3), _same(3, 2, 1, 2)),
    "dilated_uneven": _Conv((1, 4, 15, 17), (6, 4, 3, 3), {"dilations": [2, 3]}),
    # Groups
    "depthwise3": _Conv((1, 16, 10, 11), (16, 1, 3, 3), _same(3, 2) | {"group": 16}),
    "depthwise3_stride2": _Conv((1, 12, 13, 13), (12, 1, 3, 3), _same(3, 2, 2) | {"group": 12}),
    "depthwise5": _Conv((1, 12, 12, 12), (12, 1, 5, 5), _same(5, 2) | {"group": 12}),
    "depthwise5_stride2": _Conv((1, 8, 15, 15), (8, 1, 5, 5), _same(5, 2, 2) | {"group": 8}),
    "depthwise_no_bias": _Conv((2, 7, 9, 9), (7, 1, 3, 3), _same(3, 2) | {"group": 7}, bias=False),
    "depthwise7x1": _Conv((1, 6, 17, 5), (6, 1, 7, 1), {"group": 6, "pads": [3, 0, 3, 0]}),
    "depthwise_multiplier": _Conv((1, 5, 8, 8), (15, 1, 3, 3), _same(3, 2) | {"group": 5}),
    "depthwise_dilated": _Conv((1, 6, 13, 13), (6, 1, 3, 3), _same(3, 2, 1, 2) | {"group": 6}),
    "group2": _Conv((1, 8, 7, 7), (6, 4, 3, 3), _same(3, 2) | {"group": 2}),
    "group4_pointwise": _Conv((1, 16, 6, 6), (8, 4, 1, 1), {"group": 4}),
    "group3_stride2": _Conv((2, 9, 8, 8), (12, 3, 3, 3), _same(3, 2, 2) | {"group": 3}),
    # 1-D: speech and time series
    "line_k3": _Conv((1, 8, 50), (12, 8, 3), _same(3, 1)),
    "line_k1": _Conv((2, 16, 25), (8, 16, 1)),
    "line_k7_dilated": _Conv((1, 8, 61), (8, 8, 7), _same(7, 1, 1, 3)),
    "line_k15": _Conv((1, 6, 64), (6, 1, 15), _same(15, 1) | {"group": 6}),
    "line_k31_depthwise": _Conv((1, 5, 70), (5, 1, 31), _same(31, 1) | {"group": 5}),
    "line_stft": _Conv((1, 1, 640), (34, 1, 128), {"strides": [64]}, bias=False),
    "line_k10_stride5": _Conv((1, 1, 200), (8, 1, 10), {"strides": [5]}, bias=False),
    "line_groups": _Conv((1, 12, 33), (12, 3, 5), _same(5, 1) | {"group": 4}),
    "line_wavenet": _Conv((1, 6, 80), (12, 6, 2), {"dilations": [16]}),
    "line_k512": _Conv((1, 1, 1500), (3, 1, 512), {"strides": [160]}, bias=False),
    # 3-D
    "volume_k3": _Conv((1, 3, 6, 7, 8), (4, 3, 3, 3, 3), _same(3, 3)),
    "volume_k1": _Conv((1, 6, 3, 4, 5), (5, 6, 1, 1, 1)),
    "volume_stride2": _Conv((1, 2, 7, 7, 7), (3, 2, 3, 3, 3), _same(3, 3, 2)),
    "volume_group": _Conv((1, 4, 5, 5, 5), (4, 1, 3, 3, 3), _same(3, 3) | {"group": 4}),
    # Edges
    "one_element": _Conv((1, 1, 1, 1), (1, 1, 1, 1), shape_class="scalar"),
    "whole_image": _Conv((1, 3, 7, 5), (4, 3, 7, 5), shape_class="odd"),
    "no_batch": _Conv((0, 3, 5, 5), (4, 3, 3, 3), shape_class="empty"),
    "deep": _Conv((1, 256, 3, 3), (8, 256, 3, 3), _same(3, 2), shape_class="large_k"),
    "batch5": _Conv((5, 3, 6, 6), (4, 3, 3, 3), _same(3, 2), shape_class="nd"),
    "weights_fed": _Conv((1, 4, 9, 9), (6, 4, 3, 3), _same(3, 2), packed=False, shape_class="nd"),
    "weights_fed_depthwise": _Conv((1, 6, 9, 9), (6, 1, 3, 3), _same(3, 2) | {"group": 6},
                                   packed=False, shape_class="nd"),
    "weights_fed_line": _Conv((1, 4, 30), (6, 4, 3), packed=False, shape_class="nd"),
    "large_image": _Conv((1, 3, 96, 130), (8, 3, 3, 3), _same(3, 2, 2), shape_class="large"),
}  # fmt: skip

_TRANSPOSED: dict[str, _Conv] = {
    "k2_stride2": _Conv((1, 6, 5, 7), (6, 4, 2, 2), {"strides": [2, 2]}),
    "k3": _Conv((1, 4, 6, 6), (4, 5, 3, 3), {"pads": [1, 1, 1, 1]}),
    "k3_no_bias": _Conv((2, 4, 6, 6), (4, 5, 3, 3), bias=False),
    "k4_stride2": _Conv((1, 6, 5, 5), (6, 3, 4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    "output_padding": _Conv((1, 3, 5, 5), (3, 2, 3, 3), {
        "strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]}),
    "output_shape": _Conv((1, 3, 4, 4), (3, 2, 3, 3), {"strides": [2, 2], "output_shape": [9, 8]}),
    "same_upper": _Conv((1, 3, 4, 5), (3, 2, 3, 3), {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    "same_lower": _Conv((1, 3, 4, 5), (3, 2, 3, 3), {"strides": [2, 2], "auto_pad": "SAME_LOWER"}),
    "dilated": _Conv((1, 3, 5, 5), (3, 2, 3, 3), {"dilations": [2, 2]}),
    "group2": _Conv((1, 4, 5, 5), (4, 3, 3, 3), {"group": 2}),
    "depthwise": _Conv((1, 6, 5, 5), (6, 1, 4, 4), {
        "group": 6, "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    "asymmetric_pads": _Conv((1, 2, 5, 5), (2, 3, 3, 3), {"pads": [0, 1, 2, 0]}),
    "line_k16_stride8": _Conv((1, 8, 9), (8, 4, 16), {"strides": [8], "pads": [4, 4]}),
    "line_k4": _Conv((2, 4, 11), (4, 3, 4), {"strides": [2]}),
    "line_istft": _Conv((1, 34, 6), (34, 1, 64), {"strides": [16]}, bias=False),
    "volume": _Conv((1, 2, 3, 4, 3), (2, 3, 2, 3, 2), {"strides": [2, 1, 2]}),
    "one_element": _Conv((1, 1, 1, 1), (1, 1, 1, 1), shape_class="scalar"),
    "no_batch": _Conv((0, 2, 4, 4), (2, 3, 3, 3), shape_class="empty"),
    "weights_fed": _Conv((1, 3, 4, 4), (3, 5, 3, 3), packed=False, shape_class="nd"),
}  # fmt: skip


def cases() -> Cases:
    """Yield the cases."""
    for op, table in (("Conv", _CONVS), ("ConvTranspose", _TRANSPOSED)):
        half = 28 if op == "Conv" else 9
        for dtype in _FLOATS:
            names = tuple(table)
            for name in names if dtype == "f32" else pick(names, op, dtype, count=half):
                yield _one(op, dtype, name, table[name])
        first = table["k3"]
        for view in ("step", "back", "inner"):
            yield _one(op, "f32", f"input_{view}", first, view=view)
        for dtype in _FLOATS:
            yield _one(op, dtype, "exact_sums", first, fill="exact")
        for fill in ("holes", "wide", "denormal"):
            yield _one(op, "f32", fill, first, fill=fill)
        yield _one(op, "f32", "v1", first, opset=8)
        yield _one(op, "f32", "v11", first, opset=11)


def _one(
    op: str, dtype: str, name: str, conv: _Conv, *, view: str = "", fill: str = "normal",
    **extra: Any,
) -> Any:  # fmt: skip
    weight_fill = "exact" if fill == "exact" else "normal"
    given = [In(dtype, conv.x, fill, view), In(dtype, conv.w, weight_fill, "", conv.packed)]
    if conv.bias:
        outputs = conv.w[0] if op == "Conv" else conv.w[1] * conv.attributes.get("group", 1)
        given.append(In(dtype, (outputs,), weight_fill, "", conv.packed))
    attributes = {"kernel_shape": list(conv.w[2:])} | conv.attributes
    special = fill in {"holes", "wide", "denormal"}
    shape_class = "strided" if view else "special" if special else conv.shape_class
    return variant(op, dtype, name, given, attributes, shape_class=shape_class, tolerance="R",
                   **extra)  # fmt: skip

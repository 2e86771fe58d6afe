# SPDX-License-Identifier: Apache-2.0
"""Operators with a window: convolutions, pooling, resizing.

The reference (onnx 1.23) is wrong for LRN and for GlobalMaxPool of one axis, which are not made
here, and for pools, whose answers come from pools.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from random_graphs import pools
from random_graphs.grow import Graph, Skip, Value


def picture(g: Graph, spatial: int, channels: int | None = None) -> Value:
    """A batch of pictures with 1 or 2 spatial axes: one there is, or a new one."""

    def ok(v: Value) -> bool:
        return (
            v.array.dtype == np.float32
            and v.rank == spatial + 2
            and v.array.size > 0
            and v.within(-100, 100)
            and (channels is None or v.shape[1] == channels)
        )

    found = [v for v in g.values if ok(v)]
    if found and g.chance(60):
        return g.pick(found)
    count = channels or g.pick((1, 2, 3, 4, 8, 16))
    extents = [g.integer(1, 9) for _ in range(spatial)]
    return g.new(np.float32, (g.integer(1, 2), count, *extents))


def window(g: Graph, x: Value, *, dilated: bool = True) -> dict[str, Any]:
    """Attributes of a window that fits into the padded picture."""
    spatial = x.rank - 2
    kernel = [g.pick((3, 1, 2, 5)) for _ in range(spatial)]
    dilations = [g.pick((1, 1, 2)) if dilated else 1 for _ in range(spatial)]
    attributes: dict[str, Any] = {
        "kernel_shape": kernel,
        "strides": [g.pick((1, 1, 2, 3)) for _ in range(spatial)],
    }
    if g.chance(25):
        attributes["auto_pad"] = g.pick(("SAME_UPPER", "SAME_LOWER", "VALID"))
        dilations = [1] * spatial
        pads = [0] * 2 * spatial
        if attributes["auto_pad"] != "VALID":
            return attributes
    else:
        pads = [g.integer(0, kernel[i % spatial] // 2) for i in range(2 * spatial)]
        attributes["pads"] = pads
    if dilated:
        attributes["dilations"] = dilations
    for i, extent in enumerate(x.shape[2:]):
        if extent + pads[i] + pads[i + spatial] < (kernel[i] - 1) * dilations[i] + 1:
            raise Skip
    return attributes


def conv(g: Graph) -> None:
    x = picture(g, g.pick((2, 2, 2, 1)))
    attributes = window(g, x)
    channels = x.shape[1]
    group = g.pick([d for d in range(1, channels + 1) if channels % d == 0])
    if g.chance(50):
        group = 1
    filters = group * g.integer(1, 4)
    shape = (filters, channels // group, *attributes["kernel_shape"])
    w = g.new(np.float32, shape, -1, 1, constant=g.chance(90))
    bias = g.new(np.float32, (filters,), constant=True) if g.chance(60) else None
    g.node("Conv", [x, w, bias], group=group, **attributes)


def conv_transpose(g: Graph) -> None:
    x = picture(g, g.pick((2, 1)))
    spatial = x.rank - 2
    channels = x.shape[1]
    group = g.pick([d for d in range(1, channels + 1) if channels % d == 0])
    kernel = [g.integer(1, 3) for _ in range(spatial)]
    strides = [g.integer(1, 2) for _ in range(spatial)]
    w = g.new(np.float32, (channels, g.integer(1, 3), *kernel), -1, 1, constant=True)
    more = {"output_padding": [s - 1 for s in strides]} if g.chance(30) else {}
    g.node("ConvTranspose", [x, w], group=group, strides=strides, kernel_shape=kernel, **more)


def pool(g: Graph) -> None:
    x = picture(g, g.pick((2, 2, 1)))
    op = g.pick(("MaxPool", "AveragePool"))
    attributes = window(g, x, dilated=False)
    if op == "AveragePool":
        attributes["count_include_pad"] = g.integer(0, 1)
    if "auto_pad" not in attributes and g.chance(40):
        attributes["ceil_mode"] = 1
    (y,) = g.node(op, [x], exact=op == "MaxPool", **attributes)
    y.array = pools.pool(op, x.array, attributes)


def global_pool(g: Graph) -> None:
    op, spatial = g.pick((("GlobalAveragePool", 2), ("GlobalAveragePool", 1), ("GlobalMaxPool", 2)))
    g.node(op, [picture(g, spatial)], exact=op == "GlobalMaxPool")


def resize(g: Graph) -> None:
    x = picture(g, 2)
    mode, places = g.pick(
        (
            ("nearest", "asymmetric"),
            ("nearest", "half_pixel"),
            ("linear", "half_pixel"),
            ("linear", "align_corners"),
            ("cubic", "half_pixel"),
        )
    )
    scales = g.add(np.asarray([1, 1, *(g.pick((2.0, 1.0, 3.0)) for _ in range(2))], np.float32))
    more = {"nearest_mode": "floor"} if mode == "nearest" else {}
    g.node(
        "Resize", [x, None, scales], mode=mode, coordinate_transformation_mode=places, **more,
    )  # fmt: skip


RECIPES = (*(conv,) * 5, conv_transpose, *(pool,) * 3, global_pool, resize)

# SPDX-License-Identifier: Apache-2.0
"""MaxPool and AveragePool, window by window: what the reference evaluator (onnx 1.23) gets wrong.

It mixes up pads of the two ends and SAME padding of MaxPool, and forgets the windows that
`ceil_mode` adds or the pads they lie in.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def _axis(extent: int, kernel: int, stride: int, attributes: Mapping[str, Any], pads: Sequence[int]
          ) -> tuple[list[tuple[int, int]], int]:  # fmt: skip
    """Windows along one axis as (start, end) in the picture's coordinates, and its padded end."""
    before, after = pads
    mode = attributes.get("auto_pad", "NOTSET")
    if mode.startswith("SAME"):
        count = -(-extent // stride)
        total = max((count - 1) * stride + kernel - extent, 0)
        before = total // 2 if mode == "SAME_UPPER" else total - total // 2
        after = total - before
    else:
        room = extent + before + after - kernel
        count = room // stride + 1
        if attributes.get("ceil_mode"):
            count = -(-room // stride) + 1
            if (count - 1) * stride >= extent + before:  # it would begin behind the picture
                count -= 1
    starts = [i * stride - before for i in range(count)]
    return [(start, start + kernel) for start in starts], extent + after


def pool(op: str, x: np.ndarray, attributes: Mapping[str, Any]) -> np.ndarray:
    """Return what MaxPool or AveragePool gives.

    Args:
        op: Its name.
        x: [N, C, ...], float32.
        attributes: As of the node; dilations are 1.
    """
    spatial = x.ndim - 2
    kernel, strides = attributes["kernel_shape"], attributes["strides"]
    pads = attributes.get("pads", [0] * 2 * spatial)
    axes = [
        _axis(x.shape[i + 2], kernel[i], strides[i], attributes, (pads[i], pads[i + spatial]))
        for i in range(spatial)
    ]
    out = np.empty((*x.shape[:2], *(len(windows) for windows, _ in axes)), x.dtype)
    for place in itertools.product(*(range(len(windows)) for windows, _ in axes)):
        inside, count = [slice(None), slice(None)], 1
        for i, at in enumerate(place):
            start, end = axes[i][0][at]
            inside.append(slice(max(start, 0), max(min(end, x.shape[i + 2]), 0)))
            count *= min(end, axes[i][1]) - start
        cut = x[tuple(inside)].reshape(*x.shape[:2], -1)
        if op == "MaxPool":
            out[(..., *place)] = cut.max(axis=-1)
        else:
            divisor = count if attributes.get("count_include_pad") else cut.shape[-1]
            out[(..., *place)] = cut.astype(np.float64).sum(axis=-1) / divisor
    return out

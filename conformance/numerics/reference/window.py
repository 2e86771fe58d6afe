# SPDX-License-Identifier: Apache-2.0
"""Convolutions and pooling in float64: windows gathered by index, then one matrix product.

`onnx.reference` walks each window in Python; real convolution shapes would take minutes there.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["conv", "conv_transpose", "pool"]

_Array = NDArray[Any]


class _Window(NamedTuple):
    """Where windows lie: per axis kernel, stride, dilation, padding before and output extent."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    begin: tuple[int, ...]
    out: tuple[int, ...]


def _window(extents: Sequence[int], kernel: Sequence[int], attributes: dict[str, Any]) -> _Window:
    rank = len(extents)
    stride = tuple(attributes.get("strides") or (1,) * rank)
    dilation = tuple(attributes.get("dilations") or (1,) * rank)
    pads = tuple(attributes.get("pads") or (0,) * (2 * rank))
    auto = attributes.get("auto_pad", "NOTSET")
    begins, outs = [], []
    for i, size in enumerate(extents):
        reach = (kernel[i] - 1) * dilation[i] + 1
        if auto in {"SAME_UPPER", "SAME_LOWER"}:
            out = -(-size // stride[i])
            total = max((out - 1) * stride[i] + reach - size, 0)
            begin = total // 2 if auto == "SAME_UPPER" else total - total // 2
        else:
            begin, end = (0, 0) if auto == "VALID" else (pads[i], pads[rank + i])
            room = size + begin + end - reach
            out = room // stride[i] + 1
            if attributes.get("ceil_mode"):
                out = -(-room // stride[i]) + 1
                # A window that would start in the padding behind the input does not count.
                out -= (out - 1) * stride[i] >= size + begin
        begins.append(begin)
        outs.append(out)
    return _Window(tuple(kernel), stride, dilation, tuple(begins), tuple(outs))


def _gather(x: _Array, window: _Window, fill: Any) -> tuple[_Array, _Array]:
    """Return elements (n, c, taps, *out) and the index of each in the unpadded input, -1 outside.

    The index has the shape (taps, *out) and counts in row-major order over the spatial axes.
    """
    extents = x.shape[2:]
    rank = len(extents)
    taps = math.prod(window.kernel)
    index = np.zeros((*window.kernel, *window.out), np.int64)
    inside = np.ones_like(index, dtype=bool)
    for i, size in enumerate(extents):
        tap = np.arange(window.kernel[i]) * window.dilation[i]
        place = np.arange(window.out[i]) * window.stride[i] - window.begin[i]
        both = tap[:, None] + place[None, :]
        shape = [1] * (2 * rank)
        shape[i], shape[rank + i] = both.shape
        both = both.reshape(shape)
        inside &= (both >= 0) & (both < size)
        index = index * size + np.clip(both, 0, size - 1)
    index, inside = (a.reshape(taps, *window.out) for a in (index, inside))
    flat = x.reshape(*x.shape[:2], math.prod(extents))
    found = flat[:, :, index]
    return np.where(inside, found, np.asarray(fill, x.dtype)), np.where(inside, index, -1)


def conv(
    x: _Array, weight: _Array, bias: _Array | None, attributes: dict[str, Any]
) -> tuple[_Array, _Array, int]:
    """Convolve.

    Args:
        x: (n, c, *extents).
        weight: (m, c / group, *kernel).
        bias: (m,) or None.
        attributes: Of ONNX's Conv.

    Returns:
        The result (n, m, *out), the same over absolute values, and how many terms each sum has.
    """
    group = int(attributes.get("group", 1))
    window = _window(x.shape[2:], weight.shape[2:], attributes)
    columns, _ = _gather(x, window, 0)
    n, m = x.shape[0], weight.shape[0]
    per = x.shape[1] // group
    columns = columns.reshape(n, group, per * math.prod(window.kernel), math.prod(window.out))
    rows = weight.reshape(group, m // group, -1)
    y = (rows[None] @ columns).reshape(n, m, *window.out)
    size = (np.abs(rows)[None] @ np.abs(columns)).reshape(n, m, *window.out)
    if bias is not None:
        spread = bias.reshape(1, m, *[1] * len(window.out))
        y, size = y + spread, size + np.abs(spread)
    return y, size, per * math.prod(window.kernel) + (bias is not None)


def conv_transpose(
    x: _Array, weight: _Array, bias: _Array | None, attributes: dict[str, Any]
) -> tuple[_Array, _Array, int]:
    """Spread each input over the output, as the gradient of a convolution does.

    Args:
        x: (n, c, *extents).
        weight: (c, m / group, *kernel).
        bias: (m,) or None.
        attributes: Of ONNX's ConvTranspose.

    Returns:
        As `conv`.
    """
    rank, group = x.ndim - 2, int(attributes.get("group", 1))
    kernel = weight.shape[2:]
    stride = tuple(attributes.get("strides") or (1,) * rank)
    dilation = tuple(attributes.get("dilations") or (1,) * rank)
    extra = tuple(attributes.get("output_padding") or (0,) * rank)
    pads = list(attributes.get("pads") or (0,) * (2 * rank))
    full = [
        stride[i] * (x.shape[2 + i] - 1) + extra[i] + (kernel[i] - 1) * dilation[i] + 1
        for i in range(rank)
    ]
    auto = attributes.get("auto_pad", "NOTSET")
    wanted = attributes.get("output_shape")
    if wanted is None and auto in {"SAME_UPPER", "SAME_LOWER"}:
        wanted = [x.shape[2 + i] * stride[i] for i in range(rank)]
    if wanted is not None:
        for i in range(rank):
            # An output larger than what is reached has zeros at its end.
            full[i] = max(full[i], wanted[-rank:][i])
            total = full[i] - wanted[-rank:][i]
            less, more = total // 2, total - total // 2
            begin = less if auto == "SAME_UPPER" else more
            pads[i], pads[rank + i] = begin, total - begin
    n, per_in, per_out = x.shape[0], x.shape[1] // group, weight.shape[1]
    y = np.zeros((n, group * per_out, *full), x.dtype)
    size = np.zeros_like(y)
    grouped = x.reshape(n, group, per_in, math.prod(x.shape[2:]))
    for tap in itertools.product(*[range(k) for k in kernel]):
        picked: Any = (slice(None), slice(None), *tap)
        part = weight[picked].reshape(group, per_in, per_out)
        where = tuple(
            slice(t * d, t * d + s * (e - 1) + 1, s)
            for t, d, s, e in zip(tap, dilation, stride, x.shape[2:], strict=True)
        )
        at: Any = (slice(None), slice(None), *where)
        swapped = part.transpose(0, 2, 1)[None]
        y[at] += (swapped @ grouped).reshape(n, group * per_out, *x.shape[2:])
        size[at] += (np.abs(swapped) @ np.abs(grouped)).reshape(y[at].shape)
    cut = tuple(slice(pads[i], full[i] - pads[rank + i]) for i in range(rank))
    y, size = y[(slice(None), slice(None), *cut)], size[(slice(None), slice(None), *cut)]
    if bias is not None:
        spread = bias.reshape(1, -1, *[1] * rank)
        y, size = y + spread, size + np.abs(spread)
    return y, size, per_in * math.prod(kernel) + (bias is not None)


def pool(
    op: str, x: _Array, attributes: dict[str, Any]
) -> tuple[list[_Array], list[_Array | None], int]:
    """Pool windows.

    Args:
        op: MaxPool, AveragePool or LpPool.
        x: (n, c, *extents).
        attributes: Of that operator.

    Returns:
        Results (n, c, *out), for MaxPool also the indices; their magnitudes; the terms of a sum.
    """
    kernel = tuple(attributes["kernel_shape"])
    window = _window(x.shape[2:], kernel, attributes)
    if op == "MaxPool":
        least = np.iinfo(x.dtype).min if x.dtype.kind in "iu" else -np.inf
        found, index = _gather(x, window, least)
        best = found.argmax(axis=2)
        y = found.max(axis=2)
        spread = np.broadcast_to(index, found.shape)
        chosen = np.take_along_axis(spread, best[:, :, None], axis=2)[:, :, 0]
        if attributes.get("storage_order"):
            places = np.unravel_index(chosen, x.shape[2:])
            chosen = np.ravel_multi_index(places[::-1], x.shape[:1:-1])
        count = math.prod(x.shape[2:])
        first = np.arange(x.shape[0] * x.shape[1]).reshape(*x.shape[:2], *[1] * len(window.out))
        return [y, chosen + first * count], [None, None], 1
    found, index = _gather(x, window, 0)
    terms = math.prod(kernel)
    if op == "LpPool":
        p = attributes.get("p", 2)
        total = (np.abs(found) ** p).sum(axis=2)
        y = total ** (1.0 / p)
        return [y], [np.abs(y)], terms
    counted = (index >= 0).sum(axis=0)
    if attributes.get("count_include_pad"):
        counted = _inside_padded(x.shape[2:], window, attributes)
    y = found.sum(axis=2) / counted
    return [y], [np.abs(found).sum(axis=2) / counted], terms


def _inside_padded(extents: Sequence[int], window: _Window, attributes: dict[str, Any]) -> _Array:
    """Count the taps of each window that lie in the input or its declared padding."""
    rank = len(extents)
    pads = tuple(attributes.get("pads") or (0,) * (2 * rank))
    auto = attributes.get("auto_pad", "NOTSET") != "NOTSET"
    total = np.ones(window.out, np.int64)
    for i, size in enumerate(extents):
        tap = np.arange(window.kernel[i]) * window.dilation[i]
        place = np.arange(window.out[i]) * window.stride[i] - window.begin[i]
        both = tap[:, None] + place[None, :]
        reach = np.inf if auto else size + pads[rank + i]
        shape = [1] * rank
        shape[i] = -1
        total = total * (both < reach).sum(axis=0).reshape(shape)
    return total

# SPDX-License-Identifier: Apache-2.0
"""Derivatives of convolutions and pools.

All are brought to windows without pads over an image that the windows cover exactly; what pads,
ceil_mode and auto_pad mean is in the extents alone. Source: Dumoulin and Visin, arXiv 1603.07285.
"""

from collections.abc import Sequence

import numpy as np

from chipdock._gradient.step import Parts, Rules, Step
from chipdock._gradient.values import Value

__all__ = ["RULES"]

_MOST_TAPS = 49
_FAR = 2**31


class _Windows:
    """How windows lie over a large image that a small one has an element for each of.

    Attributes:
        kernel: Taps of a window along each spatial axis.
        steps: How far the last window lies behind the first.
        full: Spatial extents that the windows cover.
        begin: How far they begin before the large image.
        ways: strides and dilations for a node that moves as this one does.
    """

    def __init__(self, s: Step, large: Value, small: Value, kernel: Value) -> None:
        self.s, b = s, s.b
        self.count = s.rank(s.x) - 2
        ones = [1] * self.count
        self.strides = list(s.attribute("strides") or ones)
        self.dilations = list(s.attribute("dilations") or ones)
        self.ways = {"strides": self.strides, "dilations": self.dilations}
        self.axes = b.ints(*range(2, 2 + self.count))
        self.kernel = kernel
        self.steps = (b.extents(small, 2) - b.ints(*ones)) * b.ints(*self.strides)
        reach = (kernel - b.ints(*ones)) * b.ints(*self.dilations)
        self.full = self.steps + reach + b.ints(*ones)
        self.inside = b.extents(large, 2)
        self.begin = self._begin()

    def _begin(self) -> Value:
        b, auto = self.s.b, self.s.attribute("auto_pad")
        nothing = b.ints(*[0] * self.count)
        sized = self.s.op == "ConvTranspose" and self.s.attribute("output_shape")
        if auto == "VALID" or (auto == "NOTSET" and not sized):
            pads = self.s.attribute("pads") if auto == "NOTSET" else None
            return b.ints(*pads[: self.count]) if pads else nothing
        total = self.full - self.inside
        if self.s.op == "ConvTranspose":
            total = total + b.ints(*(self.s.attribute("output_padding") or [0] * self.count))
        total = b("Max", total, nothing)
        half = b("Div", total, b.ints(*[2] * self.count))
        return half if auto == "SAME_UPPER" else total - half

    def padded(self, large: Value) -> Value:
        """The large image with zeros, or cut, so that the windows cover it."""
        end = self.full - self.inside - self.begin
        return self._pad(large, self.begin, end)

    def cropped(self, covered: Value) -> Value:
        """padded() backwards."""
        end = self.inside + self.begin - self.full
        return self._pad(covered, -self.begin, end)

    def under(self, tap: Sequence[int], covered: Value) -> Value:
        """What a tap reads in all windows, in the small image's extents."""
        b, count = self.s.b, self.count
        begin = b.ints(*(t * d for t, d in zip(tap, self.dilations, strict=True)))
        end = begin + self.steps + b.ints(*[1] * count)
        return b("Slice", covered, begin, end, self.axes, b.ints(*self.strides))

    def _pad(self, image: Value, begin: Value, end: Value) -> Value:
        pads = self.s.b("Concat", begin, end, axis=0)
        if pads.array is not None and not pads.array.any():
            return image
        return self.s.b("Pad", image, pads, None, self.axes)


def _swapped(s: Step, x: Value) -> Value:
    """An image with its first two axes exchanged."""
    rank = s.rank(s.x)
    return s.b("Transpose", x, perm=[1, 0, *range(2, rank)])


def _weight(s: Step, windows: _Windows, covered: Value, small: Value, weight: Value) -> Value:
    """Gradient of a weight (small channels, large channels / group, ...).

    A product of matrices for each tap, as fast as the forward pass; else a convolution of images.
    """
    taps = windows.kernel.array
    if taps is None or np.prod(taps) > _MOST_TAPS:
        return _weight_by_images(s, windows, covered, small, weight)
    b, group = s.b, s.attribute("group")
    points = b("ReduceProd", b.extents(small, 2), keepdims=1)
    split = b("Concat", b.ints(0, group, -1), points, axis=0)
    parts = []
    for tap in np.ndindex(*taps):
        under = windows.under(tap, covered)
        if weight.dims is not None and weight.dims[:2] == (group, 1):  # a filter for each channel
            axes = b.ints(0, *range(2, 2 + windows.count))
            total = b("ReduceSum", small * under, axes, keepdims=0)
        else:
            rows = b("Reshape", small, split)
            columns = b("Reshape", under, split)
            product = b("MatMul", rows, b("Transpose", columns, perm=[0, 1, 3, 2]))
            total = b("ReduceSum", product, b.ints(0), keepdims=0)
        parts.append(b("Unsqueeze", b.flat(total), b.ints(1)))
    return b.shaped(b("Concat", *parts, axis=1), weight)


def _weight_by_images(
    s: Step, windows: _Windows, covered: Value, small: Value, weight: Value
) -> Value:
    """The windows' elements become taps, so strides and dilations change places."""
    b, group = s.b, s.attribute("group")
    images = _swapped(s, covered)
    if group != 1:  # (N, g * c, ...) to (c, g * N, ...)
        batch = b("Shape", small, start=0, end=1)
        split = b("Concat", batch, b.ints(group, -1), windows.full, axis=0)
        rank = s.rank(s.x)
        parts = b("Transpose", b("Reshape", covered, split), perm=[2, 1, 0, *range(3, rank + 1)])
        channels = b("Shape", weight, start=1, end=2)
        joined = b("Concat", channels, b.ints(-1), windows.full, axis=0)
        images = b("Reshape", parts, joined)
    ways = {"strides": windows.dilations, "dilations": windows.strides}
    return _swapped(s, b("Conv", images, _swapped(s, small), group=group, **ways))


def _bias(s: Step) -> Value | None:
    if s.input(2) is None:
        return None
    return s.b("ReduceSum", s.dy, s.b.ints(0, *range(2, s.rank(s.x))), keepdims=0)


def _conv(s: Step) -> Parts:
    weight = s.required(1)
    windows = _Windows(s, s.x, s.y, s.b.extents(weight, 2))
    dx = _image(s, windows, weight)
    if dx is None:
        covered = s.b("ConvTranspose", s.dy, weight, group=s.attribute("group"), **windows.ways)
        dx = windows.cropped(covered)
    return [dx, _weight(s, windows, windows.padded(s.x), s.dy, weight), _bias(s)]


def _image(s: Step, windows: _Windows, weight: Value) -> Value | None:
    """Gradient of the image as a convolution, None where windows skip or pads are not known."""
    taps, begin, auto = windows.kernel.array, windows.begin.array, s.attribute("auto_pad")
    if max(windows.strides) > 1 or taps is None or begin is None:
        return None
    reach = (taps - 1) * windows.dilations
    end = reach - begin if auto.startswith("SAME") else np.zeros_like(reach)
    if auto == "NOTSET" and s.attribute("pads"):
        end = np.asarray(s.attribute("pads")[windows.count :])
    pads = [int(p) for p in (*(reach - begin), *(reach - end))]
    if min(pads) < 0:
        return None
    b, count, group = s.b, windows.count, s.attribute("group")
    if taps.max() > 1:
        last, before = b.ints(*[-1] * count), b.ints(*[-_FAR] * count)
        weight = b("Slice", weight, last, before, windows.axes, last)
    if group == 1:
        weight = _swapped(s, weight)
    else:  # (g * o, c, ...) to (g * c, o, ...)
        split = b("Concat", b.ints(group, -1), b("Shape", weight, start=1), axis=0)
        perm = [0, 2, 1, *range(3, 3 + count)]
        turned = b("Transpose", b("Reshape", weight, split), perm=perm)
        joined = b("Concat", b.ints(-1), b("Shape", turned, start=2), axis=0)
        weight = b("Reshape", turned, joined)
    return b("Conv", s.dy, weight, group=group, pads=pads, dilations=windows.dilations)


def _conv_transpose(s: Step) -> Parts:
    weight = s.required(1)
    windows = _Windows(s, s.y, s.x, s.b.extents(weight, 2))
    covered = windows.padded(s.dy)
    dx = s.b("Conv", covered, weight, group=s.attribute("group"), **windows.ways)
    return [dx, _weight(s, windows, covered, s.x, weight), _bias(s)]


def _average(s: Step) -> Parts:
    """Each element of x gets its share of every window that it lies in."""
    b, kernel = s.b, s.attribute("kernel_shape")
    windows = _Windows(s, s.x, s.y, b.ints(*kernel))
    taps = b("Expand", b.like(1.0, s.x), b.ints(1, 1, *kernel))
    ones = b("Expand", b.like(1.0, s.x), b("Concat", b.ints(1, 1), windows.inside, axis=0))
    if s.attribute("count_include_pad"):  # pads count, what ceil_mode adds behind them does not
        pads = s.attribute("pads") or [0] * (2 * windows.count)
        explicit = s.attribute("auto_pad") == "NOTSET"
        end = b.ints(*pads[windows.count :]) if explicit else windows.full - windows.inside
        end = end if explicit else b("Max", end - windows.begin, b.ints(*[0] * windows.count))
        around = b("Concat", windows.begin, end, axis=0)
        ones = b("Pad", ones, around, b.like(1.0, s.x), windows.axes)
        beyond = windows.full - windows.inside - windows.begin - end
        behind = b("Concat", b.ints(*[0] * windows.count), beyond, axis=0)
        ones = b("Pad", ones, behind, None, windows.axes)
    else:
        ones = windows.padded(ones)
    counts = b("Conv", ones, taps, **windows.ways)
    share = s.dy / counts
    planes = b("Reshape", share, b("Concat", b.ints(-1, 1), b.extents(s.y, 2), axis=0))
    spread = windows.cropped(b("ConvTranspose", planes, taps, **windows.ways))
    return [b.shaped(spread, s.x)]


def _largest(s: Step) -> Parts:
    if s.attribute("storage_order"):
        raise s.refused("storage_order is 1, 0 has a gradient")
    return [s.b.scattered(s.dy, s.output(1), s.x)]


def _global_average(s: Step) -> Parts:
    axes = range(2, s.rank(s.x))
    count = s.b("Div", s.b.size(s.x), s.b.size(s.y))
    share = s.dy / s.b("CastLike", count, s.x)
    return [s.b("Expand", share, s.b.extents(s.x)) if axes else s.dy]


def _global_largest(s: Step) -> Parts:
    axes = s.b.ints(*range(2, s.rank(s.x)))
    hits = s.b("CastLike", s.b("Equal", s.x, s.y), s.dy)
    return [hits * (s.dy / s.b("ReduceSum", hits, axes, keepdims=1))]


RULES: Rules = {
    "AveragePool": _average,
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "GlobalAveragePool": _global_average,
    "GlobalMaxPool": _global_largest,
    "MaxPool": _largest,
}

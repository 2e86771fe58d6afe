# SPDX-License-Identifier: Apache-2.0
"""Derivatives of normalizations. Means and deviations are computed again from x.

Source: Ioffe and Szegedy, arXiv 1502.03167, section 3; the others follow the same chain.
"""

from chipdock._gradient.step import Parts, Rules, Step
from chipdock._gradient.values import Value

__all__ = ["RULES"]


def _mean(s: Step, x: Value, axes: Value) -> Value:
    return s.b("ReduceMean", x, axes, keepdims=1)


def _root(s: Step, square: Value) -> Value:
    """1 / sqrt(square + epsilon)."""
    return 1.0 / s.b("Sqrt", square + s.attribute("epsilon"))


def _through(s: Step, normal: Value, root: Value, dnormal: Value, axes: Value) -> Value:
    """Gradient of x from that of (x - mean) * root, where both hang on x."""
    shift = _mean(s, dnormal, axes) + normal * _mean(s, dnormal * normal, axes)
    return (dnormal - shift) * root


def _normal(s: Step, axes: Value) -> tuple[Value, Value]:
    """Centred x divided by its deviation, and 1 / deviation."""
    centred = s.x - _mean(s, s.x, axes)
    root = _root(s, _mean(s, centred * centred, axes))
    return centred * root, root


def _last_axes(s: Step) -> Value:
    axis = s.attribute("axis")
    return s.b.ints(*range(axis, 0 if axis < 0 else s.rank(s.x)))


def _layer(s: Step) -> Parts:
    axes, scale, bias = _last_axes(s), s.required(1), s.input(2)
    normal, root = _normal(s, axes)
    dx = _through(s, normal, root, s.dy * scale, axes)
    dscale = s.b.sum_to(s.dy * normal, scale, s.x.dims)
    return [dx, dscale, None if bias is None else s.b.sum_to(s.dy, bias, s.x.dims)]


def _rms(s: Step) -> Parts:
    axes, scale = _last_axes(s), s.required(1)
    root = _root(s, _mean(s, s.x * s.x, axes))
    normal, dnormal = s.x * root, s.dy * scale
    dx = (dnormal - normal * _mean(s, dnormal * normal, axes)) * root
    return [dx, s.b.sum_to(s.dy * normal, scale, s.x.dims)]


def _lp(s: Step) -> Parts:
    """LpNormalization, whose gradient at a row of zeros is taken as 0."""
    axis, squared = s.b.ints(s.attribute("axis")), s.attribute("p") == 2
    size = s.b("ReduceL2" if squared else "ReduceL1", s.x, axis, keepdims=1)
    total = s.b("ReduceSum", s.dy * s.y, axis, keepdims=1)
    slope = s.y if squared else s.b("Sign", s.x)
    divisor = s.b.where(size > 0.0, size, 1.0)
    return [s.b.where(size > 0.0, (s.dy - slope * total) / divisor, 0.0)]


def _local_response(s: Step) -> Parts:
    """LRN; sums over neighbouring channels are convolutions of one image, channels its rows."""
    b, size = s.b, s.attribute("size")
    before, after = (size - 1) // 2, size // 2
    taps = b("Expand", b.like(1.0, s.x), b.ints(1, 1, size, 1))
    ends = b("Shape", s.x, start=0, end=1), b.ints(1), b("Shape", s.x, start=1, end=2), b.ints(-1)
    split = b("Concat", *ends, axis=0)
    x, dy = b("Reshape", s.x, split), b("Reshape", s.dy, split)
    share, beta = s.attribute("alpha") / size, s.attribute("beta")
    base = b("Conv", x * x, taps, pads=[before, 0, after, 0]) * share + s.attribute("bias")
    scale = b("Pow", base, b.like(-beta, s.x))
    met = b("Conv", dy * x * scale / base, taps, pads=[after, 0, before, 0])
    return [b.shaped(dy * scale - x * met * (2.0 * share * beta), s.x)]


class _Channels:
    """Vectors with an entry for each channel, axis 1 of x."""

    def __init__(self, s: Step) -> None:
        self.s, self.rank = s, s.rank(s.x)

    def spread(self, vector: Value) -> Value:
        behind = range(1, self.rank - 1)
        return self.s.b("Unsqueeze", vector, self.s.b.ints(*behind)) if behind else vector

    def axes(self) -> Value:
        return self.s.b.ints(*(a for a in range(self.rank) if a != 1))

    def sum(self, value: Value) -> Value:
        return self.s.b("ReduceSum", value, self.axes(), keepdims=0)


def _instance(s: Step) -> Parts:
    channels, scale = _Channels(s), s.required(1)
    axes = s.b.ints(*range(2, channels.rank))
    normal, root = _normal(s, axes)
    dx = _through(s, normal, root, s.dy * channels.spread(scale), axes)
    return [dx, channels.sum(s.dy * normal), channels.sum(s.dy)]


def _batch(s: Step) -> Parts:
    channels, scale = _Channels(s), s.required(1)
    wide = channels.spread(scale)
    if s.attribute("training_mode"):  # statistics of the batch itself
        axes = channels.axes()
        normal, root = _normal(s, axes)
        dx = _through(s, normal, root, s.dy * wide, axes)
        nothing = s.b.filled(0.0, scale)  # y does not hang on the running statistics
        return [dx, channels.sum(s.dy * normal), channels.sum(s.dy), nothing, nothing]
    mean, variance = s.required(3), s.required(4)
    root = _root(s, variance)
    total = channels.sum(s.dy)
    product = channels.sum(s.dy * (s.x - channels.spread(mean)))
    slope = scale * root
    dvariance = product * slope * root * root * -0.5
    return [s.dy * channels.spread(slope), product * root, total, -(total * slope), dvariance]


RULES: Rules = {
    "BatchNormalization": _batch,
    "InstanceNormalization": _instance,
    "LRN": _local_response,
    "LayerNormalization": _layer,
    "LpNormalization": _lp,
    "RMSNormalization": _rms,
}

# SPDX-License-Identifier: Apache-2.0
"""Derivatives of operators by element that broadcast several inputs."""

import functools
from collections.abc import Callable

from chipdock._gradient.step import Parts, Rule, Rules, Step
from chipdock._gradient.values import Value

__all__ = ["RULES"]


def _summed(s: Step, *parts: Value | None) -> Parts:
    """Gradients as y has it, brought to the inputs' extents."""
    pairs = zip(s.inputs, parts, strict=True)
    return [None if p is None or x is None else s.b.sum_to(p, x, s.y.dims) for x, p in pairs]


def _div(s: Step) -> Parts:
    part = s.dy / s.required(1)
    return _summed(s, part, -(part * s.y))


def _pow(s: Step) -> Parts:
    x, given = s.x, s.required(1)
    exponent = given if given.dtype == x.dtype and x.dtype else s.b("CastLike", given, x)
    zero = s.b("Equal", exponent, s.b.like(0.0, x))
    power = exponent * s.b("Pow", x, exponent - 1.0)
    base = s.b.where(zero, 0.0, s.dy * power)  # 0 * 0 ** -1 is no number
    logarithm = s.b("Log", s.b.where(x > 0.0, x, 1.0))
    by_exponent = s.b("CastLike", s.dy * s.y * logarithm, given)
    return _summed(s, base, by_exponent)


def _extreme(s: Step) -> Parts:
    """Max and Min: equal ones share, as subgradients may."""
    hits = [s.b("CastLike", s.b("Equal", x, s.y), s.dy) for x in s.inputs if x is not None]
    share = s.dy / functools.reduce(lambda a, b: a + b, hits)
    return _summed(s, *(hit * share for hit in hits))


def _mod(s: Step) -> Parts:
    quotient = s.x / s.required(1)
    if s.attribute("fmod"):  # towards zero
        quotient = s.b("Sign", quotient) * s.b("Floor", s.b("Abs", quotient))
    else:
        quotient = s.b("Floor", quotient)
    return _summed(s, s.dy, -(s.dy * quotient))


def _where(s: Step) -> Parts:
    condition = s.x
    return _summed(s, None, s.b.where(condition, s.dy, 0.0), s.b.where(condition, 0.0, s.dy))


def _prelu(s: Step) -> Parts:
    slope, below = s.required(1), s.x < 0.0
    dx = s.b.where(below, s.dy * slope, s.dy)
    return _summed(s, dx, s.b.where(below, s.dy * s.x, 0.0))


def _plain(parts: Callable[[Step], list[Value]]) -> Rule:
    return lambda s: _summed(s, *parts(s))


RULES: Rules = {
    "Add": _plain(lambda s: [s.dy, s.dy]),
    "Div": _div,
    "Max": _extreme,
    "Mean": _plain(lambda s: [s.dy / float(len(s.inputs))] * len(s.inputs)),
    "Min": _extreme,
    "Mod": _mod,
    "Mul": _plain(lambda s: [s.dy * s.required(1), s.dy * s.x]),
    "PRelu": _prelu,
    "Pow": _pow,
    "Sub": _plain(lambda s: [s.dy, -s.dy]),
    "Sum": _plain(lambda s: [s.dy] * len(s.inputs)),
    "Where": _where,
}

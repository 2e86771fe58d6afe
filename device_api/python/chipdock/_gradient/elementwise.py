# SPDX-License-Identifier: Apache-2.0
"""Derivatives of functions of one value by element: a factor for dy, or where dy passes."""

import math
from collections.abc import Callable, Mapping

from chipdock._gradient.step import Parts, Rule, Rules, Step
from chipdock._gradient.values import Value

__all__ = ["RULES"]

_ROOT_2_PI = math.sqrt(2.0 * math.pi)
_GELU_ROOT, _GELU_CUBE = math.sqrt(2.0 / math.pi), 0.044715  # Source: ONNX operator Gelu-20


def _normal_density(s: Step, x: Value) -> Value:
    return s.b("Exp", x * x * -0.5) * (1.0 / _ROOT_2_PI)


def _gelu(s: Step) -> Value:
    x = s.x
    if s.attribute("approximate") == "tanh":
        bent = s.b("Tanh", (x + x * x * x * _GELU_CUBE) * _GELU_ROOT)
        slope = (x * x * (3.0 * _GELU_CUBE) + 1.0) * _GELU_ROOT
        return (bent + 1.0 + x * (1.0 - bent * bent) * slope) * 0.5
    half = (s.b("Erf", x * math.sqrt(0.5)) + 1.0) * 0.5
    return half + x * _normal_density(s, x)


# Factor of dy: from x where that is exact and cheap, else from y. Source: calculus.
_FACTORS: Mapping[str, Callable[[Step], Value]] = {
    "Abs": lambda s: s.b("Sign", s.x),
    "Acos": lambda s: -1.0 / s.b("Sqrt", 1.0 - s.x * s.x),
    "Acosh": lambda s: 1.0 / s.b("Sqrt", s.x * s.x - 1.0),
    "Asin": lambda s: 1.0 / s.b("Sqrt", 1.0 - s.x * s.x),
    "Asinh": lambda s: 1.0 / s.b("Sqrt", s.x * s.x + 1.0),
    "Atan": lambda s: 1.0 / (s.x * s.x + 1.0),
    "Atanh": lambda s: 1.0 / (1.0 - s.x * s.x),
    "Cos": lambda s: -s.b("Sin", s.x),
    "Cosh": lambda s: s.b("Sinh", s.x),
    "Erf": lambda s: s.b("Exp", -(s.x * s.x)) * (2.0 / math.sqrt(math.pi)),
    "Exp": lambda s: s.y,
    "Gelu": _gelu,
    "Log": lambda s: 1.0 / s.x,
    "Reciprocal": lambda s: -(s.y * s.y),
    "Sigmoid": lambda s: s.y * (1.0 - s.y),
    "Sin": lambda s: s.b("Cos", s.x),
    "Sinh": lambda s: s.b("Cosh", s.x),
    "Softplus": lambda s: s.b("Sigmoid", s.x),
    "Softsign": lambda s: s.b("Reciprocal", _square(s.b("Abs", s.x) + 1.0)),
    "Sqrt": lambda s: 0.5 / s.y,
    "Tan": lambda s: s.y * s.y + 1.0,
    "Tanh": lambda s: 1.0 - s.y * s.y,
}

# Gradients of functions in pieces; at a kink that of the piece on the left, as frameworks have it.
_PIECES: Mapping[str, Callable[[Step], Value]] = {
    "Celu": lambda s: _bent(s, s.y / s.attribute("alpha") + 1.0),
    "Elu": lambda s: _bent(s, s.y + s.attribute("alpha")),
    "HardSigmoid": lambda s: s.b.where(
        s.b("And", s.y > 0.0, s.y < 1.0), s.dy * s.attribute("alpha"), 0.0
    ),
    "HardSwish": lambda s: (
        s.dy * s.b.where(s.x < 3.0, s.b.where(s.x > -3.0, s.x / 3.0 + 0.5, 0.0), 1.0)
    ),
    "LeakyRelu": lambda s: s.b.where(s.x > 0.0, s.dy, s.dy * s.attribute("alpha")),
    "Relu": lambda s: s.b.where(s.x > 0.0, s.dy, 0.0),
    "Selu": lambda s: s.b.where(
        s.x > 0.0,
        s.dy * s.attribute("gamma"),
        s.dy * (s.y + s.attribute("alpha") * s.attribute("gamma")),
    ),
    "ThresholdedRelu": lambda s: s.b.where(s.x > s.attribute("alpha"), s.dy, 0.0),
}


def _square(x: Value) -> Value:
    return x * x


def _bent(s: Step, factor: Value) -> Value:
    return s.b.where(s.x > 0.0, s.dy, s.dy * factor)


def _by_factor(factor: Callable[[Step], Value]) -> Rule:
    return lambda s: [s.dy * factor(s)]


def _by_pieces(piece: Callable[[Step], Value]) -> Rule:
    return lambda s: [piece(s)]


def _clip(s: Step) -> Parts:
    inside, low, high = s.dy, s.input(1), s.input(2)
    parts: list[Value | None] = [None, None, None]
    if low is not None:
        below = s.x < low
        parts[1] = _total(s, s.b.where(below, s.dy, 0.0), low)
        inside = s.b.where(below, 0.0, inside)
    if high is not None:
        above = s.x > high
        parts[2] = _total(s, s.b.where(above, s.dy, 0.0), high)
        inside = s.b.where(above, 0.0, inside)
    parts[0] = inside
    return parts


def _total(s: Step, value: Value, bound: Value) -> Value:
    return s.b.shaped(s.b("ReduceSum", value, keepdims=0), bound)


def _dropout(s: Step) -> Parts:
    training = s.input(2)
    if training is None or (training.array is not None and not training.array.any()):
        return [s.dy]
    ratio = s.input(1)
    kept = 0.5 if ratio is None else 1.0 - s.b("CastLike", ratio, s.x)
    scaled = s.dy / kept
    kept_dy = s.b.where(s.output(1), scaled, 0.0)
    return [s.b("Where", training, kept_dy, s.dy)]


RULES: Rules = {
    **{op: _by_factor(factor) for op, factor in _FACTORS.items()},
    **{op: _by_pieces(piece) for op, piece in _PIECES.items()},
    "Cast": lambda s: [s.b("CastLike", s.dy, s.x)],
    "CastLike": lambda s: [s.b("CastLike", s.dy, s.x)],
    "Clip": _clip,
    "Dropout": _dropout,
    "Identity": lambda s: [s.dy],
    "Neg": lambda s: [-s.dy],
}

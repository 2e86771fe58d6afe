# SPDX-License-Identifier: Apache-2.0
"""Which extents are equal although nobody knows them: each unknown one gets an expression as name.

onnx's inference makes a fresh unknown of every convolved height. Here the same window over equal
extents gives equal names. Two extents with one name are equal in every run that has no error.
"""

from collections.abc import Callable, Iterable, Sequence

import onnx
from onnx import AttributeProto

__all__ = ["named_extents"]

_Extent = int | str | None
_Shape = tuple[_Extent, ...]

# Their result has the shape of input 0, or of all inputs broadcast.
_LIKE_FIRST = {
    "Abs", "BatchNormalization", "Cast", "Clip", "Elu", "Erf", "Exp", "Gelu", "HardSigmoid",
    "HardSwish", "Identity", "InstanceNormalization", "LayerNormalization", "LeakyRelu", "Log",
    "Mish", "Neg", "PRelu", "Relu", "Selu", "Sigmoid", "Softmax", "Softplus", "Sqrt", "Swish",
    "Tanh",
}  # fmt: skip
_BROADCAST = {"Add", "Sub", "Mul", "Div", "Pow", "Max", "Min"}
_WINDOW = {"Conv", "MaxPool", "AveragePool"}


def named_extents(
    nodes: Iterable[onnx.NodeProto], shape: Callable[[str], _Shape | None]
) -> dict[str, _Shape]:
    """Shapes of what nodes compute, where they say more than is known so far.

    Args:
        nodes: In execution order.
        shape: What inference knows of a value: numbers, names of dims, None.
    """
    found: dict[str, _Shape] = {}

    def known(name: str) -> _Shape | None:
        if name not in found:
            told = shape(name)
            if told is None:
                return None
            found[name] = _named(name, told)
        return found[name]

    for node in nodes:
        inputs = [known(name) if name else None for name in node.input]
        if node.domain not in {"", "ai.onnx"} or not node.output or not node.input:
            continue
        guess = _computed(node, inputs)
        if guess is None:
            continue
        name = node.output[0]
        before = shape(name)
        if before is not None and len(before) == len(guess):
            # A number is worth more than an expression, and that more than a fresh name.
            guess = tuple(b if isinstance(b, int) or g is None else g
                          for b, g in zip(before, guess, strict=True))  # fmt: skip
        found[name] = _named(name, guess)
    return found


def _named(value: str, shape: _Shape) -> _Shape:
    """What is not known at all is called by the value and the axis: it equals itself."""
    return tuple(f"{value}[{at}]" if e is None else e for at, e in enumerate(shape))


def _computed(node: onnx.NodeProto, inputs: Sequence[_Shape | None]) -> _Shape | None:
    first = inputs[0]
    if node.op_type in _LIKE_FIRST:
        return first
    if node.op_type in _BROADCAST:
        return _broadcast(inputs)
    if first is None:
        return None
    if node.op_type in _WINDOW:
        return _window(node, first, inputs)
    if node.op_type == "Transpose":
        perm = next((a.ints for a in node.attribute if a.name == "perm"), range(len(first))[::-1])
        return tuple(first[p] for p in perm) if sorted(perm) == [*range(len(first))] else None
    return None


def _broadcast(inputs: Sequence[_Shape | None]) -> _Shape | None:
    shapes = [s for s in inputs if s is not None]
    if len(shapes) != len(inputs):
        return None
    rank = max(map(len, shapes))
    out: list[_Extent] = []
    for at in range(-rank, 0):
        extents = {s[at] for s in shapes if len(s) >= -at} - {1}
        numbers = [e for e in extents if isinstance(e, int)]
        if numbers:
            out.append(numbers[0])
        elif len(extents) == 1:
            out.append(extents.pop())
        else:
            out.append(None if extents else 1)
    return tuple(out)


def _window(node: onnx.NodeProto, x: _Shape, inputs: Sequence[_Shape | None]) -> _Shape | None:
    given: dict[str, AttributeProto] = {a.name: a for a in node.attribute}
    spatial = len(x) - 2
    if node.op_type == "Conv":
        weights = inputs[1] if len(inputs) > 1 else None
        if weights is None or len(weights) != len(x):
            return None
        kernel, channels = list(weights[2:]), weights[0]
    else:
        kernel = list(given["kernel_shape"].ints) if "kernel_shape" in given else []
        channels = x[1]
    if len(kernel) != spatial or spatial < 1:
        return None
    strides = list(given["strides"].ints) if "strides" in given else [1] * spatial
    dilations = list(given["dilations"].ints) if "dilations" in given else [1] * spatial
    pads = list(given["pads"].ints) if "pads" in given else [0] * (2 * spatial)
    auto = given["auto_pad"].s.decode() if "auto_pad" in given else "NOTSET"
    ceil = given["ceil_mode"].i if "ceil_mode" in given else 0
    if not len(strides) == len(dilations) == len(pads) // 2 == spatial:
        return None
    out: list[_Extent] = [x[0], channels]
    for at, extent in enumerate(x[2:]):
        span = kernel[at]
        if extent is None or not isinstance(span, int):
            out.append(None)
            continue
        cut = dilations[at] * (span - 1) - pads[at] - pads[at + spatial]
        same = auto.startswith("SAME") or (auto == "NOTSET" and cut == 0)
        if same and strides[at] == 1:
            out.append(extent)
        else:
            out.append(f"({extent} {auto} {cut} by {strides[at]} {ceil})")
    return tuple(out)

# SPDX-License-Identifier: Apache-2.0
"""Writes the backward pass of a graph as further nodes of plain operators.

Only what training.py builds can be differentiated; extents have to be fixed. Source of the rules:
the chain rule, for convolutions Dumoulin and Visin, arXiv 1603.07285.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import onnx
from onnx import helper

from chipdock.conformance.models.net import Net

__all__ = ["gradients"]


class _Pass:
    """One backward pass: what the rules need."""

    def __init__(self, net: Net, needed: set[str]) -> None:
        self.net = net
        self.needed = needed
        self.shapes: Mapping[str, tuple[int, ...]] = net.shapes()

    def reshaped(self, x: str, shape: Iterable[int]) -> str:
        return self.net("Reshape", x, self.net.ints(*shape))

    def like(self, gradient: str, name: str, shape: tuple[int, ...]) -> str:
        """Sum a gradient of the given extents over the axes along which `name` was repeated."""
        wanted = self.shapes[name]
        padded = (1,) * (len(shape) - len(wanted)) + wanted
        axes = [i for i, (a, b) in enumerate(zip(padded, shape, strict=True)) if a != b]
        if axes:
            gradient = self.net("ReduceSum", gradient, self.net.ints(*axes), keepdims=1)
        return gradient if padded == wanted else self.reshaped(gradient, wanted)

    def turned(self, x: str, rank: int) -> str:
        """Swap the last two axes."""
        order = [*range(rank - 2), rank - 1, rank - 2]
        return self.net("Transpose", x, perm=order)


_Rule = Callable[[_Pass, onnx.NodeProto, str], list[str]]


def gradients(net: Net, output: str, seed: str, wanted: Iterable[str]) -> dict[str, str]:
    """Add the backward pass of all nodes so far.

    Args:
        net: The graph.
        output: Where the gradient is known.
        seed: The gradient of the loss with respect to it.
        wanted: Inputs to differentiate by.

    Returns:
        Names of the gradients by those of the inputs.

    Raises:
        KeyError: A node on the way has no rule, or the output does not hang on an input.
    """
    forward = list(net.nodes)
    needed = set(wanted)
    for node in forward:
        if needed & set(node.input):
            needed.add(node.output[0])
    back = _Pass(net, needed)
    found = {output: seed}
    for node in reversed(forward):
        gradient = found.get(node.output[0])
        if gradient is None:
            continue
        given = _RULES[node.op_type](back, node, gradient)
        for name, part in zip(node.input, given, strict=False):
            if name in needed:
                found[name] = net("Add", found[name], part) if name in found else part
    return {name: found[name] for name in wanted}


def _sum(back: _Pass, node: onnx.NodeProto, dy: str) -> list[str]:
    shape = back.shapes[node.output[0]]
    second = back.net("Neg", dy) if node.op_type == "Sub" else dy
    return [back.like(dy, node.input[0], shape), back.like(second, node.input[1], shape)]


def _mul(back: _Pass, node: onnx.NodeProto, dy: str) -> list[str]:
    a, b = node.input
    shape = back.shapes[node.output[0]]
    return [
        back.like(back.net("Mul", dy, b), a, shape),
        back.like(back.net("Mul", dy, a), b, shape),
    ]


def _div(back: _Pass, node: onnx.NodeProto, dy: str) -> list[str]:
    a, b = node.input
    shape = back.shapes[node.output[0]]
    first = back.net("Div", dy, b)
    second = back.net("Neg", back.net("Mul", first, node.output[0]))
    return [back.like(first, a, shape), back.like(second, b, shape)]


def _matmul(back: _Pass, node: onnx.NodeProto, dy: str) -> list[str]:
    a, b = node.input
    rank, other = len(back.shapes[a]), len(back.shapes[b])
    first = back.net("MatMul", dy, back.turned(b, other)) if a in back.needed else ""
    if other == 2:
        rows, columns = back.shapes[b]
        a, dy, rank = back.reshaped(a, (-1, rows)), back.reshaped(dy, (-1, columns)), 2
    return [first, back.net("MatMul", back.turned(a, rank), dy)]


def _relu(back: _Pass, node: onnx.NodeProto, dy: str) -> list[str]:
    zero = back.net.constant(0.0)
    return [back.net("Where", back.net("Greater", node.input[0], zero), dy, zero)]


def _tanh(back: _Pass, node: onnx.NodeProto, dy: str) -> list[str]:
    square = back.net("Mul", node.output[0], node.output[0])
    return [back.net("Mul", dy, back.net("Sub", back.net.constant(1.0), square))]


def _sqrt(back: _Pass, node: onnx.NodeProto, dy: str) -> list[str]:
    half = back.net("Mul", dy, back.net.constant(0.5))
    return [back.net("Div", half, node.output[0])]


def _softmax(back: _Pass, node: onnx.NodeProto, dy: str) -> list[str]:
    y = node.output[0]
    total = back.net("ReduceSum", back.net("Mul", dy, y), back.net.ints(-1), keepdims=1)
    return [back.net("Mul", y, back.net("Sub", dy, total))]


def _transpose(back: _Pass, node: onnx.NodeProto, dy: str) -> list[str]:
    order = _attribute(node, "perm", [])
    return [back.net("Transpose", dy, perm=[order.index(i) for i in range(len(order))])]


def _reshape(back: _Pass, node: onnx.NodeProto, dy: str) -> list[str]:
    return [back.reshaped(dy, back.shapes[node.input[0]])]


def _mean(back: _Pass, node: onnx.NodeProto, dy: str) -> list[str]:
    shape = back.shapes[node.input[0]]
    axes = {int(axis) % len(shape) for axis in back.net.weights[node.input[1]]}
    kept = tuple(1 if i in axes else extent for i, extent in enumerate(shape))
    count = 1
    for axis in axes:
        count *= shape[axis]
    share = back.net("Mul", back.reshaped(dy, kept), back.net.constant(1.0 / count))
    return [back.net("Expand", share, back.net.ints(*shape))]


def _conv(back: _Pass, node: onnx.NodeProto, dy: str) -> list[str]:
    x, weight = node.input
    pads, strides = _attribute(node, "pads", [0] * 4), _attribute(node, "strides", [1, 1])
    first = ""
    if x in back.needed:
        first = back.net("ConvTranspose", dy, weight, pads=pads, strides=strides)
    # Channels take the place of the batch: each weight is a sum over batch and places.
    swap = [1, 0, 2, 3]
    sums = back.net("Conv", back.net("Transpose", x, perm=swap),
                    back.net("Transpose", dy, perm=swap), pads=pads, dilations=strides)  # fmt: skip
    return [first, back.net("Transpose", sums, perm=swap)]


def _attribute(node: onnx.NodeProto, name: str, default: Any) -> Any:
    for attribute in node.attribute:
        if attribute.name == name:
            return list(helper.get_attribute_value(attribute))
    return default


_RULES: Mapping[str, _Rule] = {
    "Add": _sum, "Sub": _sum, "Mul": _mul, "Div": _div, "MatMul": _matmul, "Relu": _relu,
    "Tanh": _tanh, "Sqrt": _sqrt, "Softmax": _softmax, "Transpose": _transpose,
    "Reshape": _reshape, "ReduceMean": _mean, "Conv": _conv,
}  # fmt: skip

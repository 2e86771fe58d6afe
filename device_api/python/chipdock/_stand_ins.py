# SPDX-License-Identifier: Apache-2.0
"""What is lowered in place of a node of types that its operator allows, but no kernel or body."""

from collections.abc import Iterator

import onnx
from onnx import TensorProto, helper

from chipdock._functions import prefix
from chipdock._onnx_graph import bad, label
from chipdock.errors import UnsupportedError

__all__ = ["stand_ins"]

_FIRST_CONSTANT_OF_SHAPE = 9


def stand_ins(node: onnx.NodeProto, types: dict[str, str], opset: int) -> list[onnx.NodeProto]:
    """Nodes that compute the same, in order; none where the node stays as it is.

    Args:
        node: The node; its inputs have types that the operator allows.
        types: Of its inputs, by name.
        opset: Version of ONNX's own domain in the model.

    Raises:
        InvalidArgumentError: It leaves out what can be left out for other types only.
        UnsupportedError: The opset has no operators for it.
    """
    if node.domain not in {"", "ai.onnx"} or not node.input:
        return []
    make = _MAKERS.get((node.op_type, types.get(node.input[0], "")))
    return [] if make is None else list(make(node, opset))


def _copy(node: onnx.NodeProto) -> onnx.NodeProto:
    out = onnx.NodeProto()
    out.CopyFrom(node)
    return out


def _like_strings(node: onnx.NodeProto, opset: int) -> Iterator[onnx.NodeProto]:
    """Random numbers in the shape of strings: like zeros in that shape."""
    if not any(a.name == "dtype" for a in node.attribute):
        raise bad(f"{node.op_type} {label(node)} of strings needs the attribute 'dtype'")
    if opset < _FIRST_CONSTANT_OF_SHAPE:
        raise UnsupportedError(
            f"UNSUPPORTED: {node.op_type} {label(node)} of strings is done from opset "
            f"{_FIRST_CONSTANT_OF_SHAPE} on; convert the model"
        )
    inside = prefix(node)
    shape, zeros = f"{inside}shape", f"{inside}zeros"
    yield helper.make_node("Shape", [node.input[0]], [shape], f"{node.name}/Shape")
    yield helper.make_node("ConstantOfShape", [shape], [zeros], f"{node.name}/ConstantOfShape")
    like = _copy(node)
    like.input[0] = zeros
    yield like


def _in_float(node: onnx.NodeProto, _: int) -> Iterator[onnx.NodeProto]:
    """A loss of bfloat16, in float32: onnx's body calls an operator that has no bfloat16."""
    inside = prefix(node)
    wide = _copy(node)
    for at, name in enumerate(node.input):
        if name and at != 1:  # 1: labels
            wide.input[at] = f"{inside}in{at}"
            yield helper.make_node("Cast", [name], [wide.input[at]], to=TensorProto.FLOAT)
    for at, name in enumerate(node.output):
        wide.output[at] = name and f"{inside}out{at}"
    yield wide
    for before, name in zip(wide.output, node.output, strict=True):
        if name:
            yield helper.make_node("Cast", [before], [name], to=TensorProto.BFLOAT16)


_MAKERS = {
    ("RandomNormalLike", "tensor(string)"): _like_strings,
    ("RandomUniformLike", "tensor(string)"): _like_strings,
    ("SoftmaxCrossEntropyLoss", "tensor(bfloat16)"): _in_float,
}

# SPDX-License-Identifier: Apache-2.0
"""What is lowered in place of a node of types that its operator allows, but no kernel or body."""

from collections.abc import Iterator

import onnx
from onnx import TensorProto, helper

from chipdock._onnx_graph import bad, label

__all__ = ["stand_ins"]


def stand_ins(node: onnx.NodeProto, types: dict[str, str]) -> list[onnx.NodeProto]:
    """Nodes that compute the same, in order; none where the node stays as it is.

    Args:
        node: The node; its inputs have types that the operator allows.
        types: Of its inputs, by name.

    Raises:
        InvalidArgumentError: It leaves out what can be left out for other types only.
    """
    if node.domain not in {"", "ai.onnx"} or not node.input:
        return []
    make = _MAKERS.get((node.op_type, types.get(node.input[0], "")))
    return [] if make is None else list(make(node))


def _copy(node: onnx.NodeProto) -> onnx.NodeProto:
    out = onnx.NodeProto()
    out.CopyFrom(node)
    return out


def _like_strings(node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    """Random numbers in the shape of strings: like zeros in that shape."""
    if not any(a.name == "dtype" for a in node.attribute):
        raise bad(f"{node.op_type} {label(node)} of strings needs the attribute 'dtype'")
    shape, zeros = (f"{node.output[0]}/{part}" for part in ("shape", "zeros"))
    yield helper.make_node("Shape", [node.input[0]], [shape], f"{node.name}/Shape")
    yield helper.make_node("ConstantOfShape", [shape], [zeros], f"{node.name}/ConstantOfShape")
    like = _copy(node)
    like.input[0] = zeros
    yield like


def _in_float(node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    """A loss of bfloat16, in float32: onnx's body calls an operator that has no bfloat16."""
    wide = _copy(node)
    for at, name in enumerate(node.input):
        if name and at != 1:  # 1: labels
            wide.input[at] = f"{node.output[0]}/{at}"
            yield helper.make_node("Cast", [name], [wide.input[at]], to=TensorProto.FLOAT)
    for at, name in enumerate(node.output):
        wide.output[at] = name and f"{name}/wide"
    yield wide
    for name in filter(None, node.output):
        yield helper.make_node("Cast", [f"{name}/wide"], [name], to=TensorProto.BFLOAT16)


_MAKERS = {
    ("RandomNormalLike", "tensor(string)"): _like_strings,
    ("RandomUniformLike", "tensor(string)"): _like_strings,
    ("SoftmaxCrossEntropyLoss", "tensor(bfloat16)"): _in_float,
}

# SPDX-License-Identifier: Apache-2.0
"""Attributes of a node for the executor: what the node says, and the schema's defaults."""

import onnx
from onnx import AttributeProto, defs

from chipdock import _core
from chipdock._onnx_file import ModelFile, tensor_array
from chipdock._onnx_graph import bad, label
from chipdock.errors import UnsupportedError

__all__ = ["add_attributes"]

_KINDS = {
    AttributeProto.FLOAT: "float",
    AttributeProto.INT: "int",
    AttributeProto.STRING: "string",
    AttributeProto.TENSOR: "tensor",
    AttributeProto.FLOATS: "floats",
    AttributeProto.INTS: "ints",
    AttributeProto.STRINGS: "strings",
}


def add_attributes(
    lowered: "_core.GraphNode", node: onnx.NodeProto, schema: defs.OpSchema | None, file: ModelFile
) -> None:
    """Give a lowered node its attributes; those that are graphs are its subgraphs already.

    Args:
        lowered: The executor's node.
        node: The node of the model.
        schema: Of its operator; None gives no defaults.
        file: Of the model, where tensors may lie.

    Raises:
        InvalidArgumentError: An attribute without a default is missing.
        UnsupportedError: An attribute of a kind that no kernel takes.
    """
    given = set()
    for attribute in node.attribute:
        given.add(attribute.name)
        if attribute.type != AttributeProto.GRAPH:
            _add(lowered, node, attribute, attribute.name, file)
    if schema is None:
        return
    for name, description in schema.attributes.items():
        default = description.default_value
        if name not in given and default.type in _KINDS:
            _add(lowered, node, default, name, file)
        elif name not in given and description.required:
            raise bad(f"{node.op_type} {label(node)} lacks the attribute {name!r}")


def _add(
    lowered: "_core.GraphNode",
    node: onnx.NodeProto,
    attribute: AttributeProto,
    name: str,
    file: ModelFile,
) -> None:
    if attribute.type == AttributeProto.TYPE_PROTO:
        return  # types are settled at load
    kind = _KINDS.get(attribute.type)
    if kind is None:
        text = f"attribute {name!r} of {node.op_type} {label(node)} is of kind "
        raise UnsupportedError(
            f"UNSUPPORTED: {text}{AttributeProto.AttributeType.Name(attribute.type)}"
        )
    value: object = onnx.helper.get_attribute_value(attribute)
    if kind == "tensor":
        value = tensor_array(attribute.t, file)
        if value.dtype == object:  # strings do not cross the ABI as a tensor
            kind, value = "strings", list(value.ravel())
    elif kind in {"ints", "floats"}:
        value = list(value)  # type: ignore[call-overload]
    lowered.add_attribute(name, kind, value)

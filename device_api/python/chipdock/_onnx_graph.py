# SPDX-License-Identifier: Apache-2.0
"""What can be said of an ONNX graph without lowering it: order, dtypes, and what does not fit."""

from collections.abc import Iterable

import numpy as np
import onnx
import onnx.helper
from onnx import AttributeProto, defs

from chipdock._onnx_file import ModelFile, tensor_array
from chipdock.errors import InvalidArgumentError, UnsupportedError

__all__ = ["bad", "check_signature", "check_types", "constant_value", "in_order", "output_dtype"]

_VARIADIC = defs.OpSchema.FormalParameterOption.Variadic


def bad(text: str) -> InvalidArgumentError:
    """Make the error for a model that is wrong."""
    return InvalidArgumentError(f"INVALID_ARGUMENT: {text}")


def check_signature(node: onnx.NodeProto, name: str, inputs: int, outputs: int) -> None:
    """Refuse a body whose inputs and outputs do not fit its If, Loop or Scan node.

    Raises:
        InvalidArgumentError: With the counts.
    """
    given, wanted_inputs, wanted_outputs = len(node.input), 0, len(node.output)
    if node.op_type == "Loop":
        wanted_inputs, wanted_outputs = max(given, 2), 1 + len(node.output)
    elif node.op_type == "Scan":
        wanted_inputs = given
    elif node.op_type != "If":
        return
    if (inputs, outputs) != (wanted_inputs, wanted_outputs):
        raise bad(
            f"{name} of {node.op_type} node {node.name!r} has {inputs} inputs and {outputs} "
            f"outputs, the node wants {wanted_inputs} inputs and {wanted_outputs} outputs"
        )


def check_types(dtypes: dict[str, int], node: onnx.NodeProto, schema: defs.OpSchema) -> None:
    """Inputs have dtypes the schema allows, and one type variable stands for one dtype.

    Source: ONNX IR, "Nodes" and the operators' type constraints.
    """
    variables: dict[str, tuple[str, str]] = {}
    for index, name in enumerate(node.input):
        if not name:
            continue
        formal = schema.inputs[min(index, len(schema.inputs) - 1)]
        dtype = onnx.TensorProto.DataType.Name(dtypes[name]).lower()
        allowed = formal.types
        if f"tensor({dtype})" not in allowed and any(t.startswith("tensor(") for t in allowed):
            plain = sorted(t[7:-1] for t in allowed if t.startswith("tensor("))
            raise bad(
                f"input {formal.name} ({name!r}) of {node.op_type} node {node.name!r} is "
                f"{dtype}, allowed are {', '.join(plain)}"
            )
        if formal.option == _VARIADIC and not formal.is_homogeneous:
            continue
        first, its_name = variables.setdefault(formal.type_str, (dtype, name))
        if first != dtype:
            raise bad(
                f"inputs {its_name!r} ({first}) and {name!r} ({dtype}) of {node.op_type} node "
                f"{node.name!r} must have one dtype; insert a Cast"
            )


def constant_value(node: onnx.NodeProto, file: ModelFile) -> tuple[np.ndarray, int]:
    """Value of a Constant node; Source: ONNX operator Constant-13."""
    tensor = onnx.TensorProto
    for a in node.attribute:
        if a.name == "value":
            return tensor_array(a.t, file), a.t.data_type
        if a.name in {"value_int", "value_ints"}:
            return np.array(onnx.helper.get_attribute_value(a), np.int64), tensor.INT64
        if a.name in {"value_float", "value_floats"}:
            return np.array(onnx.helper.get_attribute_value(a), np.float32), tensor.FLOAT
    names = [a.name for a in node.attribute]
    text = (
        f"UNSUPPORTED: Constant node {node.name!r} has {names}; dense numeric values are supported"
    )
    raise UnsupportedError(text)


def output_dtype(
    dtypes: dict[str, int], node: onnx.NodeProto, schema: defs.OpSchema | None, index: int
) -> int:
    """Data type of an output that inference left open: by attribute, or the schema's variable."""
    attributes = {a.name: a for a in node.attribute}
    for key in ("to", "dtype", "output_dtype"):
        if key in attributes and attributes[key].type == AttributeProto.INT and attributes[key].i:
            return int(attributes[key].i)
    if "value" in attributes and node.op_type == "ConstantOfShape":
        return int(attributes["value"].t.data_type)
    if node.op_type == "ConstantOfShape":
        return int(onnx.TensorProto.FLOAT)
    if schema is not None and schema.outputs:
        formal = schema.outputs[min(index, len(schema.outputs) - 1)]
        for at, name in enumerate(node.input):
            parameter = schema.inputs[min(at, len(schema.inputs) - 1)] if schema.inputs else None
            if name and parameter is not None and parameter.type_str == formal.type_str:
                return dtypes[name]
        only = list(formal.types)
        if len(only) == 1 and only[0].startswith("tensor("):
            return int(onnx.TensorProto.DataType.Value(only[0][7:-1].upper()))
    first = next((n for n in node.input if n), None)
    if first is None:
        raise bad(
            f"the dtype of {node.output[index]!r} ({node.op_type} node {node.name!r}) is unknown"
        )
    return dtypes[first]


def in_order(proto: onnx.GraphProto, known: set[str]) -> Iterable[onnx.NodeProto]:
    """Nodes in an order in which inputs are computed before they are read; most files have it.

    Raises:
        InvalidArgumentError: A cycle, or two nodes that compute one name.
    """
    producer: dict[str, int] = {}
    for index, node in enumerate(proto.node):
        for name in filter(None, node.output):
            if name in producer or name in known:
                node_name = f"{node.op_type} node {node.name!r}"
                raise bad(f"{name!r} is computed twice, the second time by {node_name}")
            producer[name] = index
    state = [0] * len(proto.node)  # 0 not seen, 1 being visited, 2 done
    order: list[onnx.NodeProto] = []
    for root in range(len(proto.node)):
        stack = [root]
        while stack:
            index = stack[-1]
            if state[index] == 2:
                stack.pop()
                continue
            state[index] = 1
            needs = [producer[n] for n in _reads(proto.node[index]) if n in producer]
            waiting = [n for n in needs if state[n] != 2 and n != index]
            if any(state[n] == 1 for n in waiting) or index in needs:
                node = proto.node[index]
                raise bad(f"the graph has a cycle through {node.op_type} node {node.name!r}")
            if waiting:
                stack += waiting
                continue
            state[index] = 2
            order.append(proto.node[index])
            stack.pop()
    return order


def _reads(node: onnx.NodeProto) -> Iterable[str]:
    yield from filter(None, node.input)
    for attribute in node.attribute:
        for body in [attribute.g] if attribute.type == AttributeProto.GRAPH else []:
            inside = {n for b in body.node for n in b.output} | {v.name for v in body.input}
            for inner in body.node:
                yield from (n for n in _reads(inner) if n not in inside)
            yield from (v.name for v in body.output if v.name not in inside)

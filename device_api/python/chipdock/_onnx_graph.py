# SPDX-License-Identifier: Apache-2.0
"""What can be said of an ONNX graph without lowering it: order, dtypes, and what does not fit."""

from collections.abc import Container, Iterable, Mapping, Sequence

import numpy as np
import onnx
import onnx.helper
from onnx import AttributeProto, defs

from chipdock._onnx_file import ModelFile, sparse_array, tensor_array
from chipdock._onnx_types import (
    ValueInfo,
    inner_type,
    is_tensor,
    tensor_type,
    type_text,
    value_shape,
)
from chipdock.errors import InvalidArgumentError

__all__ = [
    "bad",
    "body_types",
    "check_branches",
    "check_signature",
    "check_types",
    "constant_value",
    "formal_inputs",
    "in_order",
    "label",
    "output_type",
    "plain",
    "reads",
]

_SCAN_WITHOUT_LENGTHS = 9  # input 0 of Scan-8 has the lengths of the sequences
_WIDE = {"tensor(float)", "tensor(float16)", "tensor(bfloat16)"}  # DequantizeLinear may compute
_VARIADIC = defs.OpSchema.FormalParameterOption.Variadic


def bad(text: str) -> InvalidArgumentError:
    """Make the error for a model that is wrong."""
    return InvalidArgumentError(f"INVALID_ARGUMENT: {text}")


def label(node: onnx.NodeProto) -> str:
    """What to call a node in a message: by its name, or without one by the first output it has."""
    if node.name:
        return f"node {node.name!r}"
    output = next(filter(None, node.output), None)
    return f"node (of output {output!r})" if output is not None else "node (of no output)"


def formal_inputs(
    values: Iterable[onnx.ValueInfoProto],
    stored: Container[str],
    types: Mapping[str, str],
    shapes: Mapping[str, Sequence[int] | None],
) -> list[onnx.ValueInfoProto]:
    """Inputs of a graph that are no initializers as well.

    Args:
        values: All that are declared.
        stored: Names of the initializers.
        types: Of the initializers, by name.
        shapes: Likewise.

    Raises:
        InvalidArgumentError: One is declared twice, or an initializer is not what is declared.
    """
    seen: set[str] = set()
    formal = []
    for value in values:
        name = value.name
        if name in seen:
            raise bad(f"input {name!r} is declared twice")
        seen.add(name)
        if name not in stored:
            formal.append(value)
            continue
        text, wanted = type_text(value.type), value_shape(value.type)
        if text is not None and text != types[name]:
            raise bad(f"input {name!r} is declared {plain(text)}, its initializer is "
                      f"{plain(types[name])}; correct the declaration")  # fmt: skip
        shape = shapes[name]
        if wanted is not None and shape is not None and not _fits(shape, wanted):
            raise bad(f"input {name!r} is declared with shape {list(wanted)}, its initializer has "
                      f"{list(shape)}; correct the declaration")  # fmt: skip
    return formal


def _fits(shape: Sequence[int], wanted: Sequence[int | str | None]) -> bool:
    pairs = zip(shape, wanted, strict=False)
    return len(shape) == len(wanted) and all(w == d or not isinstance(w, int) for d, w in pairs)


def check_signature(node: onnx.NodeProto, since: int, name: str, found: tuple[int, int]) -> None:
    """Refuse a body whose inputs and outputs do not fit its If, Loop or Scan node.

    Args:
        node: The node.
        since: Version of its operator.
        name: Attribute that holds the body.
        found: Inputs and outputs of the body.

    Raises:
        InvalidArgumentError: With the counts.
    """
    given, wanted_inputs, wanted_outputs = len(node.input), 0, len(node.output)
    if node.op_type == "Loop":
        wanted_inputs, wanted_outputs = max(given, 2), 1 + len(node.output)
    elif node.op_type == "Scan":
        wanted_inputs = given if since >= _SCAN_WITHOUT_LENGTHS else given - 1
    elif node.op_type != "If":
        return
    if found != (wanted_inputs, wanted_outputs):
        raise bad(
            f"{name} of {node.op_type} {label(node)} has {found[0]} inputs and {found[1]} "
            f"outputs, the node wants {wanted_inputs} inputs and {wanted_outputs} outputs"
        )


def check_branches(node: onnx.NodeProto, branches: Sequence[Sequence[ValueInfo]]) -> None:
    """Refuse an If whose branches compute different types.

    Raises:
        InvalidArgumentError: With the output and both types.
    """
    if node.op_type != "If":
        return
    for name, *computed in zip(node.output, *branches, strict=True):
        kinds = sorted({plain(v.type) for v in computed})
        if len(kinds) > 1:
            raise bad(
                f"output {name!r} of If {label(node)} is {' in one branch, '.join(kinds)} in "
                "the other; insert a Cast"
            )


def body_types(node: onnx.NodeProto, since: int, types: dict[str, str]) -> list[str | None]:
    """Types of the inputs of a Loop's or Scan's body, which need not declare them."""
    given = [types.get(n) for n in node.input]
    if node.op_type == "Loop":
        return ["tensor(int64)", "tensor(bool)", *given[2:]]
    if node.op_type == "Scan":
        return given if since >= _SCAN_WITHOUT_LENGTHS else given[1:]
    return []


def check_types(types: dict[str, str], node: onnx.NodeProto, schema: defs.OpSchema) -> None:
    """Inputs have types the schema allows, and one type variable stands for one type.

    Source: ONNX IR, "Nodes" and the operators' type constraints.
    """
    variables: dict[str, tuple[str, str]] = {}
    for index, name in enumerate(node.input):
        if not name:
            continue
        formal = schema.inputs[min(index, len(schema.inputs) - 1)]
        given = types[name]
        if given not in formal.types:
            raise bad(
                f"input {formal.name} ({name!r}) of {node.op_type} {label(node)} is "
                f"{plain(given)}, allowed are {', '.join(sorted(plain(t) for t in formal.types))}"
            )
        if formal.option == _VARIADIC and not formal.is_homogeneous:
            continue
        first, its_name = variables.setdefault(formal.type_str, (given, name))
        if first != given:
            raise bad(
                f"inputs {its_name!r} ({plain(first)}) and {name!r} ({plain(given)}) of "
                f"{node.op_type} {label(node)} must have one dtype; insert a Cast"
            )


def plain(text: str) -> str:
    """A tensor's type by its dtype alone, for messages."""
    return text[7:-1] if is_tensor(text) else text


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
        if a.name in {"value_string", "value_strings"}:
            value = onnx.helper.get_attribute_value(a)
            texts = [v.decode(errors="surrogateescape") for v in (value if a.strings else [value])]
            array = np.empty(len(texts), object)
            array[:] = texts
            return array.reshape(() if a.name == "value_string" else (-1,)), tensor.STRING
        if a.name == "sparse_value":
            return sparse_array(a.sparse_tensor, file), a.sparse_tensor.values.data_type
    names = [a.name for a in node.attribute]
    raise bad(f"Constant {label(node)} has {names}, it must have one value")


def output_type(
    types: dict[str, str], node: onnx.NodeProto, schema: defs.OpSchema | None, index: int
) -> tuple[str, bool]:
    """Type of an output, by attribute, or the schema's variable, else as the first input.

    Returns:
        The type, and whether the operator fixes it; without that it is a guess.
    """
    attributes = {a.name: a for a in node.attribute}
    first = next((types[n] for n in node.input if n), None)
    of_sequence = _sequence_type(node.op_type, attributes, first) if not node.domain else None
    if of_sequence is not None:
        return of_sequence, True
    for key in ("to", "dtype", "output_dtype", "output_datatype"):
        if key in attributes and attributes[key].type == AttributeProto.INT and attributes[key].i:
            return tensor_type(int(attributes[key].i)), not node.domain
    of_schema = _default_type(schema) if schema is not None and not node.domain else None
    if of_schema is not None:
        return of_schema, True
    if node.op_type == "ConstantOfShape":
        given = attributes["value"].t.data_type if "value" in attributes else None
        return tensor_type(int(given or onnx.TensorProto.FLOAT)), True
    if node.op_type == "DequantizeLinear" and not node.domain:
        scale = types[node.input[1]]
        return scale if scale in _WIDE else "tensor(float)", True
    if node.op_type == "QuantizeLinear" and len([n for n in node.input if n]) < 3:
        return "tensor(uint8)", True
    if schema is not None and schema.outputs:
        formal = schema.outputs[min(index, len(schema.outputs) - 1)]
        for at, name in enumerate(node.input):
            parameter = schema.inputs[min(at, len(schema.inputs) - 1)] if schema.inputs else None
            if name and parameter is not None and parameter.type_str == formal.type_str:
                mixed = parameter.option == _VARIADIC and not parameter.is_homogeneous
                return types[name], not mixed
        if len(formal.types) == 1:
            return next(iter(formal.types)), True
    if first is None:
        raise bad(f"the dtype of {node.output[index]!r} ({node.op_type} {label(node)}) is unknown")
    return first, False


def _default_type(schema: defs.OpSchema) -> str | None:
    """Type that a generator makes when its node says nothing; None if the schema has no default."""
    for key in ("dtype", "output_datatype"):
        default = schema.attributes[key].default_value if key in schema.attributes else None
        if default is not None and default.type == AttributeProto.INT:
            return tensor_type(int(default.i))
    return None


def _sequence_type(op: str, attributes: dict[str, AttributeProto], first: str | None) -> str | None:
    """Type of what the operators of sequences and optionals make; None for any other."""
    if op == "SequenceEmpty":
        data_type = attributes["dtype"].i if "dtype" in attributes else onnx.TensorProto.FLOAT
        return f"seq({tensor_type(int(data_type))})"
    if op == "Optional":
        inner = type_text(attributes["type"].tp) if "type" in attributes else first
        return f"optional({inner})"
    if first is None:
        return None
    if op in {"SequenceConstruct", "SplitToSequence"}:
        return f"seq({first})"
    if op == "OptionalGetElement":  # what is no optional is its own element
        return inner_type(first) if first.startswith("optional(") else first
    if op in {"SequenceAt", "ConcatFromSequence"}:
        return inner_type(first)
    return None


def in_order(nodes: Sequence[onnx.NodeProto], known: set[str]) -> list[onnx.NodeProto]:
    """Nodes in an order in which inputs are computed before they are read; most files have it.

    Raises:
        InvalidArgumentError: A cycle, or two nodes that compute one name.
    """
    producer: dict[str, int] = {}
    for index, node in enumerate(nodes):
        for name in filter(None, node.output):
            if name in producer or name in known:
                node_name = f"{node.op_type} {label(node)}"
                raise bad(f"{name!r} is computed twice, the second time by {node_name}")
            producer[name] = index
    state = [0] * len(nodes)  # 0 not seen, 1 being visited, 2 done
    order: list[onnx.NodeProto] = []
    for root in range(len(nodes)):
        stack = [root]
        while stack:
            index = stack[-1]
            if state[index] == 2:
                stack.pop()
                continue
            state[index] = 1
            needs = [producer[n] for n in reads(nodes[index]) if n in producer]
            waiting = [n for n in needs if state[n] != 2 and n != index]
            if any(state[n] == 1 for n in waiting) or index in needs:
                node = nodes[index]
                raise bad(f"the graph has a cycle through {node.op_type} {label(node)}")
            if waiting:
                stack += waiting
                continue
            state[index] = 2
            order.append(nodes[index])
            stack.pop()
    return order


def reads(node: onnx.NodeProto) -> Iterable[str]:
    """Names that a node reads, its bodies' from outside included; one read twice comes twice."""
    yield from filter(None, node.input)
    yield from captures(node)


def captures(node: onnx.NodeProto) -> Iterable[str]:
    """Names of outside that a node's bodies read; a name may be an input of the node as well."""
    for attribute in node.attribute:
        for body in [attribute.g] if attribute.type == AttributeProto.GRAPH else []:
            inside = {n for b in body.node for n in b.output} | {v.name for v in body.input}
            for inner in body.node:
                yield from (n for n in reads(inner) if n not in inside)
            yield from (v.name for v in body.output if v.name not in inside)

# SPDX-License-Identifier: Apache-2.0
"""Operators that ONNX defines as functions: their bodies as nodes, with names of their own.

Which of them to expand is for the lowering to say; this file only does it.
"""

import itertools
from collections.abc import Iterable
from typing import Any

import onnx
from onnx import AttributeProto, defs

__all__ = ["Expansion", "expand", "function_body", "prefix"]

_numbers = itertools.count()


def function_body(
    node: onnx.NodeProto,
    schema: defs.OpSchema,
    opset: int,
    types: Iterable[onnx.TypeProto | None],
) -> onnx.FunctionProto | None:
    """Body of a node's operator for this opset, None if it is no function.

    Args:
        node: The node.
        schema: Its operator.
        opset: Version of ONNX's own domain in the model.
        types: Of the node's inputs, None where one is not given.
    """
    known: Any = schema  # onnx's stubs leave out what it says of functions
    if known.has_context_dependent_function:
        versions = [v for v in known.context_dependent_function_opset_versions if v <= opset]
        protos = [b"" if t is None else t.SerializeToString() for t in types]
        if versions:
            text = known.get_context_dependent_function_with_opset_version(
                max(versions), node.SerializeToString(), protos
            )
            return _function(text)
    if known.has_function:
        versions = [v for v in known.function_opset_versions if v <= opset]
        if versions:
            return _function(known.get_function_with_opset_version(max(versions)))
    return None


def _function(text: bytes) -> onnx.FunctionProto | None:
    if not text:
        return None
    proto = onnx.FunctionProto()
    proto.ParseFromString(text)
    return proto


class Expansion:
    """The nodes of a function in place of one that calls it.

    Attributes:
        nodes: In an order in which they can be computed; names inside do not meet those outside.
        opsets: Domain to version, for these nodes.
    """

    def __init__(self, nodes: list[onnx.NodeProto], opsets: dict[str, int]) -> None:
        """See expand()."""
        self.nodes = nodes
        self.opsets = opsets


def prefix(node: onnx.NodeProto) -> str:
    """What names start with that are made for one node and meet no others."""
    return f"{node.op_type}.{next(_numbers)}/"


def expand(
    node: onnx.NodeProto, body: onnx.FunctionProto, schema: defs.OpSchema | None
) -> Expansion:
    """Put a function's nodes in place of `node`.

    Args:
        node: The call.
        body: The function.
        schema: Its operator: gives the attributes that the node leaves out. None if onnx does not
            know it.
    """
    names = dict.fromkeys(body.input, "") | dict(zip(body.input, node.input, strict=False))
    wanted = dict(zip(body.output, node.output, strict=False))
    attributes = {}
    for name, description in schema.attributes.items() if schema is not None else ():
        if description.default_value.type != AttributeProto.UNDEFINED:
            attributes[name] = description.default_value
    attributes |= {a.name: a for a in (*body.attribute_proto, *node.attribute)}
    copier = _Copier(prefix(node), attributes)
    for inner, outer in wanted.items():
        # An output that is an input too, or one nobody wants, keeps a name of its own.
        if outer and inner not in names:
            names[inner] = outer
    nodes = [copier.node(n, names) for n in body.node]
    for inner, outer in wanted.items():
        if outer and names.get(inner) != outer:
            nodes.append(onnx.helper.make_node("Identity", [names[inner]], [outer]))
    for made in nodes:
        made.name = f"{node.name or node.op_type}/{made.name or made.op_type}"
    opsets = {("" if o.domain == "ai.onnx" else o.domain): o.version for o in body.opset_import}
    return Expansion(nodes, opsets)


class _Copier:
    """Copies nodes under new names, with the call's attributes in place of references to them."""

    def __init__(self, prefix: str, attributes: dict[str, AttributeProto]) -> None:
        self.prefix = prefix
        self.attributes = attributes

    def node(self, node: onnx.NodeProto, names: dict[str, str]) -> onnx.NodeProto:
        out = onnx.NodeProto(op_type=node.op_type, domain=node.domain, name=node.name)
        out.input.extend(self._name(n, names) for n in node.input)
        out.output.extend(self._name(n, names) for n in node.output)
        for attribute in node.attribute:
            given = attribute
            if attribute.ref_attr_name:
                if attribute.ref_attr_name not in self.attributes:
                    continue  # optional and not given: the operator's own default holds
                given = AttributeProto()
                given.CopyFrom(self.attributes[attribute.ref_attr_name])
                given.name = attribute.name
            elif attribute.type == AttributeProto.GRAPH:
                given = AttributeProto(name=attribute.name, type=AttributeProto.GRAPH)
                given.g.CopyFrom(self._graph(attribute.g, names))
            out.attribute.append(given)
        return out

    def _graph(self, graph: onnx.GraphProto, outside: dict[str, str]) -> onnx.GraphProto:
        names = dict(outside)  # a name declared inside hides one outside
        own = [*graph.input, *graph.initializer]
        for name in [v.name for v in own] + [o for n in graph.node for o in n.output]:
            names[name] = self.prefix + name
        out = onnx.GraphProto()
        out.CopyFrom(graph)
        for value in (*out.input, *out.output, *out.initializer, *out.value_info):
            value.name = self._name(value.name, names)
        del out.node[:]
        out.node.extend(self.node(n, names) for n in graph.node)
        return out

    def _name(self, name: str, names: dict[str, str]) -> str:
        if not name:
            return ""
        return names.setdefault(name, self.prefix + name)

# SPDX-License-Identifier: Apache-2.0
"""The part of a graph between xs and y: copied where other values are given for xs or zs.

Nodes without a rule are expanded here when their operator is a function.
"""

from collections.abc import Callable, Mapping, Sequence

import onnx
import onnx.checker
from onnx import AttributeProto, defs, helper

from chipdock._bodies import own_body
from chipdock._functions import expand, function_body
from chipdock._gradient.graph import Graph, renamed
from chipdock._gradient.rules import RULES, felt
from chipdock._gradient.values import FLOATS, Known
from chipdock._onnx_graph import label, reads
from chipdock._onnx_types import shape_advice, tensor_type, type_proto
from chipdock.errors import UnsupportedError

__all__ = ["Forward"]


class Forward:
    """What a Gradient node differentiates.

    Attributes:
        leaves: Each name of xs and zs with that of the value which stands for it.
        y: Name of what is differentiated, that of a copy if there is one.
        active: Names that hang on xs through floats, as of the last steps().
        known: What is known of values, as of the last steps().
        nodes: All of the part, copies with them.
    """

    def __init__(
        self, graph: Graph, inputs: Mapping[str, str], xs: Sequence[str], y: str, prefix: str
    ) -> None:
        """Find the part, and copy what of it hangs on other values than in the model.

        Args:
            graph: Gets the copies.
            inputs: Names of xs and zs with those of the Gradient node's inputs.
            xs: Names to differentiate by.
            y: Name to differentiate.
            prefix: Of new names.
        """
        self._graph = graph
        cone = graph.before([y], inputs)
        found = cone.difference(inputs)
        inside = [n for n in graph.ordered() if not found.isdisjoint(n.output)]
        names: dict[str, str] = {}
        copies: list[onnx.NodeProto] = []
        for name, given in inputs.items():
            if name != given:
                names[name] = prefix + name
                copies.append(helper.make_node("Identity", [given], [prefix + name], prefix + name))
        self.leaves = {name: names.get(name, name) for name in inputs}
        self._nodes: list[onnx.NodeProto] = []
        for node in inside:
            if any(n in names for n in reads(node)):
                names.update({o: prefix + o for o in node.output if o and o not in inputs})
                copy = renamed(node, names)
                copy.output[:] = [
                    prefix + o + "/unused" if o in inputs else names.get(o, o) for o in node.output
                ]
                copy.name = prefix + node.name
                copies.append(copy)
                self._nodes.append(copy)
            else:
                self._nodes.append(node)
        graph.put(None, copies)
        self.y = names.get(y, y)
        self._xs = {self.leaves[x] for x in xs}
        self.active: set[str] = set()
        self.known: Callable[[str], Known] = lambda _: Known()
        self.nodes = [*inside, *copies]

    def steps(self, gradient: str) -> list[onnx.NodeProto]:
        """The nodes on the way from xs to y in order, each with a rule.

        Args:
            gradient: What to call the Gradient node in a message.

        Raises:
            UnsupportedError: An operator has no rule and no body.
        """
        while True:
            self.known = self._graph.known()
            way = self._way()
            missing = [n for n in way if n.domain not in {"", "ai.onnx"} or n.op_type not in RULES]
            if not missing:
                return way
            for node in missing:
                self._expand(node, gradient)

    def _way(self) -> list[onnx.NodeProto]:
        self.active = set(self._xs)
        for node in self._nodes:
            if any(n in self.active for n in felt(node)):
                dtypes = {o: self.known(o).dtype for o in node.output if o}
                self.active.update(o for o, d in dtypes.items() if not d or d in FLOATS)
        needed = {self.y} & self.active
        way = []
        for node in reversed(self._nodes):
            through = [n for n in felt(node) if n in self.active]
            if through and any(o in needed for o in node.output):
                way.append(node)
                needed.update(through)
        return way[::-1]

    def _expand(self, node: onnx.NodeProto, gradient: str) -> None:
        """Put the body of a function in the place of its call."""
        nodes = self._body(node)
        if nodes is None:
            named = f"{node.domain}::{node.op_type}" if node.domain else node.op_type
            raise UnsupportedError(
                f"UNSUPPORTED: Gradient {gradient} leads through {named} {label(node)}, whose "
                "derivative is not known; known are those of functions of these and of "
                f"{', '.join(sorted(RULES))}; use those, or give a value behind it in xs or zs"
            )
        self._graph.put(node, nodes)
        self.nodes += nodes
        at = next(i for i, n in enumerate(self._nodes) if n is node)
        self._nodes[at : at + 1] = nodes

    def _body(self, node: onnx.NodeProto) -> list[onnx.NodeProto] | None:
        domain = "" if node.domain == "ai.onnx" else node.domain
        opset = self._graph.opsets.get(domain, 1)
        try:
            schema = defs.get_schema(node.op_type, opset, domain)
        except defs.SchemaError:
            schema = None
        types = [_type(self.known(n)) if n else None for n in node.input]
        own_opset = self._graph.opsets.get("", 1)
        body = own_body(node, domain, types)
        if body is None and schema is not None:
            body = function_body(node, schema, own_opset, types)
        if body is None:
            return None
        nodes = expand(node, body, schema).nodes
        return nodes if all(_fits(n, self._graph.opsets) for n in nodes) else None


def _fits(node: onnx.NodeProto, opsets: Mapping[str, int]) -> bool:
    """True if a node of a body means something in the model's opset.

    The checker does not know what bodies of If, Loop and Scan read from outside.
    """
    if any(a.type == AttributeProto.GRAPH for a in node.attribute):
        return True
    context = onnx.checker.C.CheckerContext()
    context.ir_version = onnx.IR_VERSION
    context.opset_imports = dict(opsets)
    try:
        onnx.checker.check_node(node, context)
    except onnx.checker.ValidationError:
        return False
    return True


def _type(known: Known) -> onnx.TypeProto | None:
    if not known.dtype:
        return None
    return type_proto(tensor_type(known.dtype), shape_advice(known.dims))

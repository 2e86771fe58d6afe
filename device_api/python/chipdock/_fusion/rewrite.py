# SPDX-License-Identifier: Apache-2.0
"""Applies rules to a graph: where a pattern matches, its replacement takes the place of the nodes.

A replacement is only made if the device lists a kernel for it, and it keeps the nodes that it
stands for: the runtime takes those again if no kernel accepts the whole.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx

from chipdock._fusion.graph import FusedGraph, Node, Shape, schema_of
from chipdock._fusion.pattern import CHIPDOCK, Binding, Call, Number, Rest, Value, matches, parse

__all__ = ["Given", "Match", "Rule", "rewrite"]

Given = Mapping[str, object]
_numbers = itertools.count()


class Match:
    """A match as the condition of a rule sees it; names are those of the pattern."""

    def __init__(self, binding: Binding, graph: FusedGraph) -> None:
        """Look at one."""
        self.binding = binding
        self.graph = graph

    def node(self, name: str) -> Node:
        """A named node."""
        return self.binding.named[name]

    def shape(self, name: str) -> Shape | None:
        """Extents of a value, None if not even the rank is known."""
        return self.graph.shape(self.binding.values[name])

    def array(self, name: str) -> np.ndarray | None:
        """Elements of a value if it is a small constant."""
        return self.graph.array(self.binding.values[name])

    def dtype(self, name: str) -> int:
        """TensorProto data type of a value, 0 if it is not known."""
        return self.graph.dtype(self.binding.values[name])

    def number(self, name: str) -> float | None:
        """The element of a value if it is a constant that has one."""
        return self.graph.number(self.binding.values[name])


@dataclass(frozen=True)
class Rule:
    """A pattern and what computes the same with less.

    Attributes:
        pattern: See pattern.py.
        replacement: A call in the same language. Inputs may be calls on constants, which are
            computed at load; `**conv` gives the attributes of the node `conv`; other names are of
            values, or of what `where` says.
        where: Says whether a match counts: None for no, else arrays that become constants, and
            attributes, by the names that the replacement has for them.
    """

    pattern: str
    replacement: str
    where: Callable[[Match], Given | None] = lambda _: {}


class _Builder:
    """Makes the nodes of one replacement."""

    def __init__(self, match: Match, given: Given) -> None:
        self.match = match
        self.given = given
        self.before: list[onnx.NodeProto] = []
        self.names: dict[str, str] = dict(match.binding.values)

    def call(self, call: Call, output: str) -> onnx.NodeProto:
        inputs = [name for term in call.inputs for name in self._inputs(term)]
        while inputs and not inputs[-1]:
            inputs.pop()
        made = onnx.NodeProto(op_type=call.op, domain=call.domain, input=inputs, output=[output])
        attributes = {}
        if call.splat:
            for attribute in self.match.node(call.splat).attributes():
                attributes[attribute.name] = attribute
        for name, said in call.attributes:
            value = self.given[said.name] if isinstance(said, Value) else said
            if value is not None:
                attributes[name] = onnx.helper.make_attribute(name, value)
        made.attribute.extend(attributes.values())
        return made

    def _inputs(self, term: object) -> Sequence[str]:
        if isinstance(term, Rest):
            return self.match.binding.rests[term.name]
        if isinstance(term, Call):
            name = f"{term.op}.{next(_numbers)}"
            self.before.append(self.call(term, name))
            if term.name:
                self.names[term.name] = name
            return [name]
        if isinstance(term, Value):
            if term.name in self.given:
                return [self._constant(term.name)]
            return [self.names[term.name]]
        assert isinstance(term, Number)
        return [""]  # an input that is not given is written as 0

    def _constant(self, name: str) -> str:
        value = self.given[name]
        made = f"{name}.{next(_numbers)}"
        tensor = onnx.numpy_helper.from_array(np.asarray(value))
        self.before.append(onnx.helper.make_node("Constant", [], [made], value=tensor))
        self.names[name] = made
        return made


def rewrite(
    graph: FusedGraph, rules: Iterable[Rule], runs: Callable[[str, str, int], bool]
) -> None:
    """Apply rules until none matches, nodes in execution order, rules in theirs.

    Args:
        graph: Is changed.
        rules: Each must leave less than it found.
        runs: Says whether a device has a kernel for domain, operator and since-version.
    """
    by_root: dict[tuple[str, str], list[tuple[Call, Call, Rule]]] = {}
    for rule in rules:
        pattern, replacement = parse(rule.pattern), parse(rule.replacement)
        if runs(replacement.domain, replacement.op, _since(replacement)):
            key = (pattern.domain, pattern.op)
            by_root.setdefault(key, []).append((pattern, replacement, rule))
    for at in range(len(graph.nodes)):
        node: Node | None = graph.nodes[at]
        while node is not None:
            candidates = by_root.get((node.domain, node.proto.op_type), ())
            node = next(filter(None, (_apply(c, node, graph) for c in candidates)), None)


def _since(call: Call) -> int:
    return 1 if call.domain == CHIPDOCK else schema_of(call.op).since_version


def _apply(candidate: tuple[Call, Call, Rule], root: Node, graph: FusedGraph) -> Node | None:
    pattern, replacement, rule = candidate
    for binding in matches(pattern, root, graph):
        match = Match(binding, graph)
        given = rule.where(match)
        if given is None:
            continue
        builder = _Builder(match, given)
        proto = builder.call(replacement, root.proto.output[0])
        gone = {name for node in binding.nodes for name in node.proto.output}
        if gone & {name for made in (proto, *builder.before) for name in made.input}:
            continue  # a value of the pattern is one that its own nodes compute
        proto.name = root.proto.name
        made = Node(proto, graph.order(binding.nodes))
        made.before = (*made.before, *builder.before)
        graph.replace(binding.nodes, made)
        return made
    return None

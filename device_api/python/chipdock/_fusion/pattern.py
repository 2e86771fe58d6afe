# SPDX-License-Identifier: Apache-2.0
"""The language of rewriting rules, and matching: patterns are data, no rule walks a graph itself.

A pattern is a Python expression, read with `ast`:

* `Add(x, y)` is a node of ONNX's own domain, `chipdock.FusedConv(x)` one of ai.chipdock. Both
  orders of Add's and Mul's inputs are tried.
* `x` is any value, the same one wherever the name stands; `W`, in capitals, is one that never
  changes. `*rest` stands for all further inputs.
* `0.5` is a constant of one element with this value.
* `keepdims=1` is what the node's attribute must be, the schema's default if it is not given.
* `(conv := Conv(x, W))` names a node and its first output.
"""

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from chipdock._fusion.graph import FusedGraph, Node

__all__ = ["CHIPDOCK", "Binding", "Call", "Number", "Rest", "Term", "Value", "matches", "parse"]

CHIPDOCK = "ai.chipdock"
_COMMUTATIVE = {"Add", "Mul"}


@dataclass(frozen=True)
class Value:
    """Any value, or one that never changes."""

    name: str
    constant: bool


@dataclass(frozen=True)
class Number:
    """A constant of one element."""

    value: float


@dataclass(frozen=True)
class Rest:
    """All inputs from here on."""

    name: str


@dataclass(frozen=True)
class Call:
    """A node; in a replacement also attributes that another node or a name gives."""

    domain: str
    op: str
    inputs: "tuple[Term, ...]"
    attributes: tuple[tuple[str, object], ...] = ()
    splat: str = ""  # `**conv`: all attributes of that node
    name: str = ""


Term = Value | Number | Rest | Call


@dataclass(frozen=True)
class Binding:
    """What the names of a pattern stand for in one match.

    Attributes:
        values: Names of a pattern to names of values.
        rests: Names with a star to names of values.
        named: Names of nodes to nodes.
        nodes: All matched nodes, the root first.
    """

    values: dict[str, str] = field(default_factory=dict)
    rests: dict[str, tuple[str, ...]] = field(default_factory=dict)
    named: dict[str, Node] = field(default_factory=dict)
    nodes: tuple[Node, ...] = ()


@functools.cache
def parse(text: str) -> Call:
    """Read a pattern or a replacement.

    Raises:
        ValueError: It is not one; with the part that is not.
    """
    term = _term(ast.parse(text, mode="eval").body)
    if not isinstance(term, Call):
        raise ValueError(f"{text!r} is no node")
    return term


def _term(tree: ast.expr) -> Term:
    if isinstance(tree, ast.Name):
        return Value(tree.id, tree.id.isupper())
    if isinstance(tree, ast.Starred) and isinstance(tree.value, ast.Name):
        return Rest(tree.value.id)
    if isinstance(tree, ast.NamedExpr):
        call = _term(tree.value)
        if isinstance(call, Call):
            return replace(call, name=tree.target.id)
    if isinstance(tree, ast.Call):
        return _call(tree)
    try:
        return Number(float(ast.literal_eval(tree)))
    except (ValueError, TypeError):
        raise ValueError(f"{ast.unparse(tree)!r} is no part of a rule") from None


def _call(tree: ast.Call) -> Call:
    function = tree.func
    domain = ""
    if isinstance(function, ast.Attribute) and ast.unparse(function.value) == "chipdock":
        domain, op = CHIPDOCK, function.attr
    elif isinstance(function, ast.Name):
        op = function.id
    else:
        raise ValueError(f"{ast.unparse(function)!r} is no operator")
    given: list[tuple[str, object]] = []
    splat = ""
    for keyword in tree.keywords:
        if keyword.arg is None:
            splat = ast.unparse(keyword.value)
        elif isinstance(keyword.value, ast.Name):
            given.append((keyword.arg, Value(keyword.value.id, constant=False)))
        else:
            given.append((keyword.arg, ast.literal_eval(keyword.value)))
    return Call(domain, op, tuple(_term(a) for a in tree.args), tuple(given), splat)


def matches(pattern: Call, root: Node, graph: FusedGraph) -> Iterator[Binding]:
    """Every way in which `root` and what it reads is the pattern.

    What nodes inside compute is read by matched nodes alone, so all of them can be replaced.
    """
    for binding in _node(pattern, root, graph, Binding()):
        inside = binding.nodes[1:]
        reads = [name for node in binding.nodes for name in node.proto.input]
        if all(
            graph.uses[name] == reads.count(name)
            for node in inside
            for name in filter(None, node.proto.output)
        ):
            yield binding


def _node(pattern: Call, node: Node, graph: FusedGraph, so_far: Binding) -> Iterator[Binding]:
    proto = node.proto
    if proto.op_type != pattern.op or node.domain != pattern.domain:
        return
    if any(node.attribute(name) != value for name, value in pattern.attributes):
        return
    if not proto.output or any(proto.output[1:]):
        return  # rules are about operators with one result
    if not _may_be(pattern, node, graph):
        return
    nodes = (*so_far.nodes, node)
    binding = Binding(so_far.values, so_far.rests, so_far.named, nodes)
    if pattern.name:
        result = _value(Value(pattern.name, constant=False), proto.output[0], graph, binding)
        if result is None:
            return
        named = {**result.named, pattern.name: node}
        binding = Binding(result.values, result.rests, named, nodes)
    inputs = tuple(proto.input)
    orders = [inputs]
    if pattern.op in _COMMUTATIVE and inputs[0] != inputs[1]:
        orders.append((inputs[1], inputs[0]))
    for order in orders:
        yield from _inputs(pattern.inputs, order, graph, binding)


def _may_be(pattern: Call, node: Node, graph: FusedGraph) -> bool:
    """False if an input of the pattern is a node of a kind that no input here is: most end so."""
    kinds = {graph.producer[n].proto.op_type for n in node.proto.input if n in graph.producer}
    return all(term.op in kinds for term in pattern.inputs if isinstance(term, Call))


def _inputs(
    terms: tuple[Term, ...], names: tuple[str, ...], graph: FusedGraph, so_far: Binding
) -> Iterator[Binding]:
    if not terms:
        if not any(names):
            yield so_far
        return
    first, *others = terms
    if isinstance(first, Rest):
        known = so_far.rests.get(first.name, names)
        if known == names:
            rests = {**so_far.rests, first.name: names}
            yield Binding(so_far.values, rests, so_far.named, so_far.nodes)
        return
    if not names or not names[0]:
        return
    for binding in _one(first, names[0], graph, so_far):
        yield from _inputs(tuple(others), names[1:], graph, binding)


def _one(term: Term, name: str, graph: FusedGraph, so_far: Binding) -> Iterator[Binding]:
    if isinstance(term, Number):
        if graph.is_number(name, term.value):
            yield so_far
    elif isinstance(term, Value):
        binding = _value(term, name, graph, so_far)
        if binding is not None:
            yield binding
    elif isinstance(term, Call):
        node = graph.producer.get(name)
        if node is not None and node not in so_far.nodes:
            yield from _node(term, node, graph, so_far)


def _value(term: Value, name: str, graph: FusedGraph, so_far: Binding) -> Binding | None:
    known = so_far.values.get(term.name)
    if known is not None:
        return so_far if known == name else None
    if term.constant and not graph.is_constant(name):
        return None
    values = {**so_far.values, term.name: name}
    return Binding(values, so_far.rests, so_far.named, so_far.nodes)

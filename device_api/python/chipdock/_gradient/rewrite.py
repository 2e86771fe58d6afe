# SPDX-License-Identifier: Apache-2.0
"""Puts ordinary nodes in the place of Gradient nodes: the reverse mode over a part of the graph.

Source: ONNX operator Gradient-1 of ai.onnx.preview.training; Griewank and Walther, Evaluating
Derivatives, 2nd ed., chapter 3. What an operator's derivative is, its rule says.
"""

from collections.abc import Iterable

import onnx
from onnx import AttributeProto, TensorProto, helper

from chipdock._gradient.forward import Forward
from chipdock._gradient.graph import Graph
from chipdock._gradient.opset import TRAINING, raised
from chipdock._gradient.rules import RULES, SEVERAL, felt
from chipdock._gradient.step import Step
from chipdock._gradient.values import FLOATS, Builder, Value
from chipdock._onnx_file import ModelFile
from chipdock._onnx_graph import bad, label
from chipdock.errors import UnsupportedError

__all__ = ["check_places", "differentiated"]


def _is_gradient(node: onnx.NodeProto) -> bool:
    return node.op_type == "Gradient" and node.domain == TRAINING


def check_places(model: onnx.ModelProto) -> None:
    """Refuse Gradient nodes outside of the main graph, whose values are what they name.

    Raises:
        UnsupportedError: With the node and where it is.
    """
    imports = [*model.opset_import, *(o for f in model.functions for o in f.opset_import)]
    if all(o.domain != TRAINING for o in imports):
        return
    for function in model.functions:
        _refuse(function.node, f"the local function {function.name!r}")
    for node in model.graph.node:
        _refuse_bodies(node)


def _refuse(nodes: Iterable[onnx.NodeProto], where: str) -> None:
    for node in nodes:
        if _is_gradient(node):
            raise UnsupportedError(
                f"UNSUPPORTED: Gradient {label(node)} is in {where}; Gradient is taken in the main "
                "graph alone, move it there"
            )
        _refuse_bodies(node)


def _refuse_bodies(node: onnx.NodeProto) -> None:
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            _refuse(attribute.g.node, f"{attribute.name} of {node.op_type} {label(node)}")


def differentiated(file: ModelFile) -> onnx.ModelProto:
    """Replace all Gradient nodes of a model's main graph.

    Args:
        file: The model, its local functions inlined; it is not changed.

    Returns:
        The model itself if it has no Gradient node, else a copy of opset 18 or newer.

    Raises:
        InvalidArgumentError: A Gradient node that its operator's text does not allow.
        UnsupportedError: No derivative is known of a node on the way, or the model is too old.
    """
    model = file.proto
    imported = any(o.domain == TRAINING for o in model.opset_import)
    if not imported or not any(_is_gradient(n) for n in model.graph.node):
        return model  # a domain that is not imported is an error of the lowering
    graph = Graph(file.with_proto(raised(model)))
    waiting = [n for n in graph.nodes if _is_gradient(n)]
    while waiting:
        node = _next(graph, waiting)
        waiting = [n for n in waiting if n is not node]
        later = [n for w in waiting for kind in ("y", "xs", "zs") for n in _names(w, kind)]
        _replace(graph, node, later)
    return graph.model()


def _next(graph: Graph, waiting: list[onnx.NodeProto]) -> onnx.NodeProto:
    """A Gradient node whose inputs and y hang on no other: gradients of gradients come later."""
    results = {name for node in waiting for name in node.output if name}
    for node in waiting:
        if not graph.before([*node.input, *_names(node, "y")]) & results:
            return node
    names = ", ".join(label(n) for n in waiting)
    raise bad(f"these Gradients hang on each other, no order can compute them: {names}")


def _names(node: onnx.NodeProto, attribute: str) -> list[str]:
    """What an attribute names; none if it is not given."""
    found: list[bytes] = []
    for given in node.attribute:
        if given.name == attribute:
            kind = AttributeProto.STRING if attribute == "y" else AttributeProto.STRINGS
            if given.type != kind:
                raise bad(
                    f"Gradient {label(node)} has {attribute} of kind "
                    f"{AttributeProto.AttributeType.Name(given.type)}, it must be "
                    f"{AttributeProto.AttributeType.Name(kind)}"
                )
            found = [given.s] if attribute == "y" else list(given.strings)
    return [name.decode(errors="surrogateescape") for name in found]


class _Call:
    """A Gradient node, its attributes and inputs checked against each other.

    Attributes:
        xs: Names to differentiate by.
        y: Name to differentiate.
        inputs: Names of xs and zs with those of the node's inputs.
    """

    def __init__(self, graph: Graph, node: onnx.NodeProto) -> None:
        what = f"Gradient {label(node)}"
        self.xs = _names(node, "xs")
        self.y = next(iter(_names(node, "y")), "")
        named = [*self.xs, *_names(node, "zs")]
        for name in (*named, self.y, *node.input):
            if not graph.has(name):
                raise bad(f"{what} names {name!r}, which nothing computes")
        counts = len(named), len(node.input), len(node.output)
        if not self.xs or counts[0] != counts[1] or counts[2] > len(self.xs):
            raise bad(
                f"{what} has {len(self.xs)} xs, {counts[0] - len(self.xs)} zs, {counts[1]} inputs "
                f"and {counts[2]} outputs; it needs an input for each of xs and zs, and has at "
                "most an output for each of xs"
            )
        if len(set(named)) < len(named):
            raise bad(f"{what} names a value twice in xs and zs: {', '.join(named)}")
        for name in named:
            deeper = sorted((graph.before([name]) & set(named)) - {name})
            if deeper:
                raise bad(
                    f"{what} names {name!r} and {deeper[0]!r}, from which the first is computed; "
                    "values of xs and zs must not hang on each other"
                )
        self.inputs = dict(zip(named, node.input, strict=True))


def _replace(graph: Graph, node: onnx.NodeProto, later: Iterable[str]) -> None:
    """Put the backward pass in the place of one Gradient node.

    Args:
        graph: Has the node.
        node: The Gradient node.
        later: Values that the next ones name, which are not to be taken out.
    """
    call = _Call(graph, node)
    prefix = graph.prefix(node.name or "Gradient")
    forward = Forward(graph, call.inputs, call.xs, call.y, prefix)
    steps = forward.steps(label(node))
    b = Builder(prefix, forward.known)
    y = b.value(forward.y)
    _check_float(node, call.y, y)
    gradients = {y.name: b.filled(1.0, y)}
    for step in reversed(steps):
        _back(b, step, graph.opsets.get("", 1), gradients, forward.active)
    for x, output in zip(call.xs, node.output, strict=False):
        if output:
            value = b.value(forward.leaves[x])
            _check_float(node, x, value)
            found = gradients.get(value.name) or b.filled(0.0, value)
            b.nodes.append(helper.make_node("Identity", [found.name], [output], f"{prefix}d{x}"))
    graph.put(node, b.nodes)
    graph.prune([*forward.nodes, *b.nodes], later)


def _check_float(node: onnx.NodeProto, name: str, value: Value) -> None:
    if value.dtype and value.dtype not in FLOATS:
        kind = TensorProto.DataType.Name(value.dtype).lower()
        raise bad(
            f"Gradient {label(node)} names {name!r}, which is {kind}; y and xs are floats, others "
            "may be in zs"
        )


def _back(
    b: Builder, node: onnx.NodeProto, opset: int, gradients: dict[str, Value], active: set[str]
) -> None:
    """Add what one node gives to the gradients of its inputs."""
    found = [gradients.get(n) if n else None for n in node.output]
    step = Step(b, node, opset, found)
    if node.op_type not in SEVERAL:
        if any(g is not None for g in found[1:]):
            raise step.refused("y hangs on another output than its first")
        if not found or found[0] is None:
            return
    names, counts = list(node.input), set(felt(node))
    parts = RULES[node.op_type](step)
    for index, name in enumerate(names):
        if name not in active or name not in counts:
            continue
        part = parts[index] if index < len(parts) else None
        if part is None:
            raise step.refused(f"y hangs on its input {index}, {name!r}, which is taken as given")
        gradients[name] = gradients[name] + part if name in gradients else part

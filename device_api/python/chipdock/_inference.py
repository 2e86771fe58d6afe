# SPDX-License-Identifier: Apache-2.0
"""What is done to a model before it is lowered: functions inlined, gradients, shapes inferred.

What was inferred is advice: what onnx cannot infer, or fails over, stays unknown.
"""

from collections import Counter
from collections.abc import Collection, Iterable

import onnx
import onnx.inliner

from chipdock._gradient import check_places, differentiated
from chipdock._legacy import upgraded
from chipdock._onnx_file import ModelFile
from chipdock._onnx_graph import bad
from chipdock._shapes import inferred, without_weights

__all__ = ["prepared"]

# A few kilobytes of functions that call each other twice stand for more nodes than any memory has.
_MOST_NODES = 1_000_000
_MOST_DEPTH = 100

_Key = tuple[str, str, str]


def _with_defaults(model: onnx.ModelProto) -> onnx.ModelProto:
    """Give calls of local functions the defaults of attributes they leave out.

    onnx's inliner forgets them (1.23).
    """
    defaults = {
        (f.domain, f.name, f.overload): f.attribute_proto
        for f in model.functions
        if f.attribute_proto
    }
    if not defaults:
        return model
    filled = onnx.ModelProto()
    filled.CopyFrom(model)
    waiting = [filled.graph.node, *(f.node for f in filled.functions)]
    while waiting:
        for node in waiting.pop():
            waiting += [a.g.node for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]
            given = {a.name for a in node.attribute}
            for default in defaults.get((node.domain, node.op_type, node.overload), ()):
                if default.name not in given:
                    node.attribute.append(default)
    return filled


def _key(node: onnx.NodeProto) -> _Key:
    return "" if node.domain == "ai.onnx" else node.domain, node.op_type, node.overload


def _calls(nodes: Iterable[onnx.NodeProto], known: Collection[_Key]) -> tuple[int, Counter[_Key]]:
    """Number of nodes, those of bodies too, that call nothing; and how often each is called."""
    plain, called = 0, Counter[_Key]()
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                waiting += attribute.g.node
        if _key(node) in known:
            called[_key(node)] += 1
        else:
            plain += 1
    return plain, called


def _check_size(model: onnx.ModelProto) -> None:
    """Refuse local functions that cannot be inlined: without end, too deep or too many nodes.

    Raises:
        InvalidArgumentError: With the function or the counts.
    """
    bodies = {("" if f.domain == "ai.onnx" else f.domain, f.name, f.overload): f.node
              for f in model.functions}  # fmt: skip
    calls = {key: _calls(nodes, bodies) for key, nodes in bodies.items()}
    sizes: dict[_Key, int] = {}

    def size(plain: int, called: Counter[_Key], above: tuple[_Key, ...]) -> int:
        if len(above) > _MOST_DEPTH:
            text = f"local functions call each other more than {_MOST_DEPTH} deep"
            raise bad(f"{text}, as {above[0][1]!r} does; inline some of them")
        for key in called:
            if key in above:
                raise bad(f"the local function {key[1]!r} calls itself; ONNX allows no recursion")
            if key not in sizes:
                sizes[key] = size(*calls[key], (*above, key))
        return plain + sum(count * sizes[key] for key, count in called.items())

    total = size(*_calls(model.graph.node, bodies), ())
    if total > _MOST_NODES:
        text = f"the model has {total} nodes when its local functions are inlined"
        raise bad(f"{text}, at most {_MOST_NODES} are allowed")


def _inlined(model: onnx.ModelProto) -> onnx.ModelProto:
    _check_size(model)
    try:
        return onnx.inliner.inline_local_functions(_with_defaults(model))
    except Exception as error:  # whatever onnx's C++ side or protobuf throws
        what = " ".join(str(error).split()).rstrip(".")
        raise bad(f"the model's local functions cannot be inlined: {what}") from error


def prepared(file: ModelFile) -> tuple[onnx.ModelProto, onnx.GraphProto]:
    """Inline local functions, write out Gradient nodes, infer shapes and dtypes where onnx can.

    Returns:
        The model with its weights, and its graph with what was inferred, without them.

    Raises:
        InvalidArgumentError: Local functions that cannot be inlined, a wrong Gradient node.
        UnsupportedError: A Gradient node whose way to its y has no known derivative.
    """
    model = upgraded(file.proto)
    check_places(model)
    if model.functions:
        model = _inlined(model)
    model = differentiated(file.with_proto(model))
    graph = inferred(without_weights(model))
    return model, graph if graph is not None else model.graph

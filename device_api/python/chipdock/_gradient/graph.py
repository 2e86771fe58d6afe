# SPDX-License-Identifier: Apache-2.0
"""A model's main graph while nodes are put in and taken out, and what is known of its values."""

from collections.abc import Callable, Collection, Iterable, Mapping

import onnx
from onnx import AttributeProto

from chipdock._gradient.values import Known
from chipdock._onnx_file import ModelFile, tensor_array
from chipdock._onnx_graph import constant_value, in_order, reads
from chipdock._onnx_types import value_shape
from chipdock._shapes import inferred, without_weights

__all__ = ["Graph", "renamed"]

_SMALL = 1024  # elements of constants that rules look into
_POOLS = 22


class Graph:
    """Nodes in no order; names are unique as in any ONNX graph.

    Attributes:
        nodes: Those of the main graph.
        opsets: Domain to version, "" for ONNX's own.
    """

    def __init__(self, file: ModelFile) -> None:
        """Take over a model, which model() changes."""
        self.nodes = list(file.proto.graph.node)
        self.opsets = {
            "" if o.domain == "ai.onnx" else o.domain: o.version for o in file.proto.opset_import
        }
        self._file = file
        self._light = without_weights(file.proto)
        _forget_extents(self._light.graph)
        _round_up_rightly(self._light)
        graph = file.proto.graph
        sparse = {t.values.name for t in graph.sparse_initializer}
        self._given = {v.name for v in (*graph.input, *graph.initializer)} | sparse
        self._arrays = {
            t.name: Known(t.data_type, tuple(t.dims), tensor_array(t, file))
            for t in graph.initializer
            if _count(t.dims) <= _SMALL
        }
        self._prefixes = 0
        self._makers: dict[str, onnx.NodeProto] | None = None

    def prefix(self, name: str) -> str:
        """A prefix that no name of the graph has."""
        names = self._given.union(self.producers())
        while True:
            self._prefixes += 1
            found = f"{name}/{self._prefixes}/"
            if not any(n.startswith(found) for n in names):
                return found

    def producers(self) -> dict[str, onnx.NodeProto]:
        """Who computes a name."""
        if self._makers is None:
            self._makers = {name: node for node in self.nodes for name in node.output if name}
        return self._makers

    def has(self, name: str) -> bool:
        """True if a name has a value in the graph."""
        return name in self._given or name in self.producers()

    def before(self, names: Iterable[str], cut: Collection[str] = ()) -> set[str]:
        """These values and all that go into them, but for what goes into those of `cut`."""
        makers, seen, stack = self.producers(), set[str](), list(names)
        while stack:
            name = stack.pop()
            if name not in seen:
                seen.add(name)
                stack += reads(makers[name]) if name in makers and name not in cut else ()
        return seen

    def ordered(self) -> list[onnx.NodeProto]:
        """The nodes, each behind those that it reads from."""
        return in_order(self.nodes, self._given)

    def put(self, old: onnx.NodeProto | None, new: Iterable[onnx.NodeProto]) -> None:
        """Add nodes, and take one out that they stand for."""
        self.nodes = [n for n in self.nodes if n is not old] + list(new)
        self._makers = None

    def prune(self, some: Iterable[onnx.NodeProto], named: Iterable[str]) -> None:
        """Take out those of some nodes that nothing reads and that are not of the named values."""
        made = {id(n) for n in some}
        needed = {v.name for v in self._file.proto.graph.output}.union(named)
        kept = []
        for node in reversed(self.ordered()):
            if id(node) not in made or any(name in needed for name in node.output):
                kept.append(node)
                needed.update(reads(node))
        self.nodes = kept[::-1]
        self._makers = None

    def known(self) -> Callable[[str], Known]:
        """What can be said of values now, by name."""
        light = self._light
        del light.graph.node[:]
        light.graph.node.extend(self.ordered())
        graph = inferred(light)
        found = self._types(graph if graph is not None else light.graph)
        for node in self.nodes:
            if node.op_type == "Constant" and node.domain in {"", "ai.onnx"} and node.output:
                array, dtype = constant_value(node, self._file)
                small = array if array.size <= _SMALL else None
                found[node.output[0]] = Known(dtype, array.shape, small)
        return lambda name: found.get(name, Known())

    def _types(self, graph: onnx.GraphProto) -> dict[str, Known]:
        values = (*graph.value_info, *graph.output, *graph.input)
        found = {v.name: Known(v.type.tensor_type.elem_type, value_shape(v.type)) for v in values}
        for tensor in graph.initializer:
            found[tensor.name] = Known(tensor.data_type, tuple(tensor.dims))
        return found | self._arrays

    def model(self) -> onnx.ModelProto:
        """The model with the nodes as they are now."""
        model = self._file.proto
        ordered = self.ordered()
        kept = [copied(n) for n in ordered]
        del model.graph.node[:]
        model.graph.node.extend(kept)
        return model


def copied(node: onnx.NodeProto) -> onnx.NodeProto:
    """A node of its own, which outlives the graph that it is in."""
    out = onnx.NodeProto()
    out.CopyFrom(node)
    return out


def _count(dims: Iterable[int]) -> int:
    count = 1
    for extent in dims:
        count *= extent
    return count


def _forget_extents(graph: onnx.GraphProto) -> None:
    """Leave ranks alone of what is declared of computed values: exporters leave stale extents."""
    for value in (*graph.value_info, *graph.output):
        for dim in value.type.tensor_type.shape.dim:
            dim.Clear()


def _round_up_rightly(light: onnx.ModelProto) -> None:
    """Infer pools by the formula of a newer opset: before 22, onnx counts windows in pads alone."""
    if any(a.name == "ceil_mode" and a.i for n in light.graph.node for a in n.attribute):
        for opset in light.opset_import:
            if opset.domain in {"", "ai.onnx"}:
                opset.version = max(opset.version, _POOLS)


def renamed(node: onnx.NodeProto, names: Mapping[str, str]) -> onnx.NodeProto:
    """A copy of a node with other names, those that its bodies read from outside included."""
    out = copied(node)
    out.input[:] = [names.get(n, n) for n in node.input]
    out.output[:] = [names.get(n, n) for n in node.output]
    for attribute in out.attribute:
        if attribute.type == AttributeProto.GRAPH:
            body = attribute.g
            own = {v.name for v in (*body.input, *body.initializer)}
            own.update(name for inner in body.node for name in inner.output)
            outside = {k: v for k, v in names.items() if k not in own}
            inner_nodes = [renamed(inner, outside) for inner in body.node]
            del body.node[:]
            body.node.extend(inner_nodes)
            for value in body.output:
                value.name = outside.get(value.name, value.name)
    return out

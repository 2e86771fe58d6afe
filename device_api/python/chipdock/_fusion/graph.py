# SPDX-License-Identifier: Apache-2.0
"""A graph as the rewriting rules see it: who computes, who reads a value, what is known of it.

Nodes can be replaced; nothing here knows a rule.
"""

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import AttributeProto, defs

from chipdock._fusion.copies import renamed, split
from chipdock._fusion.extents import named_extents
from chipdock._fusion.identities import without_identities
from chipdock._onnx_graph import reads
from chipdock._onnx_types import value_shape

__all__ = ["OPSET", "Constant", "FusedGraph", "Node", "Shape", "schema_of"]

Shape = tuple[int | str | None, ...]


@dataclass(frozen=True)
class Constant:
    """What is known of an initializer.

    Attributes:
        array: Its elements.
        data_type: Of TensorProto.
    """

    array: np.ndarray
    data_type: int

    @property
    def shape(self) -> tuple[int, ...]:
        """Its extents."""
        return self.array.shape


# Opset that replacements are written in, whatever the model's: old enough for kernels that were
# written years ago. Operators that it does not have yet are taken as they are newest.
OPSET = 17
_SMALL = 1024  # elements of constants that rules look into


class Node:
    """A node of the model, or one that stands for several of them.

    Attributes:
        proto: What it is now.
        domain: Its domain, "" for ONNX's own.
        origin: The model's nodes that it stands for, in an order in which they can be computed.
        made: True if a rule made it.
        before: Nodes on constants that a rule made for its inputs.
    """

    def __init__(self, proto: onnx.NodeProto, origin: "Sequence[Node] | None" = None) -> None:
        """Wrap a node of the model; a replacement says what it replaces."""
        self.proto = proto
        self.domain = "" if proto.domain == "ai.onnx" else proto.domain
        self.made = origin is not None
        self.origin: tuple[onnx.NodeProto, ...] = (
            (proto,) if origin is None else tuple(p for node in origin for p in node.origin)
        )
        self.before: tuple[onnx.NodeProto, ...] = (
            () if origin is None else tuple(p for node in origin for p in node.before)
        )

    def attribute(self, name: str) -> object:
        """Value of an attribute, else the schema's default, None without one; text as str."""
        for given in self.proto.attribute:
            if given.name == name:
                value = onnx.helper.get_attribute_value(given)
                return value.decode() if isinstance(value, bytes) else value
        return _default(self.domain, self.proto.op_type, name)

    def attributes(self) -> list[AttributeProto]:
        """Those that are given."""
        return list(self.proto.attribute)


@functools.cache
def schema_of(op: str) -> defs.OpSchema:
    """Schema of an operator of ONNX's own domain in a replacement."""
    try:
        return defs.get_schema(op, OPSET)
    except defs.SchemaError:
        return defs.get_schema(op)


@functools.cache
def _default(domain: str, op: str, name: str) -> object:
    if domain or not defs.has(op):
        return None
    description = defs.get_schema(op).attributes.get(name)
    if description is None or description.default_value.type == AttributeProto.UNDEFINED:
        return None
    value = onnx.helper.get_attribute_value(description.default_value)
    return value.decode() if isinstance(value, bytes) else value


class FusedGraph:
    """Nodes of one graph in execution order, with what is known of its values.

    Attributes:
        producer: Name of a value to the node that computes it.
        uses: How often a value is read, by bodies of nodes and as an output of the graph too.
    """

    def __init__(
        self,
        nodes: Iterable[onnx.NodeProto],
        graph: onnx.GraphProto,
        constant: Callable[[str], Constant | None],
    ) -> None:
        """See the graph through these nodes.

        Args:
            nodes: Of the graph, in execution order.
            graph: With what inference knows of shapes and dtypes.
            constant: The constant of a name, None if there is none.
        """
        kept = without_identities(list(nodes), {v.name for v in graph.output})
        split_nodes, self._copies = split(kept, graph)
        self.nodes: list[Node | None] = [Node(proto) for proto in split_nodes]
        self._constant = constant
        self._never_changes: dict[str, bool] = {}
        self._at = {id(node): at for at, node in enumerate(self.nodes)}
        self.producer: dict[str, Node] = {}
        self.uses: Counter[str] = Counter(v.name for v in graph.output)
        self._types = {v.name: v.type for v in (*graph.value_info, *graph.input, *graph.output)}
        for copy, name in self._copies.items():
            if name in self._types:
                self._types[copy] = self._types[name]
        for node in self.nodes:
            if node is not None:
                self._count(node, 1)
        self._extents = named_extents((n.proto for n in self.nodes if n is not None), self._told)

    def _count(self, node: Node, by: int) -> None:
        for proto in (*node.before, node.proto):
            for name in reads(proto):
                self.uses[name] += by
        for name in filter(None, node.proto.output):
            if by > 0:
                self.producer[name] = node
            else:
                self.producer.pop(name, None)

    def replace(self, matched: Sequence[Node], made: Node) -> None:
        """Put `made` where the first of `matched`, their root, stands; the others are gone."""
        at = self._at[id(matched[0])]
        for node in matched:
            self.nodes[self._at.pop(id(node))] = None
            self._count(node, -1)
        self.nodes[at] = made
        self._at[id(made)] = at
        self._count(made, 1)
        for proto in made.before:
            for name in proto.output:
                self._never_changes[name] = True

    def join_copies(self) -> None:
        """End what split() of copies.py began, for copies that are left."""
        if not self._copies:
            return
        reading: dict[str, list[Node]] = {}
        for reader in filter(None, self.nodes):
            for name in dict.fromkeys(reader.proto.input):
                reading.setdefault(name, []).append(reader)
        first: dict[str, str] = {}
        for at, node in enumerate(self.nodes):
            if node is None or node.made or node.proto.op_type != "DequantizeLinear":
                continue
            name = node.proto.output[0]
            kept = first.setdefault(self._copies.get(name, name), name)
            readers = [n for n in reading.get(name, ()) if id(n) in self._at]
            if kept == name or any(n.made for n in readers):
                continue
            for reader in (*readers, node):
                self._count(reader, -1)
            for reader in readers:
                reader.proto = renamed(reader.proto, {name: kept})
                reader.origin = (reader.proto,)
                self._count(reader, 1)
            self.nodes[at] = None
            del self._at[id(node)]

    def order(self, nodes: Iterable[Node]) -> list[Node]:
        """These nodes of the graph in execution order."""
        return sorted(nodes, key=lambda node: self._at[id(node)])

    def is_constant(self, name: str) -> bool:
        """True if nothing that can change goes into a value."""
        known = self._never_changes.get(name)
        if known is None:
            known = self._constant(name) is not None
            node = self.producer.get(name)
            if not known and node is not None and node.proto.op_type not in _NEVER_FOLDED:
                known = all(self.is_constant(n) for n in reads(node.proto))
            self._never_changes[name] = known
        return known

    def array(self, name: str, most: int = _SMALL) -> np.ndarray | None:
        """Elements of a constant of at most so many numbers, None of any other value."""
        found = self._constant(name)
        if found is None or found.data_type == onnx.TensorProto.STRING:
            return None
        return found.array if found.array.size <= most else None

    def number(self, name: str) -> float | None:
        """The element of a constant that has one and fits an attribute, which is a float32.

        None of any other value: of a model in double, most constants.
        """
        found = self._single(name)
        return found if found is None or float(np.float32(found)) == found else None

    def _single(self, name: str) -> float | None:
        array = self.array(name)
        if array is None or array.size != 1:
            return None
        return float(array.astype(np.float64).reshape(()))

    def is_number(self, name: str, value: float) -> bool:
        """True for a constant of one element that is `value` in its own precision."""
        found, constant = self._single(name), self._constant(name)
        if found is None or constant is None:
            return False
        # Exporters round once or twice before the dtype of the model does.
        digits = {8: 1e-14, 4: 2e-6}.get(constant.array.dtype.itemsize, 2e-3)
        return abs(found - value) <= digits * abs(value)

    def shape(self, name: str) -> Shape | None:
        """Extents as far as they are known: a number, the name of a dim, or None; None for all."""
        return self._extents.get(name) or self._told(name)

    def _told(self, name: str) -> Shape | None:
        found = self._constant(name)
        if found is not None:
            return found.shape
        proto = self._types.get(name)
        return value_shape(proto) if proto is not None else None

    def dtype(self, name: str) -> int:
        """TensorProto data type of a tensor, 0 if it is not known."""
        found = self._constant(name)
        if found is not None:
            return found.data_type
        proto = self._types.get(name)
        return int(proto.tensor_type.elem_type) if proto is not None else 0


# Constants may go into them, and yet each run computes another value; or other things than tensors.
_NEVER_FOLDED = {
    "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli",
    "Multinomial", "Dropout", "If", "Loop", "Scan", "SequenceEmpty", "Optional",
}  # fmt: skip

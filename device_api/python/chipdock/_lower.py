# SPDX-License-Identifier: Apache-2.0
"""From an ONNX graph to the executor's: names become numbers, attributes get the schema's defaults.

Types of all values are settled here, from onnx's inference where it knows them and from the
operators' type variables elsewhere. Shapes are advice: what cannot be derived is unknown, never a
failure.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import onnx
from onnx import AttributeProto, defs

from chipdock import _core
from chipdock._attributes import add_attributes
from chipdock._bodies import own_body
from chipdock._environment import choice
from chipdock._functions import expand, function_body
from chipdock._fusion import OPSET, Constant, FusedGraph, Node, fuse, schema_of
from chipdock._inference import prepared
from chipdock._onnx_file import ModelFile, sparse_array, tensor_array
from chipdock._onnx_graph import (
    bad,
    body_types,
    check_branches,
    check_signature,
    check_types,
    constant_value,
    formal_inputs,
    in_order,
    label,
    output_type,
    plain,
)
from chipdock._onnx_types import (
    ValueInfo,
    shape_advice,
    tensor_type,
    type_proto,
    type_text,
    value_info,
    value_shape,
)
from chipdock._scope import Scope
from chipdock._stand_ins import stand_ins
from chipdock._target import Target
from chipdock.errors import InvalidArgumentError, UnsupportedError

__all__ = ["ValueInfo", "lower"]


class _Lowering:
    def __init__(self, file: ModelFile, target: "Target | None") -> None:
        self.file = file
        self.target = target
        self.opsets = {
            o.domain if o.domain != "ai.onnx" else "": o.version for o in file.proto.opset_import
        }

    def graph(
        self, proto: onnx.GraphProto, outer: Scope | None, given: Sequence[str | None] = ()
    ) -> tuple[Scope, list[ValueInfo], list[ValueInfo]]:
        """Lower a graph; `given` are types of its inputs for those that declare none."""
        scope = Scope(_core.ModelGraph(), outer)
        for value in (*proto.value_info, *proto.input, *proto.output):
            text = type_text(value.type)
            if text is not None:
                scope.types.setdefault(value.name, text)
                scope.shapes.setdefault(value.name, shape_advice(value_shape(value.type)))
        # What was inferred for the main graph comes without weights.
        stored = self.file.proto.graph if outer is None else proto
        values = (*stored.value_info, *stored.input, *stored.output)
        said = {v.name for v in values if v.type.WhichOneof("value")}
        scope.inferred = set(scope.types) - said
        for tensor in stored.initializer:
            array = tensor_array(tensor, self.file)
            self._initializer(scope, tensor.name, array, tensor.data_type)
        for sparse in stored.sparse_initializer:
            array = sparse_array(sparse, self.file)
            self._initializer(scope, sparse.values.name, array, sparse.values.data_type)
        formal = formal_inputs(proto.input, scope.arrays, scope.types, scope.shapes)
        known = itertools.chain(given, itertools.repeat(None))
        inputs = [self._input(scope, v, t) for v, t in zip(formal, known, strict=False)]
        for value in inputs:
            number = scope.declare(value.name)
            if outer is None and value.shape is not None:
                names = [d if isinstance(d, str) else "" for d in value.shape]
                scope.graph.name_dims(number, names)
        nodes = in_order(proto.node, set(scope.numbers))
        if self.target is None or choice("CHIPDOCK_FUSION", "on", "off") == "off":
            for node in nodes:
                self.node(scope, node)
        else:
            self._fused(scope, nodes, proto)
        outputs = [self._output(scope, value) for value in proto.output]
        captured = [inner for _, inner in scope.captures]
        scope.graph.set_inputs([scope.numbers[v.name] for v in inputs] + captured)
        scope.graph.set_outputs([scope.numbers[v.name] for v in proto.output])
        return scope, inputs, outputs

    def _fused(self, scope: Scope, nodes: Iterable[onnx.NodeProto], proto: onnx.GraphProto) -> None:
        assert self.target is not None
        for node in fuse(FusedGraph(nodes, proto, self._known(scope, nodes)), self.target.runs):
            if node.made:
                self._whole(scope, node)
            else:
                self.node(scope, node.proto)

    def _known(
        self, scope: Scope, nodes: Iterable[onnx.NodeProto]
    ) -> Callable[[str], Constant | None]:
        """What is known of the constants that the nodes of a graph can read."""
        for node in nodes:
            if node.op_type == "Constant" and node.domain in {"", "ai.onnx"} and node.output:
                array, data_type = constant_value(node, self.file)
                scope.arrays[node.output[0]] = Constant(array, data_type)
        return scope.known

    def _whole(self, scope: Scope, node: Node) -> None:
        """Lower a node that a rule made, with those that it stands for inside."""
        outside = self.opsets
        self.opsets = {**outside, "": OPSET}
        for before in node.before:
            self.node(scope, before)
        self.opsets = outside
        first = scope.graph.node_count
        for original in node.origin:
            self.node(scope, original)
        proto = node.proto
        schema = None if node.domain else schema_of(proto.op_type)
        since = 1 if schema is None else schema.since_version
        inputs = [self._find(scope, proto, name) for name in proto.input]
        outputs = [scope.numbers[name] for name in proto.output]
        whole = (proto.name, node.domain, proto.op_type, since, inputs, outputs)
        lowered = scope.graph.add_node(*whole)
        add_attributes(lowered, proto, schema, self.file)
        scope.graph.stand_for(first)

    def _initializer(self, scope: Scope, name: str, array: np.ndarray, data_type: int) -> None:
        if name in scope.numbers:
            raise bad(f"initializer {name!r} is declared twice")
        self.constant(scope, name, array, data_type)

    def _input(self, scope: Scope, value: onnx.ValueInfoProto, given: str | None) -> ValueInfo:
        text = type_text(value.type) or given
        if text is None:
            raise bad(f"input {value.name!r} has no type; run onnx.shape_inference first")
        scope.types[value.name] = text
        return value_info(value, text)

    def _output(self, scope: Scope, value: onnx.ValueInfoProto) -> ValueInfo:
        if scope.find(value.name) is None:
            raise bad(f"output {value.name!r} is computed by no node")
        text = scope.types[value.name]
        declared = None if value.name in scope.inferred else type_text(value.type)
        if declared is not None and declared != text:
            raise bad(
                f"output {value.name!r} is declared {plain(declared)}, the model computes "
                f"{plain(text)}; correct the declaration or insert a Cast"
            )
        return value_info(value, text)

    def constant(self, scope: Scope, name: str, array: np.ndarray, data_type: int) -> None:
        scope.types[name] = tensor_type(data_type)
        scope.shapes[name] = list(array.shape)
        scope.arrays[name] = Constant(array, data_type)
        scope.graph.add_constant(scope.declare(name), array)

    def node(self, scope: Scope, node: onnx.NodeProto) -> None:
        domain = "" if node.domain == "ai.onnx" else node.domain
        if node.op_type == "Constant" and not domain:
            self._constant_node(scope, node)
            return
        schema = self._schema(node, domain)
        inputs = [self._find(scope, node, name) for name in node.input]
        if schema is not None:
            check_types(scope.types, node, schema)
        instead = stand_ins(node, scope.types, self.opsets.get("", 1))
        for inner in instead:
            self.node(scope, inner)
        if instead or self._expanded(scope, node, domain, schema):
            return
        since = schema.since_version if schema is not None else self.opsets.get(domain, 1)
        given = body_types(node, since, scope.types)
        bodies = {
            a.name: self.graph(a.g, scope, given)
            for a in node.attribute
            if a.type == AttributeProto.GRAPH
        }
        for name, (_, formal, results) in bodies.items():
            check_signature(node, since, name, (len(formal), len(results)))
        check_branches(node, [results for _, _, results in bodies.values()])
        for name, (_, _, results) in bodies.items():
            self._settle_by_body(scope, node, name, results)
        self._settle_types(scope, node, schema)
        outputs = [scope.declare(name) if name else -1 for name in node.output]
        lowered = scope.graph.add_node(node.name, domain, node.op_type, since, inputs, outputs)
        for name, (body, _, _) in bodies.items():
            lowered.add_subgraph(name, body.graph, body.captures)
        add_attributes(lowered, node, schema, self.file)

    def _expanded(
        self, scope: Scope, node: onnx.NodeProto, domain: str, schema: defs.OpSchema | None
    ) -> bool:
        """Lower the body of an operator that is a function and has no kernel; True if done."""
        since = schema.since_version if schema is not None else self.opsets.get(domain, 1)
        if self.target is None or self.target.runs(domain, node.op_type, since):
            return False
        types = [type_proto(scope.types[n], scope.shapes.get(n)) if n else None for n in node.input]
        body = own_body(node, domain, types)
        if body is None and schema is not None:
            body = function_body(node, schema, self.opsets.get("", 1), types)
        if body is None:
            return False
        expansion = expand(node, body, schema)
        outside = self.opsets
        self.opsets = outside | expansion.opsets
        if self.target.knows(domain, node.op_type, since) and not all(
            self._runs(inner) for inner in expansion.nodes
        ):
            self.opsets = outside
            return False  # the whole is better than parts without a kernel
        try:
            for inner in expansion.nodes:
                self.node(scope, inner)
        except InvalidArgumentError as error:  # bodies take fewer types than what they define
            raise UnsupportedError(
                f"UNSUPPORTED: no kernel for {node.op_type} {label(node)}, and its body does not "
                f"take its inputs: {error}"
            ) from error
        self.opsets = outside
        return True

    def _runs(self, node: onnx.NodeProto) -> bool:
        assert self.target is not None
        domain = "" if node.domain == "ai.onnx" else node.domain
        if node.op_type == "Constant" and not domain:
            return True
        try:
            schema = defs.get_schema(node.op_type, self.opsets.get(domain, 1), domain)
        except defs.SchemaError:
            return False
        if node.op_type == "CastLike" and not domain:
            return self._runs(onnx.NodeProto(op_type="Cast")) or self.target.runs(
                domain, node.op_type, schema.since_version
            )
        return self.target.runs(domain, node.op_type, schema.since_version)

    def _find(self, scope: Scope, node: onnx.NodeProto, name: str) -> int:
        if not name:
            return -1
        if (number := scope.find(name)) is None:
            raise bad(f"{node.op_type} {label(node)} reads {name!r}, which nothing computes")
        return number

    def _schema(self, node: onnx.NodeProto, domain: str) -> defs.OpSchema | None:
        version = self.opsets.get(domain)
        if version is None:
            raise bad(
                f"{node.op_type} {label(node)} is of domain {domain!r}, which the model's "
                f"opset_import does not list"
            )
        newest = defs.onnx_opset_version()
        if not domain and version > newest:
            raise UnsupportedError(
                f"UNSUPPORTED: the model has opset {version}, onnx {onnx.__version__} knows up to "
                f"{newest}; install a newer onnx"
            )
        try:
            schema = defs.get_schema(node.op_type, version, domain)
        except defs.SchemaError:
            if not domain:
                raise UnsupportedError(
                    f"UNSUPPORTED: operator {node.op_type} of {label(node)} is not in ONNX "
                    f"opset {version}; check the name and the model's opset_import"
                ) from None
            return None
        given, low, high = len(node.input), schema.min_input, schema.max_input
        if not low <= given <= high:
            raise bad(
                f"{node.op_type} {label(node)} has {given} inputs, {low} to {high} are allowed"
            )
        if len(node.output) > schema.max_output:
            raise bad(f"{node.op_type} {label(node)} has {len(node.output)} outputs, at most "
                       f"{schema.max_output} are allowed")  # fmt: skip
        return schema

    def _constant_node(self, scope: Scope, node: onnx.NodeProto) -> None:
        array, data_type = constant_value(node, self.file)
        self.constant(scope, node.output[0], array, data_type)

    def _settle_by_body(
        self, scope: Scope, node: onnx.NodeProto, body: str, results: list[ValueInfo]
    ) -> None:
        """Outputs of If, Loop and Scan have their body's types; of a Loop's all but the first."""
        given = results[1:] if node.op_type == "Loop" else results
        for name, value in zip(node.output, given, strict=False):
            if not name:
                continue
            known = scope.types.setdefault(name, value.type)
            if known != value.type:
                raise bad(
                    f"output {name!r} of {node.op_type} {label(node)} is {plain(known)} "
                    f"elsewhere, its {body} computes {plain(value.type)} ({value.name!r}); insert "
                    "a Cast"
                )

    def _settle_types(
        self, scope: Scope, node: onnx.NodeProto, schema: defs.OpSchema | None
    ) -> None:
        bodies = any(a.type == AttributeProto.GRAPH for a in node.attribute)
        for index, name in enumerate(node.output):
            if not name or (bodies and name in scope.types):
                continue
            computed, sure = output_type(scope.types, node, schema, index)
            declared = scope.types.setdefault(name, computed)
            if sure and name in scope.inferred:
                scope.types[name] = computed  # onnx's inference is advice
            elif sure and declared != computed:
                raise bad(
                    f"output {name!r} of {node.op_type} {label(node)} is declared "
                    f"{plain(declared)}, the node computes {plain(computed)}; correct the "
                    "declaration or insert a Cast"
                )


def lower(
    file: ModelFile, device: "_core.Device | None" = None
) -> tuple["_core.ModelGraph", list[ValueInfo], list[ValueInfo]]:
    """Lower a model.

    Args:
        file: The model.
        device: Where it will run: functions of ONNX that it has no kernel for are expanded. None
            expands nothing.

    Returns:
        The executor's graph, and the model's inputs and outputs in order.

    Raises:
        InvalidArgumentError: A malformed graph, with the node named.
        UnsupportedError: A map, or an operator that no opset has.
    """
    model, graph = prepared(file)
    target = Target(device) if device is not None else None
    scope, inputs, outputs = _Lowering(file.with_proto(model), target).graph(graph, None)
    return scope.graph, inputs, outputs

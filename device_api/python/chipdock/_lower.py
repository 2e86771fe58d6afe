# SPDX-License-Identifier: Apache-2.0
"""From an ONNX graph to the executor's: names become numbers, attributes get the schema's defaults.

Dtypes of all values are settled here, from onnx's inference where it knows them and from the
operators' type variables elsewhere. Shapes are advice: what cannot be derived is unknown, never a
failure.
"""

from dataclasses import dataclass, field

import numpy as np
import onnx
import onnx.inliner
import onnx.shape_inference
from onnx import AttributeProto, defs

from chipdock import _core
from chipdock._onnx_file import ModelFile, tensor_array
from chipdock._onnx_graph import (
    bad,
    check_signature,
    check_types,
    constant_value,
    in_order,
    output_dtype,
)
from chipdock.errors import UnsupportedError

__all__ = ["ValueInfo", "lower"]

_KINDS = {
    AttributeProto.FLOAT: "float",
    AttributeProto.INT: "int",
    AttributeProto.STRING: "string",
    AttributeProto.TENSOR: "tensor",
    AttributeProto.FLOATS: "floats",
    AttributeProto.INTS: "ints",
    AttributeProto.STRINGS: "strings",
}


@dataclass(frozen=True)
class ValueInfo:
    """A graph input or output.

    Attributes:
        name: As in the model.
        dtype: numpy or ml_dtypes type.
        shape: Extents; a str is a symbolic dim, None is unknown. None if even the rank is unknown.
    """

    name: str
    dtype: np.dtype
    shape: tuple[int | str | None, ...] | None


@dataclass
class _Scope:
    """One graph being lowered. Names not found here are captured from the outer scope."""

    graph: "_core.ModelGraph"
    outer: "_Scope | None" = None
    numbers: dict[str, int] = field(default_factory=dict)
    dtypes: dict[str, int] = field(default_factory=dict)  # TensorProto.DataType by name
    shapes: dict[str, list[int] | None] = field(default_factory=dict)
    captures: list[tuple[int, int]] = field(default_factory=list)
    constants: set[str] = field(default_factory=set)

    def declare(self, name: str) -> int:
        dtype = self.dtypes.get(name)
        numpy = _numpy_dtype(dtype, name) if dtype else None
        number = self.graph.add_value(name, numpy, self.shapes.get(name))
        self.numbers[name] = number
        return number

    def find(self, name: str) -> int | None:
        if name in self.numbers:
            return self.numbers[name]
        if self.outer is None:
            return None
        outside = self.outer.find(name)
        if outside is None:
            return None
        self.dtypes[name] = self.outer.dtypes[name]
        self.shapes[name] = self.outer.shapes.get(name)
        number = self.declare(name)
        self.captures.append((outside, number))
        return number


def _numpy_dtype(data_type: int, name: str) -> np.dtype:
    if data_type == onnx.TensorProto.STRING:
        text = f"UNSUPPORTED: value {name!r} holds strings; string tensors are not supported yet"
        raise UnsupportedError(text)
    try:
        return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(data_type))
    except KeyError:
        text = (
            f"value {name!r} has data type {data_type}, which onnx {onnx.__version__} does not know"
        )
        raise bad(text) from None


def _value_shape(tensor: onnx.TypeProto.Tensor) -> tuple[int | str | None, ...] | None:
    if not tensor.HasField("shape"):
        return None
    out: list[int | str | None] = []
    for dim in tensor.shape.dim:
        if dim.HasField("dim_value") and dim.dim_value >= 0:
            out.append(int(dim.dim_value))
        else:
            out.append(dim.dim_param or None)
    return tuple(out)


def _advice(shape: tuple[int | str | None, ...] | None) -> list[int] | None:
    return None if shape is None else [d if isinstance(d, int) else -1 for d in shape]


def _tensor_info(value: onnx.ValueInfoProto) -> ValueInfo:
    if value.type.WhichOneof("value") != "tensor_type":
        kind = value.type.WhichOneof("value") or "no type"
        text = f"UNSUPPORTED: {value.name!r} is a {kind}; only tensors are supported yet"
        raise UnsupportedError(text)
    tensor = value.type.tensor_type
    return ValueInfo(value.name, _numpy_dtype(tensor.elem_type, value.name), _value_shape(tensor))


class _Lowering:
    def __init__(self, file: ModelFile) -> None:
        self.file = file
        self.opsets = {
            o.domain if o.domain != "ai.onnx" else "": o.version for o in file.proto.opset_import
        }

    def graph(
        self, proto: onnx.GraphProto, outer: _Scope | None
    ) -> tuple[_Scope, list[ValueInfo], list[ValueInfo]]:
        scope = _Scope(_core.ModelGraph(), outer)
        for value in (*proto.value_info, *proto.input, *proto.output):
            if value.type.WhichOneof("value") == "tensor_type" and value.type.tensor_type.elem_type:
                scope.dtypes.setdefault(value.name, value.type.tensor_type.elem_type)
                scope.shapes.setdefault(value.name, _advice(_value_shape(value.type.tensor_type)))
        # What was inferred for the main graph comes without weights.
        stored = self.file.proto.graph if outer is None else proto
        initial = {t.name for t in stored.initializer}
        if stored.sparse_initializer:
            raise UnsupportedError("UNSUPPORTED: sparse initializers are not supported yet")
        for tensor in stored.initializer:
            if tensor.name in scope.numbers:
                raise bad(f"initializer {tensor.name!r} is declared twice")
            self.constant(scope, tensor.name, tensor_array(tensor, self.file), tensor.data_type)
        inputs = [self._input(v, outer) for v in proto.input if v.name not in initial]
        names = [v.name for v in inputs]
        for value, proto_value in zip(
            inputs, (v for v in proto.input if v.name not in initial), strict=True
        ):
            if value.name in scope.numbers:
                raise bad(f"input {value.name!r} is declared twice")
            scope.dtypes[value.name] = (
                proto_value.type.tensor_type.elem_type or scope.dtypes[value.name]
            )
            scope.declare(value.name)
        for node in in_order(proto, set(scope.numbers)):
            self.node(scope, node)
        outputs = []
        for value in proto.output:
            number = scope.find(value.name)
            if number is None:
                raise bad(f"output {value.name!r} is computed by no node")
            dtype = _numpy_dtype(scope.dtypes[value.name], value.name)
            shape = _value_shape(value.type.tensor_type)
            outputs.append(ValueInfo(value.name, dtype, shape))
        captured = [inner for _, inner in scope.captures]
        scope.graph.set_inputs([scope.numbers[n] for n in names] + captured)
        scope.graph.set_outputs([scope.numbers[v.name] for v in proto.output])
        return scope, inputs, outputs

    def _input(self, value: onnx.ValueInfoProto, outer: _Scope | None) -> ValueInfo:
        if outer is not None and not value.type.tensor_type.elem_type:
            raise bad(
                f"input {value.name!r} of a subgraph has no type; run onnx.shape_inference first"
            )
        return _tensor_info(value)

    def constant(self, scope: _Scope, name: str, array: np.ndarray, data_type: int) -> None:
        scope.dtypes[name] = data_type
        scope.shapes[name] = list(array.shape)
        scope.constants.add(name)
        scope.graph.add_constant(scope.declare(name), array)

    def node(self, scope: _Scope, node: onnx.NodeProto) -> None:
        domain = "" if node.domain == "ai.onnx" else node.domain
        if node.op_type == "Constant" and not domain:
            self._constant_node(scope, node)
            return
        schema = self._schema(node, domain)
        inputs = [self._find(scope, node, name) for name in node.input]
        if schema is not None:
            check_types(scope.dtypes, node, schema)
        bodies = {
            a.name: self.graph(a.g, scope) for a in node.attribute if a.type == AttributeProto.GRAPH
        }
        for name, (_, formal, results) in bodies.items():
            check_signature(node, name, len(formal), len(results))
            self._settle_by_body(scope, node, results)
        self._settle_dtypes(scope, node, schema)
        outputs = [scope.declare(name) if name else -1 for name in node.output]
        since = schema.since_version if schema is not None else self.opsets.get(domain, 1)
        lowered = scope.graph.add_node(node.name, domain, node.op_type, since, inputs, outputs)
        for name, (body, _, _) in bodies.items():
            lowered.add_subgraph(name, body.graph, body.captures)
        self._attributes(lowered, node, schema)

    def _find(self, scope: _Scope, node: onnx.NodeProto, name: str) -> int:
        if not name:
            return -1
        number = scope.find(name)
        if number is None:
            raise bad(f"{node.op_type} node {node.name!r} reads {name!r}, which nothing computes")
        return number

    def _schema(self, node: onnx.NodeProto, domain: str) -> defs.OpSchema | None:
        version = self.opsets.get(domain)
        if version is None:
            raise bad(
                f"{node.op_type} node {node.name!r} is of domain {domain!r}, which the model's "
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
                    f"UNSUPPORTED: operator {node.op_type} of node {node.name!r} is not in ONNX "
                    f"opset {version}; check the name and the model's opset_import"
                ) from None
            return None
        given, low, high = len(node.input), schema.min_input, schema.max_input
        if not low <= given <= high:
            raise bad(
                f"{node.op_type} node {node.name!r} has {given} inputs, {low} to {high} are allowed"
            )
        if len(node.output) > schema.max_output:
            raise bad(f"{node.op_type} node {node.name!r} has {len(node.output)} outputs, at most "
                       f"{schema.max_output} are allowed")  # fmt: skip
        return schema

    def _constant_node(self, scope: _Scope, node: onnx.NodeProto) -> None:
        array, data_type = constant_value(node, self.file)
        self.constant(scope, node.output[0], array, data_type)

    def _settle_by_body(
        self, scope: _Scope, node: onnx.NodeProto, results: list[ValueInfo]
    ) -> None:
        """Outputs of If, Loop and Scan have their body's dtypes; of a Loop's all but the first."""
        given = results[1:] if node.op_type == "Loop" else results
        for name, value in zip(node.output, given, strict=False):
            if name:
                data_type = onnx.helper.np_dtype_to_tensor_dtype(value.dtype)
                scope.dtypes.setdefault(name, int(data_type))

    def _settle_dtypes(
        self, scope: _Scope, node: onnx.NodeProto, schema: defs.OpSchema | None
    ) -> None:
        for index, name in enumerate(node.output):
            if name and name not in scope.dtypes:
                scope.dtypes[name] = output_dtype(scope.dtypes, node, schema, index)

    def _attributes(
        self, lowered: "_core.GraphNode", node: onnx.NodeProto, schema: defs.OpSchema | None
    ) -> None:
        given = set()
        for attribute in node.attribute:
            given.add(attribute.name)
            if attribute.type != AttributeProto.GRAPH:
                self._attribute(lowered, node, attribute)
        if schema is None:
            return
        for name, description in schema.attributes.items():
            default = description.default_value
            if name not in given and default.type in _KINDS:
                self._attribute(lowered, node, default, name)
            elif name not in given and description.required:
                raise bad(f"{node.op_type} node {node.name!r} lacks the attribute {name!r}")

    def _attribute(
        self,
        lowered: "_core.GraphNode",
        node: onnx.NodeProto,
        attribute: AttributeProto,
        name: str = "",
    ) -> None:
        kind = _KINDS.get(attribute.type)
        if kind is None:
            text = f"attribute {attribute.name!r} of {node.op_type} node {node.name!r} is of kind "
            raise UnsupportedError(
                f"UNSUPPORTED: {text}{AttributeProto.AttributeType.Name(attribute.type)}"
            )
        value: object = onnx.helper.get_attribute_value(attribute)
        if kind == "tensor":
            value = tensor_array(attribute.t, self.file)
        elif kind in {"ints", "floats"}:
            value = list(value)  # type: ignore[call-overload]
        lowered.add_attribute(name or attribute.name, kind, value)


# Inference looks into constants only for shapes, axes and the like, which are small.
_INFERENCE_BYTES = 1024


def _without_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """Copy a model but for its weights: onnx's inference serialises all it is given."""
    light = onnx.ModelProto(ir_version=model.ir_version)
    light.opset_import.extend(model.opset_import)
    graph = model.graph
    light.graph.name = graph.name
    for field_name in ("node", "input", "output", "value_info"):
        getattr(light.graph, field_name).extend(getattr(graph, field_name))
    for tensor in graph.initializer:
        if tensor.ByteSize() <= _INFERENCE_BYTES:
            light.graph.initializer.append(tensor)
        else:
            light.graph.initializer.add(
                name=tensor.name, data_type=tensor.data_type, dims=tensor.dims
            )
    return light


def _prepared(file: ModelFile) -> tuple[onnx.ModelProto, onnx.GraphProto]:
    """Inline local functions, and infer shapes and dtypes where onnx can.

    Returns:
        The model with its weights, and its graph with what was inferred, without them.
    """
    model = file.proto
    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    try:
        light = _without_weights(model)
        return model, onnx.shape_inference.infer_shapes(
            light, strict_mode=False, data_prop=True
        ).graph
    except Exception:  # advice only: any failure of the inference leaves shapes unknown
        return model, model.graph


def lower(file: ModelFile) -> tuple["_core.ModelGraph", list[ValueInfo], list[ValueInfo]]:
    """Lower a model.

    Returns:
        The executor's graph, and the model's inputs and outputs in order.

    Raises:
        InvalidArgumentError: A malformed graph, with the node named.
        UnsupportedError: Strings, sequences, sparse tensors, or an operator that no opset has.
    """
    model, graph = _prepared(file)
    scope, inputs, outputs = _Lowering(ModelFile(model, file.folder, file.name)).graph(graph, None)
    return scope.graph, inputs, outputs

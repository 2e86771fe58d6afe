# SPDX-License-Identifier: Apache-2.0
"""Every dtype that onnx allows for the first input of an operator can be loaded on cpu:0.

Compares the newest schema of each operator of onnx's own domain with what the device has kernels
for. Whether results are right is the matter of the tests of the families.
"""

from typing import Any

import onnx
import pytest
from onnx import defs, helper

import chipdock

TYPES = {
    "float": "FLOAT", "double": "DOUBLE", "string": "STRING", "bool": "BOOL",
    **{t: t.upper() for t in (
        "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
        "uint64", "complex64", "complex128", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2",
        "float8e5m2fnuz", "float8e8m0", "int4", "uint4", "int2", "uint2", "float4e2m1",
        "float6e2m3", "float6e3m2")},
}  # fmt: skip
# Attributes that have no default.
ATTRIBUTES: dict[str, dict[str, Any]] = {
    "AveragePool": {"kernel_shape": [2]},
    "BitShift": {"direction": "LEFT"},
    "Cast": {"to": onnx.TensorProto.FLOAT},
    "CenterCropPad": {"axes": [0, 1]},
    "Concat": {"axis": 0},
    "DepthToSpace": {"blocksize": 2},
    "Einsum": {"equation": "ij"},
    "GroupNormalization": {"num_groups": 2},
    "LRN": {"size": 3},
    "LinearAttention": {"q_num_heads": 1, "kv_num_heads": 1},
    "LpPool": {"kernel_shape": [2]},
    "MaxPool": {"kernel_shape": [2]},
    "MaxRoiPool": {"pooled_shape": [2, 2]},
    "MaxUnpool": {"kernel_shape": [2]},
    "RandomNormalLike": {"dtype": onnx.TensorProto.FLOAT},
    "RandomUniformLike": {"dtype": onnx.TensorProto.FLOAT},
    "SpaceToDepth": {"blocksize": 2},
}
# Further modes whose kernels are others.
MODES: dict[str, list[dict[str, Any]]] = {
    "GridSample": [{"mode": "nearest"}, {"mode": "cubic"}],
    "Resize": [{"mode": "linear"}, {"mode": "cubic"}],
    "Upsample": [{"mode": "linear"}],
}
# Shapes of operators that are expanded by them.
SHAPES: dict[str, list[list[int]]] = {
    "Attention": [[1, 2, 3, 4]] * 3,
    "CausalConvWithState": [[1, 2, 3], [2, 1, 3]],
    "CenterCropPad": [[4, 4], [2]],
    "LinearAttention": [[1, 2, 3]] * 3,
    "RotaryEmbedding": [[1, 2, 3, 4], [3, 2], [3, 2]],
}
# Operators that are not about dtypes, or that no plugin computes.
ELSEWHERE = {
    "BitCast": "takes two dtypes of one width, tested in test_ops_signal",
    "If": "has bodies, tested in test_control_flow",
    "Loop": "has bodies, tested in test_control_flow",
    "Scan": "has bodies, tested in test_scan",
    "ImageDecoder": "is done by the host, tested in test_image_decoder",
    "Optional": "makes an optional, tested in test_sequences",
    "OptionalGetElement": "reads an optional, tested in test_sequences",
    "OptionalHasElement": "reads an optional, tested in test_sequences",
    "SequenceConstruct": "makes a sequence, tested in test_sequences",
    "SplitToSequence": "makes a sequence, tested in test_sequences",
    "TfIdfVectorizer": "needs a vocabulary, tested in test_strings",
}
# What a schema allows and cpu:0 does not do: (operator, dtype) with the reason.
MISSING: dict[tuple[str, str], str] = {
    ("Col2Im", "string"): "adds elements up, and strings have no sum",
}


def _schemas() -> list[defs.OpSchema]:
    newest: dict[str, defs.OpSchema] = {}
    for schema in defs.get_all_schemas_with_history():
        if schema.domain == "" and not schema.deprecated:
            known = newest.get(schema.name)
            if known is None or schema.since_version > known.since_version:
                newest[schema.name] = schema
    return [newest[name] for name in sorted(newest)]


def _allowed(schema: defs.OpSchema, type_str: str) -> list[str]:
    for constraint in schema.type_constraints:
        if constraint.type_param_str == type_str:
            return list(constraint.allowed_type_strs)
    return [type_str]


def _element(type_text: str) -> int | None:
    """The dtype of "tensor(float)"; None of sequences and optionals."""
    if not type_text.startswith("tensor("):
        return None
    return int(getattr(onnx.TensorProto, TYPES[type_text[len("tensor(") : -1]]))


def _choose(schema: defs.OpSchema, type_str: str, chosen: dict[str, str], first: str) -> str:
    """The type of another input: that of the first one where it may be."""
    if type_str not in chosen:
        allowed = _allowed(schema, type_str)
        if set(allowed) == {"tensor(int32)", "tensor(int64)"}:
            first = "tensor(int64)"  # of indices
        chosen[type_str] = first if first in allowed else allowed[0]
    return chosen[type_str]


def _model(schema: defs.OpSchema, first: str, **attributes: Any) -> onnx.ModelProto:
    """One node that has the inputs that it needs, the first of type `first`."""
    chosen = {schema.inputs[0].type_str: first}
    shapes = SHAPES.get(schema.name, [])
    inputs = []
    for i, formal in enumerate(schema.inputs):
        if i > 0 and formal.option != defs.OpSchema.FormalParameterOption.Single:
            break
        text = _choose(schema, formal.type_str, chosen, first)
        shape = shapes[i] if shapes else None
        inputs.append(helper.make_tensor_value_info(f"x{i}", _element(text), shape))
    count = max(1, schema.min_output)
    outputs = [helper.make_empty_tensor_value_info(f"y{i}") for i in range(count)]
    attributes = ATTRIBUTES.get(schema.name, {}) | attributes
    names = [v.name for v in inputs], [v.name for v in outputs]
    node = helper.make_node(schema.name, *names, **attributes)
    graph = helper.make_graph([node], "one", inputs, outputs)
    opset = helper.make_opsetid("", schema.since_version)
    return helper.make_model(graph, opset_imports=[opset])


SCHEMAS = {s.name: s for s in _schemas() if s.inputs and s.name not in ELSEWHERE}
CASES = [
    pytest.param(schema, attributes, id="-".join([name, *attributes.values()]))
    for name, schema in SCHEMAS.items()
    for attributes in [{}, *MODES.get(name, [])]
]


def _dtypes(schema: defs.OpSchema) -> list[str]:
    allowed = _allowed(schema, schema.inputs[0].type_str)
    return [t[len("tensor(") : -1] for t in allowed if t.startswith("tensor(")]


@pytest.mark.parametrize(("schema", "attributes"), CASES)
def test_every_dtype_of_the_schema_has_a_kernel(
    schema: defs.OpSchema, attributes: dict[str, Any]
) -> None:
    for dtype in _dtypes(schema):
        model = _model(schema, f"tensor({dtype})", **attributes)
        if (schema.name, dtype) in MISSING:
            with pytest.raises(chipdock.ChipdockError):
                chipdock.load(model)
        else:
            chipdock.load(model)


def test_the_lists_name_what_exists() -> None:
    newest = {s.name: s for s in _schemas()}
    listed = {*ELSEWHERE, *ATTRIBUTES, *MODES, *SHAPES, *(op for op, _ in MISSING)}
    assert listed <= newest.keys()
    assert all(dtype in _dtypes(newest[op]) for op, dtype in MISSING)

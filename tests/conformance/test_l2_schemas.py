# SPDX-License-Identifier: Apache-2.0
"""Every operator case of level 2 is a call that ONNX's schemas allow, and none is missed."""

import importlib
import inspect
import pkgutil

import pytest
from onnx import defs

from chipdock.conformance import opcases
from chipdock.conformance.numerics.dtypes import ONNX_TYPES

FAMILIES = [
    module.name
    for module in pkgutil.iter_modules(opcases.__path__)
    if module.name != "onnx_nodes"
    and "cases" in importlib.import_module(f"{opcases.__name__}.{module.name}").__all__
]
TYPE_NAMES = {
    "f32": "float", "f64": "double", "f16": "float16", "bf16": "bfloat16", "bool": "bool",
    "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16",
    "u32": "uint32", "u64": "uint64", "c64": "complex64", "c128": "complex128", "i4": "int4",
    "u4": "uint4", "i2": "int2", "u2": "uint2", "f4e2m1": "float4e2m1",
    "f6e2m3": "float6e2m3", "f6e3m2": "float6e3m2",
    "f8e4m3fn": "float8e4m3fn", "f8e4m3fnuz": "float8e4m3fnuz", "f8e5m2": "float8e5m2",
    "f8e5m2fnuz": "float8e5m2fnuz", "f8e8m0": "float8e8m0",
}  # fmt: skip


def cases_of(family):
    module = importlib.import_module(f"{opcases.__name__}.{family}")
    return list(module.cases())


def complaint(op, case):
    """What the schema says against a case; "" for nothing."""
    domain, _, name = case.op.rpartition("::")
    try:
        schema = defs.get_schema(name, case.opset, domain)
    except defs.SchemaError:
        return f"opset {case.opset} has no {case.op}"
    unknown = set(case.attributes) - set(schema.attributes)
    if unknown:
        return f"{name}-{schema.since_version} has no attribute {sorted(unknown)}"
    if not schema.min_input <= len(case.inputs) <= schema.max_input:
        return f"{len(case.inputs)} inputs"
    if not schema.min_output <= case.outputs <= schema.max_output:
        return f"{case.outputs} outputs"
    bound = {}
    for i, wanted in enumerate(case.inputs):
        formal = schema.inputs[min(i, len(schema.inputs) - 1)]
        if wanted is None:
            if formal.option == defs.OpSchema.FormalParameterOption.Single:
                return f"input {formal.name} is not optional"
            continue
        if f"tensor({TYPE_NAMES[wanted.dtype]})" not in formal.types:
            return f"{name}-{schema.since_version}: {formal.name} cannot be {wanted.dtype}"
        if formal.type_str.startswith("tensor") or not formal.is_homogeneous:
            continue
        if bound.setdefault(formal.type_str, wanted.dtype) != wanted.dtype:
            return f"{formal.type_str} is {bound[formal.type_str]} and {wanted.dtype}"
    return ""


@pytest.mark.parametrize("family", FAMILIES)
def test_cases_are_calls_that_the_schemas_allow(family):
    found = {}
    for op, case in cases_of(family):
        text = complaint(op, case)
        if text:
            found[f"{op}.{case.dtype}.{case.name}"] = text
    assert not found


@pytest.mark.parametrize("family", FAMILIES)
def test_ids_are_there_once(family):
    names = [f"{op.lower()}.{case.dtype}.{case.name}" for op, case in cases_of(family)]
    assert len(names) == len(set(names))
    assert all(case.dtype in ONNX_TYPES for _, case in cases_of(family))


def test_no_family_has_an_operator_of_another():
    owner = {}
    for family in set(FAMILIES) - {"layout"}:  # the same operators, in an area of their own
        for op in {op for op, _ in cases_of(family)} - {"Dropout"}:
            assert owner.setdefault(op, family) == family


def test_families_make_no_use_of_numpy_or_onnx():
    for family in FAMILIES:
        source = inspect.getsource(importlib.import_module(f"{opcases.__name__}.{family}"))
        assert "import numpy" not in source
        assert "import onnx" not in source

# SPDX-License-Identifier: Apache-2.0
"""The general half of run_op: makes a one-node model, compiles it, and caches the plan.

The fast half is in C++ and comes here on a miss, or when there is anything to convert.
"""

import difflib
from collections import OrderedDict

import ml_dtypes
import numpy as np
import onnx
from onnx import defs, helper

from chipdock import _core
from chipdock._inputs import check_strings
from chipdock._lower import lower
from chipdock._onnx_file import read_model
from chipdock._registry import device as find_device
from chipdock._registry import fallback_policy, host_device
from chipdock.errors import InvalidArgumentError, UnsupportedError

__all__ = ["run_op_general"]

_CACHED_PLANS = 512
_MOST_OUTPUTS = 4096  # of operators with any number of them, such as Split
_plans: "OrderedDict[object, _core.Plan]" = OrderedDict()
# Newest IR version of the file format is the reader's own; any does for a model made in memory.
_DEFAULT_DTYPES: dict[str, np.dtype] = {
    "i": np.dtype(np.int64),
    "f": np.dtype(np.float32),
    "b": np.dtype(np.bool_),
}


def _tensor_type(dtype: np.dtype) -> int:
    return int(helper.np_dtype_to_tensor_dtype(dtype))


def _find_operator(op: str, domain: str, opset: int | None) -> tuple[int, defs.OpSchema | None]:
    version = opset if opset is not None else (defs.onnx_opset_version() if not domain else 1)
    try:
        return version, defs.get_schema(op, version, domain)
    except defs.SchemaError:
        if domain:
            return version, None
        names = sorted({s.name for s in defs.get_all_schemas() if not s.domain})
        close = difflib.get_close_matches(op, names, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        text = f"INVALID_ARGUMENT: ONNX opset {version} has no operator {op!r}{hint}"
        raise InvalidArgumentError(text) from None


_LISTS: dict[int | None, type] = {onnx.AttributeProto.FLOATS: float, onnx.AttributeProto.INTS: int}
_SCALARS: dict[int | None, type] = {onnx.AttributeProto.FLOAT: float, onnx.AttributeProto.INT: int}


def _attribute(schema: defs.OpSchema | None, key: str, value: object) -> onnx.AttributeProto:
    """Make an attribute of the kind the schema says, or without one of the kind of the value."""
    known = schema.attributes.get(key) if schema is not None else None
    if schema is not None and known is None:
        close = difflib.get_close_matches(key, list(schema.attributes), n=1)
        hint = f"; did you mean {close[0]!r}?" if close else f"; it has {sorted(schema.attributes)}"
        text = f"INVALID_ARGUMENT: {schema.name} has no attribute {key!r}{hint}"
        raise InvalidArgumentError(text)
    kind = int(known.type) if known is not None else None  # type: ignore[call-overload]
    try:
        if kind == onnx.AttributeProto.TENSOR or (kind is None and isinstance(value, np.ndarray)):
            tensor = value if isinstance(value, onnx.TensorProto) else None
            return helper.make_attribute(
                key, tensor or onnx.numpy_helper.from_array(np.asarray(value), key)
            )
        if kind in _LISTS:
            cast = _LISTS[kind]
            items = [cast(v) for v in value]  # type: ignore[attr-defined]
            return helper.make_attribute(key, items, attr_type=kind)
        if kind in _SCALARS:
            return helper.make_attribute(key, _SCALARS[kind](value), attr_type=kind)
        return helper.make_attribute(key, value, attr_type=kind)
    except (TypeError, ValueError) as error:
        text = f"INVALID_ARGUMENT: attribute {key!r} cannot be {value!r}: {error}"
        raise InvalidArgumentError(text) from error


def _compile(  # noqa: PLR0917  one caller each, and all seven are the key of the cache
    op: str,
    domain: str,
    opset: int | None,
    dtypes: tuple[np.dtype | None, ...],
    outputs: int,
    attributes: dict[str, object],
    target: "_core.Device",
) -> "_core.Plan":
    version, schema = _find_operator(op, domain, opset)
    most = min(schema.max_output, _MOST_OUTPUTS) if schema is not None else _MOST_OUTPUTS
    if outputs > most:
        text = f"INVALID_ARGUMENT: {op} has at most {most} outputs, {outputs} were asked for"
        raise InvalidArgumentError(text)
    names = [f"x{i}" if d is not None else "" for i, d in enumerate(dtypes)]
    node = helper.make_node(op, names, [f"y{i}" for i in range(outputs)], domain=domain)
    node.attribute.extend(
        _attribute(schema, k, v) for k, v in sorted(attributes.items()) if v is not None
    )
    inputs = [
        helper.make_tensor_value_info(n, _tensor_type(d), None)
        for n, d in zip(names, dtypes, strict=True)
        if d is not None
    ]
    results = [onnx.ValueInfoProto(name=f"y{i}") for i in range(outputs)]
    graph = helper.make_graph([node], op, inputs, results)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(domain, version)])
    with read_model(model) as file:
        lowered, _, _ = lower(file, target)
    options = {
        "fallback": fallback_policy("error"),
        "threads": 0,
        "memory_limit": 0,
        "deterministic": False,
        "cached_signatures": 16,
        "capture": "off",
        "layouts": False,
    }
    try:
        return _core.Plan.compile(lowered, target, host_device(target), options)
    except UnsupportedError as error:  # there is no load that could say it
        text = str(error).replace('load with fallback="allow"', "set CHIPDOCK_FALLBACK=allow")
        raise UnsupportedError(text) from error


def _as_array(value: object) -> "_core.Array | np.ndarray | None":
    if value is None or isinstance(value, _core.Array):
        return value
    if isinstance(value, str) or (isinstance(value, np.ndarray) and value.dtype.kind in "UST"):
        return np.asarray(value, object)  # strings, of any length
    if isinstance(value, np.ndarray):
        return value
    # numpy's float64 is a Python float too, but it has a dtype of its own.
    if isinstance(value, bool | int | float) and not isinstance(value, np.generic):
        kind = "b" if isinstance(value, bool) else "i" if isinstance(value, int) else "f"
        return np.asarray(value, _DEFAULT_DTYPES[kind])
    if hasattr(value, "__dlpack__") and not isinstance(value, np.generic):
        return _core.from_dlpack(value, host_device())
    array: np.ndarray = np.asarray(value)
    if array.dtype.kind in "US":
        return array.astype(object)
    if array.dtype.kind not in "biufcV" and array.dtype not in (np.dtype(ml_dtypes.bfloat16),):
        kind = type(value).__name__
        text = f"INVALID_ARGUMENT: run_op got {kind}, it takes Arrays, numeric values and strings"
        raise InvalidArgumentError(text)
    return array


def run_op_general(
    op: str,
    *inputs: object,
    device: "str | _core.Device | None" = None,
    domain: str = "",
    opset: int | None = None,
    outputs: int = 1,
    **attributes: object,
) -> "_core.Array | tuple[_core.Array, ...]":
    """See `chipdock.run_op`."""
    if not isinstance(op, str):
        raise InvalidArgumentError(f"INVALID_ARGUMENT: op is {type(op).__name__}, it must be a str")
    if not isinstance(outputs, int) or outputs < 1:
        raise InvalidArgumentError(f"INVALID_ARGUMENT: outputs is {outputs}, it must be at least 1")
    check_strings(np.array([op, domain], object), "the operator's name")
    values = [_as_array(v) for v in inputs]
    for index, value in enumerate(values):
        if isinstance(value, np.ndarray) and value.dtype.kind == "O":
            check_strings(value, f"input {index} of {op}")
    first = next((v.device for v in values if isinstance(v, _core.Array)), "cpu:0")
    target = find_device(device if device is not None else first)
    dtypes = tuple(None if v is None else v.dtype for v in values)
    key = (op, domain, opset, outputs, dtypes, target, repr(sorted(attributes.items(), key=str)))
    cacheable = not any(isinstance(v, np.ndarray) for v in attributes.values())
    plan = _plans.get(key) if cacheable else None
    if plan is None:
        plan = _compile(op, domain, opset, dtypes, outputs, attributes, target)
        if cacheable:
            _plans[key] = plan
            if len(_plans) > _CACHED_PLANS:
                _plans.popitem(last=False)
    if not (domain or opset or attributes or device) and outputs == 1:
        _core.remember_op(plan, [op, *inputs])
    results = plan.run([v for v in values if v is not None])
    return results[0] if outputs == 1 else tuple(results)

# SPDX-License-Identifier: Apache-2.0
"""Shapes of every node case of onnx: symbols at random bindings, concrete shapes, actual outputs.

Every case is loaded twice: with the extents it was written for, and with symbols in their place
(equal extents share one). Both loads must agree on the case's inputs, and on inputs of other
extents; and what was inferred for symbols must hold for what came out.
"""

from __future__ import annotations

import random
import warnings
from typing import Any

import numpy as np
import onnx
import pytest
from onnx_cases import cases

import chipdock
from chipdock._inference import prepared
from chipdock._onnx_file import read_model

PARTS = 24
# Axes, pads, shapes and the like: other extents would be another operation.
_STEERING = {onnx.TensorProto.INT64, onnx.TensorProto.INT32}
# onnx (1.23) infers an extent of 0 where it would have to calculate with a symbol.
WRONGLY_INFERRED = {"Attention"}
# onnx writes its body from the extents of the weight; without them there is no body.
BUILT_FROM_EXTENTS = {"CausalConvWithState"}


def symbolic(proto: onnx.ModelProto) -> tuple[onnx.ModelProto, dict[str, dict[int, str]]]:
    """Put symbols in place of extents of inputs; returns them by input and axis."""
    out = onnx.ModelProto()
    out.CopyFrom(proto)
    symbols: dict[str, dict[int, str]] = {}
    for value in out.graph.input:
        if value.type.WhichOneof("value") != "tensor_type":
            continue
        tensor = value.type.tensor_type
        if tensor.elem_type in _STEERING and len(tensor.shape.dim) < 2:
            continue
        if [d.dim_value for d in tensor.shape.dim] == [1]:
            continue  # a scale or zero point; of more than one element it would mean another thing
        for axis, dim in enumerate(tensor.shape.dim):
            if dim.HasField("dim_value"):
                name = f"s{dim.dim_value}"
                symbols.setdefault(value.name, {})[axis] = name
                dim.dim_param = name
    for value in out.graph.output:  # inference shall say
        if value.type.WhichOneof("value") == "tensor_type":
            value.type.tensor_type.ClearField("shape")
    del out.graph.value_info[:]
    return out, symbols


def inferred(proto: onnx.ModelProto) -> dict[str, list[int | str | None] | None]:
    """What is inferred of the outputs: extents, symbols, None where nothing is known."""
    _, graph = prepared(read_model(proto))
    found: dict[str, list[int | str | None] | None] = {}
    for value in graph.output:
        tensor = value.type.tensor_type
        found[value.name] = (
            [d.dim_value if d.HasField("dim_value") else d.dim_param or None
             for d in tensor.shape.dim]
            if tensor.HasField("shape") else None
        )  # fmt: skip
    return found


def run(model: chipdock.Model, feeds: dict[str, Any]) -> dict[str, Any] | str:
    """Outputs as arrays, or the code of the error."""
    try:
        found = model.run(feeds, seed=1)
    except chipdock.ChipdockError as error:
        return str(error).partition(":")[0]
    return {k: v.numpy() if isinstance(v, chipdock.Array) else v for k, v in found.items()}


def same(a: Any, b: Any) -> bool:
    if isinstance(a, list) or isinstance(b, list):
        return isinstance(a, list) and isinstance(b, list) and len(a) == len(b)
    if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray):
        return type(a) is type(b)
    if a.dtype == object:
        return a.tolist() == b.tolist()
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def contradiction(shapes: dict[str, Any], outputs: dict[str, Any], binding: dict[str, int]) -> str:
    """Say where an output is not what was inferred, "" if nowhere."""
    for name, shape in shapes.items():
        array = outputs.get(name)
        if shape is None or not isinstance(array, np.ndarray):
            continue
        known = [binding.get(d) if isinstance(d, str) else d for d in shape]
        if len(known) != array.ndim:
            return f"{name}: rank {array.ndim}, inferred {shape}"
        for extent, want in zip(array.shape, known, strict=True):
            if want is not None and extent != want:
                return f"{name}: {array.shape}, inferred {shape} with {binding}"
    return ""


def resized(feeds: dict[str, Any], symbols: dict[str, dict[int, str]], binding: dict[str, int]
            ) -> dict[str, Any]:  # fmt: skip
    """The same values, repeated or cut, in other extents."""
    out = dict(feeds)
    for name, axes in symbols.items():
        shape = list(feeds[name].shape)
        for axis, symbol in axes.items():
            shape[axis] = binding[symbol]
        out[name] = np.resize(feeds[name], shape)
    return out


def fixed(proto: onnx.ModelProto, binding: dict[str, int]) -> onnx.ModelProto:
    """A symbolic model with extents in place of symbols."""
    out = onnx.ModelProto()
    out.CopyFrom(proto)
    for value in out.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param in binding:
                dim.dim_value = binding[dim.dim_param]
    return out


def complaint(case: cases.Case) -> tuple[str, int]:
    """What is wrong with a case, and how many other bindings ran."""
    proto = case.model()
    model = chipdock.load(proto)
    open_proto, symbols = symbolic(proto)
    if not symbols:
        return "", 0
    shapes = {} if case.operator in WRONGLY_INFERRED else inferred(open_proto)
    try:
        open_model = chipdock.load(open_proto)
    except chipdock.errors.UnsupportedError as error:
        built = case.operator in BUILT_FROM_EXTENTS
        return ("" if built else f"with symbols: {error}"), 0
    own = {s: int(s[1:]) for axes in symbols.values() for s in axes.values()}
    chance = random.Random(case.name)
    ran = 0
    for inputs, _ in case.data(proto):
        feeds = {info.name: v for info, v in zip(model.inputs, inputs, strict=True)}
        if any(not isinstance(feeds[name], np.ndarray) for name in symbols):
            return "", ran  # an empty optional
        for attempt in range(3):
            binding = own if attempt == 0 else {s: chance.randint(1, 6) for s in own}
            given = feeds if attempt == 0 else resized(feeds, symbols, binding)
            found = run(open_model, given)
            try:
                concrete = model if attempt == 0 else chipdock.load(fixed(open_proto, binding))
            except chipdock.ChipdockError as error:
                wanted: dict[str, Any] | str = str(error).partition(":")[0]
            else:
                wanted = run(concrete, given)
            if isinstance(found, str) or isinstance(wanted, str):
                if isinstance(found, str) and isinstance(wanted, str) and attempt > 0:
                    continue  # both refuse
                return f"with {binding}: symbols {found!r:.80}, extents {wanted!r:.80}", ran
            ran += attempt > 0
            for name in wanted:
                if not same(found[name], wanted[name]):
                    return f"{name} differs from that of a load with extents {binding}", ran
            text = contradiction(shapes, found, binding)
            if text:
                return text, ran
    return "", ran


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_symbols_extents_and_outputs_agree(part):
    wrong, bindings = [], 0
    known = cases.known()
    chosen = [c for c in cases.all_cases() if c.kind == "node"][part::PARTS]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in chosen:
            if (case.kind, case.name) in known:
                continue
            text, ran = complaint(case)
            bindings += ran
            if text:
                wrong.append(f"{case.name}: {text}")
    assert not wrong, "\n".join(wrong)
    assert bindings > len(chosen) / 2


def test_a_wrong_inference_is_seen():
    outputs = {"y": np.zeros((2, 3))}
    assert contradiction({"y": ["s2", 3]}, outputs, {"s2": 2}) == ""
    assert contradiction({"y": [None, "other"]}, outputs, {"s2": 2}) == ""
    assert "inferred" in contradiction({"y": ["s2", 4]}, outputs, {"s2": 2})
    assert "inferred" in contradiction({"y": ["s2", 3]}, outputs, {"s2": 5})
    assert "rank" in contradiction({"y": [6]}, outputs, {})

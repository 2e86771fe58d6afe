# SPDX-License-Identifier: Apache-2.0
"""Runs one node case of the onnx package on the device under test and judges it by its class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from chipdock.conformance.case import Variant, fail
from chipdock.conformance.numerics.dtypes import bits, wide
from chipdock.conformance.numerics.judge import Expected, Judge
from chipdock.conformance.numerics.reference import reference
from chipdock.conformance.opcases.execute import guarded_run, judge_all, load_on
from chipdock.conformance.opcases.expansion import stepwise
from chipdock.conformance.opcases.onnx_nodes import node_of

if TYPE_CHECKING:
    from chipdock.conformance.target import Target

__all__ = ["arrays_of", "expected_of", "judge_of", "run_node"]

_Array = NDArray[Any]

# Shapes of their outputs hang on values.
_DYNAMIC = frozenset({"NonZero", "Unique", "Compress", "NonMaxSuppression", "Range", "Loop"})
# What onnx.reference does for these is the function that made the case, or needs more than a node.
_AS_GIVEN = frozenset({"If", "Loop", "Scan", "Constant", "Optional", "OptionalGetElement",
                       "OptionalHasElement", "ImageDecoder", "Dropout", "Bernoulli"})  # fmt: skip


def arrays_of(values: Sequence[Any]) -> list[_Array]:
    """Return the tensors of a data set as arrays."""
    from onnx import TensorProto, numpy_helper  # noqa: PLC0415

    return [
        numpy_helper.to_array(value) if isinstance(value, TensorProto) else np.asarray(value)
        for value in values
    ]


def expected_of(case: Any) -> list[Expected]:
    """Return what a case should give: from an fp64 reference, else what onnx has beside it.

    Args:
        case: Of the onnx package.
    """
    inputs, outputs = (arrays_of(values) for values in case.data_sets[0])
    node = case.model.graph.node[0]
    # Operators whose outputs are random have a shape to keep to, and nothing else.
    if len(case.model.graph.node) > 1 or node.domain or node.op_type in _AS_GIVEN:
        return [_given(value, inputs) for value in outputs]
    named = dict(zip([value.name for value in case.model.graph.input], inputs, strict=True))
    given = [named.get(name) for name in node.input]
    rows = reference(
        node.op_type, given, _attributes(node), case.model.opset_import[0].version,
        len(node.output), lambda: _renamed(case.model, given),
    )  # fmt: skip
    # onnx.reference gives the outputs that are there, functions of our own all of them.
    whole = len(rows) == len(node.output)
    present = [row for row, name in zip(rows, node.output, strict=False) if name or not whole]
    return [
        Expected(row.value.astype(bool) if value.dtype == bool else row.value, row.magnitude,
                 row.terms)
        for row, value in zip(present, outputs, strict=True)
    ]  # fmt: skip


def _given(value: _Array, inputs: list[_Array]) -> Expected:
    exact = wide(value)
    if exact.dtype.kind not in "f" or not exact.size:
        return Expected(exact if exact.dtype.kind in "fc" else value)
    sizes = [np.abs(wide(x)).max(initial=0) for x in (*inputs, value) if wide(x).dtype.kind == "f"]
    largest = float(np.max([size for size in sizes if np.isfinite(size)] or [1.0]))
    return Expected(exact, np.full(exact.shape, largest), 16)


def _attributes(node: Any) -> dict[str, Any]:
    from onnx import AttributeProto, helper, numpy_helper  # noqa: PLC0415

    found: dict[str, Any] = {}
    for attribute in node.attribute:
        value = helper.get_attribute_value(attribute)
        if attribute.type == AttributeProto.STRING:
            value = value.decode()
        elif attribute.type == AttributeProto.STRINGS:
            value = [text.decode() for text in value]
        elif attribute.type == AttributeProto.TENSOR:
            value = numpy_helper.to_array(value)
        found[attribute.name] = value
    return found


def _renamed(model: Any, given: Sequence[_Array | None]) -> Any:
    """The model with the input names that `reference` feeds."""
    from onnx import ModelProto, ValueInfoProto  # noqa: PLC0415

    copy = ModelProto()
    copy.CopyFrom(model)
    node = copy.graph.node[0]
    del copy.graph.input[:]
    for i, value in enumerate(given):
        node.input[i] = "" if value is None else f"x{i}"
        if value is not None:
            copy.graph.input.append(ValueInfoProto(name=f"x{i}"))
    return copy


def judge_of(variant: Variant, *, flushes: bool = False) -> Judge:
    """Return the judge of a node case.

    Operators made of several steps may round each of them to the tensor's own type, as the
    functions that define them do.
    """
    op = variant.op.rpartition("::")[2]
    half = variant.dtype in {"f16", "bf16"}
    return Judge(variant.tolerance, op, flushes=flushes, factor=1.0 if half else 8.0,
                 own_unit=half)  # fmt: skip


def run_node(target: Target, variant: Variant) -> None:
    """Run a node case.

    Args:
        target: The device under test.
        variant: Made by onnx_nodes.cases.

    Raises:
        CheckError: An output is not close enough.
        NotSupported: The plugin lists no such kernel.
    """
    case = node_of(variant.node, variant.module)
    loaded = load_on(target, case.model)
    inputs, _ = (arrays_of(values) for values in case.data_sets[0])
    feeds = dict(zip([value.name for value in case.model.graph.input], inputs, strict=True))
    if variant.tolerance == "D":
        _same_seed(target, loaded, feeds, arrays_of(case.data_sets[0][1]))
        return
    expected = expected_of(case)
    dynamic = any(node.op_type in _DYNAMIC for node in case.model.graph.node)
    results = guarded_run(loaded, feeds, expected, dynamic=dynamic)
    target.digest(*results)
    verdict = judge_of(variant, flushes=target.has("flag:FLUSHES_DENORMALS"))
    judge_all(target, stepwise(verdict, target, variant.dtype), results, expected, None)


def _same_seed(target: Target, loaded: Any, feeds: dict[str, _Array], like: list[_Array]) -> None:
    """Random operators: shapes, and the same numbers from the same seed."""
    runs = [
        [a.numpy() for a in loaded.run(feeds, seed=target.seed & 0xFFFFFFFF).values()]
        for _ in range(2)
    ]
    for first, again, golden in zip(*runs, like, strict=True):
        if first.shape != golden.shape or first.dtype != golden.dtype:
            fail(
                f"the output is {first.dtype}{first.shape}, it must be "
                f"{golden.dtype}{golden.shape}",
                metric="shape", value=list(first.shape), limit=list(golden.shape),
            )  # fmt: skip
        if not np.array_equal(bits(first), bits(again)):
            fail("two runs with one seed differ", metric="rerun_bits", value=1, limit=0)

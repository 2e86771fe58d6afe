# SPDX-License-Identifier: Apache-2.0
"""Runs one operator case on the device under test and judges its outputs."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from chipdock.conformance.case import NotSupported, Variant, fail
from chipdock.conformance.numerics.cache import cached, key_of
from chipdock.conformance.numerics.dtypes import ONNX_TYPES, bits
from chipdock.conformance.numerics.guards import Fence, fenced, mostly_zero, unwritten
from chipdock.conformance.numerics.judge import Expected, Judge
from chipdock.conformance.numerics.metrics import rel_l2
from chipdock.conformance.numerics.reference import reference, source_digest
from chipdock.conformance.opcases.expansion import EXPANDED, note, stepwise
from chipdock.conformance.opcases.fills import make_array
from chipdock.conformance.opcases.node import Call, flush, make_model, modern, set_view
from chipdock.conformance.target import HostLacks

if TYPE_CHECKING:
    import onnx

    import chipdock
    from chipdock.conformance.target import Target

__all__ = ["check_repeat", "exact_outputs", "explained", "guarded_run", "judge_all", "judge_for",
           "load_on", "need_opset", "run_operator"]  # fmt: skip

_Array = NDArray[Any]

_ZERO_BY_MEANING = frozenset(
    {"ConstantOfShape", "Hardmax", "OneHot", "EyeLike", "Trilu", "BitwiseXor", "ThresholdedRelu"}
)
"""Operators that give zeros for usual inputs, so that zeros say nothing against a result."""


def load_on(target: Target, model: onnx.ModelProto) -> chipdock.Model:
    """Load a model on the device under test, with no fallback.

    Raises:
        NotSupported: The plugin lists no kernel of these types and versions for a node.
        UnsupportedError: It lists one and refused.
    """
    import chipdock  # noqa: PLC0415

    with explained(target, model):
        loaded = chipdock.load(model, target.device, fallback="error")
    # CHIPDOCK_FALLBACK stands above the argument; what runs on the host judges no device.
    if "fallback" in loaded.explain().counts:
        raise NotSupported("ran on the host: take CHIPDOCK_FALLBACK out of the environment")
    note(target, model, loaded)
    return loaded


@contextlib.contextmanager
def explained(target: Target, model: onnx.ModelProto) -> Iterator[None]:
    """Tell a lack that the plugin declares from a refusal of what it lists.

    Raises:
        NotSupported: UNSUPPORTED was answered, and no kernel is listed for a node that it names.
    """
    import chipdock  # noqa: PLC0415

    try:
        yield
    except chipdock.errors.UnsupportedError as error:
        _explain_refusal(target, model, error)
        raise


def _named(model: onnx.ModelProto, text: str) -> list[onnx.NodeProto]:
    """Return the nodes whose operators an error names, all nodes if it names none.

    Nodes that are folded or are views need no kernel, so that lacking one explains nothing.
    """
    found = [n for n in model.graph.node if re.search(rf"\b{n.op_type} (node\b|\()", text)]
    return found or list(model.graph.node)


def _explain_refusal(target: Target, model: onnx.ModelProto, error: Exception) -> None:
    """Raise NotSupported if the plugin never said that it has all kernels of the model."""
    from onnx import defs  # noqa: PLC0415

    if "chipdock does not know" in str(error):
        raise NotSupported(f"the host runtime lacks the operator: {error}") from error
    versions = {entry.domain: entry.version for entry in model.opset_import}
    types = {v.name: v.type.tensor_type.elem_type for v in model.graph.input}
    types |= {v.name: v.type.tensor_type.elem_type for v in model.graph.value_info}
    types |= {t.name: t.data_type for t in model.graph.initializer}
    shorts = {number: name for name, number in ONNX_TYPES.items()}
    for node in _named(model, str(error)):
        try:
            since = defs.get_schema(node.op_type, versions[node.domain], node.domain).since_version
        except (defs.SchemaError, KeyError):
            since = versions.get(node.domain, 1)
        given = [shorts.get(types.get(name, 0), "") for name in node.input]
        # A kernel without dtype rules for inputs says in `supports` which types it takes, so its no
        # is a declaration too.
        if not any(
            kernel.since <= since <= (kernel.until or since)
            and max(kernel.dtypes, default=-1) >= 0
            and _fits(kernel.dtypes, given)
            for kernel in target.kernels(node.op_type, node.domain)
        ):
            raise NotSupported(f"lists no kernel for {node.op_type}-{since}: {error}") from error


def _fits(rules: Mapping[int, Sequence[str]], given: Sequence[str]) -> bool:
    last = max((k for k in rules if k >= 0), default=-1)
    return all(
        not dtype or last < 0 or min(i, last) not in rules or dtype in rules[min(i, last)]
        for i, dtype in enumerate(given)
    )


def guarded_run(
    model: chipdock.Model, feeds: Mapping[str, Any], expected: Sequence[Expected], *, dynamic: bool
) -> list[_Array]:
    """Run a model with its outputs inside fences.

    Args:
        model: Loaded on the device under test.
        feeds: Values of the inputs.
        expected: For the shapes of the outputs, one each.
        dynamic: Output shapes hang on values: nothing is bound.

    Raises:
        CheckError: Something was written outside of an output, or an output not at all.
    """
    binding = model.bind()
    for name, value in feeds.items():
        binding.input(name, value)
    fences: dict[str, Fence] = {}
    for info, row in zip(model.outputs, expected, strict=True):
        made = None if dynamic or info.dtype is None else fenced(
            row.value.shape, info.dtype, model.device)  # fmt: skip
        if made is not None:
            fences[info.name] = made
            binding.output(info.name, made.array)
    results = [array.numpy() for array in binding.run().values()]
    for name, fence in fences.items():
        fence.check(f"output {name}")
    for info, got in zip(model.outputs, results, strict=True):
        if info.name in fences and unwritten(got):
            fail(f"output {info.name} was not written: all of its bytes are still 0xCB",
                 metric="unwritten_elements", value=got.size, limit=0)  # fmt: skip
    return results


def run_operator(target: Target, variant: Variant) -> None:
    """Run a case of one operator: the device's outputs against the exact ones.

    Args:
        target: The device under test.
        variant: Made by `spec.variant`.

    Raises:
        CheckError: An output is not close enough, or memory around it was written.
        NotSupported: The plugin lists no such kernel.
    """
    call = Call(variant.op, variant.inputs, variant.attributes, variant.opset, variant.outputs)
    need_opset(call)
    if variant.values.get("own_kernel") and not target.has(variant.needs):
        raise NotSupported(f"lacks {variant.needs}, and the body of {call.name} cannot do this")
    arrays = [None if i is None else make_array(i, target.rng) for i in call.inputs]
    model = make_model(call, arrays)
    loaded = load_on(target, model)
    expected = exact_outputs(call, arrays, flushes=target.has("flag:FLUSHES_DENORMALS"))
    feeds = {
        f"x{i}": set_view(array, wanted.view, target.device)
        for i, (wanted, array) in enumerate(zip(call.inputs, arrays, strict=True))
        if wanted is not None and array is not None and not wanted.constant
    }
    dynamic = bool(variant.values.get("dynamic"))
    with explained(target, model):
        results = guarded_run(loaded, feeds, expected, dynamic=dynamic)
    target.digest(*results)
    plain = {name: value.numpy() for name, value in feeds.items()}
    compared = variant.tolerance == "R" and EXPANDED not in target.evidence
    errors = _host_errors(target, model, plain, expected) if compared else None
    verdict = judge_for(target, variant)
    judge_all(target, stepwise(verdict, target, variant.dtype), results, expected, errors)
    if target.seed % 10 == 0:
        again = guarded_run(loaded, feeds, expected, dynamic=dynamic)
        check_repeat(target, call.name, call.domain, results, again)


def need_opset(call: Call) -> None:
    """Raise HostLacks if the installed onnx has no such version of the operator set."""
    from onnx import defs  # noqa: PLC0415

    if not call.domain and call.opset > defs.onnx_opset_version():
        raise HostLacks(
            f"the installed onnx knows opsets up to {defs.onnx_opset_version()}, the case is of "
            f"{call.opset}; install the onnx that chipdock pins"
        )


def judge_all(
    target: Target, verdict: Judge, results: Sequence[_Array], expected: Sequence[Expected],
    host_errors: Sequence[float] | None,
) -> None:  # fmt: skip
    """Judge every output, keep the worst evidence, and warn of outputs that are nearly all zero."""
    worst: dict[str, Any] = {}
    for i, (got, row) in enumerate(zip(results, expected, strict=True)):
        name = "the output" if len(results) == 1 else f"output {i}"
        error = host_errors[i] if host_errors is not None else None
        evidence = verdict.check(got, row, name, host_error=error)
        if not worst or _share(evidence) > _share(worst):
            worst = evidence
        if verdict.op not in _ZERO_BY_MEANING and mostly_zero(got, row.value):
            target.warn(f"MOSTLY_ZERO: more than 90 % of {name} is zero")
    target.record(**worst)


def _share(evidence: Mapping[str, Any]) -> float:
    return float(evidence["value"]) / (float(evidence["limit"]) or 1.0)


def check_repeat(
    target: Target, op: str, domain: str, first: Sequence[_Array], again: Sequence[_Array]
) -> None:
    """Compare two runs of the same work: equal bits if the plugin's kernels say so [KRN-11]."""
    same = all(np.array_equal(bits(a), bits(b)) for a, b in zip(first, again, strict=True))
    if same:
        return
    listed = target.kernels(op, domain)
    if listed and all(kernel.flags >> 3 & 1 for kernel in listed):
        fail(f"two runs of {op} on the same inputs differ, and its kernels are DETERMINISTIC",
             metric="rerun_bits", value=1, limit=0)  # fmt: skip
    target.warn("NONDETERMINISTIC: a second run on the same inputs gave other bits")


def judge_for(target: Target, variant: Variant) -> Judge:
    """Return the judge of a case made by `spec.variant`."""
    return Judge(
        variant.tolerance,
        variant.op.rpartition("::")[2],
        zero_sign=bool(variant.values.get("zero_sign")),
        flushes=target.has("flag:FLUSHES_DENORMALS"),
        factor=float(variant.values.get("factor", 1.0)),
        features=(f"accumulate:{variant.dtype}:f32",) if variant.values.get("stash") else (),
        own_unit=bool(variant.values.get("own_unit")),
    )


def exact_outputs(call: Call, arrays: list[_Array | None], *, flushes: bool) -> list[Expected]:
    """Return what a node gives, from the reference or kept from an earlier run.

    Args:
        call: The node.
        arrays: Values of its inputs.
        flushes: The device may take denormals as zero: both results are right.
    """
    # The reference reads constants as inputs, so its model has none.
    old = Call(
        call.op, tuple(None if i is None else i._replace(constant=False) for i in call.inputs),
        call.attributes, call.opset, call.outputs,
    )  # fmt: skip

    def exact(given: list[_Array | None]) -> list[Expected]:
        bare, given = modern(old, given)
        make = functools.partial(make_model, bare, given)
        key = key_of([repr(bare), source_digest()], given)
        return cached(key, lambda: reference(
            bare.name, given, dict(bare.attributes), bare.opset, bare.outputs, make))  # fmt: skip

    rows = exact(arrays)
    flushed = [flush(array) for array in arrays]
    if not flushes or all(a is b for a, b in zip(arrays, flushed, strict=True)):
        return rows
    other = exact(flushed)
    return [Expected(a.value, a.magnitude, a.terms, b.value)
            for a, b in zip(rows, other, strict=True)]  # fmt: skip


@functools.cache
def _host_path() -> Path:
    from chipdock._registry import host_device  # noqa: PLC0415

    return Path(host_device().plugin.path)


def _host_errors(
    target: Target, model: onnx.ModelProto, feeds: Mapping[str, _Array],
    expected: Sequence[Expected],
) -> list[float] | None:  # fmt: skip
    """Relative L2 errors of the host's own plugin; None if it is the one under test or cannot."""
    import chipdock  # noqa: PLC0415
    from chipdock._registry import host_device  # noqa: PLC0415

    if target.plugin_path == _host_path():
        return None
    try:
        results = chipdock.load(model, host_device()).run(feeds)
    except chipdock.errors.UnsupportedError:
        return None
    return [rel_l2(a.numpy(), row.value) for a, row in zip(results.values(), expected, strict=True)]

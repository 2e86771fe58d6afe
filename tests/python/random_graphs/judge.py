# SPDX-License-Identifier: Apache-2.0
"""Runs a random graph, compares with the reference, and finds the smallest part at fault.

A difference counts when it is larger than the tolerance of the type, and larger than what the
reference itself loses against the same graph in double precision.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import chipdock
from random_graphs.grow import Sample, Value, evaluate, info

# A result may be this much worse than the reference's own error.
_AMPLIFIED = 64.0
_MOST_AMPLIFIED = 0.05
# Results below this are mostly what is left of larger terms (the logarithm of a sum of 1).
_SMALL = 0.1
_FLOATS = {TensorProto.FLOAT, TensorProto.FLOAT16}


@dataclass(frozen=True)
class Fault:
    """What is wrong with a graph.

    Attributes:
        text: One line.
        kind: Short: faults of the same kind have the same cause, mostly.
        model: The smallest part found that shows it, or the whole graph.
        feeds: Inputs of `model`.
    """

    text: str
    kind: str
    model: onnx.ModelProto
    feeds: dict[str, np.ndarray]


def difference(got: np.ndarray, wanted: Value, doubled: np.ndarray | None) -> str:
    """Say how an output differs, "" if it agrees.

    Args:
        got: What the device computed.
        wanted: What the reference says.
        doubled: The same output with every float computed in double precision, if known.
    """
    array = wanted.array
    if got.shape != array.shape:
        return f"shape {got.shape}, the reference says {array.shape}"
    if got.dtype != array.dtype:
        return f"dtype {got.dtype}, the reference says {array.dtype}"
    if array.dtype.kind != "f":
        wrong = int(np.count_nonzero(got != array))
        return f"{wrong} of {array.size} elements differ" if wrong else ""
    if not array.size:
        return ""
    got, exact = got.astype(np.float64), array.astype(np.float64)
    error = np.abs(got - exact)
    if not np.isfinite(got).all():
        return f"{np.count_nonzero(~np.isfinite(got))} elements are not finite"
    largest = max(float(np.abs(exact).max()), _SMALL)
    limit = wanted.tolerance * largest
    if doubled is not None and doubled.shape == array.shape:
        own = float(np.abs(exact - doubled).max())
        limit += min(_AMPLIFIED * own, _MOST_AMPLIFIED * largest)
    worst = float(error.max())
    return f"off by {worst:.3g} where {limit:.3g} is allowed" if worst > limit else ""


def doubled(sample: Sample) -> dict[str, np.ndarray]:
    """Return every output with floats of all widths computed as doubles; {} if that fails."""
    nodes = []
    for node in sample.model.graph.node:
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        for attribute in copy.attribute:
            if attribute.name in {"to", "dtype"} and attribute.i in _FLOATS:
                attribute.i = TensorProto.DOUBLE
        nodes.append(copy)
    weights = {t.name: numpy_helper.to_array(t) for t in sample.model.graph.initializer}
    feeds = {
        name: a.astype(np.float64) if a.dtype.kind == "f" else a
        for name, a in {**weights, **sample.feeds}.items()
    }
    names = list(sample.expected)
    opset = sample.model.opset_import[0].version
    try:
        return dict(zip(names, evaluate(nodes, feeds, names, opset), strict=True))
    except Exception:  # the reference has not every operator in double precision
        return {}


def check(sample: Sample, device: str = "cpu:0") -> Fault | None:
    """Run a graph twice and compare; None if all outputs agree."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = chipdock.load(sample.model, device)
            first = {n: a.numpy() for n, a in model.run(sample.feeds).items()}
            second = {n: a.numpy() for n, a in model.run(sample.feeds).items()}
    except Exception as error:  # any error is a finding: the graph is valid
        return _smallest(sample, f"{type(error).__name__}: {error}", device)
    texts = {n: difference(first[n], wanted, None) for n, wanted in sample.expected.items()}
    if any(texts.values()):
        exact = doubled(sample)
        texts = {n: difference(first[n], v, exact.get(n)) for n, v in sample.expected.items()}
    for name, text in texts.items():
        if text:
            return _smallest(sample, f"{name}: {text}", device)
        if first[name].tobytes() != second[name].tobytes():
            odd = f"{name}: the second run differs from the first"
            return Fault(odd, "second run", sample.model, sample.feeds)
    return None


def _part(sample: Sample, nodes: list[onnx.NodeProto], shown: list[str]) -> Sample:
    """Nodes of a graph as one of their own, fed with what the reference computed before them."""
    made = {name for node in nodes for name in node.output}
    weights = {t.name: t for t in sample.model.graph.initializer}
    read = list(dict.fromkeys(n for node in nodes for n in _all_reads(node)))
    known = [n for n in read if n in sample.values and n not in made]
    inputs = {n: sample.values[n].array for n in known if n not in weights}
    graph = helper.make_graph(
        nodes, "part", [info(n, a) for n, a in inputs.items()],
        [info(n, sample.values[n].array) for n in shown],
        [weights[n] for n in known if n in weights],
    )  # fmt: skip
    model = helper.make_model(
        graph, opset_imports=sample.model.opset_import, ir_version=sample.model.ir_version
    )
    return Sample(model, inputs, {n: sample.values[n] for n in shown}, sample.values)


def _all_reads(node: onnx.NodeProto) -> list[str]:
    names = [n for n in node.input if n]
    for attribute in node.attribute:
        if attribute.HasField("g"):
            names += [n for inner in attribute.g.node for n in _all_reads(inner)]
    return names


def _complaint(sample: Sample, device: str) -> str:
    """As check(), without the search for a smaller part."""
    try:
        model = chipdock.load(sample.model, device)
        found = {n: a.numpy() for n, a in model.run(sample.feeds).items()}
    except Exception as error:  # as in check()
        return f"{type(error).__name__}: {error}"
    exact = doubled(sample)
    texts = (difference(found[n], v, exact.get(n)) for n, v in sample.expected.items())
    return next((text for text in texts if text), "")


def _smallest(sample: Sample, text: str, device: str) -> Fault:
    """Look for one node, then for the shortest run of nodes, that is wrong by itself."""
    nodes = list(sample.model.graph.node)
    for count in range(1, min(len(nodes), 6) + 1):
        for start in range(len(nodes) - count + 1):
            chosen = nodes[start : start + count]
            shown = [n for n in chosen[-1].output if n in sample.values]
            part = _part(sample, chosen, shown)
            complaint = _complaint(part, device)
            if complaint:
                ops = ", ".join(node.op_type for node in chosen)
                types = sorted({a.dtype.name for a in part.feeds.values()})
                return Fault(
                    f"{ops} of {'/'.join(types)}: {complaint}", f"{ops} {'/'.join(types)}",
                    part.model, part.feeds,
                )  # fmt: skip
    kind = f"{len(nodes)} nodes" if len(text) > 200 else text[:80]
    return Fault(text, kind, sample.model, sample.feeds)

# SPDX-License-Identifier: Apache-2.0
"""Gradients of the graphs of random_graphs, of all opsets, against differences along directions.

`PYTHONPATH=tests/python python tests/python/test_gradient_graphs.py FIRST LAST` tries many.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Mapping

import numpy as np
import onnx
import pytest
from gradient_support import DOUBLE, TRAINING, gradient, rng
from onnx import helper, numpy_helper
from random_graphs.grow import Sample, Seeded, grow

import chipdock
from chipdock.errors import ChipdockError, UnsupportedError

STEPS = (1e-5, 1e-6, 1e-7)
MOST_NODES = 8
_FLOATS = {onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16}


def doubled(sample: Sample) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """The graph in float64, with its weights as inputs, and values for all inputs."""
    net = onnx.ModelProto()
    net.CopyFrom(sample.model)
    graph = net.graph
    scales = {n for node in graph.node if node.op_type == "Resize" for n in node.input[1:3]}
    feeds = dict(sample.feeds)
    for attribute in (a for node in graph.node for a in node.attribute):
        if attribute.name in {"to", "dtype", "stash_type"} and attribute.i in _FLOATS:
            attribute.i = DOUBLE
        if attribute.t.data_type in _FLOATS:
            array = numpy_helper.to_array(attribute.t).astype(np.float64)
            attribute.t.CopyFrom(numpy_helper.from_array(array))
    for tensor in [t for t in graph.initializer if t.data_type in _FLOATS]:
        if tensor.name not in scales:
            feeds[tensor.name] = numpy_helper.to_array(tensor).astype(np.float64)
            graph.input.append(helper.make_tensor_value_info(tensor.name, DOUBLE, tensor.dims))
            graph.initializer.remove(tensor)
    for value in (*graph.input, *graph.output):
        if value.type.tensor_type.elem_type in _FLOATS and value.name not in scales:
            value.type.tensor_type.elem_type = DOUBLE
            if value.name in feeds:
                feeds[value.name] = feeds[value.name].astype(np.float64)
    return net, feeds


def with_gradient(
    net: onnx.ModelProto, xs: list[str], weights: Mapping[str, np.ndarray]
) -> onnx.ModelProto:
    """The graph with the gradients of a weighted sum of its outputs."""
    out = onnx.ModelProto()
    out.CopyFrom(net)
    graph = out.graph
    for name, array in weights.items():
        graph.initializer.append(numpy_helper.from_array(array, f"{name}/w"))
        graph.node.append(helper.make_node("Mul", [name, f"{name}/w"], [f"{name}/m"]))
        graph.node.append(helper.make_node("ReduceSum", [f"{name}/m"], [f"{name}/s"], keepdims=0))
    graph.node.append(helper.make_node("Sum", [f"{name}/s" for name in weights], ["loss"]))
    graph.node.append(gradient(xs, "loss", [f"{x}/d" for x in xs]))
    graph.output.extend(onnx.ValueInfoProto(name=f"{x}/d") for x in xs)
    out.opset_import.append(helper.make_opsetid(TRAINING, 1))
    return out


def slopes(loss, at: np.ndarray, direction: np.ndarray) -> np.ndarray | None:
    """Derivatives along a direction, from both sides; None at a kink or where there is none."""
    found = []
    for step in STEPS:
        ends = [loss(at + sign * step * direction) for sign in (1, 0, -1)]
        found += [(ends[0] - ends[1]) / step, (ends[1] - ends[2]) / step]
    inner = np.array(found[2:])
    smooth = np.isfinite(found).all() and np.ptp(inner) <= 2e-3 * max(1.0, np.abs(inner).max())
    return inner if smooth else None


def judged(seed: int) -> Counter[str]:
    """Compare all gradients of one graph; counts by outcome.

    Raises:
        AssertionError: A gradient is wrong.
        ChipdockError: The graph runs, its gradient does not, and not for want of a rule.
    """
    net, feeds = doubled(grow(Seeded(seed), MOST_NODES))
    xs = [n for n, a in feeds.items() if a.dtype == np.float64 and a.size]
    choice = rng(seed)
    try:
        plain = chipdock.load(net)
        results = {n: a.numpy() for n, a in plain.run(feeds).items()}
    except ChipdockError:
        return Counter({"not in float64": 1})
    floats = {n: a for n, a in results.items() if a.dtype == np.float64 and np.isfinite(a).all()}
    if not xs or not floats:
        return Counter({"no floats": 1})
    weights = {n: choice.uniform(0.5, 1.5, a.shape) for n, a in floats.items()}
    try:
        both = chipdock.load(with_gradient(net, xs, weights))
    except UnsupportedError:
        return Counter({"no rule": 1})
    found = both.run(feeds)
    counts: Counter[str] = Counter()
    for x in xs:

        def loss(value: np.ndarray, x: str = x) -> float:
            at = plain.run({**feeds, x: value})
            return sum(float((at[n].numpy() * w).sum()) for n, w in weights.items())

        direction = choice.standard_normal(feeds[x].shape)
        wanted = slopes(loss, feeds[x], direction)
        if wanted is None:
            counts["kink"] += 1
            continue
        got = float((found[f"{x}/d"].numpy() * direction).sum())
        limit = 3e-3 * max(1.0, float(np.abs(wanted).max()))
        ops = [n.op_type for n in net.graph.node]
        text = f"seed {seed}: d{x} of {ops} is {got}, differences say {wanted}"
        assert abs(got - np.median(wanted)) <= limit, text
        counts["right"] += 1
    return counts


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # differences of what overflows
def test_gradients_of_random_graphs():
    counts = sum((judged(seed) for seed in range(120)), Counter())
    assert counts["right"] > 200


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    total: Counter[str] = Counter()
    for number in range(int(sys.argv[1]), int(sys.argv[2])):
        try:
            total += judged(number)
        except Exception as error:  # all kinds are findings
            total["wrong"] += 1
            print(number, type(error).__name__, " ".join(str(error).split())[:400])
    print(dict(total))

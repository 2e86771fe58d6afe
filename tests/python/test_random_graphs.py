# SPDX-License-Identifier: Apache-2.0
"""Random graphs against the ONNX reference evaluator; `python -m random_graphs` runs many more."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_graphs import pools
from random_graphs.grow import Graph, Sample, Seeded, Skip, finish, grow
from random_graphs.judge import check
from random_graphs.recipes import ALL


class Drawn:
    """Decisions of hypothesis, so that it can make a failing graph smaller."""

    def __init__(self, data: st.DataObject) -> None:
        self._data = data

    def integer(self, low: int, high: int) -> int:
        return self._data.draw(st.integers(low, high))


@pytest.mark.slow
@given(st.data())
@settings(
    max_examples=60,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_small_graphs_compute_what_the_reference_computes(data):
    fault = check(grow(Drawn(data), most=6))
    assert fault is None, fault.text


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 200, 40))
def test_graphs_of_up_to_thirty_nodes_compute_what_the_reference_computes(first):
    texts = []
    for seed in range(first, first + 40):
        fault = check(grow(Seeded(seed)))
        if fault is not None:
            texts.append(f"seed {seed}: {fault.text}")
    assert not texts, "\n".join(texts)


@pytest.mark.slow
def test_every_recipe_makes_nodes():
    for recipe in dict.fromkeys(ALL):
        graph = Graph(Seeded(5), 25)
        for _ in range(60):
            try:
                recipe(graph)
            except Skip:
                continue
            break
        assert graph.nodes, f"{recipe.__module__}.{recipe.__name__} made nothing in 60 tries"


@pytest.mark.slow
def test_graphs_are_large_and_of_many_operators():
    graphs = [grow(Seeded(seed)).model.graph for seed in range(40)]
    sizes = [len(graph.node) for graph in graphs]
    assert 10 < np.mean(sizes) < 20
    assert max(sizes) >= 28
    assert len({node.op_type for graph in graphs for node in graph.node}) > 80


def two_nodes() -> Sample:
    graph = Graph(Seeded(1), 21)
    x = graph.new(np.float32, (2, 3), constant=False)
    (y,) = graph.node("Abs", [x])
    (z,) = graph.node("Exp", [y])
    return finish(graph, {y.name, z.name}, symbolic=True)


def test_a_graph_that_agrees_has_no_fault():
    assert check(two_nodes()) is None


def test_a_wrong_value_is_seen_and_blamed_on_its_node():
    sample = two_nodes()
    *_, name = sample.expected
    value = sample.expected[name]
    value.array = value.array + 0.1 * np.abs(value.array).max()
    fault = check(sample)
    assert fault is not None
    assert fault.kind == "Exp float32"
    assert "off by" in fault.text
    assert [node.op_type for node in fault.model.graph.node] == ["Exp"]


def test_a_wrong_shape_is_seen():
    sample = two_nodes()
    value = next(iter(sample.expected.values()))
    value.array = value.array.T
    fault = check(sample)
    assert fault is not None
    assert "shape (2, 3), the reference says (3, 2)" in fault.text


@pytest.mark.parametrize(
    ("op", "attributes", "wanted"),
    [
        ("MaxPool", {"kernel_shape": [2], "strides": [2]}, [2, 4]),
        ("MaxPool", {"kernel_shape": [2], "strides": [2], "ceil_mode": 1}, [2, 4, 5]),
        ("MaxPool", {"kernel_shape": [3], "strides": [2], "pads": [2, 0]}, [1, 3, 5]),
        ("MaxPool", {"kernel_shape": [2], "strides": [2], "auto_pad": "SAME_LOWER"}, [1, 3, 5]),
        ("AveragePool", {"kernel_shape": [2], "strides": [2], "pads": [1, 0]}, [1, 2.5, 4.5]),
        (
            "AveragePool",
            {"kernel_shape": [2], "strides": [2], "pads": [1, 0], "count_include_pad": 1},
            [0.5, 2.5, 4.5],
        ),
        (
            "AveragePool",
            {"kernel_shape": [3], "strides": [3], "ceil_mode": 1, "count_include_pad": 1},
            [2, 4.5],
        ),
    ],
)
def test_pools_by_hand(op, attributes, wanted):
    x = np.arange(1, 6, dtype=np.float32).reshape(1, 1, 5)
    assert pools.pool(op, x, attributes).ravel().tolist() == wanted

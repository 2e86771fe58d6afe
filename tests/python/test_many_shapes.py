# SPDX-License-Identifier: Apache-2.0
"""One load that meets hundreds of shapes: what it keeps is bounded. Times are in tests/bench."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest
from api_support import model, open_cpu, value
from onnx import helper

import chipdock

node = helper.make_node

MOST_BYTES = 24 << 20


@pytest.fixture(scope="module")
def net():
    """Convolution, pooling, normalization, a product, Shape arithmetic: x [N, 3, H, W]."""
    rng = np.random.default_rng(0)
    weights = {
        "w": rng.standard_normal((8, 3, 3, 3)).astype(np.float32),
        "d": rng.standard_normal((8, 1, 3, 3)).astype(np.float32),
        "p": rng.standard_normal((8, 16)).astype(np.float32),
        "zero": np.zeros(1, np.int64),
        "rest": np.asarray([8, -1], np.int64),
    }
    nodes = [
        node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]),
        node("Relu", ["a"], ["b"]),
        node("Conv", ["b", "d"], ["c"], group=8, pads=[1, 1, 1, 1]),
        node("MaxPool", ["c"], ["e"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Shape", ["e"], ["s"]),
        node("Gather", ["s", "zero"], ["n"]),
        node("Concat", ["n", "rest"], ["t"], axis=0),
        node("Reshape", ["e", "t"], ["f"]),
        node("Transpose", ["f"], ["g"], perm=[0, 2, 1]),
        node("MatMul", ["g", "p"], ["h"]),
        node("Softmax", ["h"], ["y"], axis=-1),
    ]
    return model(nodes, [value("x", shape=["N", 3, "H", "W"])], [value("y")], weights)


def shapes(first: int, count: int) -> list[tuple[int, ...]]:
    """`count` different ones; those of other `first` are others."""
    return [
        (1 + i % 3, 3, 4 + (i // 3) % 12, 4 + (i // 36)) for i in range(first, first + count)
    ]  # fmt: skip


def resident() -> int:
    text = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(line for line in text.splitlines() if line.startswith("VmRSS:"))
    return 1024 * int(line.split()[1])


def visit(loaded, visited):
    for shape in visited:
        x = np.full(shape, 0.5, np.float32)
        assert loaded.run({"x": x})["y"].shape == (shape[0], shape[2] // 2 * (shape[3] // 2), 16)


@pytest.mark.slow
@pytest.mark.parametrize("capture", ["off", "on"])
def test_memory_stays_bounded_over_hundreds_of_shapes(net, capture, monkeypatch):
    monkeypatch.setenv("CHIPDOCK_CAPTURE", capture)
    device = open_cpu()
    loaded = chipdock.load(net, device)
    everything = shapes(0, 600)
    assert len(set(everything)) == 600
    visit(loaded, everything[:200])
    gc.collect()
    settled, stats = resident(), device.memory_stats()
    visit(loaded, everything)
    gc.collect()
    after = device.memory_stats()
    assert after["used_bytes"] <= stats["used_bytes"] + MOST_BYTES // 8
    assert after["reserved_bytes"] <= MOST_BYTES
    assert resident() - settled < MOST_BYTES
    del loaded
    gc.collect()
    assert device.memory_stats()["used_bytes"] == 0


def test_a_shape_that_comes_back_is_not_prepared_again(net):
    device = open_cpu()
    loaded = chipdock.load(net, device)
    visited = shapes(0, 20)
    visit(loaded, visited)
    before = device.memory_stats()["plugin_allocation_count"]
    visit(loaded, visited)
    assert device.memory_stats()["plugin_allocation_count"] == before


def test_shapes_do_not_leak_into_one_another(net):
    """Answers of a load that has met many shapes are those of a load that has met one."""
    device = open_cpu()
    loaded = chipdock.load(net, device)
    rng = np.random.default_rng(1)
    feeds = [rng.standard_normal(shape, np.float32) for shape in shapes(0, 60)[::3]]
    for x in feeds * 2:
        loaded.run({"x": x})
    for x in feeds[::5]:
        alone = chipdock.load(net, device).run({"x": x})["y"].numpy()
        np.testing.assert_array_equal(loaded.run({"x": x})["y"].numpy(), alone)

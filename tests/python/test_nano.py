# SPDX-License-Identifier: Apache-2.0
"""A plugin with the seven required functions only runs whole models, its memory out of sight."""

import gc

import numpy as np
import pytest
from api_support import BOOL, FLOAT, INT64, agrees, fake, model, open_fake, reference, same, value
from onnx import helper

import chipdock

node = helper.make_node
REQUIRED = {
    "device.count",
    "device.info",
    "device.open",
    "device.close",
    "memory.alloc",
    "memory.free",
    "memory.copy",
}


@pytest.fixture(scope="module", params=["none", "validate"])
def nano(request):
    return open_fake("nano", request.param)


def test_it_has_the_seven_required_functions_only():
    plugin = chipdock.open_plugin(fake("nano"), layers="none")
    assert {name for name, there in plugin.slots.items() if there} == REQUIRED


def convolution():
    rng = np.random.default_rng(3)
    return model(
        [
            node("Conv", ["x", "w", "b"], ["a"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
            node("Relu", ["a"], ["r"]),
            node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
            node("GlobalAveragePool", ["p"], ["g"]),
            node("Flatten", ["g"], ["f"]),
            node("Gemm", ["f", "m", "c"], ["y"], transB=1),
        ],
        [value("x", shape=["N", 3, "H", "W"])],
        [value("y")],
        {
            "w": rng.standard_normal((8, 3, 3, 3), np.float32),
            "b": rng.standard_normal(8, np.float32),
            "m": rng.standard_normal((5, 8), np.float32),
            "c": rng.standard_normal(5, np.float32),
        },
    )


def test_a_convolutional_model_at_two_sizes(nano):
    loaded = chipdock.load(convolution(), nano, fallback="allow")
    for shape in ((1, 3, 8, 8), (2, 3, 10, 6), (1, 3, 8, 8)):
        feeds = {"x": np.random.default_rng(0).standard_normal(shape).astype(np.float32)}
        same(loaded.run(feeds), reference(convolution(), feeds), 1e-4)


def test_data_dependent_shapes(nano):
    proto = model(
        [
            node("NonZero", ["m"], ["nz"]),
            node("Squeeze", ["nz", "axes"], ["at"]),
            node("Gather", ["x", "at"], ["y"]),
            node("Shape", ["y"], ["s"]),
        ],
        [value("m", BOOL, ["N"]), value("x", shape=["N", 3])],
        [value("y"), value("s", INT64)],
        {"axes": np.int64([0])},
    )
    loaded = chipdock.load(proto, nano, fallback="allow")
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    for mask in ([1, 0, 1, 1], [0, 0, 0, 0]):
        feeds = {"m": np.array(mask, bool), "x": x}
        same(loaded.run(feeds), reference(proto, feeds))


def test_a_loop_with_captures_and_scan_outputs(nano):
    body = helper.make_graph(
        [
            node("Identity", ["c"], ["c2"]),
            node("Add", ["v", "w"], ["v2"]),
            node("Neg", ["v2"], ["row"]),
        ],
        "b",
        [value("i", INT64, []), value("c", BOOL, []), value("v")],
        [value("c2", BOOL, []), value("v2"), value("row", shape=[2])],
    )
    proto = model(
        [node("Loop", ["n", "yes", "x"], ["y", "rows"], body=body)],
        [value("n", INT64, []), value("x")],
        [value("y"), value("rows")],
        {"w": np.float32([1, 2]), "yes": np.array(True)},
    )
    for n in (1, 3):
        agrees(proto, {"n": np.int64(n), "x": np.float32([0, 1])}, nano, fallback="allow")
    got = chipdock.load(proto, nano, fallback="allow").run(
        {"n": np.int64(0), "x": np.float32([7, 8])}
    )
    np.testing.assert_array_equal(got["y"].numpy(), [7, 8])
    assert got["rows"].shape == (0, 2)


def test_outputs_that_are_inputs_constants_or_listed_twice(nano):
    proto = model(
        [node("Reshape", ["x", "s"], ["v"]), node("Neg", ["w"], ["f"])],
        [value("x", shape=["N"])],
        [value("x", shape=["N"]), value("v"), value("w"), value("f"), value("v2")],
        {"s": np.int64([-1, 1]), "w": np.float32([1, 2])},
    )
    proto.graph.output[4].name = "v"
    loaded = chipdock.load(proto, nano, fallback="allow")
    x = chipdock.array(np.float32([3, 4]), nano)
    for _ in range(2):
        got = loaded(x)
        wanted = ([3, 4], [[3], [4]], [1, 2], [-1, -2], [[3], [4]])
        for array, want in zip(got, wanted, strict=True):
            np.testing.assert_array_equal(array.numpy(), want)
            array.copy_from(np.zeros(array.shape, np.float32))
    np.testing.assert_array_equal(x.numpy(), [3, 4])


def test_bound_outputs_and_caches(nano):
    proto = model(
        [node("Add", ["cache", "new"], ["next"])],
        [value("cache", shape=[3]), value("new", shape=[3])],
        [value("next", shape=[3])],
    )
    loaded = chipdock.load(proto, nano, fallback="allow")
    cache = chipdock.array(np.zeros(3, np.float32), nano)
    binding = loaded.bind().input("cache", cache).output("next", cache)
    for _ in range(4):
        binding.input("new", np.float32([1, 2, 3])).run()
    np.testing.assert_array_equal(cache.numpy(), [4, 8, 12])


def test_small_types(nano):
    proto = model(
        [node("Cast", ["x"], ["h"], to=10), node("Cast", ["h"], ["y"], to=FLOAT)],
        [value("x")],
        [value("y"), value("h", 10)],
    )
    agrees(proto, {"x": np.float32([1.5, -2])}, nano, fallback="allow")


def test_empty_and_scalar_values(nano):
    proto = model([node("Add", ["a", "b"], ["y"])], [value("a"), value("b")], [value("y")])
    loaded = chipdock.load(proto, nano, fallback="allow")
    for a, b in ((np.float32(1), np.float32(2)), (np.zeros((0, 2), np.float32), np.float32(1))):
        same(loaded.run({"a": a, "b": b}), {"y": np.asarray(a + b)})


def test_nothing_is_left_behind(nano):
    gc.collect()
    before = nano.memory_stats()["used_bytes"]
    loaded = chipdock.load(convolution(), nano, fallback="allow")
    loaded.run({"x": np.ones((1, 3, 8, 8), np.float32)})
    del loaded
    gc.collect()
    assert nano.memory_stats()["used_bytes"] == before

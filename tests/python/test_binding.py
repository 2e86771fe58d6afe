# SPDX-License-Identifier: Apache-2.0
"""What a run returns is the caller's own, whatever the outputs alias; bind() and its rules."""

import numpy as np
import pytest
from api_support import INT64, agrees, mlp, model, open_cpu, reference, same, value
from onnx import helper

import chipdock

node = helper.make_node
rng = np.random.default_rng(7)


def floats(*shape):
    return rng.standard_normal(shape).astype(np.float32)


# Aliased outputs: what run() returns is the caller's own.


def test_an_output_that_is_an_input():
    proto = model(
        [node("Neg", ["x"], ["y"])],
        [value("x", shape=["N"])],
        [value("x", shape=["N"]), value("y")],
    )
    x = chipdock.array(floats(4))
    loaded = chipdock.load(proto)
    got = loaded.run({"x": x})
    np.testing.assert_array_equal(got["x"].numpy(), x.numpy())
    before = x.copy_to_numpy()
    got["x"].copy_from(np.zeros(4, np.float32))
    np.testing.assert_array_equal(x.numpy(), before)


def test_an_output_that_is_a_view_of_an_input():
    proto = model(
        [node("Reshape", ["x", "s"], ["y"])],
        [value("x", shape=["N"])],
        [value("y")],
        {"s": np.int64([2, -1])},
    )
    x = chipdock.array(floats(6))
    got = chipdock.load(proto).run({"x": x})["y"]
    before = x.copy_to_numpy()
    got.copy_from(np.zeros((2, 3), np.float32))
    np.testing.assert_array_equal(x.numpy(), before)


def test_an_output_that_is_a_constant_or_folded():
    proto = model(
        [node("Neg", ["w"], ["f"]), node("Reshape", ["w", "s"], ["v"])],
        [value("x")],
        [value("w", shape=[3]), value("f", shape=[3]), value("v", shape=[3, 1])],
        {"w": np.float32([1, 2, 3]), "s": np.int64([3, 1])},
    )
    loaded = chipdock.load(proto)
    want = reference(proto, {"x": floats(1)})
    got = loaded.run({"x": floats(1)})
    same(got, want)
    for array in got.values():
        array.copy_from(np.zeros(array.shape, np.float32))
    same(loaded.run({"x": floats(1)}), want)
    np.testing.assert_array_equal(
        chipdock.load(proto).run({"x": floats(1)})["w"].numpy(), [1, 2, 3]
    )


def test_an_output_listed_twice():
    proto = model([node("Neg", ["x"], ["y"])], [value("x")], [value("y"), value("z")])
    proto.graph.output[1].name = "y"
    loaded = chipdock.load(proto)
    first, second = loaded(np.float32([1, 2]))
    np.testing.assert_array_equal(first.numpy(), [-1, -2])
    np.testing.assert_array_equal(second.numpy(), [-1, -2])


def test_an_inner_value_that_is_also_an_output():
    proto = model(
        [
            node("Neg", ["x"], ["a"]),
            node("Exp", ["a"], ["b"]),
            node("Reshape", ["a", "s"], ["v"]),
            node("Abs", ["b"], ["c"]),
        ],
        [value("x", shape=["N"])],
        [value("c"), value("a"), value("v"), value("b")],
        {"s": np.int64([-1, 1])},
    )
    agrees(proto, {"x": floats(5)})


def test_a_shape_as_an_output():
    proto = model(
        [node("Shape", ["x"], ["s"]), node("Size", ["x"], ["n"])],
        [value("x")],
        [value("s", INT64), value("n", INT64, [])],
    )
    loaded = agrees(proto, {"x": floats(2, 3)})
    got = loaded.run({"x": floats(2, 3)})["s"]
    got.copy_from(np.int64([0, 0]))
    np.testing.assert_array_equal(loaded.run({"x": floats(2, 3)})["s"].numpy(), [2, 3])


# bind()


def test_bound_outputs_land_where_they_should():
    proto = mlp()
    loaded = chipdock.load(proto)
    x, out = chipdock.array(floats(2, 8)), chipdock.empty((2, 4))
    binding = loaded.bind().input("x", x).output("y", out)
    for _ in range(3):
        x.copy_from(floats(2, 8))
        got = binding.run()["y"]
        assert got.numpy().ctypes.data == out.numpy().ctypes.data
        same({"y": out}, reference(proto, {"x": x.numpy()}))


def test_bound_runs_allocate_no_new_memory():
    loaded = chipdock.load(mlp())
    x, out = chipdock.array(floats(2, 8)), chipdock.empty((2, 4))
    binding = loaded.bind().input("x", x).output("y", out)
    binding.run()
    device = loaded.device
    before = device.memory_stats()
    for _ in range(5):
        binding.run()
    after = device.memory_stats()
    assert after["plugin_allocation_count"] == before["plugin_allocation_count"]
    assert after["used_bytes"] == before["used_bytes"]


def test_an_output_bound_to_an_input():
    """A KV cache: the old state is read until the end, then the new one stands in its place."""
    proto = model(
        [
            node("Concat", ["cache", "new"], ["both"], axis=0),
            node("Slice", ["both", "one", "end"], ["next"]),
            node("ReduceSum", ["cache"], ["total"], keepdims=0),
        ],
        [value("cache", shape=[4, 2]), value("new", shape=[1, 2])],
        [value("next", shape=[4, 2]), value("total", shape=[])],
        {"one": np.int64([1]), "end": np.int64([5])},
    )
    loaded = chipdock.load(proto)
    cache = chipdock.array(np.zeros((4, 2), np.float32))
    state = np.zeros((4, 2), np.float32)
    for step in range(6):
        new = np.full((1, 2), step, np.float32)
        got = loaded.bind().input("cache", cache).input("new", new).output("next", cache).run()
        assert got["total"].numpy() == state.sum()
        state = np.concatenate([state, new])[1:]
        np.testing.assert_array_equal(cache.numpy(), state)
        assert got["next"].numpy().ctypes.data == cache.numpy().ctypes.data


def test_an_output_bound_to_a_part_of_an_input():
    proto = model(
        [
            node("Neg", ["x"], ["a"]),
            node("Slice", ["a", "zero", "two"], ["h"]),
            node("Exp", ["x"], ["e"]),
        ],
        [value("x", shape=[4])],
        [value("h", shape=[2]), value("e")],
        {"zero": np.int64([0]), "two": np.int64([2])},
    )
    x = chipdock.array(np.float32([1, 2, 3, 4]))
    got = chipdock.load(proto).bind().input("x", x).output("h", x[1:3]).run()
    np.testing.assert_array_equal(x.numpy(), [1, -1, -2, 4])
    np.testing.assert_allclose(got["e"].numpy(), np.exp(np.float32([1, 2, 3, 4])), rtol=1e-6)


def test_a_bound_output_that_is_an_input_of_the_model_or_a_constant():
    proto = model(
        [],
        [value("x", shape=[2])],
        [value("x", shape=[2]), value("w", shape=[2])],
        {"w": np.float32([5, 6])},
    )
    a, b = chipdock.empty((2,)), chipdock.empty((2,))
    chipdock.load(proto).bind().input("x", np.float32([1, 2])).output("x", a).output("w", b).run()
    np.testing.assert_array_equal(a.numpy(), [1, 2])
    np.testing.assert_array_equal(b.numpy(), [5, 6])


def test_one_array_bound_to_two_outputs_is_refused():
    proto = model(
        [node("Neg", ["x"], ["y"]), node("Exp", ["x"], ["z"])],
        [value("x")],
        [value("y"), value("z")],
    )
    out = chipdock.empty((2,))
    binding = chipdock.load(proto).bind().input("x", np.float32([1, 2])).output("y", out)
    with pytest.raises(chipdock.errors.InvalidArgumentError, match=r"'z' would overlap .* 'y'"):
        binding.output("z", out)
    part = chipdock.empty((3,))
    with pytest.raises(chipdock.errors.InvalidArgumentError, match="overlap"):
        binding.output("y", part[:2]).output("z", part[1:])
    binding.output("y", part[1:]).output("z", out).run()
    np.testing.assert_array_equal(part[1:].numpy(), [-1, -2])


def test_bad_bindings_are_refused_and_named():
    loaded = chipdock.load(mlp())
    binding = loaded.bind()
    bad = pytest.raises(chipdock.errors.InvalidArgumentError, match="'nope'")
    with bad:
        binding.input("nope", floats(1, 8))
    with bad:
        binding.output("nope", chipdock.empty((1, 4)))
    for array in (
        chipdock.empty((1, 4), np.float64),
        chipdock.empty((4, 2))[:, ::2],
        chipdock.empty((1, 4), device=open_cpu()),
    ):
        with pytest.raises(chipdock.errors.InvalidArgumentError, match="'y'"):
            binding.output("y", array)
    with pytest.raises(chipdock.errors.InvalidArgumentError, match="'x'"):
        binding.input("x", floats(1, 8).astype(np.float64))
    with pytest.raises(chipdock.errors.InvalidArgumentError, match=r"missing: .'x'"):
        binding.run()


@pytest.mark.parametrize("shape", [(3, 4), (4, 2), (2, 4, 1), (8,), (0, 4)])
def test_a_bound_output_of_another_shape_is_refused(shape):
    loaded = chipdock.load(mlp())
    out = chipdock.empty(shape)
    binding = loaded.bind().input("x", floats(2, 8)).output("y", out)
    with pytest.raises(chipdock.errors.InvalidArgumentError, match="'y' has shape"):
        binding.run()
    binding.output("y", chipdock.empty((2, 4))).run()


def test_a_binding_serves_other_shapes():
    proto = mlp()
    binding = chipdock.load(proto).bind()
    for batch in (3, 1, 3):
        x = floats(batch, 8)
        same(binding.input("x", x).run(), reference(proto, {"x": x}))

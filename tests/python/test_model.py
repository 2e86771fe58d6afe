# SPDX-License-Identifier: Apache-2.0
"""load() and Model: shapes, views, folding, aliases, bound outputs, names, data-dependent shapes."""

import gc

import ml_dtypes
import numpy as np
import onnx
import pytest
from api_support import (
    BOOL, FLOAT, INT64, agrees, chain, mlp, model, open_cpu, reference, same, value,
)  # fmt: skip
from onnx import helper

import chipdock

node = helper.make_node
rng = np.random.default_rng(7)


def floats(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def test_one_load_serves_every_batch():
    proto = mlp()
    loaded = chipdock.load(proto)
    for batch in (1, 7, 2, 1, 33, 0, 7):
        x = floats(batch, 8)
        same(loaded.run({"x": x}), reference(proto, {"x": x}))


def test_more_signatures_than_the_cache_holds():
    loaded = chipdock.load(chain(2))
    for n in [*range(1, 41), 1, 40]:
        x = floats(n)
        np.testing.assert_array_equal(loaded(x).numpy(), x)


def test_sources_of_a_model(tmp_path):
    proto, x = mlp(), floats(2, 8)
    path = tmp_path / "m.onnx"
    onnx.save(proto, path)
    want = reference(proto, {"x": x})
    for source in (proto, proto.SerializeToString(), path, str(path), bytearray(path.read_bytes())):
        same(chipdock.load(source).run({"x": x}), want)


def test_a_model_proto_is_not_changed():
    proto = mlp()
    before = proto.SerializeToString(deterministic=True)
    chipdock.load(proto)
    assert proto.SerializeToString(deterministic=True) == before


def test_model_describes_itself():
    loaded = chipdock.load(mlp())
    (info,) = loaded.inputs
    assert (info.name, info.dtype, info.shape) == ("x", np.float32, ("N", 8))
    assert [(v.name, v.dtype, v.shape) for v in loaded.outputs] == [("y", np.float32, ("N", 4))]
    assert "x" in repr(loaded)
    assert loaded.device.name == "cpu:0"


def test_call_takes_inputs_in_order_and_returns_one_or_a_tuple():
    one = model([node("Sub", ["a", "b"], ["y"])], [value("a"), value("b")], [value("y")])
    assert chipdock.load(one)(np.float32([5]), np.float32([3])).numpy() == 2
    two = model(
        [node("Sub", ["a", "b"], ["y"]), node("Neg", ["y"], ["z"])],
        [value("a"), value("b")], [value("z"), value("y")],
    )  # fmt: skip
    z, y = chipdock.load(two)(np.float32([5]), np.float32([3]))
    assert (z.numpy(), y.numpy()) == (-2, 2)
    with pytest.raises(chipdock.errors.InvalidArgumentError, match="2 inputs .* 3 were given"):
        chipdock.load(two)(1, 2, 3)


@pytest.mark.parametrize("kind", ["numpy", "Array", "strided numpy", "strided Array", "list", "dlpack"])
def test_kinds_of_input(kind):
    x = floats(6, 8)
    given = {
        "numpy": lambda: x[::2], "Array": lambda: chipdock.array(x[::2]),
        "strided numpy": lambda: np.asfortranarray(x[::2]),
        "strided Array": lambda: chipdock.array(x)[::2], "list": lambda: x[::2].tolist(),
        "dlpack": lambda: memoryview_of(x[::2]),
    }[kind]()  # fmt: skip
    proto = mlp()
    same(chipdock.load(proto).run({"x": given}), reference(proto, {"x": x[::2]}))


class memoryview_of:  # noqa: N801  reads as a function
    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **more):
        return self.array.__dlpack__(**more)


def test_a_misaligned_numpy_input():
    raw = np.zeros(4 * 16 + 1, np.uint8)
    x = raw[1:].view(np.float32)
    x[:] = np.arange(16)
    np.testing.assert_array_equal(chipdock.load(chain(1))(x).numpy(), -np.arange(16))


def test_inputs_on_another_device_are_moved():
    other = open_cpu(devices="2")
    x = floats(3, 8)
    proto = mlp()
    same(chipdock.load(proto).run({"x": chipdock.array(x, other)}), reference(proto, {"x": x}))


def test_inputs_are_never_written():
    proto = model(
        [node("Reshape", ["x", "s"], ["v"]), node("Relu", ["v"], ["y"])],
        [value("x", shape=[2, 3])], [value("y")], {"s": np.int64([6])},
    )  # fmt: skip
    x = floats(2, 3)
    before, array = x.copy(), chipdock.array(x)
    loaded = chipdock.load(proto)
    loaded.run({"x": array})
    loaded.run({"x": x})
    np.testing.assert_array_equal(x, before)
    np.testing.assert_array_equal(array.numpy(), before)


def test_results_of_earlier_runs_stay_as_they_were():
    loaded = chipdock.load(chain(3))
    kept = [(i, loaded(np.full(5, i, np.float32))) for i in range(10)]
    for i, result in kept:
        np.testing.assert_array_equal(result.numpy(), np.full(5, -i))


def test_views_do_no_work():
    proto = model(
        [node("Reshape", ["x", "s"], ["a"]), node("Unsqueeze", ["a", "axes"], ["b"]),
         node("Squeeze", ["b", "axes"], ["c"]), node("Flatten", ["c"], ["d"], axis=1),
         node("Identity", ["d"], ["e"]), node("Relu", ["e"], ["y"])],
        [value("x", shape=["N", 6])], [value("y")],
        {"s": np.int64([-1, 2, 3]), "axes": np.int64([0])},
    )  # fmt: skip
    loaded = agrees(proto, {"x": floats(4, 6)})
    assert loaded.explain().counts == {"view": 5, "device": 1}
    assert loaded.run({"x": floats(1, 6)})["y"].shape == (1, 6)


def test_constants_are_folded():
    proto = model(
        [node("Add", ["c", "c"], ["d"]), node("Shape", ["d"], ["s"]), node("Cast", ["s"], ["f"], to=FLOAT),
         node("ReduceSum", ["f"], ["r"], keepdims=0), node("Mul", ["x", "r"], ["y"])],
        [value("x", shape=["N"])], [value("y")], {"c": np.ones((3, 4), np.float32)},
    )  # fmt: skip
    loaded = agrees(proto, {"x": floats(5)})
    assert loaded.explain().counts == {"folded": 4, "device": 1}


def test_nodes_that_nobody_reads_are_left_out():
    proto = model(
        [node("Neg", ["x"], ["y"]), node("Exp", ["x"], ["unused"]), node("Abs", ["unused"], ["also"])],
        [value("x")], [value("y")],
    )  # fmt: skip
    loaded = agrees(proto, {"x": floats(3)})
    assert [n.op for n in loaded.explain().nodes] == ["Neg"]


def test_a_model_without_inputs():
    proto = model(
        [node("Add", ["a", "b"], ["y"])], [], [value("y")],
        {"a": np.float32([1, 2]), "b": np.float32([3])},
    )  # fmt: skip
    loaded = agrees(proto, {})
    first, second = loaded.run({})["y"], loaded.run({})["y"]
    first.copy_from(np.float32([0, 0]))
    np.testing.assert_array_equal(second.numpy(), [4, 5])
    np.testing.assert_array_equal(loaded.run({})["y"].numpy(), [4, 5])


def test_unused_inputs_must_be_given_and_are_checked():
    proto = model(
        [node("Neg", ["x"], ["y"])], [value("x"), value("never", INT64, [2])], [value("y")]
    )
    loaded = agrees(proto, {"x": floats(3), "never": np.int64([1, 2])})
    with pytest.raises(chipdock.errors.InvalidArgumentError, match="missing: .'never'"):
        loaded.run({"x": floats(3)})
    with pytest.raises(chipdock.errors.InvalidArgumentError, match="'never' has shape"):
        loaded.run({"x": floats(3), "never": np.int64([1, 2, 3])})


def test_an_input_with_an_initializer_is_optional_by_being_a_constant():
    proto = model(
        [node("Add", ["x", "w"], ["y"])], [value("x"), value("w")], [value("y")], {"w": np.float32([3])}
    )
    loaded = agrees(proto, {"x": floats(3)})
    assert [v.name for v in loaded.inputs] == ["x"]


def test_optional_inputs_and_outputs_of_operators():
    proto = model(
        [node("Clip", ["x", "", "hi"], ["a"]), node("Clip", ["x", "lo"], ["b"]), node("Clip", ["x"], ["c"]),
         node("MaxPool", ["p"], ["d"], kernel_shape=[2, 2]),
         node("TopK", ["x", "k"], ["", "at"])],
        [value("x", shape=["N"]), value("p", shape=[1, 1, "H", "W"])],
        [value("a"), value("b"), value("c"), value("d"), value("at", INT64)],
        {"hi": np.float32(0.5), "lo": np.float32(-0.5), "k": np.int64([2])},
    )  # fmt: skip
    agrees(proto, {"x": floats(9), "p": floats(1, 1, 5, 6)})


# Aliased outputs: what run() returns is the caller's own.


def test_an_output_that_is_an_input():
    proto = model(
        [node("Neg", ["x"], ["y"])], [value("x", shape=["N"])], [value("x", shape=["N"]), value("y")]
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
        [node("Reshape", ["x", "s"], ["y"])], [value("x", shape=["N"])], [value("y")],
        {"s": np.int64([2, -1])},
    )  # fmt: skip
    x = chipdock.array(floats(6))
    got = chipdock.load(proto).run({"x": x})["y"]
    before = x.copy_to_numpy()
    got.copy_from(np.zeros((2, 3), np.float32))
    np.testing.assert_array_equal(x.numpy(), before)


def test_an_output_that_is_a_constant_or_folded():
    proto = model(
        [node("Neg", ["w"], ["f"]), node("Reshape", ["w", "s"], ["v"])],
        [value("x")], [value("w", shape=[3]), value("f", shape=[3]), value("v", shape=[3, 1])],
        {"w": np.float32([1, 2, 3]), "s": np.int64([3, 1])},
    )  # fmt: skip
    loaded = chipdock.load(proto)
    want = reference(proto, {"x": floats(1)})
    got = loaded.run({"x": floats(1)})
    same(got, want)
    for array in got.values():
        array.copy_from(np.zeros(array.shape, np.float32))
    same(loaded.run({"x": floats(1)}), want)
    np.testing.assert_array_equal(chipdock.load(proto).run({"x": floats(1)})["w"].numpy(), [1, 2, 3])


def test_an_output_listed_twice():
    proto = model([node("Neg", ["x"], ["y"])], [value("x")], [value("y"), value("z")])
    proto.graph.output[1].name = "y"
    loaded = chipdock.load(proto)
    first, second = loaded(np.float32([1, 2]))
    np.testing.assert_array_equal(first.numpy(), [-1, -2])
    np.testing.assert_array_equal(second.numpy(), [-1, -2])


def test_an_inner_value_that_is_also_an_output():
    proto = model(
        [node("Neg", ["x"], ["a"]), node("Exp", ["a"], ["b"]), node("Reshape", ["a", "s"], ["v"]),
         node("Abs", ["b"], ["c"])],
        [value("x", shape=["N"])], [value("c"), value("a"), value("v"), value("b")],
        {"s": np.int64([-1, 1])},
    )  # fmt: skip
    agrees(proto, {"x": floats(5)})


def test_a_shape_as_an_output():
    proto = model(
        [node("Shape", ["x"], ["s"]), node("Size", ["x"], ["n"])], [value("x")],
        [value("s", INT64), value("n", INT64, [])],
    )  # fmt: skip
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
        [node("Concat", ["cache", "new"], ["both"], axis=0), node("Slice", ["both", "one", "end"], ["next"]),
         node("ReduceSum", ["cache"], ["total"], keepdims=0)],
        [value("cache", shape=[4, 2]), value("new", shape=[1, 2])],
        [value("next", shape=[4, 2]), value("total", shape=[])],
        {"one": np.int64([1]), "end": np.int64([5])},
    )  # fmt: skip
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
        [node("Neg", ["x"], ["a"]), node("Slice", ["a", "zero", "two"], ["h"]), node("Exp", ["x"], ["e"])],
        [value("x", shape=[4])], [value("h", shape=[2]), value("e")],
        {"zero": np.int64([0]), "two": np.int64([2])},
    )  # fmt: skip
    x = chipdock.array(np.float32([1, 2, 3, 4]))
    got = chipdock.load(proto).bind().input("x", x).output("h", x[1:3]).run()
    np.testing.assert_array_equal(x.numpy(), [1, -1, -2, 4])
    np.testing.assert_allclose(got["e"].numpy(), np.exp(np.float32([1, 2, 3, 4])), rtol=1e-6)


def test_a_bound_output_that_is_an_input_of_the_model_or_a_constant():
    proto = model(
        [], [value("x", shape=[2])], [value("x", shape=[2]), value("w", shape=[2])],
        {"w": np.float32([5, 6])},
    )  # fmt: skip
    a, b = chipdock.empty((2,)), chipdock.empty((2,))
    chipdock.load(proto).bind().input("x", np.float32([1, 2])).output("x", a).output("w", b).run()
    np.testing.assert_array_equal(a.numpy(), [1, 2])
    np.testing.assert_array_equal(b.numpy(), [5, 6])


def test_one_array_bound_to_two_outputs_is_refused():
    proto = model([node("Neg", ["x"], ["y"]), node("Exp", ["x"], ["z"])], [value("x")],
                  [value("y"), value("z")])  # fmt: skip
    out = chipdock.empty((2,))
    binding = chipdock.load(proto).bind().input("x", np.float32([1, 2])).output("y", out)
    with pytest.raises(chipdock.errors.InvalidArgumentError, match="'z' would overlap .* 'y'"):
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
    for array in (chipdock.empty((1, 4), np.float64), chipdock.empty((4, 2))[:, ::2],
                  chipdock.empty((1, 4), device=open_cpu())):  # fmt: skip
        with pytest.raises(chipdock.errors.InvalidArgumentError, match="'y'"):
            binding.output("y", array)
    with pytest.raises(chipdock.errors.InvalidArgumentError, match="'x'"):
        binding.input("x", floats(1, 8).astype(np.float64))
    with pytest.raises(chipdock.errors.InvalidArgumentError, match="missing: .'x'"):
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


# Data-dependent shapes


def test_nonzero_then_gather():
    proto = model(
        [node("NonZero", ["m"], ["nz"]), node("Squeeze", ["nz", "axes"], ["at"]),
         node("Gather", ["x", "at"], ["g"], axis=0), node("Exp", ["g"], ["y"]),
         node("Shape", ["g"], ["s"])],
        [value("m", BOOL, ["N"]), value("x", shape=["N", 3])], [value("y"), value("s", INT64)],
        {"axes": np.int64([0])},
    )  # fmt: skip
    loaded = chipdock.load(proto)
    for mask in ([1, 0, 1, 1], [0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 0, 0]):
        feeds = {"m": np.array(mask, bool), "x": floats(4, 3)}
        same(loaded.run(feeds), reference(proto, feeds))


def test_shapes_steered_by_input_values():
    proto = model(
        [node("Range", ["zero", "n", "one"], ["r"]), node("Reshape", ["x", "s"], ["v"]),
         node("Expand", ["v", "s"], ["e"]), node("Slice", ["x", "a", "b"], ["p"]),
         node("ConstantOfShape", ["s"], ["c"]), node("TopK", ["x", "k"], ["t", "i"])],
        [value("n", INT64, []), value("x", shape=["N"]), value("s", INT64, ["R"]), value("a", INT64, [1]),
         value("b", INT64, [1]), value("k", INT64, [1])],
        [value("r", INT64), value("e"), value("p"), value("c"), value("t"), value("i", INT64)],
        {"zero": np.int64(0), "one": np.int64(1)},
    )  # fmt: skip
    loaded = chipdock.load(proto)
    for n, s, a, b, k in ((3, [2, 3], 1, 4, 2), (0, [6], 0, 6, 6), (7, [1, 6, 1], 5, 2, 0), (3, [3, 2], 0, 1, 1)):
        feeds = {"n": np.int64(n), "x": floats(6), "s": np.int64(s), "a": np.int64([a]),
                 "b": np.int64([b]), "k": np.int64([k])}  # fmt: skip
        same(loaded.run(feeds), reference(proto, feeds))


def test_a_bound_output_of_data_dependent_shape():
    proto = model([node("NonZero", ["m"], ["y"])], [value("m", BOOL, ["N"])], [value("y", INT64)])
    out = chipdock.empty((1, 2), np.int64)
    binding = chipdock.load(proto).bind().output("y", out)
    binding.input("m", np.array([1, 0, 1], bool)).run()
    np.testing.assert_array_equal(out.numpy(), [[0, 2]])
    with pytest.raises(chipdock.errors.InvalidArgumentError, match="'y' has shape"):
        binding.input("m", np.array([1, 1, 1], bool)).run()


def test_results_with_fewer_elements_than_their_bound_own_only_those():
    proto = model([node("NonZero", ["m"], ["y"])], [value("m", BOOL, ["N"])], [value("y", INT64)])
    got = chipdock.load(proto).run({"m": np.arange(100) % 50 == 0})["y"]
    assert got.shape == (1, 2)
    assert got.is_contiguous
    np.testing.assert_array_equal(got.numpy(), [[0, 50]])


# dtypes


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64", "int8", "uint8", "int32", "int64"])
def test_models_of_other_dtypes(dtype):
    numpy = np.dtype(getattr(ml_dtypes, dtype, None) or dtype)
    kind = helper.np_dtype_to_tensor_dtype(numpy)
    proto = model([node("Add", ["x", "w"], ["y"])], [value("x", kind, ["N"])], [value("y", kind, ["N"])],
                  {"w": np.array([3]).astype(numpy)})  # fmt: skip
    got = chipdock.load(proto)(np.arange(5).astype(numpy)).numpy()
    assert got.dtype == numpy
    np.testing.assert_array_equal(got.astype(float), np.arange(5) + 3)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "bfloat16"])
def test_small_floats_by_cast(dtype):
    numpy = np.dtype(getattr(ml_dtypes, dtype))
    kind = helper.np_dtype_to_tensor_dtype(numpy)
    proto = model(
        [node("Cast", ["x"], ["a"], to=kind), node("Cast", ["a"], ["y"], to=FLOAT)],
        [value("x", shape=["N"])], [value("y"), value("a", kind)],
    )  # fmt: skip
    x = floats(50)
    got = chipdock.load(proto).run({"x": x})
    assert got["a"].numpy().tobytes() == x.astype(numpy).tobytes()
    np.testing.assert_array_equal(got["y"].numpy(), x.astype(numpy).astype(np.float32))


def test_nan_and_infinity_pass_through():
    x = np.float32([np.nan, np.inf, -np.inf, -0.0, 1e-45])
    np.testing.assert_array_equal(chipdock.load(chain(2))(x).numpy(), x)


def test_scalars_and_empty_tensors():
    proto = model([node("Add", ["a", "b"], ["y"])], [value("a"), value("b")], [value("y")])
    loaded = chipdock.load(proto)
    for a, b in ((np.float32(1), np.float32(2)), (floats(0), np.float32(1)), (floats(2, 0), floats(1, 1))):
        same(loaded.run({"a": a, "b": b}), {"y": np.asarray(a + b)})


def test_explain_names_every_node_and_why():
    explained = chipdock.load(mlp()).explain()
    assert [n.op for n in explained.nodes] == ["MatMul", "Add", "Relu", "MatMul", "Softmax"]
    for line in explained.nodes:
        assert (line.placement, line.device) == ("device", "cpu:0")
        assert line.kernel
        assert line.reason
    assert str(explained).startswith("5 nodes: 5 device\n")
    assert "Softmax-13" in str(explained)


def test_memory_report_follows_the_shapes():
    loaded = chipdock.load(mlp())
    small, large = loaded.memory({"x": (1, 8)}), loaded.memory({"x": (1000, 8)})
    assert small["weight_bytes"] == large["weight_bytes"] > 0
    assert large["activation_bytes"] > small["activation_bytes"]
    assert large["activation_bytes"] >= large["activation_lower_bound"] > 0
    with pytest.raises(chipdock.errors.InvalidArgumentError):
        loaded.memory({"y": (1, 8)})


def test_activations_share_storage():
    loaded = chipdock.load(chain(50))
    report = loaded.memory({"x": (1024,)})
    assert report["activation_bytes"] <= 3 * 4096
    loaded.device.reset_peak()
    del loaded
    gc.collect()


@pytest.mark.parametrize(
    ("arguments", "match"),
    [({"fallback": "maybe"}, "fallback is 'maybe'"), ({"threads": 0}, "threads is 0"),
     ({"memory_limit": 0}, "memory_limit is 0"), ({"device": "gpu:0"}, "gpu:0")],
)  # fmt: skip
def test_bad_arguments_of_load(arguments, match):
    with pytest.raises(chipdock.errors.InvalidArgumentError, match=match):
        chipdock.load(mlp(), **arguments)


def test_threads_limit_gives_the_same_answer():
    proto, x = mlp(), floats(64, 8)
    same(chipdock.load(proto, threads=1).run({"x": x}), reference(proto, {"x": x}))


def test_seeded_random_operators():
    proto = model([node("RandomNormalLike", ["x"], ["y"])], [value("x", shape=["N"])], [value("y")])
    loaded = chipdock.load(proto)
    x = floats(64)
    one, again, other = (loaded.run({"x": x}, seed=s)["y"].numpy() for s in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, other)
    fresh = [loaded.run({"x": x})["y"].numpy() for _ in range(2)]
    assert not np.array_equal(*fresh)


def test_local_functions():
    add = helper.make_function(
        "my", "Twice", ["a"], ["b"], [node("Add", ["a", "a"], ["b"])], [helper.make_opsetid("", 21)]
    )
    proto = model(
        [node("Twice", ["x"], ["t"], domain="my"), node("Twice", ["t"], ["y"], domain="my")],
        [value("x", shape=["N"])], [value("y")], functions=[add],
        opsets=[helper.make_opsetid("", 21), helper.make_opsetid("my", 1)],
    )  # fmt: skip
    np.testing.assert_array_equal(chipdock.load(proto)(np.float32([1, 2])).numpy(), [4, 8])


@pytest.mark.parametrize("order", [[2, 1, 0], [1, 0, 2], [1, 2, 0]])
def test_nodes_in_any_order(order):
    nodes = [node("Neg", ["x"], ["a"]), node("Exp", ["a"], ["b"]), node("Add", ["a", "b"], ["y"])]
    proto = model([nodes[i] for i in order], [value("x")], [value("y")])
    x = floats(3)
    np.testing.assert_allclose(chipdock.load(proto)(x).numpy(), -x + np.exp(-x), rtol=1e-6)


def test_python_numbers_take_the_models_dtype_if_nothing_is_lost():
    kind = onnx.TensorProto.UINT8
    loaded = chipdock.load(model([node("Identity", ["x"], ["y"])], [value("x", kind)], [value("y", kind)]))
    np.testing.assert_array_equal(loaded.run({"x": [1, 255]})["y"].numpy(), [1, 255])
    for bad in ([256], [-1], [1.5], ["a"], [[1], [2, 3]], 2**80):
        with pytest.raises(chipdock.errors.InvalidArgumentError, match="input 'x'"):
            loaded.run({"x": bad})
    flags = chipdock.load(model([node("Not", ["x"], ["y"])], [value("x", BOOL)], [value("y", BOOL)]))
    np.testing.assert_array_equal(flags.run({"x": [True, False]})["y"].numpy(), [False, True])
    with pytest.raises(chipdock.errors.InvalidArgumentError, match="input 'x'"):
        flags.run({"x": [2]})


def test_numpy_scalars_have_a_dtype_of_their_own():
    loaded = chipdock.load(chain(1, shape=None))
    assert loaded(np.float32(2)).numpy() == -2
    with pytest.raises(chipdock.errors.InvalidArgumentError, match="float64"):
        loaded(np.float64(2))

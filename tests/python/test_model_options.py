# SPDX-License-Identifier: Apache-2.0
"""Models of other dtypes; explain(), memory(), options of load(), and values without a dtype."""

import gc

import ml_dtypes
import numpy as np
import onnx
import pytest
from api_support import (
    BOOL,
    FLOAT,
    chain,
    mlp,
    model,
    reference,
    same,
    value,
)
from onnx import helper

import chipdock

node = helper.make_node
rng = np.random.default_rng(7)


def floats(*shape):
    return rng.standard_normal(shape).astype(np.float32)


# dtypes


@pytest.mark.parametrize(
    "dtype", ["bfloat16", "float16", "float64", "int8", "uint8", "int32", "int64"]
)
def test_models_of_other_dtypes(dtype):
    numpy = np.dtype(getattr(ml_dtypes, dtype, None) or dtype)
    kind = helper.np_dtype_to_tensor_dtype(numpy)
    proto = model(
        [node("Add", ["x", "w"], ["y"])],
        [value("x", kind, ["N"])],
        [value("y", kind, ["N"])],
        {"w": np.array([3]).astype(numpy)},
    )
    got = chipdock.load(proto)(np.arange(5).astype(numpy)).numpy()
    assert got.dtype == numpy
    np.testing.assert_array_equal(got.astype(float), np.arange(5) + 3)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "bfloat16"])
def test_small_floats_by_cast(dtype):
    numpy = np.dtype(getattr(ml_dtypes, dtype))
    kind = helper.np_dtype_to_tensor_dtype(numpy)
    proto = model(
        [node("Cast", ["x"], ["a"], to=kind), node("Cast", ["a"], ["y"], to=FLOAT)],
        [value("x", shape=["N"])],
        [value("y"), value("a", kind)],
    )
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
    for a, b in (
        (np.float32(1), np.float32(2)),
        (floats(0), np.float32(1)),
        (floats(2, 0), floats(1, 1)),
    ):
        same(loaded.run({"a": a, "b": b}), {"y": np.asarray(a + b)})


@pytest.mark.usefixtures("as_written")
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
    [
        ({"fallback": "maybe"}, "fallback is 'maybe'"),
        ({"threads": 0}, "threads is 0"),
        ({"memory_limit": 0}, "memory_limit is 0"),
        ({"device": "gpu:0"}, "gpu:0"),
    ],
)
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
        [value("x", shape=["N"])],
        [value("y")],
        functions=[add],
        opsets=[helper.make_opsetid("", 21), helper.make_opsetid("my", 1)],
    )
    np.testing.assert_array_equal(chipdock.load(proto)(np.float32([1, 2])).numpy(), [4, 8])


@pytest.mark.parametrize("order", [[2, 1, 0], [1, 0, 2], [1, 2, 0]])
def test_nodes_in_any_order(order):
    nodes = [node("Neg", ["x"], ["a"]), node("Exp", ["a"], ["b"]), node("Add", ["a", "b"], ["y"])]
    proto = model([nodes[i] for i in order], [value("x")], [value("y")])
    x = floats(3)
    np.testing.assert_allclose(chipdock.load(proto)(x).numpy(), -x + np.exp(-x), rtol=1e-6)


def test_python_numbers_take_the_models_dtype_if_nothing_is_lost():
    kind = onnx.TensorProto.UINT8
    loaded = chipdock.load(
        model([node("Identity", ["x"], ["y"])], [value("x", kind)], [value("y", kind)])
    )
    np.testing.assert_array_equal(loaded.run({"x": [1, 255]})["y"].numpy(), [1, 255])
    for bad in ([256], [-1], [1.5], ["a"], [[1], [2, 3]], 2**80):
        with pytest.raises(chipdock.errors.InvalidArgumentError, match="input 'x'"):
            loaded.run({"x": bad})
    flags = chipdock.load(
        model([node("Not", ["x"], ["y"])], [value("x", BOOL)], [value("y", BOOL)])
    )
    np.testing.assert_array_equal(flags.run({"x": [True, False]})["y"].numpy(), [False, True])
    with pytest.raises(chipdock.errors.InvalidArgumentError, match="input 'x'"):
        flags.run({"x": [2]})


def test_numpy_scalars_have_a_dtype_of_their_own():
    loaded = chipdock.load(chain(1, shape=None))
    assert loaded(np.float32(2)).numpy() == -2
    with pytest.raises(chipdock.errors.InvalidArgumentError, match="float64"):
        loaded(np.float64(2))

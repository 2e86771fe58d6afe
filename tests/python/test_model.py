# SPDX-License-Identifier: Apache-2.0
"""load() and Model: shapes, views, folding, names, dtypes, data-dependent shapes."""

import numpy as np
import onnx
import pytest
from api_support import (
    BOOL,
    FLOAT,
    INT64,
    agrees,
    chain,
    mlp,
    model,
    open_cpu,
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
        [value("a"), value("b")],
        [value("z"), value("y")],
    )
    z, y = chipdock.load(two)(np.float32([5]), np.float32([3]))
    assert (z.numpy(), y.numpy()) == (-2, 2)
    with pytest.raises(chipdock.errors.InvalidArgumentError, match=r"2 inputs .* 3 were given"):
        chipdock.load(two)(1, 2, 3)


@pytest.mark.parametrize(
    "kind", ["numpy", "Array", "strided numpy", "strided Array", "list", "dlpack"]
)
def test_kinds_of_input(kind):
    x = floats(6, 8)
    given = {
        "numpy": lambda: x[::2],
        "Array": lambda: chipdock.array(x[::2]),
        "strided numpy": lambda: np.asfortranarray(x[::2]),
        "strided Array": lambda: chipdock.array(x)[::2],
        "list": x[::2].tolist,
        "dlpack": lambda: memoryview_of(x[::2]),
    }[kind]()
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
        [value("x", shape=[2, 3])],
        [value("y")],
        {"s": np.int64([6])},
    )
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


@pytest.mark.usefixtures("as_written")
def test_views_do_no_work():
    proto = model(
        [
            node("Reshape", ["x", "s"], ["a"]),
            node("Unsqueeze", ["a", "axes"], ["b"]),
            node("Squeeze", ["b", "axes"], ["c"]),
            node("Flatten", ["c"], ["d"], axis=1),
            node("Identity", ["d"], ["e"]),
            node("Relu", ["e"], ["y"]),
        ],
        [value("x", shape=["N", 6])],
        [value("y")],
        {"s": np.int64([-1, 2, 3]), "axes": np.int64([0])},
    )
    loaded = agrees(proto, {"x": floats(4, 6)})
    assert loaded.explain().counts == {"view": 5, "device": 1}
    assert loaded.run({"x": floats(1, 6)})["y"].shape == (1, 6)


def test_constants_are_folded():
    proto = model(
        [
            node("Add", ["c", "c"], ["d"]),
            node("Shape", ["d"], ["s"]),
            node("Cast", ["s"], ["f"], to=FLOAT),
            node("ReduceSum", ["f"], ["r"], keepdims=0),
            node("Mul", ["x", "r"], ["y"]),
        ],
        [value("x", shape=["N"])],
        [value("y")],
        {"c": np.ones((3, 4), np.float32)},
    )
    loaded = agrees(proto, {"x": floats(5)})
    assert loaded.explain().counts == {"folded": 4, "device": 1}


def test_nodes_that_nobody_reads_are_left_out():
    proto = model(
        [
            node("Neg", ["x"], ["y"]),
            node("Exp", ["x"], ["unused"]),
            node("Abs", ["unused"], ["also"]),
        ],
        [value("x")],
        [value("y")],
    )
    loaded = agrees(proto, {"x": floats(3)})
    assert [n.op for n in loaded.explain().nodes] == ["Neg"]


def test_a_model_without_inputs():
    proto = model(
        [node("Add", ["a", "b"], ["y"])],
        [],
        [value("y")],
        {"a": np.float32([1, 2]), "b": np.float32([3])},
    )
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
    with pytest.raises(chipdock.errors.InvalidArgumentError, match=r"missing: .'never'"):
        loaded.run({"x": floats(3)})
    with pytest.raises(chipdock.errors.InvalidArgumentError, match="'never' has shape"):
        loaded.run({"x": floats(3), "never": np.int64([1, 2, 3])})


def test_optional_inputs_and_outputs_of_operators():
    proto = model(
        [
            node("Clip", ["x", "", "hi"], ["a"]),
            node("Clip", ["x", "lo"], ["b"]),
            node("Clip", ["x"], ["c"]),
            node("MaxPool", ["p"], ["d"], kernel_shape=[2, 2]),
            node("TopK", ["x", "k"], ["", "at"]),
        ],
        [value("x", shape=["N"]), value("p", shape=[1, 1, "H", "W"])],
        [value("a"), value("b"), value("c"), value("d"), value("at", INT64)],
        {"hi": np.float32(0.5), "lo": np.float32(-0.5), "k": np.int64([2])},
    )
    agrees(proto, {"x": floats(9), "p": floats(1, 1, 5, 6)})


# Data-dependent shapes


def test_nonzero_then_gather():
    proto = model(
        [
            node("NonZero", ["m"], ["nz"]),
            node("Squeeze", ["nz", "axes"], ["at"]),
            node("Gather", ["x", "at"], ["g"], axis=0),
            node("Exp", ["g"], ["y"]),
            node("Shape", ["g"], ["s"]),
        ],
        [value("m", BOOL, ["N"]), value("x", shape=["N", 3])],
        [value("y"), value("s", INT64)],
        {"axes": np.int64([0])},
    )
    loaded = chipdock.load(proto)
    for mask in ([1, 0, 1, 1], [0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 0, 0]):
        feeds = {"m": np.array(mask, bool), "x": floats(4, 3)}
        same(loaded.run(feeds), reference(proto, feeds))


def test_shapes_steered_by_input_values():
    proto = model(
        [
            node("Range", ["zero", "n", "one"], ["r"]),
            node("Reshape", ["x", "s"], ["v"]),
            node("Expand", ["v", "s"], ["e"]),
            node("Slice", ["x", "a", "b"], ["p"]),
            node("ConstantOfShape", ["s"], ["c"]),
            node("TopK", ["x", "k"], ["t", "i"]),
        ],
        [
            value("n", INT64, []),
            value("x", shape=["N"]),
            value("s", INT64, ["R"]),
            value("a", INT64, [1]),
            value("b", INT64, [1]),
            value("k", INT64, [1]),
        ],
        [value("r", INT64), value("e"), value("p"), value("c"), value("t"), value("i", INT64)],
        {"zero": np.int64(0), "one": np.int64(1)},
    )
    loaded = chipdock.load(proto)
    for n, s, a, b, k in (
        (3, [2, 3], 1, 4, 2),
        (0, [6], 0, 6, 6),
        (7, [1, 6, 1], 5, 2, 0),
        (3, [3, 2], 0, 1, 1),
    ):
        feeds = {
            "n": np.int64(n),
            "x": floats(6),
            "s": np.int64(s),
            "a": np.int64([a]),
            "b": np.int64([b]),
            "k": np.int64([k]),
        }
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

# SPDX-License-Identifier: Apache-2.0
"""Graph inputs that are initializers as well: a run may leave them out or give another value."""

import gc
import threading

import numpy as np
import onnx
import pytest
from api_support import FLOAT, INT64, model, reference, value
from onnx import helper

import chipdock
import chipdock._defaults
from chipdock.errors import InvalidArgumentError

node = helper.make_node
X = np.float32([[1, -2, 3], [4, 5, -6]])


def affine(**changes):
    """y = x * scale + shift, where both have defaults."""
    inputs = [value("x", shape=["N", 3]), value("scale", shape=[]), value("shift", shape=[3])]
    weights = {"scale": np.float32(2), "shift": np.float32([1, 2, 3])}
    nodes = [node("Mul", ["x", "scale"], ["m"]), node("Add", ["m", "shift"], ["y"])]
    proto = model(nodes, inputs, [value("y", shape=["N", 3])], weights)
    proto.ir_version = changes.get("ir_version", proto.ir_version)
    return proto


def test_what_is_left_out_has_its_default():
    loaded = chipdock.load(affine())
    assert [v.name for v in loaded.inputs] == ["x"]
    assert [(v.name, v.dtype, v.shape) for v in loaded.defaults] == [
        ("scale", np.float32, ()), ("shift", np.float32, (3,)),
    ]  # fmt: skip
    np.testing.assert_array_equal(loaded(X).numpy(), X * 2 + [1, 2, 3])
    np.testing.assert_array_equal(loaded.run({"x": X})["y"].numpy(), X * 2 + [1, 2, 3])


@pytest.mark.parametrize("names", [["scale"], ["shift"], ["scale", "shift"]], ids=",".join)
def test_a_run_gives_another_value_and_the_next_one_has_the_default_again(names):
    loaded = chipdock.load(affine())
    other = {"scale": np.float32(-1), "shift": np.float32([0, 10, 20])}
    feeds = {"x": X} | {n: other[n] for n in names}
    want = reference(affine(), feeds)
    for _ in range(2):
        np.testing.assert_array_equal(loaded.run(feeds)["y"].numpy(), want["y"])
        np.testing.assert_array_equal(loaded.run({"x": X})["y"].numpy(), X * 2 + [1, 2, 3])
    wide = feeds | {"x": np.tile(X, (5, 1))}
    assert loaded.run(wide)["y"].shape == (10, 3)


def test_before_ir_version_4_every_initializer_is_an_input_and_none_is_a_default():
    loaded = chipdock.load(affine(ir_version=3))
    assert loaded.defaults == ()
    with pytest.raises(InvalidArgumentError, match=r"inputs \['x'\]; missing: \[\], unknown: \['s"):
        loaded.run({"x": X, "scale": np.float32(1)})


def test_shapes_that_hang_on_a_default_are_not_folded():
    """Reshape to a default shape, as exporters write it; inference has used the default."""
    proto = model(
        [node("Reshape", ["x", "to"], ["r"]), node("Relu", ["r"], ["y"])],
        [value("x", shape=["N", 3]), value("to", INT64, [2])],
        [value("y", shape=["A", "B"])],
        {"to": np.int64([3, -1])},
    )
    loaded = chipdock.load(proto)
    assert loaded(X).shape == (3, 2)
    assert loaded.run({"x": X, "to": np.int64([1, 6])})["y"].shape == (1, 6)
    got = loaded.run({"x": X, "to": np.int64([6, -1])})["y"].numpy()
    np.testing.assert_array_equal(got, np.maximum(X, 0).reshape(6, 1))


def test_what_is_folded_from_a_default_is_computed_from_the_given_value():
    proto = model(
        [node("Neg", ["w"], ["n"]), node("MatMul", ["x", "n"], ["y"])],
        [value("x", shape=["N", 3]), value("w", shape=[3, 2])],
        [value("y")],
        {"w": np.ones((3, 2), np.float32)},
    )
    loaded = chipdock.load(proto)
    np.testing.assert_array_equal(loaded(X).numpy(), -X @ np.ones((3, 2), np.float32))
    w = np.arange(6, dtype=np.float32).reshape(3, 2)
    np.testing.assert_array_equal(loaded.run({"x": X, "w": w})["y"].numpy(), -X @ w)


def test_bodies_read_the_given_value():
    then, other = (
        helper.make_graph([node(op, ["x", "w"], ["r"])], op, [], [value("r")])
        for op in ("Add", "Mul")
    )
    proto = model(
        [node("If", ["c"], ["y"], then_branch=then, else_branch=other)],
        [value("x"), value("c", onnx.TensorProto.BOOL, []), value("w")],
        [value("y")],
        {"w": np.float32([2])},
    )
    loaded = chipdock.load(proto)
    feeds = {"x": np.float32([5]), "c": np.array(False)}
    assert loaded.run(feeds)["y"].numpy().tolist() == [10]
    assert loaded.run(feeds | {"w": np.float32([3])})["y"].numpy().tolist() == [15]


def test_names_and_values_that_fit_nothing_are_named():
    loaded = chipdock.load(affine())
    with pytest.raises(InvalidArgumentError) as caught:
        loaded.run({"scale": np.float32(1), "w": 0})
    assert str(caught.value) == (
        "INVALID_ARGUMENT: model has the inputs ['x'] and, with defaults, ['scale', 'shift']; "
        "missing: ['x'], unknown: ['w']"
    )
    with pytest.raises(InvalidArgumentError, match="input 'scale' is float64, the model wants"):
        loaded.run({"x": X, "scale": np.float64(1)})
    with pytest.raises(InvalidArgumentError, match=r"'shift' has shape \[4\]"):
        loaded.run({"x": X, "shift": np.zeros(4, np.float32)})
    with pytest.raises(InvalidArgumentError, match=r"has 1 inputs \['x'\], 2 were given"):
        loaded(X, np.float32(1))


def test_a_binding_takes_them_and_keeps_its_outputs():
    loaded = chipdock.load(affine())
    out = chipdock.empty((2, 3), np.float32)
    binding = loaded.bind().input("x", X).output("y", out)
    binding.run()
    np.testing.assert_array_equal(out.numpy(), X * 2 + [1, 2, 3])
    binding.input("scale", np.float32(0))
    assert binding.run()["y"].overlaps(out)
    np.testing.assert_array_equal(out.numpy(), np.float32([[1, 2, 3]] * 2))
    with pytest.raises(InvalidArgumentError, match=r"unknown: \['w'\]"):
        binding.input("w", X)


def test_memory_is_that_of_the_run_that_is_meant():
    loaded = chipdock.load(affine())
    plain = loaded.memory({"x": [2, 3]})
    given = loaded.memory({"x": [2, 3], "scale": [], "shift": [3]})
    assert plain["weight_bytes"] > given["weight_bytes"] == 0


@pytest.mark.parametrize("kind", ["path", "bytes", "proto"])
def test_the_model_may_change_after_it_was_loaded(tmp_path, kind):
    """Weights above 4 KB are left in the file, from which the second plan reads them."""
    proto = affine()
    big = np.arange(3 * 2000, dtype=np.float32).reshape(3, 2000)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(big, "big"))
    proto.graph.node.append(node("MatMul", ["y", "big"], ["z"]))
    proto.graph.output[0].CopyFrom(value("z"))
    want = (X * 3 + [1, 2, 3]) @ big.astype(np.float64)
    path = tmp_path / "m.onnx"
    onnx.save(proto, path)
    loaded = chipdock.load({"path": path, "bytes": path.read_bytes(), "proto": proto}[kind])
    path.unlink()
    del proto.graph.node[:]
    got = loaded.run({"x": X, "scale": np.float32(3)})["z"].numpy()
    np.testing.assert_allclose(got, want, rtol=1e-6)
    del loaded
    gc.collect()  # an open file would warn, and warnings are errors


def test_sparse_defaults():
    proto = model(
        [node("Add", ["x", "s"], ["y"])],
        [value("x", shape=[4]), value("s", shape=[4])],
        [value("y")],
    )
    values = onnx.numpy_helper.from_array(np.float32([7]), "s")
    indices = onnx.numpy_helper.from_array(np.int64([2]), "i")
    proto.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [4]))
    loaded = chipdock.load(proto)
    x = np.float32([0, 1, 2, 3])
    assert loaded(x).numpy().tolist() == [0, 1, 9, 3]
    assert loaded.run({"x": x, "s": x})["y"].numpy().tolist() == [0, 2, 4, 6]


def test_threads_share_the_plans():
    loaded = chipdock.load(affine())
    results = [None] * 6

    def work(i):
        feeds = {"x": X} if i % 2 else {"x": X, "scale": np.float32(i)}
        results[i] = loaded.run(feeds)["y"].numpy()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(results))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, got in enumerate(results):
        np.testing.assert_array_equal(got, X * (2 if i % 2 else i) + np.float32([1, 2, 3]))


def test_a_default_that_no_node_reads_may_be_given():
    proto = model(
        [node("Neg", ["x"], ["y"])], [value("x"), value("w", FLOAT, [1])], [value("y")],
        {"w": np.float32([1])},
    )  # fmt: skip
    loaded = chipdock.load(proto)
    assert loaded.run({"x": X, "w": np.float32([2])})["y"].numpy().tolist() == (-X).tolist()


def test_a_default_of_no_declared_type_has_that_of_its_value():
    proto = affine()
    proto.graph.input[1].ClearField("type")
    loaded = chipdock.load(proto)
    assert loaded.defaults[0].dtype == np.float32
    got = loaded.run({"x": X, "scale": np.float32(3)})["y"].numpy()
    np.testing.assert_array_equal(got, X * 3 + [1, 2, 3])


def test_a_plan_that_is_there_does_not_wait_for_one_that_is_made(monkeypatch):
    loaded = chipdock.load(affine())
    scaled, shifted = {"x": X, "scale": np.float32(3)}, {"x": X, "shift": np.zeros(3, np.float32)}
    loaded.run(scaled)
    begun, end = threading.Event(), threading.Event()
    lower = chipdock._defaults.lower

    def slow(*arguments):
        begun.set()
        assert end.wait(30)
        return lower(*arguments)

    monkeypatch.setattr("chipdock._defaults.lower", slow)
    thread = threading.Thread(target=loaded.run, args=(shifted,))
    thread.start()
    try:
        assert begun.wait(30)
        np.testing.assert_array_equal(loaded.run(scaled)["y"].numpy(), X * 3 + [1, 2, 3])
    finally:
        end.set()
        thread.join()
    np.testing.assert_array_equal(loaded.run(shifted)["y"].numpy(), X * 2)


def test_a_plan_that_could_not_be_made_is_tried_again(monkeypatch):
    loaded = chipdock.load(affine())
    feeds = {"x": X, "scale": np.float32(3)}
    with monkeypatch.context() as broken:
        broken.setattr("chipdock._defaults.lower", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            loaded.run(feeds)
    np.testing.assert_array_equal(loaded.run(feeds)["y"].numpy(), X * 3 + [1, 2, 3])

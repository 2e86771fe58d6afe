# SPDX-License-Identifier: Apache-2.0
"""Gradients in models of all opsets: older ones are brought up to what a backward pass needs."""

import numpy as np
import onnx
import pytest
from gradient_support import check_gradients, gradient, normal, numeric, training_model
from onnx import helper

import chipdock

node = helper.make_node
X, W = normal(3, 4), normal(4, 2, seed=1)


@pytest.mark.parametrize("opset", [7, 9, 11, 12, 13, 17])
def test_older_opsets_are_brought_up(opset):
    axes = {"axes": [1]} if opset < 13 else {}
    names = ["s"] if opset < 13 else ["s", "axes"]
    nodes = [
        node("Gemm", ["x", "w", "c"], ["h"]),
        node("Softmax", ["h"], ["s"], axis=1),
        node("Squeeze", ["row"], ["r"], axes=[0]) if axes else node("Identity", ["c"], ["r"]),
        node("Mul", ["s", "r"], ["m"]),
        node("Mul", ["m", "m"], ["q"]),
        node("ReduceSum", ["q", *names[1:]], ["y"], keepdims=0, **axes),
    ]
    feeds = {"x": X, "w": W, "c": normal(2, seed=3), "row": normal(1, 2, seed=4)}
    if not axes:
        del feeds["row"]
    constants = {} if axes else {"axes": np.array([1])}
    check_gradients(nodes, feeds, opset=opset, constants=constants)


OLD = {
    "softmax over many axes": (11, "Softmax", {"axis": 1}),
    "log softmax": (12, "LogSoftmax", {"axis": 0}),
    "squeeze": (11, "Squeeze", {"axes": [0]}),
    "clip": (7, "Clip", {"min": -0.5, "max": 0.6}),
    "pad": (10, "Pad", {"pads": [0, 1, 0, 0, 0, 1]}),
    "slice": (9, "Slice", {"starts": [1], "ends": [3], "axes": [1]}),
    "sum": (12, "ReduceSum", {"axes": [-1], "keepdims": 0}),
    "mean": (17, "ReduceMean", {"axes": [1]}),
    "drop": (10, "Dropout", {"ratio": 0.3}),
}


@pytest.mark.parametrize("case", OLD)
def test_names_survive_the_way_to_a_newer_opset(case):
    opset, op, attributes = OLD[case]
    nodes = [
        node("Identity", ["x"], ["h"]),
        node(op, ["h"], ["m"], **attributes),
        node("Mul", ["m", "m"], ["y"]),
        gradient(["h"], "m", ["dh"]),
        gradient(["h"], "y", ["dy"], name="other"),
    ]
    # Clip knew no other before opset 12, and onnx's converter none for Pad before opset 11.
    dtype = np.float32 if op in {"Clip", "Pad"} else np.float64
    feeds = {"x": normal(1, 3, 4).astype(dtype)}
    net = chipdock.load(training_model(nodes, feeds, ["m", "dh", "dy"], opset=opset))
    found = {n: a.numpy() for n, a in net.run(feeds).items()}

    def total(power):
        return lambda at: float((net.run(at)["m"].numpy().astype(np.float64) ** power).sum())

    loose = 1e-6 if dtype == np.float64 else 0.1
    np.testing.assert_allclose(found["dh"], numeric(total(1), feeds, "x"), atol=loose)
    np.testing.assert_allclose(found["dy"], numeric(total(2), feeds, "x"), atol=loose)


@pytest.mark.parametrize("opset", [18, 20, 23, onnx.defs.onnx_opset_version()])
def test_newer_opsets(opset):
    nodes = [
        node("Conv", ["x", "k"], ["c"], pads=[1, 1]),
        node("LayerNormalization", ["c", "s"], ["n"]),
        node("Slice", ["n", "one", "three", "one"], ["p"]),
        node("ReduceMax", ["p", "one"], ["m"], keepdims=0),
        node("Softmax", ["m"], ["y"]),
    ]
    feeds = {"x": normal(2, 2, 5), "k": normal(3, 2, 3, seed=1), "s": normal(5, seed=2)}
    constants = {"one": np.array([1]), "three": np.array([3])}
    check_gradients(nodes, feeds, constants=constants, opset=opset, tolerance=1e-5)


def test_weights_that_stay_in_a_large_file(tmp_path):
    """A file of a megabyte keeps its weights apart; they get through a conversion all the same."""
    w = normal(512, 300, seed=1)
    nodes = [node("MatMul", ["x", "w"], ["h"]), node("Tanh", ["h"], ["y"])]
    x = normal(2, 512) / 30
    proto = training_model(
        [*nodes, gradient(["x", "w"], "y")], {"x": x}, ["dx", "dw"], constants={"w": w}, opset=12
    )
    path = tmp_path / "net.onnx"
    onnx.save(proto, path)
    found = chipdock.load(path).run({"x": x})
    slope = 1 - np.tanh(x @ w) ** 2
    np.testing.assert_allclose(found["dx"].numpy(), slope @ w.T, atol=1e-9)
    np.testing.assert_allclose(found["dw"].numpy(), x.T @ slope, atol=1e-9)

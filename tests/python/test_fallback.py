# SPDX-License-Identifier: Apache-2.0
"""The fallback policy: error names every node, warn warns, allow runs; all of it is shown."""

import warnings

import numpy as np
import pytest
from api_support import BOOL, INT64, agrees, mlp, model, open_cpu, open_fake, reference, same, value
from onnx import helper

import chipdock

node = helper.make_node


@pytest.fixture(scope="module")
def nano():
    return open_fake("nano")


def test_error_lists_all_nodes(nano):
    with pytest.raises(chipdock.errors.UnsupportedError) as caught:
        chipdock.load(mlp(), nano)
    text = str(caught.value)
    assert text.startswith("UNSUPPORTED: 5 of 5 nodes cannot run on nano:0: ")
    for op in ("MatMul", "Add", "Relu", "Softmax"):
        assert op in text
    assert text.endswith('fallback="allow" to run nodes without a kernel on the CPU plugin')


def test_error_is_the_default_and_counts_what_it_does_not_show(nano):
    nodes = [node("Neg", [f"t{i}"], [f"t{i + 1}"], name=f"n{i}") for i in range(20)]
    proto = model(nodes, [value("t0")], [value("t20")])
    with pytest.raises(
        chipdock.errors.UnsupportedError, match=r"20 of 20 nodes .*n0' and 19 more \("
    ):
        chipdock.load(proto, nano)


def test_error_names_nodes_of_branches(nano):
    def branch(op):
        return helper.make_graph([node(op, ["x"], ["r"], name=f"in {op}")], "b", [], [value("r")])

    proto = model(
        [
            node("Exp", ["x"], ["e"], name="before"),
            node("If", ["c"], ["y"], then_branch=branch("Neg"), else_branch=branch("Abs")),
        ],
        [value("c", BOOL, []), value("x")],
        [value("y"), value("e")],
    )
    with pytest.raises(chipdock.errors.UnsupportedError) as caught:
        chipdock.load(proto, nano)
    for name in ("before", "in Neg", "in Abs"):
        assert name in str(caught.value)


def test_warn_warns_once_with_all_operators_and_runs(nano):
    x = np.ones((2, 8), np.float32)
    with pytest.warns(chipdock.FallbackWarning, match="Add, MatMul, Relu, Softmax") as seen:
        loaded = chipdock.load(mlp(), nano, fallback="warn")
    assert len(seen) == 1
    assert seen[0].filename == __file__
    same(loaded.run({"x": x}), reference(mlp(), {"x": x}))


def test_warn_is_silent_without_a_fallback():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chipdock.load(mlp(), fallback="warn")
        chipdock.load(mlp(), open_cpu(), fallback="warn")


def test_allow_says_where_each_node_ran(nano):
    loaded = agrees(mlp(), {"x": np.ones((2, 8), np.float32)}, nano, fallback="allow")
    for line in loaded.explain().nodes:
        assert (line.placement, line.device) == ("fallback", "cpu:0")
        assert "nano:0" in line.reason
        assert line.kernel


def test_views_never_fall_back(nano):
    proto = model(
        [node("Reshape", ["x", "s"], ["a"]), node("Identity", ["a"], ["y"])],
        [value("x", shape=["N"])],
        [value("y")],
        {"s": np.int64([2, -1])},
    )
    loaded = agrees(proto, {"x": np.arange(6, dtype=np.float32)}, nano)
    assert loaded.explain().counts == {"view": 2}


def test_shape_work_is_no_fallback(nano):
    proto = model(
        [
            node("Shape", ["x"], ["s"]),
            node("Gather", ["s", "zero"], ["n"]),
            node("Mul", ["n", "two"], ["m"]),
            node("Unsqueeze", ["m", "zeros"], ["u"]),
            node("Reshape", ["x", "u"], ["y"]),
        ],
        [value("x", shape=["N", 2])],
        [value("y")],
        {"zero": np.int64(0), "two": np.int64(2), "zeros": np.int64([0])},
    )
    loaded = agrees(proto, {"x": np.ones((3, 2), np.float32)}, nano)
    assert loaded.explain().counts == {"shape": 3, "view": 2}


def test_results_are_on_the_models_device(nano):
    loaded = chipdock.load(mlp(), nano, fallback="allow")
    got = loaded.run({"x": np.ones((2, 8), np.float32)})["y"]
    assert got.device is nano
    assert loaded.device is nano


def test_a_device_with_some_kernels_gets_its_nodes():
    work = open_fake("work")
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("test", 1)]
    proto = model(
        [node("Add", ["x", "x"], ["a"]), node("Scale", ["a", "k"], ["y"], domain="test")],
        [value("x", INT64, ["N"])],
        [value("y", INT64)],
        {"k": np.int64(3)},
        opsets=opsets,
    )
    with pytest.raises(chipdock.errors.UnsupportedError, match="operator"):
        chipdock.load(
            proto, work, fallback="allow"
        )  # an operator the runtime has no shape function for


@pytest.mark.parametrize("op", ["Neg", "Add"])
def test_run_op_never_falls_back(nano, op):
    arrays = [chipdock.array(np.float32([1]), nano)] * (1 if op == "Neg" else 2)
    with pytest.raises(chipdock.errors.UnsupportedError, match=op):
        chipdock.run_op(op, *arrays)


def test_the_fallback_is_offered_where_it_helps_alone(nano, monkeypatch):
    monkeypatch.delenv("CHIPDOCK_FALLBACK", raising=False)
    unknown = model([node("Swallow", ["x"], ["y"], domain="com.acme")], [value("x")], [value("y")])
    unknown.opset_import.add(domain="com.acme", version=1)
    for device, fallback in ((nano, "error"), (nano, "allow"), ("cpu:0", "error")):
        with pytest.raises(chipdock.errors.UnsupportedError, match="Swallow") as caught:
            chipdock.load(unknown, device, fallback=fallback)
        assert "fallback" not in str(caught.value)
    a = chipdock.array(np.ones(2, np.float32), nano)
    with pytest.raises(chipdock.errors.UnsupportedError, match="; set CHIPDOCK_FALLBACK=allow to"):
        chipdock.run_op("Add", a, a)
    monkeypatch.setenv("CHIPDOCK_FALLBACK", "allow")
    assert chipdock.run_op("Add", a, a).numpy().tolist() == [2, 2]

# SPDX-License-Identifier: Apache-2.0
"""Operators that ONNX defines by a body: expanded where there is no kernel, and only there."""

import numpy as np
import onnx
import pytest
from api_support import FLOAT, agrees, model, value
from onnx import helper

import chipdock

node = helper.make_node


def operators(proto):
    return [n.op for n in chipdock.load(proto).explain().nodes]


def test_a_function_without_kernel_is_expanded_and_agrees():
    proto = model(
        [node("MeanVarianceNormalization", ["x"], ["y"], axes=[0, 2])],
        [value("x", shape=["N", "C", "L"])],
        [value("y")],
    )
    x = np.random.default_rng(0).random((3, 4, 5), np.float32)
    agrees(proto, {"x": x})
    assert "ReduceMean" in operators(proto)


def test_a_function_with_a_kernel_stays_whole():
    proto = model([node("Softmax", ["x"], ["y"])], [value("x", shape=["N", 4])], [value("y")])
    assert operators(proto) == ["Softmax"]


def test_two_calls_of_one_function_do_not_share_names():
    proto = model(
        [
            node("MeanVarianceNormalization", ["x"], ["a"], axes=[1]),
            node("MeanVarianceNormalization", ["a"], ["y"], axes=[0]),
        ],
        [value("x", shape=["N", "C"])],
        [value("y")],
    )
    agrees(proto, {"x": np.random.default_rng(1).random((3, 4), np.float32)})


def test_a_function_in_a_branch_is_expanded():
    def branch(op, **attributes):
        return helper.make_graph([node(op, ["x"], ["r"], **attributes)], op, [], [value("r")])

    proto = model(
        [
            node(
                "If",
                ["c"],
                ["y"],
                then_branch=branch("MeanVarianceNormalization", axes=[0]),
                else_branch=branch("Neg"),
            )
        ],
        [value("c", onnx.TensorProto.BOOL, []), value("x", shape=["N"])],
        [value("y")],
    )
    got = chipdock.load(proto)(np.array(True), np.float32([1, 3])).numpy()
    np.testing.assert_allclose(got, [-1, 1], rtol=1e-4)


@pytest.mark.parametrize("scale", [None, 3.0], ids=["default", "given"])
def test_attributes_of_a_local_function_reach_its_body(scale):
    body = helper.make_node("LeakyRelu", ["a"], ["b"])
    body.attribute.append(
        onnx.AttributeProto(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
    )
    function = helper.make_function(
        "mine",
        "Bend",
        ["a"],
        ["b"],
        [body],
        [helper.make_opsetid("", 21)],
        attribute_protos=[helper.make_attribute("slope", 0.5)],
    )
    given = {} if scale is None else {"slope": scale}
    proto = model(
        [node("Bend", ["x"], ["y"], domain="mine", **given)],
        [value("x", FLOAT, ["N"])],
        [value("y")],
        opsets=[helper.make_opsetid("", 21), helper.make_opsetid("mine", 1)],
        functions=[function],
    )
    got = chipdock.load(proto)(np.float32([-2, 2])).numpy()
    np.testing.assert_allclose(got, [-2 * (scale or 0.5), 2])


@pytest.mark.parametrize("axis", [1, -1])
@pytest.mark.parametrize("backwards", [0, 1])
def test_scan_along_any_axis_and_direction(axis, backwards):
    body = helper.make_graph(
        [node("Add", ["s", "e"], ["s2"]), node("Identity", ["s2"], ["o"])],
        "body",
        [value("s"), value("e")],
        [value("s2"), value("o")],
    )
    proto = model(
        [
            node(
                "Scan",
                ["x_s", "x_e"],
                ["y", "r"],
                body=body,
                num_scan_inputs=1,
                scan_input_axes=[axis],
                scan_input_directions=[backwards],
                scan_output_axes=[axis],
                scan_output_directions=[backwards],
            )
        ],
        [value("x_s"), value("x_e")],
        [value("y"), value("r")],
    )
    rows = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    feeds = {"x_s": np.zeros(np.delete(rows.shape, axis), np.float32), "x_e": rows}
    got = chipdock.load(proto).run(feeds)
    turned = np.flip(rows, axis) if backwards else rows
    sums = np.cumsum(turned, axis)
    np.testing.assert_array_equal(got["y"].numpy(), rows.sum(axis))
    np.testing.assert_array_equal(got["r"].numpy(), np.flip(sums, axis) if backwards else sums)

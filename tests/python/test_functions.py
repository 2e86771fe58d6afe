# SPDX-License-Identifier: Apache-2.0
"""Operators that ONNX defines by a body: expanded where there is no kernel, and only there."""

import itertools

import ml_dtypes
import numpy as np
import onnx
import pytest
from api_support import BOOL, FLOAT, INT64, agrees, model, value
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


def calling(name, callee, times):
    """A local function of `times` calls in a row of another one, or of Neg."""
    names = ["x", *(f"t{i}" for i in range(1, times)), "y"]
    domain = "" if callee == "Neg" else "local"
    body = [node(callee, [a], [b], domain=domain) for a, b in itertools.pairwise(names)]
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("local", 1)]
    return helper.make_function("local", name, ["x"], ["y"], body, opsets)


def with_functions(functions):
    graph = helper.make_graph(
        [node("F0", ["x"], ["y"], domain="local")], "g", [value("x", shape=[2])], [value("y")]
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("local", 1)]
    return helper.make_model(graph, functions=functions, opset_imports=opsets, ir_version=10)


def chain(length, times):
    last = length - 1
    return [calling(f"F{i}", f"F{i + 1}" if i < last else "Neg", times) for i in range(length)]


@pytest.mark.parametrize(
    ("functions", "match"),
    [
        (chain(40, 2), "has 1099511627776 nodes when .* at most 1000000 are allowed"),
        ([calling("F0", "F0", 1)], "'F0' calls itself"),
        ([calling("F0", "F1", 1), calling("F1", "F0", 2)], "'F0' calls itself"),
        (chain(300, 1), "more than 100 deep"),
        (chain(3000, 1), "more than 100 deep"),
    ],
    ids=["doubling", "itself", "in turns", "deep", "deeper"],
)
def test_functions_that_cannot_be_inlined_are_refused_at_once(functions, match):
    proto = with_functions(functions)
    for source in (proto, proto.SerializeToString()):
        with pytest.raises(chipdock.errors.InvalidArgumentError, match=match):
            chipdock.load(source)


def test_functions_of_functions_run():
    x = np.float32([1, -2])
    np.testing.assert_array_equal(chipdock.load(with_functions(chain(5, 3)))(x).numpy(), -x)
    assert operators(with_functions(chain(3, 2))) == ["Neg"] * 8


def test_bodies_that_nest_deeper_than_a_file_can_are_refused():
    """Each function calls the next one in a Loop; protobuf holds 100 messages in each other."""
    functions = []
    for i in range(60):
        inner = node(f"F{i + 1}" if i < 59 else "Neg", ["x"], ["r"], domain="local" * (i < 59))
        formal = [value("i", INT64, []), value("d", BOOL, [])]
        body = helper.make_graph([inner], "b", formal, [value("d", BOOL, []), value("r")])
        loop = node("Loop", ["", ""], ["y"], body=body)
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid("local", 1)]
        functions.append(helper.make_function("local", f"F{i}", ["x"], ["y"], [loop], opsets))
    with pytest.raises(chipdock.errors.InvalidArgumentError, match="cannot be inlined: "):
        chipdock.load(with_functions(functions))


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("weights", [False, True])
def test_a_loss_of_bfloat16_is_rounded_once(weights, outputs):
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((5, 4)).astype(ml_dtypes.bfloat16)
    labels = np.int64([0, 3, 1, 2, 3])
    feeds = [scores, labels, *([np.array([1, 2, 0.5, 3]).astype(scores.dtype)] if weights else [])]
    got = chipdock.run_op("SoftmaxCrossEntropyLoss", *feeds, outputs=outputs, ignore_index=2)
    wide = [f.astype(np.float32) if f.dtype == scores.dtype else f for f in feeds]
    want = chipdock.run_op("SoftmaxCrossEntropyLoss", *wide, outputs=outputs, ignore_index=2)
    pairs = zip(got, want, strict=True) if outputs > 1 else [(got, want)]
    for mine, theirs in pairs:
        assert mine.dtype == scores.dtype
        rounded = theirs.numpy().astype(scores.dtype)
        np.testing.assert_array_equal(mine.numpy().view(np.uint16), rounded.view(np.uint16))


def test_a_loss_of_bfloat16_leaves_every_name_to_the_model():
    names = ["y/0", "labels", "y/2", "y/wide"]
    bf16 = onnx.TensorProto.BFLOAT16
    loss = helper.make_node("SoftmaxCrossEntropyLoss", names[:3], ["y", "y/wide"])
    kinds = [bf16, onnx.TensorProto.INT64, bf16, bf16]
    values = [helper.make_tensor_value_info(n, k, None) for n, k in zip(names, kinds, strict=True)]
    y = helper.make_tensor_value_info("y", bf16, [])
    graph = helper.make_graph([loss], "g", values[:3], [y, values[3]])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    scores, weights = np.eye(3, dtype=ml_dtypes.bfloat16), np.ones(3, ml_dtypes.bfloat16)
    feeds = dict(zip(names, [scores, np.int64([0, 1, 2]), weights], strict=False))
    got = chipdock.load(proto).run(feeds)
    assert float(got["y"].numpy()) == pytest.approx(np.log(np.e + 2) - 1, rel=2**-8)
    assert got["y/wide"].shape == (3, 3)

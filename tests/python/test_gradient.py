# SPDX-License-Identifier: Apache-2.0
"""What a Gradient node means: which values it names, what it is given, what it refuses."""

import numpy as np
import onnx
import pytest
from api_support import value
from gradient_support import (
    DOUBLE,
    check_gradients,
    gradient,
    normal,
    training_model,
)
from onnx import TensorProto, helper

import chipdock
from chipdock.errors import InvalidArgumentError, UnsupportedError

node = helper.make_node


def run(nodes, feeds, outputs, **kind):
    found = chipdock.load(training_model(nodes, feeds, outputs, **kind)).run(feeds)
    return [found[name].numpy() for name in outputs]


X, W = normal(3, 4), normal(4, 2, seed=1)
LINEAR = [node("MatMul", ["x", "w"], ["h"]), node("Tanh", ["h"], ["y"])]


def test_a_value_of_many_elements_is_summed():
    (dx,) = run([node("Mul", ["x", "x"], ["y"]), gradient(["x"], "y")], {"x": X}, ["dx"])
    np.testing.assert_allclose(dx, 2 * X)


@pytest.mark.parametrize("kind", [{}, {"dynamic": True}, {"opset": 12}, {"opset": 7}], ids=str)
def test_values_of_other_names_and_extents_can_be_given(kind):
    """The second output is of a graph fed with v, which has more rows than x."""
    feeds = {"x": X, "w": W, "v": normal(5, 4, seed=3)}
    nodes = [*LINEAR, gradient(["x", "w"], "y", ["dv", "dw"], inputs=["v", "w"])]
    y, dv, dw = run(nodes, feeds, ["y", "dv", "dw"], **kind)
    slope = 1 - np.tanh(feeds["v"] @ W) ** 2
    np.testing.assert_allclose(y, np.tanh(X @ W))
    np.testing.assert_allclose(dv, slope @ W.T)
    np.testing.assert_allclose(dw, feeds["v"].T @ slope)


def test_an_intermediate_value_can_be_differentiated_by_and_replaced():
    feeds = {"x": X, "w": W, "g": normal(3, 2, seed=4)}
    there, elsewhere = gradient(["h"], "y", ["dh"]), gradient(["h"], "y", ["dg"], inputs=["g"])
    dh, dg = run([*LINEAR, there, elsewhere], feeds, ["dh", "dg"])
    np.testing.assert_allclose(dh, 1 - np.tanh(X @ W) ** 2)
    np.testing.assert_allclose(dg, 1 - np.tanh(feeds["g"]) ** 2)


def test_values_of_zs_are_given_and_not_differentiated_by():
    feeds = {"x": X, "w": W, "v": normal(3, 4, seed=3)}
    nodes = [*LINEAR, gradient(["w"], "y", zs=["x"], inputs=["w", "v"])]
    (dw,) = run(nodes, feeds, ["dw"])
    np.testing.assert_allclose(dw, feeds["v"].T @ (1 - np.tanh(feeds["v"] @ W) ** 2))


def test_one_value_given_twice_counts_for_each_name_alone():
    nodes = [node("Mul", ["a", "b"], ["y"]), gradient(["a", "b"], "y", inputs=["a", "a"])]
    feeds = {"a": np.array([3.0]), "b": np.array([5.0])}
    da, db = run(nodes, feeds, ["da", "db"])
    assert (da, db) == (3.0, 3.0)
    nodes = [node("Mul", ["a", "b"], ["y"]), gradient(["a"], "y", zs=["b"], inputs=["a", "a"])]
    assert run(nodes, feeds, ["da"]) == [3.0]


def test_swapped_values():
    nodes = [node("Div", ["a", "b"], ["y"]), gradient(["a", "b"], "y", inputs=["b", "a"])]
    da, db = run(nodes, {"a": np.array([2.0]), "b": np.array([3.0])}, ["da", "db"])
    assert (da, db) == (1 / 2, -3 / 4)


def test_outputs_are_optional():
    feeds = {"x": X, "w": W}
    (dw,) = run([*LINEAR, gradient(["x", "w"], "y", ["", "dw"])], feeds, ["dw"])
    np.testing.assert_allclose(dw, X.T @ (1 - np.tanh(X @ W) ** 2))
    (dx,) = run([*LINEAR, gradient(["x", "w"], "y", ["dx"])], feeds, ["dx"])
    assert dx.shape == X.shape


def test_what_y_does_not_hang_on_has_a_gradient_of_zeros():
    feeds = {"x": X, "w": W}
    (dw,) = run([node("Exp", ["x"], ["y"]), gradient(["w"], "y")], feeds, ["dw"], dynamic=True)
    np.testing.assert_array_equal(dw, np.zeros_like(W))


def test_a_value_by_itself_has_ones():
    (dx,) = run([gradient(["x"], "x")], {"x": X}, ["dx"])
    np.testing.assert_array_equal(dx, np.ones_like(X))


def test_integers_and_steps_have_no_gradient():
    nodes = [
        node("Cast", ["x"], ["i"], to=TensorProto.INT32),
        node("Cast", ["i"], ["y"], to=DOUBLE),
        gradient(["x"], "y"),
    ]
    np.testing.assert_array_equal(run(nodes, {"x": X}, ["dx"])[0], np.zeros_like(X))


def test_second_derivatives():
    """d3(x**4)/dx3 = 24 x, and a mixed derivative of the operator's own text."""
    nodes = [
        node("Mul", ["x", "x"], ["s"]),
        node("Mul", ["s", "s"], ["y"]),
        gradient(["x"], "c", ["d"], name="third"),  # nodes need no order
        gradient(["x"], "y", ["a"], name="first"),
        gradient(["x"], "a", ["c"], name="second"),
    ]
    a, c, d = run(nodes, {"x": X}, ["a", "c", "d"])
    np.testing.assert_allclose(a, 4 * X**3)
    np.testing.assert_allclose(c, 12 * X**2)
    np.testing.assert_allclose(d, 24 * X)


def test_second_derivatives_of_values_that_nothing_else_reads():
    nodes = [
        node("Sin", ["x"], ["y"]),
        gradient(["x"], "y", ["a"], name="first"),
        gradient(["x"], "a", ["c"], name="second"),
    ]
    (c,) = run(nodes, {"x": X}, ["c"])
    np.testing.assert_allclose(c, -np.sin(X))


CURVED = {
    "tanh": [node("Tanh", ["x"], ["t"]), node("MatMul", ["t", "t"], ["y"])],
    "softmax": [node("Softmax", ["x"], ["t"]), node("Mul", ["t", "x"], ["y"])],
    "norm": [node("LayerNormalization", ["x", "row"], ["y"])],
    "division": [node("Exp", ["x"], ["t"]), node("ReduceSum", ["t", "axis"], ["z"]),
                 node("Div", ["t", "z"], ["y"])],
    "slices": [node("Slice", ["x", "axis", "two", "axis"], ["t"]), node("Mul", ["t", "x"], ["y"])],
    "rows": [node("Gather", ["x", "two"], ["t"]), node("Mul", ["t", "x"], ["y"])],
    "pads": [node("Pad", ["x", "pads"], ["t"]), node("Mul", ["t", "t"], ["y"])],
    "spread": [node("Max", ["x", "row"], ["t"]), node("Pow", ["t", "two"], ["y"])],
}  # fmt: skip
CONSTANTS = {
    "row": normal(3, seed=5),
    "axis": np.array([1]),
    "two": np.array([2]),
    "pads": np.array([0, 1, 0, 0]),
}


@pytest.mark.parametrize("case", CURVED)
@pytest.mark.parametrize("dynamic", [False, True])
def test_gradients_of_gradients_match_differences_of_gradients(case, dynamic):
    nodes = [*CURVED[case], node("Sin", ["y"], ["w"]), gradient(["x"], "w", ["g"])]
    check_gradients(
        nodes, {"x": normal(3, 3)}, y="g", constants=CONSTANTS, dynamic=dynamic, tolerance=1e-5
    )


def test_gradient_of_the_gradient_of_a_convolution():
    image = [node("Conv", ["x", "w"], ["h"], strides=[2, 1], pads=[1, 0, 0, 1])]
    nodes = [*image, node("Tanh", ["h"], ["y"]), gradient(["x"], "y", ["g"])]
    feeds = {"x": normal(1, 2, 4, 4), "w": normal(2, 2, 3, 2, seed=1)}
    check_gradients(nodes, feeds, y="g", tolerance=1e-5)


def test_equal_symbols_and_broadcasting_beside_them():
    """Extents that have one name are one; a named one against 1 or another is looked at."""
    nodes = [node("Mul", ["a", "b"], ["y"]), gradient(["a", "b"], "y")]
    shapes = {"a": ["N", "M"], "b": ["K", "M"]}
    proto = training_model(nodes, {"a": X, "b": X}, ["da", "db"])
    del proto.graph.input[:]
    proto.graph.input.extend(value(n, DOUBLE, s) for n, s in shapes.items())
    net = chipdock.load(proto)
    for rows in (3, 1):
        a, b = normal(3, 4), normal(rows, 4, seed=1)
        found = net.run({"a": a, "b": b})
        np.testing.assert_allclose(found["da"].numpy(), np.broadcast_to(b, a.shape))
        wanted = a if rows == 3 else a.sum(0, keepdims=True)
        np.testing.assert_allclose(found["db"].numpy(), wanted)


def test_stale_extents_of_computed_values_are_not_believed():
    nodes = [node("Exp", ["b"], ["e"]), node("Mul", ["a", "e"], ["y"]), gradient(["a", "b"], "y")]
    a, b = normal(3, 4), normal(1, 4, seed=1)
    proto = training_model(nodes, {"a": a, "b": b}, ["y", "da", "db"])
    del proto.graph.output[0]
    proto.graph.output.append(value("y", DOUBLE, [1, 4]))
    proto.graph.value_info.append(value("e", DOUBLE, [3, 4]))
    found = chipdock.load(proto).run({"a": a, "b": b})
    np.testing.assert_allclose(found["db"].numpy(), a.sum(0, keepdims=True) * np.exp(b))


def test_dropout_in_training_uses_its_own_mask():
    constants = {"r": np.array(0.4), "t": np.array(True)}
    nodes = [node("Dropout", ["x", "r", "t"], ["y"]), gradient(["x"], "y")]
    x = np.ones((40, 50))
    y, dx = run(nodes, {"x": x}, ["y", "dx"], constants=constants)
    np.testing.assert_allclose(y, dx)
    assert 0.5 < np.count_nonzero(dx) / dx.size < 0.7


def test_functions_of_the_model_are_differentiated_inside():
    body = helper.make_function(
        "own", "Cube", ["a"], ["b"],
        [node("Mul", ["a", "a"], ["s"]), node("Mul", ["s", "a"], ["b"])],
        [helper.make_opsetid("", 21)],
    )  # fmt: skip
    proto = training_model(
        [node("Cube", ["x"], ["y"], domain="own"), gradient(["x"], "y")], {"x": X}, ["dx"]
    )
    proto.functions.append(body)
    proto.opset_import.append(helper.make_opsetid("own", 1))
    np.testing.assert_allclose(chipdock.load(proto).run({"x": X})["dx"].numpy(), 3 * X**2)


def test_operators_of_microsoft_are_differentiated_by_their_bodies():
    feeds = {"x": normal(2, 3), "b": normal(3, seed=1)}
    check_gradients([node("BiasGelu", [*feeds], ["y"], domain="com.microsoft")], feeds)


def test_a_model_is_not_changed():
    proto = training_model([*LINEAR, gradient(["x", "w"], "y")], {"x": X, "w": W}, ["dx"])
    before = proto.SerializeToString()
    chipdock.load(proto)
    assert proto.SerializeToString() == before


def test_weights_in_other_files_are_read(tmp_path):
    proto = training_model(
        [*LINEAR, gradient(["w"], "y")], {"x": X}, ["dw"], constants={"w": W}, opset=12
    )
    path = tmp_path / "net.onnx"
    onnx.save(proto, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    dw = chipdock.load(path).run({"x": X})["dw"].numpy()
    np.testing.assert_allclose(dw, X.T @ (1 - np.tanh(X @ W) ** 2))


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_gradients_have_the_dtype_of_what_they_are_by(dtype):
    x, w = X.astype(dtype), W.astype(dtype)
    dx, dw = run([*LINEAR, gradient(["x", "w"], "y")], {"x": x, "w": w}, ["dx", "dw"])
    assert (dx.dtype, dw.dtype) == (dtype, dtype)
    np.testing.assert_allclose(dw, X.T @ (1 - np.tanh(X @ W) ** 2), atol=2e-2)


@pytest.mark.usefixtures("as_written")
def test_nothing_of_the_model_is_computed_twice_at_its_own_values():
    nodes = [*LINEAR, gradient(["x", "w"], "y")]
    net = chipdock.load(training_model(nodes, {"x": X, "w": W}, ["dx", "dw", "y"]))
    ops = [n.op for n in net.explain().nodes]
    assert ops.count("Tanh") == 1
    assert ops.count("MatMul") == 3


LOOP_FREE = [node("Exp", ["x"], ["y"])]


def test_an_operator_without_a_rule_is_named():
    nodes = [
        node("LSTM", ["x3", "a", "b"], ["", "y"], "cell", hidden_size=2),
        gradient(["a"], "y", name="down"),
    ]
    feeds = {"x3": normal(2, 1, 3), "a": normal(1, 8, 3), "b": normal(1, 8, 2)}
    with pytest.raises(UnsupportedError) as caught:
        run(nodes, feeds, ["da"])
    text = str(caught.value)
    for part in ("node 'down'", "LSTM node 'cell'", "MatMul", "Conv"):
        assert part in text
    assert not text.endswith(".")


def test_a_node_whose_other_output_is_differentiated_by_is_not_on_the_way():
    nodes = [
        node("LSTM", ["x", "a", "b"], ["", "h", "c"], hidden_size=2),
        node("Mul", ["h", "c"], ["y"]),
        gradient(["h"], "y", ["dh"]),
    ]
    feeds = {"x": normal(2, 1, 3), "a": normal(1, 8, 3), "b": normal(1, 8, 2)}
    dh, c = run(nodes, feeds, ["dh", "c"])
    np.testing.assert_array_equal(dh, c)


def test_an_operator_without_a_rule_beside_the_way_is_none_of_our_business():
    nodes = [
        node("Det", ["q"], ["d"]),
        node("Mul", ["x", "d"], ["y"]),
        gradient(["x"], "y"),
    ]
    (dx,) = run(nodes, {"x": X, "q": np.eye(2) * 2.0}, ["dx"])
    np.testing.assert_allclose(dx, np.full_like(X, 4.0))


WRONG = {
    "nothing computes": gradient(["x", "nobody"], "y", inputs=["x", "x"]),
    "it needs an input for each": gradient(["x"], "y", inputs=["x", "x"]),
    "names a value twice": gradient(["x", "x"], "y", ["a", "b"]),
    "must not hang on each other": gradient(["x", "h"], "z", ["a", "b"]),
    "which is int64": gradient(["i"], "z"),
    "'k', which is int64": gradient(["x"], "k"),
}


@pytest.mark.parametrize("text", WRONG)
def test_what_the_operator_does_not_allow_is_refused(text):
    nodes = [
        node("Exp", ["x"], ["h"]),
        node("Mul", ["h", "x"], ["z"]),
        node("Neg", ["i"], ["k"]),
        node("Exp", ["z"], ["y"]),
        WRONG[text],
    ]
    with pytest.raises(InvalidArgumentError, match="grad") as caught:
        run(nodes, {"x": X, "i": np.array([1])}, list(WRONG[text].output)[:1])
    assert text in str(caught.value)


def test_attributes_of_another_kind_or_missing_are_refused():
    for text, attributes in {
        "has xs of kind STRING, it must be STRINGS": {"xs": "x", "y": "y"},
        "has y of kind INT, it must be STRING": {"xs": ["x"], "y": 3},
        "names '', which nothing computes": {"xs": ["x"]},
        "has 0 xs, 0 zs, 1 inputs": {"y": "y"},
    }.items():
        wrong = node("Gradient", ["x"], ["dx"], domain="ai.onnx.preview.training", **attributes)
        with pytest.raises(InvalidArgumentError, match=text):
            run([*LOOP_FREE, wrong], {"x": X}, ["dx"])


def test_a_rank_that_is_needed_and_not_known_is_named():
    with pytest.raises(UnsupportedError, match="rank of 'x' is not known; declare its shape"):
        run([*LINEAR, gradient(["w"], "y")], {"x": X, "w": W}, ["dw"], ranks=False)


def test_a_node_without_outputs_wanted_is_no_node():
    (y,) = run([*LOOP_FREE, gradient(["x"], "y", [""])], {"x": X}, ["y"])
    np.testing.assert_allclose(y, np.exp(X))


def test_gradients_that_hang_on_each_other_are_refused():
    nodes = [
        node("Mul", ["x", "b"], ["y"]),
        node("Mul", ["x", "a"], ["z"]),
        gradient(["x"], "y", ["a"], name="one"),
        gradient(["x"], "z", ["b"], name="two"),
    ]
    with pytest.raises(InvalidArgumentError, match=r"hang on each other.*'one', node 'two'$"):
        run(nodes, {"x": X}, ["a"])


def test_gradients_in_bodies_and_functions_are_refused():
    inner = gradient(["x"], "y")
    branch = helper.make_graph([*LOOP_FREE, inner], "b", [], [value("dx", DOUBLE)])
    nodes = [node("If", ["c"], ["out"], "choice", then_branch=branch, else_branch=branch)]
    with pytest.raises(UnsupportedError, match="_branch of If node 'choice'"):
        run(nodes, {"x": X, "c": np.array(True)}, ["out"])
    proto = training_model([node("F", ["x"], ["out"], domain="own")], {"x": X}, ["out"])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.preview.training", 1)]
    proto.functions.append(
        helper.make_function("own", "F", ["x"], ["dx"], [*LOOP_FREE, inner], opsets)
    )
    proto.opset_import.append(helper.make_opsetid("own", 1))
    with pytest.raises(UnsupportedError, match="local function 'F'"):
        chipdock.load(proto)


def test_control_flow_on_the_way_is_refused_and_beside_it_copied():
    branch = helper.make_graph([node("Exp", ["v"], ["e"])], "b", [], [value("e", DOUBLE)])
    choice = node("If", ["c"], ["p"], "choice", then_branch=branch, else_branch=branch)
    nodes = [node("Identity", ["x"], ["v"]), choice, node("Mul", ["p", "w"], ["y"])]
    feeds = {"x": np.array([1.0]), "w": np.array([2.0]), "c": np.array(True), "u": np.array([3.0])}
    with pytest.raises(UnsupportedError, match="If node 'choice'"):
        run([*nodes, gradient(["x"], "y")], feeds, ["dx"])
    fed = gradient(["w"], "y", zs=["x"], inputs=["w", "u"])
    (dw,) = run([*nodes, fed], feeds, ["dw"])
    np.testing.assert_allclose(dw, np.exp(3.0), rtol=1e-12)


def test_bfloat16():
    nodes = [
        node("Cast", ["x"], ["b"], to=TensorProto.BFLOAT16),
        node("Sigmoid", ["b"], ["s"]),
        node("LeakyRelu", ["s"], ["l"], alpha=0.5),
        node("ReduceMean", ["l"], ["y"], keepdims=0),
        gradient(["x"], "y"),
    ]
    (dx,) = run(nodes, {"x": X}, ["dx"])
    np.testing.assert_allclose(dx, np.exp(-X) / (1 + np.exp(-X)) ** 2 / X.size, rtol=0.03)


def test_a_domain_that_is_not_imported_is_named():
    proto = training_model([*LINEAR, gradient(["w"], "y")], {"x": X, "w": W}, ["dw"])
    del proto.opset_import[1]
    with pytest.raises(InvalidArgumentError, match="opset_import"):
        chipdock.load(proto)


def test_attention_is_differentiated_by_its_body():
    feeds = {n: normal(1, 2, 3, 4, seed=i) for i, n in enumerate("qkv")}
    check_gradients([node("Attention", [*feeds], ["y"])], feeds, opset=23, tolerance=1e-5)

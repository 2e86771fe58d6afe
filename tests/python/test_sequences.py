# SPDX-License-Identifier: Apache-2.0
"""Sequences and optionals: in and out of models, through control flow, on other devices."""

import numpy as np
import onnx
import pytest
from api_support import BOOL, FLOAT, INT64, model, value
from onnx import helper

import chipdock

node = helper.make_node
TENSOR = helper.make_tensor_type_proto(FLOAT, None)
SEQUENCE = helper.make_sequence_type_proto(TENSOR)


def sequence(name):
    return helper.make_value_info(name, SEQUENCE)


def optional(name, inner=TENSOR):
    return helper.make_value_info(name, helper.make_optional_type_proto(inner))


def const(name, array):
    return node("Constant", [], [name], value=onnx.numpy_helper.from_array(np.asarray(array)))


def test_a_sequence_goes_in_and_comes_out():
    proto = model(
        [const("at", np.int64(-1)), node("SequenceErase", ["s", "at"], ["t"])],
        [sequence("s")],
        [sequence("t")],
    )
    loaded = chipdock.load(proto)
    assert (loaded.inputs[0].type, loaded.inputs[0].dtype) == ("seq(tensor(float))", np.float32)
    given = [np.float32([1, 2]), np.float32([[3]])]
    got = loaded.run({"s": given})["t"]
    assert [a.numpy().tolist() for a in got] == [[1, 2]]
    assert loaded.run({"s": [np.float32(7)]})["t"] == []


def test_what_comes_out_of_a_sequence_is_the_callers_own():
    proto = model(
        [const("at", np.int64(0)), node("SequenceAt", ["s", "at"], ["y"])],
        [sequence("s")],
        [value("y"), sequence("s2")],
    )
    proto.graph.node.append(node("Identity", ["s"], ["s2"]))
    given = chipdock.array(np.float32([1, 2]))
    got = chipdock.load(proto).run({"s": [given]})
    assert not got["y"].overlaps(given)
    assert not got["s2"][0].overlaps(given)
    assert not got["s2"][0].overlaps(got["y"])


def test_elements_survive_the_memory_they_were_computed_in():
    nodes = [
        node("Neg", ["x"], ["a"]),
        node("SequenceConstruct", ["a"], ["s"]),
        node("Exp", ["a"], ["b"]),
        node("Abs", ["b"], ["c"]),
        node("Neg", ["c"], ["d"]),
        const("at", np.int64(0)),
        node("SequenceAt", ["s", "at"], ["e"]),
        node("Add", ["d", "e"], ["y"]),
    ]
    x = np.linspace(0, 1, 1000, dtype=np.float32)
    got = chipdock.load(model(nodes, [value("x", shape=["N"])], [value("y")]))(x).numpy()
    np.testing.assert_allclose(got, -np.exp(-x) - x, rtol=1e-6)


@pytest.mark.parametrize(
    ("position", "message"), [(3, "position 3 of a sequence of 2"), (-3, "position -3")]
)
def test_a_position_outside_is_refused_and_named(position, message):
    proto = model(
        [node("SequenceAt", ["s", "at"], ["y"], name="pick")],
        [sequence("s"), value("at", INT64, [])],
        [value("y")],
    )
    with pytest.raises(chipdock.errors.InvalidArgumentError, match=f"{message}.*pick"):
        chipdock.load(proto).run({"s": [np.float32(1)] * 2, "at": np.int64(position)})


def test_split_and_join_along_an_axis():
    proto = model(
        [
            node("SplitToSequence", ["x"], ["s"], axis=1, keepdims=0),
            node("ConcatFromSequence", ["s"], ["y"], axis=-1, new_axis=1),
        ],
        [value("x", shape=["N", "M"])],
        [value("y"), value("n", INT64, [])],
    )
    proto.graph.node.append(node("SequenceLength", ["s"], ["n"]))
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    got = chipdock.load(proto).run({"x": x})
    np.testing.assert_array_equal(got["y"].numpy(), x)
    assert got["n"].numpy() == 3


def test_a_loop_collects_a_sequence():
    body = helper.make_graph(
        [
            node("Identity", ["keep"], ["keep2"]),
            node("Cast", ["i"], ["f"], to=FLOAT),
            node("Add", ["f", "x"], ["e"]),
            node("SequenceInsert", ["s", "e"], ["s2"]),
        ],
        "body",
        [value("i", INT64, []), value("keep", BOOL, []), sequence("s")],
        [value("keep2", BOOL, []), sequence("s2")],
    )
    proto = model(
        [node("SequenceEmpty", [], ["s0"]), node("Loop", ["n", "", "s0"], ["y"], body=body)],
        [value("n", INT64, []), value("x", shape=["N"])],
        [sequence("y")],
    )
    loaded = chipdock.load(proto)
    got = loaded.run({"n": np.int64(3), "x": np.float32([1, 2])})["y"]
    assert [a.numpy().tolist() for a in got] == [[1, 2], [2, 3], [3, 4]]
    assert loaded.run({"n": np.int64(0), "x": np.float32([1])})["y"] == []
    assert loaded.explain().counts["host"] == 2


def test_an_if_gives_a_sequence_from_outside():
    def branch(op, inputs):
        return helper.make_graph([node(op, inputs, ["r"])], op, [], [sequence("r")])

    proto = model(
        [
            node(
                "If",
                ["c"],
                ["y"],
                then_branch=branch("Identity", ["s"]),
                else_branch=branch("SequenceConstruct", ["x", "x"]),
            )
        ],
        [value("c", BOOL, []), sequence("s"), value("x")],
        [sequence("y")],
    )
    loaded = chipdock.load(proto)
    for condition, want in ((True, [[5.0]]), (False, [[1.0], [1.0]])):
        feeds = {"c": np.array(condition), "s": [np.float32([5])], "x": np.float32([1])}
        assert [a.numpy().tolist() for a in loaded.run(feeds)["y"]] == want


def test_sequence_map_applies_a_body():
    body = helper.make_graph(
        [node("Add", ["e", "x"], ["r"])], "body", [value("e"), value("x")], [value("r")]
    )
    proto = model(
        [node("SequenceMap", ["s", "x"], ["y"], body=body)],
        [sequence("s"), value("x", shape=[1])],
        [sequence("y")],
    )
    got = chipdock.load(proto).run({"s": [np.float32([1]), np.float32([2])], "x": np.float32([10])})
    assert [a.numpy().tolist() for a in got["y"]] == [[11], [12]]


def test_optionals_hold_something_or_nothing():
    proto = model(
        [node("OptionalHasElement", ["o"], ["has"]), node("Identity", ["o"], ["o2"])],
        [optional("o")],
        [value("has", BOOL, []), optional("o2")],
    )
    loaded = chipdock.load(proto)
    empty = loaded.run({"o": None})
    assert (bool(empty["has"].numpy()), empty["o2"]) == (False, None)
    full = loaded.run({"o": np.float32([4])})
    assert bool(full["has"].numpy())
    assert full["o2"].numpy().tolist() == [4]


def test_an_empty_optional_has_no_element_to_get():
    proto = model([node("OptionalGetElement", ["o"], ["y"])], [optional("o")], [value("y")])
    loaded = chipdock.load(proto)
    assert loaded.run({"o": np.float32([4])})["y"].numpy().tolist() == [4]
    with pytest.raises(chipdock.errors.InvalidArgumentError, match="the optional is empty"):
        loaded.run({"o": None})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.float32([1]), "'s' is ndarray, the model wants seq"),
        ([np.float64([1])], "'s' is float64, the model wants float32"),
        (None, "'s' is NoneType"),
    ],
)
def test_what_is_no_sequence_of_the_dtype_is_refused(given, message):
    proto = model([node("SequenceLength", ["s"], ["n"])], [sequence("s")], [value("n", INT64, [])])
    with pytest.raises(chipdock.errors.InvalidArgumentError, match=message):
        chipdock.load(proto).run({"s": given})


def test_a_tensor_is_not_given_as_a_list_of_arrays_of_sequences():
    proto = model([node("Neg", ["x"], ["y"])], [value("x")], [value("y")])
    with pytest.raises(chipdock.errors.InvalidArgumentError):
        chipdock.load(proto).run({"x": None})

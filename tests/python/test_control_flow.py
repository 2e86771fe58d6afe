# SPDX-License-Identifier: Apache-2.0
"""If, Loop and Scan: nested, with captures, aliased outputs, and shapes that change by trip."""

import numpy as np
import pytest
from api_support import BOOL, FLOAT, INT64, agrees, model, reference, same, value
from control_flow_support import COUNT_ON, NO, YES, body, branch, conditional, loop, node
from onnx import helper

import chipdock


@pytest.mark.parametrize("condition", [YES, NO])
def test_if_with_captured_values(condition):
    proto = conditional(branch("Neg", "x"), branch("Exp", "x"))
    agrees(proto, {"c": condition, "x": np.float32([1, 2])})


@pytest.mark.parametrize("shape", [(), (1,)])
def test_a_condition_of_one_element(shape):
    proto = conditional(branch("Neg", "x"), branch("Exp", "x"))
    proto.graph.input[0].type.tensor_type.ClearField("shape")
    loaded = chipdock.load(proto)
    got = loaded(np.full(shape, True), np.float32([1]))
    np.testing.assert_array_equal(got.numpy(), [-1])


def test_a_condition_of_many_elements_is_refused():
    proto = conditional(branch("Neg", "x"), branch("Exp", "x"))
    proto.graph.input[0].type.tensor_type.ClearField("shape")
    with pytest.raises(chipdock.errors.InvalidArgumentError, match=r"condition .* one element"):
        chipdock.load(proto)(np.array([True, False]), np.float32([1]))


def test_branches_of_different_shapes_and_constants():
    then = body(
        [node("Constant", [], ["r"], value=helper.make_tensor("k", FLOAT, [2, 2], [1, 2, 3, 4]))],
        [],
        [value("r")],
    )
    proto = conditional(then, branch("Identity", "x"))
    agrees(proto, {"c": YES, "x": np.float32([1, 2, 3])})
    agrees(proto, {"c": NO, "x": np.float32([1, 2, 3])})


def test_a_branch_that_hands_a_captured_value_through_does_not_share_it():
    proto = conditional(branch("Identity", "x"), branch("Neg", "x"))
    x = chipdock.array(np.float32([1, 2]))
    got = chipdock.load(proto).run({"c": YES, "x": x})["y"]
    got.copy_from(np.float32([0, 0]))
    np.testing.assert_array_equal(x.numpy(), [1, 2])


def test_a_branch_that_hands_a_weight_through_does_not_share_it():
    proto = conditional(branch("Identity", "w"), branch("Neg", "x"))
    proto.graph.initializer.append(helper.make_tensor("w", FLOAT, [2], [5, 6]))
    loaded = chipdock.load(proto)
    feeds = {"c": YES, "x": np.float32([1, 2])}
    loaded.run(feeds)["y"].copy_from(np.float32([0, 0]))
    np.testing.assert_array_equal(loaded.run(feeds)["y"].numpy(), [5, 6])


def test_only_the_branch_taken_runs():
    bad = body([node("Reshape", ["x", "s"], ["r"])], [], [value("r")], {"s": np.int64([7, 7])})
    proto = conditional(branch("Neg", "x"), bad)
    loaded = chipdock.load(proto)
    feeds = {"c": YES, "x": np.float32([1, 2])}
    np.testing.assert_array_equal(loaded.run(feeds)["y"].numpy(), [-1, -2])
    with pytest.raises(chipdock.errors.InvalidArgumentError, match="Reshape"):
        loaded.run({**feeds, "c": NO})
    np.testing.assert_array_equal(loaded.run(feeds)["y"].numpy(), [-1, -2])


@pytest.mark.parametrize("outer", [YES, NO])
@pytest.mark.parametrize("inner", [YES, NO])
def test_nested_ifs_capture_through_two_graphs(outer, inner):
    nested = body(
        [
            node("Exp", ["x"], ["e"]),
            node(
                "If",
                ["d"],
                ["r"],
                then_branch=branch("Add", "x", "e", out="q"),
                else_branch=branch("Sub", "x", "w", out="q"),
            ),
        ],
        [],
        [value("r")],
    )
    proto = model(
        [node("If", ["c"], ["y"], then_branch=nested, else_branch=branch("Neg", "x"))],
        [value("c", BOOL, []), value("d", BOOL, []), value("x", shape=["N"])],
        [value("y")],
        {"w": np.float32([3])},
    )
    agrees(proto, {"c": outer, "d": inner, "x": np.float32([1, 2])})


def test_if_with_several_outputs():
    def two(a, b):
        return body([node(a, ["x"], ["p"]), node(b, ["x"], ["q"])], [], [value("p"), value("q")])

    proto = model(
        [
            node(
                "If",
                ["c"],
                ["y", "z"],
                then_branch=two("Neg", "Abs"),
                else_branch=two("Exp", "Neg"),
            ),
            node("Add", ["y", "z"], ["s"]),
        ],
        [value("c", BOOL, []), value("x", shape=["N"])],
        [value("s"), value("z"), value("y")],
    )
    for condition in (YES, NO):
        agrees(proto, {"c": condition, "x": np.float32([1, -2])})


@pytest.mark.parametrize("n", [0, 1, 5])
@pytest.mark.parametrize("keep", [YES, NO])
def test_loop_counts(n, keep):
    proto = loop([COUNT_ON, node("Add", ["v", "v"], ["v2"])], ["v"])
    agrees(proto, {"n": np.int64(n), "keep": keep, "x_v": np.float32([1, 2])})


def test_loop_ends_by_its_condition():
    nodes = [
        node("Add", ["v", "v"], ["v2"]),
        node("ReduceSum", ["v2"], ["t"], keepdims=0),
        node("Less", ["t", "limit"], ["c2"]),
    ]
    proto = loop(nodes, ["v"], outer_constants={"limit": np.float32(100)})
    agrees(proto, {"n": np.int64(1000), "keep": YES, "x_v": np.float32([1, 2])})


def test_loop_without_a_trip_count():
    graph = body(
        [node("Add", ["v", "one"], ["v2"]), node("Less", ["v2", "ten"], ["c2"])],
        [value("i", INT64, []), value("c", BOOL, []), value("v", shape=[])],
        [value("c2", BOOL, []), value("v2", shape=[])],
    )
    proto = model(
        [node("Loop", ["", "", "x"], ["y"], body=graph)],
        [value("x", shape=[])],
        [value("y", shape=[])],
        {"one": np.float32(1), "ten": np.float32(10)},
    )
    assert chipdock.load(proto)(np.float32(0)).numpy() == 10


@pytest.mark.parametrize("n", [0, 1, 4])
def test_scan_outputs_of_loops(n):
    nodes = [
        COUNT_ON,
        node("Add", ["v", "w"], ["v2"]),
        node("Cast", ["i"], ["f"], to=FLOAT),
        node("Mul", ["v2", "f"], ["row"]),
        node("Identity", ["i"], ["at"]),
    ]
    rows = [value("row", shape=[2]), value("at", INT64, [])]
    proto = loop(nodes, ["v"], rows, outer_constants={"w": np.float32([1, 10])})
    loaded = chipdock.load(proto)
    got = loaded.run({"n": np.int64(n), "keep": YES, "x_v": np.float32([0, 0])})
    steps = np.arange(1, n + 1)[:, None] * np.float32([1, 10])
    np.testing.assert_array_equal(got["y_v"].numpy(), np.float32([n, 10 * n]))
    np.testing.assert_array_equal(got["s_row"].numpy(), steps * np.arange(n)[:, None])
    assert got["s_row"].shape == (n, 2)
    np.testing.assert_array_equal(got["s_at"].numpy(), np.arange(n))
    assert got["s_at"].dtype == np.int64


def test_a_loop_whose_state_grows():
    proto = loop([COUNT_ON, node("Concat", ["v", "v"], ["v2"], axis=0)], ["v"])
    loaded = chipdock.load(proto)
    for n in (3, 0, 5):
        got = loaded.run({"n": np.int64(n), "keep": YES, "x_v": np.float32([1, 2])})["y_v"]
        np.testing.assert_array_equal(got.numpy(), np.tile(np.float32([1, 2]), 2**n))


def test_state_that_swaps_and_state_that_stays():
    nodes = [COUNT_ON, node("Identity", ["b"], ["a2"]), node("Identity", ["a"], ["b2"])]
    proto = loop(nodes, ["a", "b"])
    for n in (0, 1, 2, 3):
        agrees(
            proto, {"n": np.int64(n), "keep": YES, "x_a": np.float32([1]), "x_b": np.float32([2])}
        )


def test_no_trip_hands_a_copy_through():
    proto = loop([COUNT_ON, node("Neg", ["v"], ["v2"])], ["v"])
    x = chipdock.array(np.float32([1, 2]))
    got = chipdock.load(proto).run({"n": np.int64(0), "keep": YES, "x_v": x})["y_v"]
    got.copy_from(np.float32([0, 0]))
    np.testing.assert_array_equal(x.numpy(), [1, 2])


def test_no_trip_over_a_weight_hands_a_copy_through():
    graph = body(
        [COUNT_ON, node("Neg", ["v"], ["v2"])],
        [value("i", INT64, []), value("c", BOOL, []), value("v")],
        [value("c2", BOOL, []), value("v2")],
    )
    proto = model(
        [node("Loop", ["n", "", "w"], ["y"], body=graph)],
        [value("n", INT64, [])],
        [value("y")],
        {"w": np.float32([1, 2])},
    )
    loaded = chipdock.load(proto)
    loaded(np.int64(0)).copy_from(np.float32([9, 9]))
    np.testing.assert_array_equal(loaded(np.int64(0)).numpy(), [1, 2])
    np.testing.assert_array_equal(loaded(np.int64(1)).numpy(), [-1, -2])


def test_a_computed_value_carried_into_a_loop_lives_long_enough():
    """What the loop starts from is also read behind it."""
    proto = loop(
        [COUNT_ON, node("Neg", ["v"], ["v2"])],
        ["v"],
        outer=[node("Exp", ["z"], ["x_v"]), node("Exp", ["z"], ["other"])],
        outer_inputs=[value("z")],
    )
    del proto.graph.input[2]
    proto.graph.node.append(node("Add", ["y_v", "x_v"], ["after"]))
    proto.graph.output.append(value("after"))
    for n in (0, 1, 2):
        agrees(proto, {"n": np.int64(n), "keep": YES, "z": np.float32([0, 1])})


def test_loop_in_loop_with_if_and_captures():
    inner = body(
        [
            node("Identity", ["ci"], ["ci2"]),
            node(
                "If",
                ["flag"],
                ["step"],
                then_branch=branch("Add", "a", "w", out="p"),
                else_branch=branch("Mul", "a", "v", out="p"),
            ),
            node("Identity", ["step"], ["a2"]),
        ],
        [value("j", INT64, []), value("ci", BOOL, []), value("a")],
        [value("ci2", BOOL, []), value("a2")],
    )
    nodes = [
        COUNT_ON,
        node("Mod", ["i", "two"], ["m"]),
        node("Equal", ["m", "zero"], ["flag"]),
        node("Loop", ["i", "", "v"], ["v2"], body=inner),
        node("Identity", ["v2"], ["row"]),
    ]
    proto = loop(
        nodes,
        ["v"],
        [value("row", shape=[2])],
        outer_constants={"w": np.float32([1, 2]), "two": np.int64(2), "zero": np.int64(0)},
    )

    def expected(n, v):
        rows = []
        for i in range(n):
            a = v
            for _ in range(i):
                a = a + np.float32([1, 2]) if i % 2 == 0 else a * v
            v = a
            rows.append(v)
        return v, np.array(rows, np.float32).reshape(-1, 2)

    loaded = chipdock.load(proto)
    for n in (0, 1, 4):
        x = np.float32([1.5, 0.5])
        got = loaded.run({"n": np.int64(n), "keep": YES, "x_v": x})
        last, rows = expected(n, x)
        np.testing.assert_allclose(got["y_v"].numpy(), last, rtol=1e-5)
        np.testing.assert_allclose(got["s_row"].numpy(), rows, rtol=1e-5)


def test_control_flow_after_data_dependent_shapes():
    proto = model(
        [
            node("NonZero", ["m"], ["nz"]),
            node("Shape", ["nz"], ["s"]),
            node("Gather", ["s", "one"], ["n"]),
            node(
                "Loop",
                ["n", "yes", "x"],
                ["y"],
                body=body(
                    [COUNT_ON, node("Add", ["v", "v"], ["v2"])],
                    [value("i", INT64, []), value("c", BOOL, []), value("v")],
                    [value("c2", BOOL, []), value("v2")],
                ),
            ),
        ],
        [value("m", BOOL, ["N"]), value("x")],
        [value("y")],
        {"one": np.int64(1), "yes": YES},
    )
    loaded = chipdock.load(proto)
    for mask in ([0, 0], [1, 0, 1, 1]):
        feeds = {"m": np.array(mask, bool), "x": np.float32([1, 2])}
        same(loaded.run(feeds), reference(proto, feeds))


def test_explain_shows_nodes_of_bodies_and_the_control_node():
    counts = chipdock.load(conditional(branch("Neg", "x"), branch("Exp", "x"))).explain().counts
    assert counts == {"device": 2, "control": 1}


def test_a_branch_is_missing():
    proto = conditional(branch("Neg", "x"), branch("Exp", "x"))
    del proto.graph.node[0].attribute[0]
    with pytest.raises(chipdock.errors.InvalidArgumentError, match="branch"):
        chipdock.load(proto)


def test_a_branch_with_too_few_outputs_is_refused():
    proto = model(
        [
            node(
                "If",
                ["c"],
                ["y", "z"],
                then_branch=branch("Neg", "x"),
                else_branch=branch("Exp", "x"),
            )
        ],
        [value("c", BOOL, []), value("x", shape=["N"])],
        [value("y"), value("z")],
    )
    with pytest.raises(chipdock.errors.InvalidArgumentError, match="outputs"):
        chipdock.load(proto)


def test_a_loop_body_with_a_wrong_signature_is_refused():
    graph = body([COUNT_ON], [value("i", INT64, []), value("c", BOOL, [])], [value("c2", BOOL, [])])
    proto = model(
        [node("Loop", ["n", "", "x"], ["y"], body=graph)],
        [value("n", INT64, []), value("x")],
        [value("y")],
    )
    with pytest.raises(chipdock.errors.InvalidArgumentError, match="Loop"):
        chipdock.load(proto)


def test_extents_that_onnx_infers_wrongly_do_not_bind_a_body():
    """onnx 1.23 counts a window of MaxPool that begins behind the picture: 4 rows, which are 3."""

    def body(op):
        return helper.make_graph(
            [helper.make_node(op, ["p"], ["b"])], op, [], [value("b", shape=[None] * 4)]
        )

    proto = model(
        [
            helper.make_node("MaxPool", ["x"], ["p"], kernel_shape=[1, 5], strides=[3, 1],
                             ceil_mode=1),
            helper.make_node("If", ["c"], ["y"], then_branch=body("Relu"), else_branch=body("Neg")),
        ],
        [value("x", shape=[1, 3, 8, 9]), value("c", BOOL, [])],
        [value("y", shape=[None] * 4)],
    )  # fmt: skip
    x = np.ones((1, 3, 8, 9), np.float32)
    found = chipdock.load(proto).run({"x": x, "c": np.array(True)})["y"]
    assert found.shape == (1, 3, 3, 5)

# SPDX-License-Identifier: Apache-2.0
"""Branches that input shapes decide run as steps of the model; weights that bodies read fold."""

import numpy as np
import pytest
from api_support import (
    BOOL,
    FLOAT,
    INT64,
    agrees,
    model,
    open_cpu,
    open_fake,
    reference,
    same,
    value,
)
from control_flow_support import COUNT_ON, NO, YES, body, branch, conditional, loop, node
from onnx import helper

import chipdock

# `pair` is true for two elements of x.
ON_SIZE = [node("Size", ["x"], ["n"]), node("Equal", ["n", "two"], ["pair"])]
TWO = {"two": np.int64(2)}
SHAPES = (np.float32([1, -2]), np.float32([1, -2, 3]))


def by_size(then, other, outputs=("y",), *, before=(), after=(), weights=None, results=None):
    """An If on the size of x; `results` are the model's outputs if they are not the If's."""
    return model(
        [
            *before,
            *ON_SIZE,
            node("If", ["pair"], list(outputs), then_branch=then, else_branch=other),
            *after,
        ],
        [value("x", shape=["N"])],
        [value(r) for r in results or outputs],
        {**TWO, **(weights or {})},
    )


def dynamic_steps(loaded, x):
    return loaded.memory({"x": x.shape})["dynamic_steps"]


def test_shapes_decide_which_branch_runs():
    loaded = agrees(by_size(branch("Neg", "x"), branch("Exp", "x")), {"x": SHAPES[0]})
    for x in (*SHAPES, SHAPES[0]):
        expected = -x if x.size == 2 else np.exp(x)
        np.testing.assert_allclose(loaded(x).numpy(), expected, rtol=1e-6)
        assert dynamic_steps(loaded, x) == 0


def test_a_condition_that_depends_on_data_is_read_in_every_run():
    loaded = chipdock.load(conditional(branch("Neg", "x"), branch("Exp", "x")))
    assert loaded.memory({"c": (), "x": (2,)})["dynamic_steps"] == 1


def test_what_follows_a_branch_is_no_longer_open():
    after = [node("Unsqueeze", ["y", "axis"], ["u"]), node("MatMul", ["u", "u2"], ["z"])]
    proto = by_size(
        branch("Neg", "x"),
        branch("Exp", "x"),
        before=[node("Unsqueeze", ["x", "other"], ["u2"])],
        after=after,
        weights={"axis": np.int64([1]), "other": np.int64([0])},
        results=["z"],
    )
    for x in SHAPES:
        assert dynamic_steps(agrees(proto, {"x": x}), x) == 0


def test_branches_within_branches():
    inner = node(
        "If", ["pair"], ["r"], then_branch=branch("Abs", "e"), else_branch=branch("Neg", "e")
    )
    nested = body([node("Exp", ["x"], ["e"]), inner], [], [value("r")])
    for proto in (by_size(nested, branch("Neg", "x")), by_size(branch("Neg", "x"), nested)):
        for x in SHAPES:
            assert dynamic_steps(agrees(proto, {"x": x}), x) == 0


def test_a_known_branch_within_one_that_is_not():
    known = node(
        "If", ["pair"], ["r"], then_branch=branch("Abs", "x"), else_branch=branch("Neg", "x")
    )
    then = body([*ON_SIZE, known], [], [value("r")])
    proto = conditional(then, branch("Exp", "x"), constants=TWO)
    for condition in (YES, NO):
        for x in SHAPES:
            agrees(proto, {"c": condition, "x": x})


def test_an_open_branch_and_a_loop_within_a_known_one():
    open_branch = node(
        "If", ["c"], ["v"], then_branch=branch("Abs", "x"), else_branch=branch("Neg", "x")
    )
    trips = node(
        "Loop",
        ["n", "yes", "v"],
        ["r"],
        body=body(
            [COUNT_ON, node("Add", ["a", "x"], ["a2"])],
            [value("i", INT64, []), value("c", BOOL, []), value("a")],
            [value("c2", BOOL, []), value("a2")],
        ),
    )
    then = body([open_branch, trips], [], [value("r")])
    proto = by_size(then, branch("Exp", "x"), weights={"yes": YES})
    proto.graph.input.append(value("c", BOOL, []))
    for condition in (YES, NO):
        for x in SHAPES:
            agrees(proto, {"x": x, "c": condition})


def test_an_output_of_two_names():
    pair = body([node("Neg", ["x"], ["r"])], [], [value("r"), value("r")])
    other = body(
        [node("Abs", ["x"], ["r"]), node("Exp", ["x"], ["s"])], [], [value("r"), value("s")]
    )
    proto = by_size(pair, other, ["y", "z"])
    for x in SHAPES:
        agrees(proto, {"x": x})


def test_an_output_that_nobody_reads():
    def two(a, b):
        return body([node(a, ["x"], ["p"]), node(b, ["x"], ["q"])], [], [value("p"), value("q")])

    proto = by_size(two("Neg", "Exp"), two("Abs", "Neg"), ["", "y"], results=["y"])
    for x in SHAPES:
        agrees(proto, {"x": x})


@pytest.mark.parametrize("op", ["Identity", "Reshape"])
def test_what_a_branch_hands_through_is_not_the_callers(op):
    through = branch(op, "x", *(["all"] if op == "Reshape" else []))
    proto = by_size(through, branch("Neg", "x"), weights={"all": np.int64([-1])})
    x = chipdock.array(SHAPES[0])
    got = chipdock.load(proto).run({"x": x})["y"]
    np.testing.assert_array_equal(got.numpy(), SHAPES[0])
    got.copy_from(np.float32([0, 0]))
    np.testing.assert_array_equal(x.numpy(), SHAPES[0])


def test_what_a_branch_hands_through_is_written_to_a_bound_output():
    loaded = chipdock.load(by_size(branch("Identity", "x"), branch("Neg", "x")))
    x, out = chipdock.array(SHAPES[0]), chipdock.array(np.float32([7, 7]))
    loaded.bind().input("x", x).output("y", out).run()
    np.testing.assert_array_equal(out.numpy(), SHAPES[0])


def test_an_input_handed_through_is_read_before_another_output_goes_over_it():
    proto = by_size(
        branch("Identity", "x"),
        branch("Neg", "x"),
        before=[node("Exp", ["x"], ["e"])],
        results=["e", "y"],
    )
    x = chipdock.array(SHAPES[0])
    got = chipdock.load(proto).bind().input("x", x).output("e", x).run()
    np.testing.assert_array_equal(got["y"].numpy(), SHAPES[0])
    np.testing.assert_allclose(x.numpy(), np.exp(SHAPES[0]), rtol=1e-6)


def test_a_weight_handed_through_stays_as_it_is():
    loaded = chipdock.load(
        by_size(branch("Identity", "w"), branch("Neg", "x"), weights={"w": np.float32([5, 6])})
    )
    loaded(SHAPES[0]).copy_from(np.float32([0, 0]))
    np.testing.assert_array_equal(loaded(SHAPES[0]).numpy(), [5, 6])


def test_a_value_read_in_the_branch_and_behind_it():
    proto = by_size(
        branch("Identity", "e"),
        branch("Neg", "e"),
        before=[node("Exp", ["x"], ["e"])],
        after=[node("Add", ["y", "e"], ["s"])],
        results=["s", "y"],
    )
    for x in SHAPES:
        agrees(proto, {"x": x})


def test_random_numbers_of_branches_differ():
    def noise():
        made = [node("RandomNormalLike", ["x"], [name]) for name in "rs"]
        return body(made, [], [value("r"), value("s")])

    proto = model(
        [
            *ON_SIZE,
            node("RandomNormalLike", ["x"], ["a"]),
            node("If", ["pair"], ["b", "c"], then_branch=noise(), else_branch=noise()),
        ],
        [value("x", shape=["N"])],
        [value(name) for name in "abc"],
        TWO,
    )
    loaded = chipdock.load(proto)
    x = np.zeros(1000, np.float32)
    assert dynamic_steps(loaded, x) == 0
    drawn = [array.numpy() for array in loaded.run({"x": x}).values()]
    for i in range(3):
        for k in range(i):
            assert np.abs(np.corrcoef(drawn[i], drawn[k])[0, 1]) < 0.2
    first, second = (loaded.run({"x": x}, seed=3)["c"].numpy() for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_a_branch_that_does_not_fit_is_named_when_it_is_taken():
    proto = by_size(branch("Neg", "x"), branch("Reshape", "x", "s"), weights={"s": np.int64([7])})
    loaded = chipdock.load(proto)
    np.testing.assert_array_equal(loaded(SHAPES[0]).numpy(), -SHAPES[0])
    with pytest.raises(chipdock.errors.InvalidArgumentError, match="Reshape"):
        loaded(SHAPES[1])


def test_weights_that_a_branch_reads_fold():
    turned = body(
        [
            node("Transpose", ["w"], ["t"]),
            node("Concat", ["t", "t"], ["k"], axis=0),
            node("MatMul", ["x", "k"], ["r"]),
        ],
        [],
        [value("r")],
    )
    proto = conditional(turned, branch("Neg", "x"))
    proto.graph.initializer.append(
        helper.make_tensor("w", FLOAT, [3, 2], np.arange(6, dtype=np.float32))
    )
    loaded = agrees(proto, {"c": YES, "x": np.float32([1, 2, 3, 4])})
    placed = {n.op: n.placement for n in loaded.explain().nodes}
    assert placed["Transpose"] == placed["Concat"] == "folded"


def test_weights_that_a_loop_in_a_branch_reads_fold():
    graph = body(
        [COUNT_ON, node("Neg", ["w"], ["m"]), node("Add", ["v", "m"], ["v2"])],
        [value("i", INT64, []), value("c", BOOL, []), value("v")],
        [value("c2", BOOL, []), value("v2")],
    )
    then = body([node("Loop", ["three", "yes", "x"], ["r"], body=graph)], [], [value("r")])
    proto = by_size(
        then,
        branch("Exp", "x"),
        weights={"w": np.float32([1, 10]), "three": np.int64(3), "yes": YES},
    )
    loaded = agrees(proto, {"x": SHAPES[0]})
    assert {n.op: n.placement for n in loaded.explain().nodes}["Neg"] == "folded"


def test_weights_that_do_not_fit_a_branch_count_only_if_it_is_taken():
    bad = body([node("Reshape", ["w", "s"], ["r"])], [], [value("r")], {"s": np.int64([7, 7])})
    proto = conditional(branch("Neg", "x"), bad)
    proto.graph.initializer.append(helper.make_tensor("w", FLOAT, [2], [5, 6]))
    loaded = chipdock.load(proto)
    feeds = {"c": YES, "x": SHAPES[0]}
    np.testing.assert_array_equal(loaded.run(feeds)["y"].numpy(), -SHAPES[0])
    with pytest.raises(chipdock.errors.InvalidArgumentError, match="Reshape"):
        loaded.run({**feeds, "c": NO})


def test_a_weight_that_two_branches_and_the_model_read():
    proto = conditional(branch("Add", "x", "w"), branch("Mul", "x", "w"))
    proto.graph.initializer.append(helper.make_tensor("w", FLOAT, [2], [5, 6]))
    proto.graph.node.append(node("Sub", ["y", "w"], ["z"]))
    proto.graph.output.append(value("z"))
    for condition in (YES, NO):
        agrees(proto, {"c": condition, "x": SHAPES[0]})


def test_a_loop_that_carries_a_weight_it_captures():
    proto = loop(
        [COUNT_ON, node("Add", ["v", "w"], ["v2"])],
        ["v"],
        outer_constants={"w": np.float32([1, 2])},
    )
    for n in (0, 3):
        agrees(proto, {"n": np.int64(n), "keep": YES, "x_v": np.float32([3, 4])})


@pytest.mark.usefixtures("as_written")
def test_the_steps_of_a_known_branch_are_captured_with_the_others(monkeypatch):
    monkeypatch.setenv("CHIPDOCK_CAPTURE", "on")
    twice = body([node("Abs", ["e"], ["a"]), node("Sqrt", ["a"], ["r"])], [], [value("r")])
    proto = by_size(
        twice,
        branch("Neg", "e"),
        outputs=["b"],
        before=[node("Cos", ["x"], ["d"]), node("Sin", ["d"], ["e"])],
        after=[node("Tan", ["b"], ["f"]), node("Exp", ["f"], ["y"])],
        results=["y"],
    )
    loaded = chipdock.load(proto, open_cpu("validate"))
    for x in (*SHAPES, *SHAPES, *SHAPES):
        same(loaded.run({"x": x}), reference(proto, {"x": x}))
    nodes = {s.shapes["x"]: [op for op, _ in s.nodes] for s in loaded.explain().segments}
    assert nodes == {(2,): ["Sin", "Abs", "Sqrt", "Tan"], (3,): ["Sin", "Neg", "Tan"]}


def test_branches_on_a_device_without_kernels():
    proto = by_size(
        branch("Identity", "e"),
        branch("Neg", "e"),
        before=[node("Exp", ["x"], ["e"])],
        after=[node("Add", ["y", "x"], ["s"])],
        results=["s", "y"],
    )
    for x in SHAPES:
        agrees(proto, {"x": x}, open_fake("nano"), fallback="allow")

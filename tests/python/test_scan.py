# SPDX-License-Identifier: Apache-2.0
"""Scan: states and sequences, captures, and bodies that change shape."""

import numpy as np
import pytest
from api_support import agrees, model, value
from control_flow_support import COUNT_ON, YES, body, loop, node

import chipdock


def scan(nodes, states, scanned, outputs, inputs=None):
    graph = body(
        nodes,
        [value(s) for s in states] + [value(s) for s in scanned],
        [value(f"{s}2") for s in states] + [value(o) for o in outputs],
    )
    names = [f"y_{s}" for s in states] + [f"r_{o}" for o in outputs]
    return model(
        [
            node(
                "Scan",
                [f"x_{s}" for s in (*states, *scanned)],
                names,
                body=graph,
                num_scan_inputs=len(scanned),
            )
        ],
        [value(f"x_{s}") for s in (*states, *scanned)] + (inputs or []),
        [value(n) for n in names],
    )


def test_scan_sums_up():
    proto = scan(
        [node("Add", ["s", "e"], ["s2"]), node("Identity", ["s2"], ["o"])], ["s"], ["e"], ["o"]
    )
    rows = np.arange(12, dtype=np.float32).reshape(4, 3)
    got = agrees(proto, {"x_s": np.zeros(3, np.float32), "x_e": rows}).run(
        {"x_s": np.zeros(3, np.float32), "x_e": rows[:1]}
    )
    np.testing.assert_array_equal(got["y_s"].numpy(), rows[0])


def test_scan_with_a_captured_value_and_two_sequences():
    proto = scan(
        [
            node("Mul", ["a", "k"], ["t"]),
            node("Add", ["t", "b"], ["o"]),
            node("Neg", ["s"], ["s2"]),
        ],
        ["s"],
        ["a", "b"],
        ["o"],
        [value("k")],
    )
    rng = np.random.default_rng(0)
    feeds = {
        "x_s": np.float32([1]),
        "x_a": rng.random((5, 2), np.float32),
        "x_b": rng.random((5, 2), np.float32),
        "k": np.float32([3]),
    }
    got = chipdock.load(proto).run(feeds)
    np.testing.assert_allclose(got["r_o"].numpy(), feeds["x_a"] * 3 + feeds["x_b"], rtol=1e-6)
    np.testing.assert_array_equal(got["y_s"].numpy(), [-1])


def test_scan_over_nothing():
    proto = scan(
        [node("Add", ["s", "e"], ["s2"]), node("Identity", ["s2"], ["o"])], ["s"], ["e"], ["o"]
    )
    got = chipdock.load(proto).run({"x_s": np.float32([1, 2]), "x_e": np.zeros((0, 2), np.float32)})
    np.testing.assert_array_equal(got["y_s"].numpy(), [1, 2])
    assert got["r_o"].shape[0] == 0


def test_scan_sequences_of_different_lengths_are_refused():
    proto = scan(
        [node("Add", ["a", "b"], ["o"]), node("Neg", ["s"], ["s2"])], ["s"], ["a", "b"], ["o"]
    )
    with pytest.raises(chipdock.errors.InvalidArgumentError, match="Scan"):
        chipdock.load(proto).run(
            {
                "x_s": np.float32([0]),
                "x_a": np.zeros((3, 2), np.float32),
                "x_b": np.zeros((2, 2), np.float32),
            }
        )


def test_scan_outputs_that_change_shape_are_refused():
    proto = loop(
        [COUNT_ON, node("Concat", ["v", "v"], ["v2"], axis=0), node("Identity", ["v2"], ["row"])],
        ["v"],
        [value("row")],
    )
    with pytest.raises(chipdock.errors.InvalidArgumentError, match="changes shape"):
        chipdock.load(proto).run({"n": np.int64(2), "keep": YES, "x_v": np.float32([1])})

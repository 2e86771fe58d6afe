# SPDX-License-Identifier: Apache-2.0
"""Nodes with bodies: If on a known or unknown condition, Loop with a fixed count, Scan."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper

from random_graphs.grow import Graph, info, unknown


def if_(g: Graph) -> None:
    """Both branches read values of the graph around them."""
    x = g.some("f")
    conditions = [v for v in g.values if v.kind == "b" and v.rank == 0]
    condition = g.pick(conditions) if conditions and g.chance(50) else g.new(np.bool_, ())
    first, second = g.pick((("Relu", "Neg"), ("Abs", "Identity"), ("Sigmoid", "Tanh")))
    branches = {
        key: helper.make_graph([helper.make_node(op, [x.name], ["b"])], key, [], [unknown("b")])
        for key, op in (("then_branch", first), ("else_branch", second))
    }
    for branch in branches.values():
        branch.output[0].CopyFrom(info("b", x.array, [None] * x.rank))
    g.node("If", [condition], captured=[x], **branches)


def loop(g: Graph) -> None:
    """Adds a captured value some times and stacks what it has after each."""
    x = g.some("f", 0, 3, ok=lambda v: v.within(-100, 100))
    count = g.new(np.int64, (), 0 if g.chance(5) else 1, 4)
    true = g.add(np.asarray(True))
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["c"], ["c_out"]),
            helper.make_node("Add", ["s", x.name], ["s_out"]),
            helper.make_node("Identity", ["s_out"], ["seen"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
            info("s", x.array),
        ],
        [
            helper.make_tensor_value_info("c_out", TensorProto.BOOL, []),
            info("s_out", x.array),
            info("seen", x.array),
        ],
    )
    _, seen = g.node("Loop", [count, true, x], 2, captured=[x], body=body)
    # The reference joins what it should stack; the sums are taken in the order of the loop.
    total, rows = x.array, []
    for _ in range(int(count.array)):
        total = total + x.array
        rows.append(total)
    seen.array = np.stack(rows) if rows else np.zeros((0, *x.shape), x.array.dtype)


def scan(g: Graph) -> None:
    """A running sum over axis 0."""
    x = g.some("f", 1, 3, ok=lambda v: v.shape[0] > 0 and v.within(-100, 100))
    start = g.new(x.array.dtype, x.shape[1:], constant=False)
    body = helper.make_graph(
        [
            helper.make_node("Add", ["s", "e"], ["s_out"]),
            helper.make_node("Identity", ["s_out"], ["seen"]),
        ],
        "body",
        [info("s", start.array), info("e", start.array)],
        [info("s_out", start.array), info("seen", start.array)],
    )
    g.node("Scan", [start, x], 2, num_scan_inputs=1, body=body)


RECIPES = (if_, if_, loop, scan)

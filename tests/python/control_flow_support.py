# SPDX-License-Identifier: Apache-2.0
"""Models with If and Loop for the tests: bodies, and the wiring of their values."""

import numpy as np
from api_support import BOOL, FLOAT, INT64, model, value
from onnx import helper

node = helper.make_node
YES, NO = np.array(True), np.array(False)


def body(nodes, inputs, outputs, constants=None):
    weights = [helper.make_tensor(n, *_tensor(a)) for n, a in (constants or {}).items()]
    return helper.make_graph(nodes, "body", inputs, outputs, weights)


def _tensor(array):
    kind = helper.np_dtype_to_tensor_dtype(array.dtype)
    return kind, array.shape, array.ravel().tolist()


def branch(op, *inputs, out="r"):
    return body([node(op, list(inputs), [out])], [], [value(out)])


def conditional(then, other, **more):
    return model(
        [node("If", ["c"], ["y"], then_branch=then, else_branch=other)],
        [value("c", BOOL, []), value("x", shape=["N"])],
        [value("y")],
        **more,
    )


def loop(
    nodes,
    carried,
    scanned=(),
    *,
    constants=None,
    outer=(),
    outer_inputs=(),
    outer_constants=None,
):
    """y_*, s_* = Loop(n, keep, x_*); body inputs i, c, then the carried names."""
    graph = body(
        nodes,
        [value("i", INT64, []), value("c", BOOL, []), *(value(v) for v in carried)],
        [value("c2", BOOL, []), *(value(f"{v}2") for v in carried), *scanned],
        constants,
    )
    outputs = [f"y_{v}" for v in carried] + [f"s_{v.name}" for v in scanned]
    kinds = [FLOAT] * len(carried) + [v.type.tensor_type.elem_type for v in scanned]
    return model(
        [*outer, node("Loop", ["n", "keep", *(f"x_{v}" for v in carried)], outputs, body=graph)],
        [
            value("n", INT64, []),
            value("keep", BOOL, []),
            *(value(f"x_{v}") for v in carried),
            *outer_inputs,
        ],
        [value(o, k) for o, k in zip(outputs, kinds, strict=True)],
        outer_constants,
    )


COUNT_ON = node("Identity", ["c"], ["c2"])

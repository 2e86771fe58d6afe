# SPDX-License-Identifier: Apache-2.0
"""Gradients of random compositions of smooth operators, against differences.

`python tests/python/test_gradient_random.py FIRST LAST` tries the seeds of a range.
"""

from __future__ import annotations

import sys

import numpy as np
import pytest
from gradient_support import check_gradients, normal, rng
from onnx import NodeProto, helper

UNARY = ["Tanh", "Sigmoid", "Sin", "Cos", "Softplus", "Erf", "Gelu", "Softsign", "Asinh", "Neg"]
BINARY = ["Add", "Sub", "Mul", "Max", "Min"]
ALONG = ["Softmax", "LogSoftmax", "LayerNorm", "ReduceSum", "ReduceMean", "ReduceLogSumExp"]
MOVES = ["Transpose", "Slice", "Concat", "Reverse", "Pad", "Gather", "Reshape", "Split"]
SIDE = 3
CONSTANTS = {
    "axis": np.array([1]),
    "last": np.array([-1]),
    "before": np.array([-9]),
    "two": np.array([2]),
    "four": np.array([4]),
    "pads": np.array([-1, 0, 1, 0]),
    "rows": np.array([2, 0, 0]),
    "ones": normal(SIDE, seed=8),
    "parts": np.array([1, 2]),
    "flat": np.array([-1]),
    "square": np.array([SIDE, SIDE]),
}


def composed(seed: int) -> list[NodeProto]:
    """Nodes from a and b, [3, 3], and c, [3], to y; every value between is [3, 3]."""
    choice = rng(seed)
    values, nodes = ["a", "b"], []

    def write(op: str, *inputs: str, outputs: int = 1, **attributes: object) -> str:
        names = [f"v{len(nodes)}_{i}" for i in range(outputs)]
        nodes.append(helper.make_node(op, list(inputs), names, **attributes))
        return names[-1]

    for _ in range(choice.integers(3, 12)):
        x, z = (values[i] for i in choice.integers(0, len(values), 2))
        kind = choice.integers(0, 5)
        if kind == 0:
            made = write(choice.choice(UNARY), x)
        elif kind == 1:
            made = write(choice.choice(BINARY), x, choice.choice([z, "c"]))
        elif kind == 2:
            made = write("MatMul", x, z)
        elif kind == 3:
            made = along(write, str(choice.choice(ALONG)), x)
        else:
            made = moved(write, str(choice.choice(MOVES)), x, z)
        values.append(made)
    joined = write("Sum", *values[-3:], "c")
    write("Tanh", joined)
    nodes[-1].output[0] = "y"
    return nodes


def along(write, op, x):
    if op == "LayerNorm":
        return write("LayerNormalization", x, "ones", "c", epsilon=0.1)
    if op.startswith("Reduce"):
        return write("Sub", x, write(op, x, "axis"))
    return write(op, x, axis=0)


def moved(write, op, x, z):
    if op == "Transpose":
        return write(op, x)
    if op == "Slice":
        return write("Mul", write(op, x, "axis", "two", "axis"), z)
    if op == "Concat":
        return write("Slice", write(op, x, z, axis=1), "axis", "four", "axis")
    if op == "Reverse":
        return write("Slice", x, "last", "before", "axis", "last")
    if op == "Gather":
        return write(op, x, "rows")
    if op == "Reshape":
        return write(op, write("Neg", write(op, x, "flat")), "square")
    if op == "Split":
        return write("Mul", write("ReduceSum", write(op, x, "parts", outputs=2, axis=1), "axis"), z)
    return write(op, x, "pads")


def check(seed: int, **kind: object) -> None:
    feeds = {"a": normal(SIDE, SIDE, seed=seed), "b": normal(SIDE, SIDE, seed=seed + 1)}
    feeds["c"] = normal(SIDE, seed=seed + 2)
    check_gradients(composed(seed), feeds, constants=CONSTANTS, tolerance=1e-5, **kind)


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("kind", [{}, {"dynamic": True}], ids=str)
def test_random_compositions(seed, kind):
    check(seed, **kind)


if __name__ == "__main__":
    for number in range(int(sys.argv[1]), int(sys.argv[2])):
        try:
            check(number, dynamic=number % 2 == 1)
        except Exception as error:  # all kinds are of interest
            print(number, " ".join(str(error).split())[:300])

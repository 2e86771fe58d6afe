# SPDX-License-Identifier: Apache-2.0
"""Gradients of operators that move elements, against differences."""

import numpy as np
import pytest
from gradient_support import check_gradients, normal, rng
from onnx import helper

node = helper.make_node
KINDS = pytest.mark.parametrize("kind", [{}, {"dynamic": True}], ids=str)


def ints(*values):
    return np.array(values, np.int64)


def weighted(op, *inputs, **attributes):
    """One node; "name" inputs."""
    return [node(op, list(inputs), ["y"], **attributes)]


X = normal(2, 3, 4)
SHAPING = {
    "reshape": (weighted("Reshape", "x", "s"), {"s": ints(4, -1)}),
    "reshape with a kept axis": (weighted("Reshape", "x", "s"), {"s": ints(0, -1)}),
    "flatten": (weighted("Flatten", "x", axis=2), {}),
    "unsqueeze": (weighted("Unsqueeze", "x", "a"), {"a": ints(0, -1)}),
    "expand": (weighted("Expand", "x", "s"), {"s": ints(2, 1, 3, 1)}),
    "transpose": (weighted("Transpose", "x", perm=[2, 0, 1]), {}),
    "reversing transpose": (weighted("Transpose", "x"), {}),
    "tile": (weighted("Tile", "x", "r"), {"r": ints(2, 1, 3)}),
    "slice": (weighted("Slice", "x", "b", "e", "a", "s"),
              {"b": ints(-1, 1), "e": ints(-99, 9), "a": ints(1, 2), "s": ints(-2, 1)}),
    "slice of leading axes": (weighted("Slice", "x", "b", "e"), {"b": ints(1), "e": ints(9)}),
    "gather of rows": (weighted("Gather", "x", "i"), {"i": ints(0, 1, 0, -1)}),
    "gather of rows by int32": (weighted("Gather", "x", "i"), {"i": np.array([1, 1], np.int32)}),
    "gather of one row": (weighted("Gather", "x", "i"), {"i": np.array(1)}),
    "gather of columns": (weighted("Gather", "x", "i", axis=-1), {"i": ints([0, 3], [0, 1])}),
    "gather elements": (weighted("GatherElements", "x", "i", axis=1),
                        {"i": rng(2).integers(-3, 3, (2, 5, 4))}),
    "gather nd": (weighted("GatherND", "x", "i"), {"i": ints([0, 1], [1, -1], [0, 1])}),
    "pad": (weighted("Pad", "x", "p"), {"p": ints(1, 0, 2, 0, 3, 1)}),
    "pad of one axis": (weighted("Pad", "x", "p", "", "a"), {"p": ints(1, 2), "a": ints(-1)}),
    "pad that cuts": (weighted("Pad", "x", "p"), {"p": ints(0, -1, 2, 0, 0, -1)}),
    "pad by reflection": (weighted("Pad", "x", "p", mode="reflect"), {"p": ints(1, 0, 2, 0, 1, 3)}),
    "pad by edges": (weighted("Pad", "x", "p", mode="edge"), {"p": ints(1, 0, 2, 0, 1, 3)}),
    "trilu": (weighted("Trilu", "x", "k", upper=0), {"k": np.array(1)}),
    "compress": (weighted("Compress", "x", "c", axis=2), {"c": np.array([1, 0, 1, 1], bool)}),
    "running sum": (weighted("CumSum", "x", "a"), {"a": np.array(1)}),
    "running sum from behind": (weighted("CumSum", "x", "a", exclusive=1, reverse=1),
                                {"a": np.array(-1)}),
}  # fmt: skip


@pytest.mark.parametrize("case", SHAPING)
@pytest.mark.parametrize("constant", [False, True])
@KINDS
def test_what_moves_one_tensor(case, constant, kind):
    nodes, others = SHAPING[case]
    feeds = {"x": X} if constant else {"x": X, **others}
    check_gradients(nodes, feeds, constants=others if constant else None, **kind)


@KINDS
def test_values_of_one_hot(kind):
    feeds = {"i": np.array([[0, 2], [-1, 5]]), "d": np.array(4), "v": normal(2)}
    for axis in (-1, 0):
        check_gradients(weighted("OneHot", *feeds, axis=axis), feeds, **kind)


@KINDS
def test_squeeze(kind):
    x = normal(1, 3, 1)
    check_gradients(weighted("Squeeze", "x", "a"), {"x": x, "a": ints(0, -1)}, **kind)
    check_gradients(weighted("Squeeze", "x"), {"x": x}, **kind)


@KINDS
def test_concat_and_split(kind):
    parts = {"a": normal(2, 3), "b": normal(2, 1, seed=1), "c": normal(2, 4, seed=2)}
    for axis in (1, -1):
        check_gradients(weighted("Concat", *parts, axis=axis), parts, **kind)
    nodes = [
        node("Split", ["x", "s"], ["a", "b", "c"], axis=1),
        node("Mul", ["a", "c"], ["y"]),  # of b nothing is used
    ]
    check_gradients(nodes, {"x": normal(2, 7), "s": ints(3, 1, 3)}, **kind)


@KINDS
def test_the_value_around_a_pad(kind):
    feeds = {"x": X, "p": ints(0, 1, 0, 0, 2, 0), "v": np.array(0.3)}
    check_gradients(weighted("Pad", "x", "p", "v"), feeds, **kind)


@pytest.mark.parametrize("op", ["DepthToSpace", "SpaceToDepth"])
def test_blocks_of_pictures(op):
    check_gradients(weighted(op, "x", blocksize=2), {"x": normal(1, 8, 2, 4)})


def test_reversed_sequences():
    feeds = {"x": normal(4, 3), "n": ints(2, 4, 1)}
    check_gradients(weighted("ReverseSequence", "x", "n"), feeds)


@pytest.mark.parametrize("reduction", ["none", "add"])
@KINDS
def test_scatters(reduction, kind):
    feeds = {"x": normal(4, 3), "i": ints([0, 2, 1], [3, 0, 2]), "u": normal(2, 3, seed=1)}
    check_gradients(weighted("ScatterElements", *feeds, reduction=reduction), feeds, **kind)
    feeds = {"x": normal(4, 3), "i": ints([2], [0]), "u": normal(2, 3, seed=1)}
    check_gradients(weighted("ScatterND", *feeds, reduction=reduction), feeds, **kind)


@KINDS
def test_the_largest_elements(kind):
    feeds = {"x": normal(3, 6), "k": ints(2)}
    check_gradients([node("TopK", ["x", "k"], ["y", "i"], axis=1)], feeds, **kind)
    check_gradients([node("TopK", ["x", "k"], ["y", ""], axis=0, largest=0)], feeds, **kind)

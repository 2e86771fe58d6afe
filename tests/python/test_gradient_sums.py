# SPDX-License-Identifier: Apache-2.0
"""Gradients of reductions, softmax, products of matrices and losses, against differences."""

import numpy as np
import pytest
from gradient_support import check_gradients, normal, rng
from onnx import helper

from chipdock.errors import UnsupportedError

node = helper.make_node
KINDS = pytest.mark.parametrize("kind", [{}, {"dynamic": True}], ids=str)

REDUCTIONS = [
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
    "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare",
]  # fmt: skip


def ints(*values):
    return np.array(values, np.int64)


@pytest.mark.parametrize("op", REDUCTIONS)
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("axes", [None, [1], [-1, 0]], ids=str)
@KINDS
def test_reductions(op, keepdims, axes, kind):
    x = rng(5).uniform(0.2, 3, (2, 3, 4))
    if axes is None:
        check_gradients([node(op, ["x"], ["y"], keepdims=keepdims)], {"x": x}, **kind)
        return
    y = [node(op, ["x", "axes"], ["y"], keepdims=keepdims)]
    check_gradients(y, {"x": x}, constants={"axes": ints(*axes)}, **kind)
    check_gradients(y, {"x": x, "axes": ints(*axes)}, **kind)


def test_products_with_zeros():
    x = np.array([[2.0, 3.0, 4.0], [0.0, 3.0, 4.0], [0.0, 3.0, 0.0]])
    y = [node("ReduceProd", ["x", "axes"], ["y"])]
    check_gradients(y, {"x": x}, constants={"axes": ints(1)})


@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMean", "ReduceMax"])
def test_reductions_of_no_axes(op):
    y = [node(op, ["x"], ["y"], noop_with_empty_axes=1, keepdims=0)]
    check_gradients(y, {"x": normal(2, 3)})


@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMean", "ReduceMax"])
@pytest.mark.parametrize("noop", [0, 1])
def test_reductions_of_axes_that_turn_out_to_be_none(op, noop):
    y = [node(op, ["x", "axes"], ["y"], noop_with_empty_axes=noop, keepdims=0)]
    check_gradients(y, {"x": normal(2, 3), "axes": np.zeros(0, np.int64)}, dynamic=True)


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@KINDS
def test_softmax(op, axis, kind):
    check_gradients([node(op, ["x"], ["y"], axis=axis)], {"x": normal(2, 3, 4)}, **kind)


PRODUCTS = [
    ((3, 4), (4, 2)), ((2, 3, 4), (4, 2)), ((2, 3, 4), (2, 4, 5)), ((2, 1, 3, 4), (5, 4, 2)),
    ((4,), (4, 2)), ((4,), (3, 4, 2)), ((3, 4), (4,)), ((2, 3, 4), (4,)), ((4,), (4,)),
]  # fmt: skip


@pytest.mark.parametrize("shapes", PRODUCTS, ids=str)
@KINDS
def test_matmul(shapes, kind):
    a, b = (normal(*s, seed=i) for i, s in enumerate(shapes))
    check_gradients([node("MatMul", ["a", "b"], ["y"])], {"a": a, "b": b}, **kind)


@pytest.mark.parametrize("turned", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("extents", [None, (5,), (3, 1), (), (3, 5)], ids=str)
def test_gemm(turned, extents):
    feeds = {
        "a": normal(*((4, 3) if turned[0] else (3, 4))),
        "b": normal(*((5, 4) if turned[1] else (4, 5)), seed=1),
    }
    if extents is not None:
        feeds["c"] = normal(*extents, seed=2)
    ways = {"transA": turned[0], "transB": turned[1], "alpha": 0.5, "beta": 1.5}
    check_gradients([node("Gemm", [*feeds], ["y"], **ways)], feeds, dynamic=extents == (5,))


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("bij,bkj->bik", [(2, 3, 4), (2, 5, 4)]),
        ("ij->i", [(2, 3)]),
        ("i,j->ij", [(2,), (3,)]),
        ("ij,k,jl->il", [(2, 3), (4,), (3, 2)]),
        ("ij,jk", [(2, 3), (3, 4)]),
        ("ba,cb", [(2, 3), (4, 2)]),
        ("...ij,jk->...ik", [(2, 2, 3), (3, 4)]),
        ("...ij,...jk->...k", [(2, 1, 2, 3), (5, 3, 4)]),
        ("...i,i", [(2, 3), (3,)]),
    ],
)
def test_einsum(equation, shapes):
    feeds = {f"x{i}": normal(*s, seed=i) for i, s in enumerate(shapes)}
    y = [node("Einsum", [*feeds], ["y"], equation=equation)]
    check_gradients(y, feeds)
    check_gradients(y, feeds, dynamic=True)


@pytest.mark.parametrize("equation", ["ii->i", "i...->i..."])
def test_einsum_that_is_refused(equation):
    with pytest.raises(UnsupportedError, match=r"Einsum .* its equation is"):
        check_gradients([node("Einsum", ["x"], ["y"], equation=equation)], {"x": normal(3, 3)})


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("op", ["SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"])
@pytest.mark.parametrize("opset", [13, 21])
def test_losses_by_their_bodies(op, reduction, weighted, opset):
    feeds = {"x": normal(4, 3), "t": ints(0, 2, 1, 2)}
    constants = {"w": np.array([0.5, 1.5, 0.7])} if weighted else None
    names = [*feeds, *(constants or {})]
    for more in ({}, {"ignore_index": 1}):
        loss = [node(op, names, ["y"], reduction=reduction, **more)]
        check_gradients(loss, feeds, constants=constants, opset=opset)


def test_loss_over_pictures():
    feeds = {"x": normal(2, 3, 2, 2), "t": rng(1).integers(0, 3, (2, 2, 2))}
    check_gradients([node("SoftmaxCrossEntropyLoss", [*feeds], ["y"])], feeds)

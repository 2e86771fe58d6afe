# SPDX-License-Identifier: Apache-2.0
"""Gradients of operators by element, against differences: one input, and several that broadcast."""

import numpy as np
import pytest
from gradient_support import check_gradients, normal, rng
from onnx import TensorProto, helper

node = helper.make_node


def spread(low, high, *shape, seed=1):
    """Numbers of a range, none near its integers, where some functions have kinks."""
    values = rng(seed).uniform(low, high, shape)
    near = np.abs(values - np.round(values)) < 0.01
    return np.where(near, values + 0.05, values)


ANYWHERE = spread(-4, 4, 3, 7)
INSIDE = rng(1).uniform(-0.9, 0.9, (3, 7))
POSITIVE = rng(1).uniform(0.2, 4, (3, 7))
UNARY = {
    "Abs": ANYWHERE,
    "Acos": INSIDE,
    "Acosh": POSITIVE + 1,
    "Asin": INSIDE,
    "Asinh": ANYWHERE,
    "Atan": ANYWHERE,
    "Atanh": INSIDE,
    "Cos": ANYWHERE,
    "Cosh": ANYWHERE,
    "Elu": ANYWHERE,
    "Erf": ANYWHERE,
    "Exp": ANYWHERE,
    "Gelu": ANYWHERE,
    "HardSigmoid": ANYWHERE,
    "HardSwish": ANYWHERE,
    "Identity": ANYWHERE,
    "LeakyRelu": ANYWHERE,
    "Log": POSITIVE,
    "Mish": ANYWHERE,
    "Neg": ANYWHERE,
    "Reciprocal": POSITIVE,
    "Relu": ANYWHERE,
    "Selu": ANYWHERE,
    "Sigmoid": ANYWHERE,
    "Sin": ANYWHERE,
    "Sinh": ANYWHERE,
    "Softplus": ANYWHERE,
    "Softsign": ANYWHERE,
    "Sqrt": POSITIVE,
    "Tan": INSIDE,
    "Tanh": ANYWHERE,
    "ThresholdedRelu": ANYWHERE,
}


@pytest.mark.parametrize("op", UNARY)
@pytest.mark.parametrize("dynamic", [False, True])
def test_functions_of_one_value(op, dynamic):
    check_gradients([node(op, ["x"], ["y"])], {"x": UNARY[op]}, dynamic=dynamic, opset=22)


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("Elu", {"alpha": 0.3}),
        ("Gelu", {"approximate": "tanh"}),
        ("HardSigmoid", {"alpha": 0.3, "beta": 0.4}),
        ("LeakyRelu", {"alpha": 0.3}),
        ("Selu", {"alpha": 1.5, "gamma": 1.2}),
        ("ThresholdedRelu", {"alpha": 0.3}),
    ],
)
def test_functions_with_attributes(op, attributes):
    check_gradients([node(op, ["x"], ["y"], **attributes)], {"x": ANYWHERE}, opset=22)


@pytest.mark.parametrize("alpha", [0.3, 1.0])
def test_celu_which_is_float32_alone(alpha):
    nodes = [
        node("Cast", ["x"], ["single"], to=TensorProto.FLOAT),
        node("Celu", ["single"], ["bent"], alpha=alpha),
        node("Cast", ["bent"], ["y"], to=TensorProto.DOUBLE),
    ]
    check_gradients(nodes, {"x": ANYWHERE}, tolerance=0.05)


PAIRS = [((3, 4), (3, 4)), ((2, 3, 4), (4,)), ((3, 1), (1, 4)), ((4,), (2, 1, 4)), ((3, 4), ())]


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Sum", "Mean"])
@pytest.mark.parametrize("shapes", PAIRS, ids=str)
@pytest.mark.parametrize("kind", [{}, {"dynamic": True}, {"ranks": False}], ids=str)
def test_two_values_that_broadcast(op, shapes, kind):
    a, b = (rng(i).uniform(0.3, 2, s) for i, s in enumerate(shapes))
    check_gradients([node(op, ["a", "b"], ["y"])], {"a": a, "b": b}, **kind)


@pytest.mark.parametrize("op", ["Max", "Min", "Sum", "Mean"])
def test_three_values_and_one(op):
    feeds = {"a": normal(2, 3), "b": normal(3, seed=1), "c": normal(2, 1, seed=2)}
    check_gradients([node(op, [*feeds], ["y"])], feeds)
    check_gradients([node(op, ["a"], ["y"])], {"a": feeds["a"]})


@pytest.mark.parametrize("kind", [{}, {"dynamic": True}], ids=str)
def test_remainders(kind):
    feeds = {"a": spread(-9, 9, 3, 4), "b": np.array([1.7, -2.3, 0.9, 3.1])}
    check_gradients([node("Mod", ["a", "b"], ["y"], fmod=1)], feeds, **kind)


@pytest.mark.parametrize("exponent", [np.float32, np.int64])
def test_pow_with_an_exponent_of_another_dtype(exponent):
    feeds = {"x": rng(0).uniform(-2, 2, (3, 4)), "p": np.array([0, 1, 2, 3], exponent)}
    check_gradients([node("Pow", ["x", "p"], ["y"])], feeds)


@pytest.mark.parametrize("kind", [{}, {"dynamic": True}], ids=str)
def test_where_and_prelu(kind):
    feeds = {"c": rng(3).random((2, 1, 4)) < 0.5, "a": normal(3, 4), "b": normal(1, seed=1)}
    check_gradients([node("Where", ["c", "a", "b"], ["y"])], feeds, **kind)
    feeds = {"x": ANYWHERE, "slope": normal(7, seed=2)}
    check_gradients([node("PRelu", ["x", "slope"], ["y"])], feeds, **kind)


@pytest.mark.parametrize("bounds", [("low", ""), ("", "high"), ("low", "high")])
def test_clip_and_its_bounds(bounds):
    feeds = {"x": ANYWHERE, "low": np.array(-1.03), "high": np.array(1.47)}
    feeds = {n: a for n, a in feeds.items() if n == "x" or n in bounds}
    check_gradients([node("Clip", ["x", *bounds], ["y"])], feeds)


def test_casts_between_floats_pass_and_those_through_integers_stop():
    to_float = [
        node("Cast", ["x"], ["f"], to=TensorProto.FLOAT),
        node("Mul", ["f", "f"], ["s"]),
        node("CastLike", ["s", "x"], ["y"]),
    ]
    check_gradients(to_float, {"x": ANYWHERE}, tolerance=0.05)
    through = [
        node("Cast", ["x"], ["i"], to=TensorProto.INT64),
        node("Cast", ["i"], ["whole"], to=TensorProto.DOUBLE),
        node("Floor", ["x"], ["floor"]),
        node("Mul", ["whole", "x"], ["a"]),
        node("Mul", ["floor", "x"], ["b"]),
        node("Add", ["a", "b"], ["y"]),
    ]
    check_gradients(through, {"x": ANYWHERE})

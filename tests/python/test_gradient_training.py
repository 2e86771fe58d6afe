# SPDX-License-Identifier: Apache-2.0
"""Models that train themselves: loss, Gradient and optimizer in one graph, run again and again."""

from pathlib import Path

import numpy as np
import pytest
from api_support import FLOAT, INT64, model, value
from gradient_support import TRAINING, gradient, normal, rng
from onnx import helper

import chipdock
from chipdock._gradient.rules import RULES

node = helper.make_node
# Slots of state for each weight, and attributes.
OPTIMIZERS = {
    "Momentum": (1, {"alpha": 0.9, "beta": 1.0, "norm_coefficient": 0.0, "mode": "standard"}),
    "Adagrad": (1, {"epsilon": 1e-6}),
    "Adam": (2, {"alpha": 0.9, "beta": 0.999, "epsilon": 1e-6}),
}


class Training:
    """A model from data and weights to the loss and the next weights, with the state of a loop."""

    def __init__(self, optimizer, loss, weights, data, *, opset=17):
        slots, attributes = OPTIMIZERS[optimizer]
        names = [*weights]
        state = [f"{n}.{k}" for k in range(slots) for n in names]
        update = node(
            optimizer,
            ["rate", "step", *names, *(f"d{n}" for n in names), *state],
            [f"{n}.next" for n in (*names, *state)],
            domain=TRAINING,
            **attributes,
        )
        inputs = [value(n, t, s) for n, (t, s) in data.items()]
        inputs += [value("rate", FLOAT, []), value("step", INT64, [])]
        inputs += [value(n, FLOAT, a.shape) for n, a in weights.items()]
        inputs += [value(n, FLOAT, weights[n.rsplit(".", 1)[0]].shape) for n in state]
        outputs = [value(n, FLOAT) for n in ("loss", *(f"{n}.next" for n in (*names, *state)))]
        opsets = [helper.make_opsetid("", opset), helper.make_opsetid(TRAINING, 1)]
        nodes = [*loss, gradient(names, "loss", zs=[*data]), update]
        self.net = chipdock.load(model(nodes, inputs, outputs, opsets=opsets))
        self.state = {n: a.astype(np.float32) for n, a in weights.items()}
        self.state |= {n: np.zeros_like(self.state[n.rsplit(".", 1)[0]]) for n in state}

        self.step = 0

    def run(self, data, rate, steps):
        losses = []
        for _ in range(steps):
            feeds = {**data, **self.state, "rate": np.float32(rate), "step": np.int64(self.step)}
            self.step += 1
            found = self.net.run(feeds)
            losses.append(float(found["loss"].numpy()))
            self.state = {n: found[f"{n}.next"] for n in self.state}  # stays on the device
        return losses


@pytest.mark.parametrize(
    ("optimizer", "rate", "steps"), [("Momentum", 0.05, 250), ("Adam", 0.05, 700)]
)
def test_linear_regression_finds_the_least_squares_solution(optimizer, rate, steps):
    x, noise = normal(40, 3).astype(np.float32), normal(40, 1, seed=1)
    t = (x @ [[1.5], [-2.0], [0.5]] + 0.7 + 0.1 * noise).astype(np.float32)
    loss = [
        node("MatMul", ["x", "w"], ["p"]),
        node("Add", ["p", "b"], ["q"]),
        node("Sub", ["q", "t"], ["e"]),
        node("Mul", ["e", "e"], ["s"]),
        node("ReduceMean", ["s"], ["loss"], keepdims=0),
    ]
    weights = {"w": np.zeros((3, 1)), "b": np.zeros(1)}
    data = {"x": (FLOAT, [None, 3]), "t": (FLOAT, [None, 1])}
    training = Training(optimizer, loss, weights, data)
    training.run({"x": x, "t": t}, rate, steps)
    wide = np.hstack([x, np.ones((40, 1))])
    wanted = np.linalg.lstsq(wide, t, rcond=None)[0].ravel()
    got = np.hstack([training.state[n].numpy().ravel() for n in weights])
    np.testing.assert_allclose(got, wanted, atol=2e-4)


@pytest.mark.parametrize(
    ("optimizer", "rate"), [("Adam", 0.05), ("Momentum", 0.2), ("Adagrad", 0.3)]
)
def test_a_net_of_two_layers_learns_exclusive_or(optimizer, rate):
    corners = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.float32) * 2 - 1
    loss = [
        node("Gemm", ["x", "w1", "b1"], ["h"]),
        node("Tanh", ["h"], ["a"]),
        node("Gemm", ["a", "w2", "b2"], ["logits"]),
        node("SoftmaxCrossEntropyLoss", ["logits", "t"], ["loss"]),
    ]
    weights = {
        "w1": normal(2, 8), "b1": np.zeros(8), "w2": normal(8, 2, seed=1), "b2": np.zeros(2),
    }  # fmt: skip
    data = {"x": (FLOAT, ["N", 2]), "t": (INT64, ["N"])}
    training = Training(optimizer, loss, weights, data)
    losses = training.run({"x": corners, "t": np.array([0, 1, 1, 0])}, rate, 150)
    assert losses[0] > 0.4
    assert losses[-1] < 0.02


def test_a_convolutional_net_learns_the_direction_of_stripes():
    stripes = np.zeros((32, 1, 8, 8), np.float32)
    kinds, places = rng(3).integers(0, 2, 32), rng(4).integers(0, 2, 32)
    for picture, kind, place in zip(stripes, kinds, places, strict=True):
        lines = (np.arange(8) + place) % 2
        picture[0] = lines[:, None] if kind else lines[None, :]
    stripes += 0.3 * rng(5).standard_normal(stripes.shape).astype(np.float32)
    loss = [
        node("Conv", ["x", "k", "kb"], ["c"], pads=[1, 1, 1, 1]),
        node("BatchNormalization", ["c", "scale", "shift", "m", "v"], ["n", "rm", "rv"],
             training_mode=1),
        node("Relu", ["n"], ["r"]),
        node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", ["p", "k2"], ["c2"], group=2),
        node("GlobalAveragePool", ["c2"], ["g"]),
        node("Flatten", ["g"], ["f"]),
        node("Gemm", ["f", "w", "b"], ["logits"], transB=1),
        node("SoftmaxCrossEntropyLoss", ["logits", "t"], ["loss"]),
    ]  # fmt: skip
    weights = {
        "k": 0.3 * normal(4, 1, 3, 3), "kb": np.zeros(4), "scale": np.ones(4),
        "shift": np.zeros(4), "k2": 0.3 * normal(4, 2, 3, 3, seed=1),
        "w": normal(2, 4, seed=2), "b": np.zeros(2),
    }  # fmt: skip
    data = {"x": (FLOAT, ["N", 1, 8, 8]), "t": (INT64, ["N"]), "m": (FLOAT, [4]), "v": (FLOAT, [4])}
    training = Training("Adam", loss, weights, data)
    still = {"m": np.zeros(4, np.float32), "v": np.ones(4, np.float32)}
    losses = training.run({"x": stripes, "t": kinds, **still}, 0.03, 40)
    assert losses[0] > 0.4
    assert losses[-1] < 0.05


def test_one_model_trains_with_batches_of_any_size():
    loss = [
        node("MatMul", ["x", "w"], ["p"]),
        node("Sub", ["p", "t"], ["e"]),
        node("Mul", ["e", "e"], ["s"]),
        node("ReduceMean", ["s"], ["loss"], keepdims=0),
    ]
    data = {"x": (FLOAT, ["N", 2]), "t": (FLOAT, ["N", 1])}
    training = Training("Momentum", loss, {"w": np.zeros((2, 1))}, data)
    for step in range(400):
        x = normal(2 + step % 5, 2, seed=step).astype(np.float32)
        training.run({"x": x, "t": x @ np.float32([[2.0], [-1.0]])}, 0.05, 1)
    np.testing.assert_allclose(training.state["w"].numpy(), [[2.0], [-1.0]], atol=1e-3)


def test_the_example_of_the_docs(capsys):
    page = Path(__file__).parents[2] / "docs" / "training.md"
    names = {}
    exec(page.read_text().split("```python\n")[1].split("```")[0], names)
    np.testing.assert_allclose(names["w"].numpy().ravel(), [1, -2, 3], atol=1e-3)
    assert capsys.readouterr().out == "[ 1. -2.  3.]\n"


def test_the_docs_list_all_rules():
    page = (Path(__file__).parents[2] / "docs" / "training.md").read_text()
    rows = [line.split("|")[2].split() for line in page.splitlines() if line.startswith("| ")]
    listed = [op for row in rows[1:-1] for op in row]
    assert sorted(listed) == sorted(RULES)

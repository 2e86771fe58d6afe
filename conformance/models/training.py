# SPDX-License-Identifier: Apache-2.0
"""Training steps as graphs: forward, loss, backward and the optimizer, weights in and out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipdock.conformance.models.gradients import gradients
from chipdock.conformance.models.net import Net, Network
from chipdock.conformance.numerics.dtypes import numpy_dtype

__all__ = ["CLASSES", "MODELS", "RATES", "STEPS", "Step", "batch_of", "make_step", "rate_at"]

STEPS = 20
CLASSES = 5
_ROWS = 16
_DOMAIN = "ai.onnx.preview.training"
_ALPHA, _BETA, _EPSILON = 0.9, 0.999, 1e-4
_SLOTS: Mapping[str, int] = {"sgd": 0, "momentum": 1, "adam": 2, "adagrad": 1}
RATES: Mapping[str, float] = {"sgd": 0.2, "momentum": 0.05, "adam": 0.01, "adagrad": 0.05}
"""Learning rate by optimizer."""


@dataclass(frozen=True)
class Step:
    """A training step.

    Attributes:
        network: Inputs x, t (one-hot), rate, count (fused steps only) and the state; outputs loss
            and the new state, named as the old with _new behind.
        state: First weights and moments by name, in fp64 with the digits of the type.
        rows: Extents of x.
    """

    network: Network
    state: Mapping[str, NDArray[np.float64]]
    rows: tuple[int, ...]


class _Model(Net):
    """A graph whose weights are inputs."""

    def __init__(self, seed: int, dtype: str) -> None:
        super().__init__(seed, dtype)
        self.state: dict[str, NDArray[np.float64]] = {}

    def weight(self, *shape: int, scale: float | None = None, mean: float = 0.0) -> str:
        """Draw a weight as a constant is drawn, and make it an input."""
        name = super().weight(*shape, scale=scale, mean=mean)
        self.state[f"p{len(self.state)}"] = self.weights.pop(name)
        return self.input(f"p{len(self.state) - 1}", shape)


def _linear(net: Net, x: str, width: int, out: int) -> str:
    product = net("MatMul", x, net.weight(width, out))
    return net("Add", product, net.weight(out, scale=0.1))


def _mlp(net: Net, x: str) -> str:
    hidden = net("Tanh", _linear(net, x, 12, 24))
    return _linear(net, net("Relu", _linear(net, hidden, 24, 24)), 24, CLASSES)


def _cnn(net: Net, x: str) -> str:
    for given, out, kernel, stride in ((2, 8, 3, 1), (8, 12, 2, 2), (12, 12, 3, 1)):
        pads = [kernel // 2 if stride == 1 else 0] * 4
        x = net("Conv", x, net.weight(out, given, kernel, kernel, scale=(given * 4) ** -0.5),
                pads=pads, strides=[stride, stride])  # fmt: skip
        x = net("Relu", net("Add", x, net.weight(out, 1, 1, scale=0.1)))
    return _linear(net, net("ReduceMean", x, net.ints(2, 3), keepdims=0), 12, CLASSES)


def _norm(net: Net, x: str, width: int) -> str:
    centred = net("Sub", x, net("ReduceMean", x, net.ints(-1), keepdims=1))
    spread = net("ReduceMean", net("Mul", centred, centred), net.ints(-1), keepdims=1)
    scaled = net("Div", centred, net("Sqrt", net("Add", spread, net.constant(1e-3))))
    gain = net.weight(width, scale=0.1, mean=1.0)
    return net("Add", net("Mul", scaled, gain), net.weight(width, scale=0.1))


def _transformer(net: Net, x: str) -> str:
    width, length = 16, 6
    x = _linear(net, x, 12, width)
    normed = _norm(net, x, width)
    heads = []
    for order in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]):
        split = net("Reshape", _linear(net, normed, width, width), net.ints(0, length, 2, 8))
        heads.append(net("Transpose", split, perm=order))
    scores = net("Mul", net("MatMul", heads[0], heads[1]), net.constant(8**-0.5))
    mixed = net("MatMul", net("Softmax", scores, axis=-1), heads[2])
    flat = net("Reshape", net("Transpose", mixed, perm=[0, 2, 1, 3]), net.ints(0, length, width))
    x = net("Add", x, _linear(net, flat, width, width))
    inner = net("Relu", _linear(net, _norm(net, x, width), width, 2 * width))
    x = net("Add", x, _linear(net, inner, 2 * width, width))
    pooled = net("ReduceMean", _norm(net, x, width), net.ints(1), keepdims=0)
    return _linear(net, pooled, width, CLASSES)


MODELS: Mapping[str, tuple[Callable[[Net, str], str], tuple[int, ...]]] = {
    "mlp": (_mlp, (_ROWS, 12)),
    "cnn": (_cnn, (8, 2, 6, 6)),
    "transformer": (_transformer, (_ROWS, 6, 12)),
}
"""By name: what builds the logits from x, and the extents of x."""


def make_step(model: str, optimizer: str, dtype: str, *, fused: bool = False) -> Step:
    """Build a training step.

    Args:
        model: Of MODELS.
        optimizer: sgd, momentum, adam or adagrad.
        dtype: Of weights, activations and gradients.
        fused: The optimizer is one node of ai.onnx.preview.training for each weight.
    """
    build, rows = MODELS[model]
    net = _Model(11, dtype)
    labels = net.input("t", (rows[0], CLASSES))
    logits = build(net, net.input("x", rows))
    rate = net.input("rate", ())
    count = net.input("count", (), "i64") if fused else ""
    chances = net("Softmax", logits, axis=-1)
    # Of the softmax and the cross entropy together.
    difference = net("Sub", chances, labels)
    seed = net("Mul", difference, net.constant(1.0 / rows[0]))
    parameters = list(net.state)
    found = gradients(net, logits, seed, parameters)
    logs = net("Mul", labels, net("Log", chances))
    total = net("ReduceSum", logs, net.ints(0, 1), keepdims=0)
    net("Mul", total, net.constant(-1.0 / rows[0]), out="loss")
    for name in parameters:
        moments = []
        for i in range(_SLOTS[optimizer]):
            net.state[f"{name}_m{i}"] = np.zeros(net.state[name].shape)
            moments.append(net.input(f"{name}_m{i}", net.state[name].shape))
        if fused:
            _fused(net, optimizer, [rate, count, name, found[name], *moments])
        else:
            _PLAIN[optimizer](net, rate, name, found[name], moments)
    outputs = dict.fromkeys(["loss", *(f"{name}_new" for name in net.state)], "")
    return Step(net.finish(outputs), net.state, rows)


def _fused(net: Net, optimizer: str, inputs: Sequence[str]) -> None:
    outputs = [f"{name}_new" for name in (inputs[2], *inputs[4:])]
    known: Mapping[str, dict[str, Any]] = {
        "momentum": {"alpha": _ALPHA, "beta": 1.0, "mode": "standard", "norm_coefficient": 0.0},
        "adam": {"alpha": _ALPHA, "beta": _BETA, "epsilon": _EPSILON},
        "adagrad": {"epsilon": _EPSILON},
    }
    net.many(optimizer.capitalize(), *inputs, outputs=outputs, domain=_DOMAIN, **known[optimizer])


def _apply(net: Net, rate: str, name: str, change: str) -> None:
    net("Sub", name, net("Mul", rate, change), out=f"{name}_new")


def _sgd(net: Net, rate: str, name: str, gradient: str, _: Sequence[str]) -> None:
    _apply(net, rate, name, gradient)


def _momentum(net: Net, rate: str, name: str, gradient: str, moments: Sequence[str]) -> None:
    kept = net("Mul", moments[0], net.constant(_ALPHA))
    _apply(net, rate, name, net("Add", kept, gradient, out=f"{moments[0]}_new"))


def _blend(net: Net, old: str, new: str, share: float) -> str:
    kept = net("Mul", old, net.constant(share))
    return net("Add", kept, net("Mul", new, net.constant(1.0 - share)), out=f"{old}_new")


def _scaled(net: Net, value: str, square: str) -> str:
    return net("Div", value, net("Add", net("Sqrt", square), net.constant(_EPSILON)))


def _adam(net: Net, rate: str, name: str, gradient: str, moments: Sequence[str]) -> None:
    first = _blend(net, moments[0], gradient, _ALPHA)
    second = _blend(net, moments[1], net("Mul", gradient, gradient), _BETA)
    _apply(net, rate, name, _scaled(net, first, second))


def _adagrad(net: Net, rate: str, name: str, gradient: str, moments: Sequence[str]) -> None:
    square = net("Mul", gradient, gradient)
    total = net("Add", moments[0], square, out=f"{moments[0]}_new")
    _apply(net, rate, name, _scaled(net, gradient, total))


_PLAIN: Mapping[str, Callable[[Net, str, str, str, Sequence[str]], None]] = {
    "sgd": _sgd, "momentum": _momentum, "adam": _adam, "adagrad": _adagrad,
}  # fmt: skip


def rate_at(optimizer: str, count: int, *, fused: bool) -> float:
    """Return what `rate` is at a step, counted from 1: plain Adam's has its correction inside."""
    rate = RATES[optimizer]
    if optimizer != "adam" or fused:
        return rate
    return float(rate * np.sqrt(1 - _BETA**count) / (1 - _ALPHA**count))


def batch_of(
    rng: np.random.Generator, rows: tuple[int, ...], dtype: str
) -> dict[str, NDArray[np.generic]]:
    """Draw a batch that can be learned: each class is noise around its own pattern.

    Args:
        rng: Of the noise and the classes; the patterns are always the same.
        rows: Extents of x.
        dtype: Of x and t.
    """
    patterns = np.random.default_rng(3).standard_normal((CLASSES, *rows[1:]))
    if len(rows) == 4:
        # Pooled over places later: give each class a level of its own too.
        patterns += np.random.default_rng(4).standard_normal((CLASSES, rows[1], 1, 1))
    classes = rng.integers(0, CLASSES, rows[0])
    x = patterns[classes] + 0.3 * rng.standard_normal(rows)
    kind = numpy_dtype(dtype)
    return {"x": x.astype(kind), "t": np.eye(CLASSES)[classes].astype(kind)}

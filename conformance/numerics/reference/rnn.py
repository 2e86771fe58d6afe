# SPDX-License-Identifier: Apache-2.0
"""RNN, GRU and LSTM step by step in float64, with every option of the specification."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["recur"]

_Array = NDArray[Any]

_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
_DEFAULTS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}


def _sigmoid(x: _Array) -> _Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def _activation(name: str, alpha: float | None, beta: float | None) -> Callable[[_Array], _Array]:
    def value(given: float | None, default: float) -> float:
        return default if given is None else float(np.float32(given))

    plain: dict[str, Callable[[_Array], _Array]] = {
        "Sigmoid": _sigmoid,
        "Tanh": np.tanh,
        "Relu": lambda x: np.maximum(x, 0),
        "Softsign": lambda x: x / (1 + np.abs(x)),
        "Softplus": lambda x: np.logaddexp(0, x),
        "Affine": lambda x: value(alpha, 1.0) * x + value(beta, 0.0),
        "LeakyRelu": lambda x: np.where(x < 0, value(alpha, 0.01) * x, x),
        "ThresholdedRelu": lambda x: np.where(x > value(alpha, 1.0), x, 0),
        "ScaledTanh": lambda x: value(alpha, 1.0) * np.tanh(value(beta, 1.0) * x),
        "HardSigmoid": lambda x: np.clip(value(alpha, 0.2) * x + value(beta, 0.5), 0, 1),
        "Elu": lambda x: np.where(x < 0, value(alpha, 1.0) * np.expm1(x), x),
    }
    return plain[name]


def recur(
    op: str, inputs: list[Any], attributes: dict[str, Any]
) -> tuple[list[_Array], list[_Array | None], int]:
    """Run a recurrent layer.

    Args:
        op: RNN, GRU or LSTM.
        inputs: X, W, R, B, sequence_lens, initial_h, initial_c, P; None or absent if not given.
        attributes: Of that operator.

    Returns:
        Y, Y_h and for LSTM Y_c; their magnitudes; the terms of a sum over all steps.
    """
    x, weight, recurrence, bias, lengths, h0, c0, peephole = [*inputs, *[None] * 8][:8]
    batch_first = bool(attributes.get("layout", 0))
    if batch_first:
        x = x.transpose(1, 0, 2)
        h0 = None if h0 is None else h0.transpose(1, 0, 2)
        c0 = None if c0 is None else c0.transpose(1, 0, 2)
    steps, batch, _ = x.shape
    directions, hidden = recurrence.shape[0], recurrence.shape[2]
    gates = _GATES[op]
    lengths = np.full(batch, steps) if lengths is None else np.asarray(lengths)
    direction = attributes.get("direction", "forward")
    names = list(attributes.get("activations") or _DEFAULTS[op] * directions)
    alphas = list(attributes.get("activation_alpha") or [])
    betas = list(attributes.get("activation_beta") or [])
    functions = [
        _activation(name, *(values[i] if i < len(values) else None for values in (alphas, betas)))
        for i, name in enumerate(names)
    ]
    per = len(functions) // directions
    y = np.zeros((steps, directions, batch, hidden), x.dtype)
    last_h = np.zeros((directions, batch, hidden), x.dtype)
    last_c = np.zeros_like(last_h)
    for d in range(directions):
        backwards = direction == "reverse" or d == 1
        own = functions[d * per : (d + 1) * per]
        b = bias[d] if bias is not None else np.zeros(2 * gates * hidden, x.dtype)
        p = peephole[d] if peephole is not None else np.zeros(3 * hidden, x.dtype)
        h = h0[d].copy() if h0 is not None else np.zeros((batch, hidden), x.dtype)
        c = c0[d].copy() if c0 is not None else np.zeros((batch, hidden), x.dtype)
        for t in range(steps):
            active = (t < lengths)[:, None]
            at = np.where(lengths > t, lengths - 1 - t, t) if backwards else np.full(batch, t)
            row = x[at, np.arange(batch)]
            new_h, new_c = _step(op, row, h, c, weight[d], recurrence[d], b, p, own, attributes)
            h, c = np.where(active, new_h, h), np.where(active, new_c, c)
            for n in np.flatnonzero(active):
                y[at[n], d, n] = h[n]
        last_h[d], last_c[d] = h, c
    if batch_first:
        y = y.transpose(2, 0, 1, 3)
        last_h, last_c = last_h.transpose(1, 0, 2), last_c.transpose(1, 0, 2)
    outputs = [y, last_h] + ([last_c] if op == "LSTM" else [])
    width = max(float(np.abs(weight).sum(axis=2).max() * np.abs(x).max(initial=0)), 1.0)
    width += float(np.abs(recurrence).sum(axis=2).max())
    sizes: list[_Array | None] = [np.full(o.shape, width) + np.abs(o) for o in outputs]
    return outputs, sizes, (weight.shape[2] + hidden + 4) * min(steps, 4)


def _step(
    op: str, x: _Array, h: _Array, c: _Array, weight: _Array, recurrence: _Array, bias: _Array,
    peephole: _Array, functions: list[Callable[[_Array], _Array]], attributes: dict[str, Any],
) -> tuple[_Array, _Array]:  # fmt: skip
    hidden = h.shape[1]
    gates = _GATES[op]
    limit = attributes.get("clip")

    def cut(a: _Array) -> _Array:
        return a if limit is None else np.clip(a, -float(limit), float(limit))

    ahead = x @ weight.T + bias[: gates * hidden]
    back = h @ recurrence.T + bias[gates * hidden :]
    a = np.split(ahead, gates, axis=1)
    r = np.split(back, gates, axis=1)
    if op == "RNN":
        return functions[0](cut(a[0] + r[0])), c
    if op == "GRU":
        z = functions[0](cut(a[0] + r[0]))
        reset = functions[0](cut(a[1] + r[1]))
        if attributes.get("linear_before_reset"):
            new = functions[1](cut(a[2] + reset * r[2]))
        else:
            own = bias[gates * hidden :][2 * hidden :]
            new = functions[1](cut(a[2] + (reset * h) @ recurrence[2 * hidden :].T + own))
        return (1 - z) * new + z * h, c
    p_i, p_o, p_f = np.split(peephole, 3)
    i = functions[0](cut(a[0] + r[0] + p_i * c))
    f = 1 - i if attributes.get("input_forget") else functions[0](cut(a[2] + r[2] + p_f * c))
    new_c = f * c + i * functions[1](cut(a[3] + r[3]))
    o = functions[0](cut(a[1] + r[1] + p_o * new_c))
    return o * functions[2](new_c), new_c

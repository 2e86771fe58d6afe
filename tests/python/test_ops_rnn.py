# SPDX-License-Identifier: Apache-2.0
"""RNN, GRU and LSTM on cpu:0, against the operators' equations in float64."""

from __future__ import annotations

import numpy as np
import pytest
from api_support import open_cpu

import chipdock

RNG = np.random.default_rng(6)
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
FUNCTIONS = {
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Tanh": np.tanh,
    "Relu": lambda x: np.maximum(x, 0),
    "HardSigmoid": lambda x: np.clip(0.3 * x + 0.4, 0, 1),
    "Softsign": lambda x: x / (1 + np.abs(x)),
    "LeakyRelu": lambda x: np.where(x < 0, 0.1 * x, x),
}
DEFAULTS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}


def normal(*shape, dtype=np.float32, scale=0.5):
    return (scale * RNG.standard_normal(shape)).astype(dtype)


class Case:
    """Inputs of one call, and the answer by the book; all of it time major."""

    def __init__(self, op, direction="forward", *, steps=5, batch=3, inputs=4, hidden=6,
                 bias=True, lengths=None, state=True, peepholes=False, dtype=np.float32, names=None,
                 **options):  # fmt: skip
        self.op, self.direction, self.options, self.dtype = op, direction, options, dtype
        self.hidden, self.names = hidden, names or DEFAULTS[op]
        d = self.directions = 2 if direction == "bidirectional" else 1
        g = GATES[op]
        self.x = normal(steps, batch, inputs, dtype=dtype)
        self.w = normal(d, g * hidden, inputs, dtype=dtype)
        self.r = normal(d, g * hidden, hidden, dtype=dtype)
        self.b = normal(d, 2 * g * hidden, dtype=dtype) if bias else None
        self.lengths = None if lengths is None else np.array(lengths, np.int32)
        self.h = normal(d, batch, hidden, dtype=dtype) if state else None
        self.c = normal(d, batch, hidden, dtype=dtype) if state else None
        self.p = normal(d, 3 * hidden, dtype=dtype) if peepholes else None

    def run(self, batch_first=False, **more):
        inputs = [self.x, self.w, self.r, self.b, self.lengths, self.h]
        if self.op == "LSTM":
            inputs += [self.c, self.p]
        if batch_first:
            for i in (0, 5, 6):
                if i < len(inputs) and inputs[i] is not None:
                    inputs[i] = inputs[i].swapaxes(0, 1)
        options = dict(self.options, hidden_size=self.hidden, direction=self.direction, **more)
        if self.names != DEFAULTS[self.op]:
            options["activations"] = self.names * self.directions
            options["activation_alpha"] = [
                {"HardSigmoid": 0.3, "LeakyRelu": 0.1}[n]
                for n in options["activations"] if n in ("HardSigmoid", "LeakyRelu")
            ]  # fmt: skip
            options["activation_beta"] = [0.4 for n in options["activations"] if n == "HardSigmoid"]
        count = 3 if self.op == "LSTM" else 2
        got = chipdock.run_op(self.op, *inputs, outputs=count, layout=int(batch_first), **options)
        return [v.numpy() for v in got]

    def answer(self):
        steps, batch, _ = self.x.shape
        y = np.zeros((steps, self.directions, batch, self.hidden))
        last = np.zeros((2, self.directions, batch, self.hidden))
        for d in range(self.directions):
            back = self.direction == "reverse" or d == 1
            for n in range(batch):
                length = steps if self.lengths is None else self.lengths[n]
                h = np.zeros(self.hidden) if self.h is None else self.h[d, n].astype(np.float64)
                c = np.zeros(self.hidden) if self.c is None else self.c[d, n].astype(np.float64)
                for t in range(length)[:: -1 if back else 1]:
                    h, c = self.step(d, self.x[t, n].astype(np.float64), h, c)
                    y[t, d, n] = h
                last[0, d, n], last[1, d, n] = h, c
        return [y, last[0], last[1]][: 3 if self.op == "LSTM" else 2]

    def step(self, d, x, h, c):
        size, w, r = self.hidden, self.w[d].astype(np.float64), self.r[d].astype(np.float64)
        both = np.zeros((2, len(w)))
        if self.b is not None:
            both = self.b[d].astype(np.float64).reshape(2, -1)
        clip = self.options.get("clip", np.inf)

        def act(i, v):
            return FUNCTIONS[self.names[i]](np.clip(v, -clip, clip))

        a, b = w @ x + both[0], r @ h + both[1]
        if self.op == "RNN":
            return act(0, a + b), c
        parts = [slice(i * size, (i + 1) * size) for i in range(GATES[self.op])]
        if self.op == "GRU":
            z, reset = act(0, (a + b)[parts[0]]), act(0, (a + b)[parts[1]])
            if self.options.get("linear_before_reset"):
                new = act(1, a[parts[2]] + reset * b[parts[2]])
            else:
                new = act(1, a[parts[2]] + r[parts[2]] @ (reset * h) + both[1][parts[2]])
            return (1 - z) * new + z * h, c
        i, o, f, g = (np.array((a + b)[p]) for p in parts)
        p = np.zeros(3 * size) if self.p is None else self.p[d].astype(np.float64)
        i, f = act(0, i + p[:size] * c), act(0, f + p[2 * size :] * c)
        if self.options.get("input_forget"):
            f = 1 - i
        c = f * c + i * act(1, g)
        return act(0, o + p[size : 2 * size] * c) * FUNCTIONS[self.names[2]](c), c


def check(case, tolerance=1e-5):
    for got, want in zip(case.run(), case.answer(), strict=True):
        assert got.shape == want.shape
        assert got.dtype == case.dtype
        np.testing.assert_allclose(got.astype(np.float64), want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("lengths", [None, (5, 1, 3)], ids=["full", "ragged"])
def test_recurrent_operators_follow_their_equations(op, direction, lengths):
    check(Case(op, direction, lengths=lengths))


@pytest.mark.parametrize("op", GATES)
def test_without_bias_and_state(op):
    check(Case(op, bias=False, state=False))


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-13), (np.float16, 3e-3)])
def test_other_dtypes(op, dtype, tolerance):
    check(Case(op, "bidirectional", dtype=dtype), tolerance)


@pytest.mark.parametrize("op", GATES)
def test_larger_sizes_with_one_batch_member(op):
    check(Case(op, steps=20, batch=1, inputs=130, hidden=70), 1e-4)


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("sizes", [{}, {"batch": 32, "hidden": 256}], ids=["small", "large"])
def test_directions_do_not_depend_on_who_runs_them(op, sizes):
    """Threads take a direction each, or share the large steps of one after the other."""
    case = Case(op, "bidirectional", steps=2, **sizes)
    one = case.run()
    for threads in ("1", "3", "4"):
        other = case.run(device=open_cpu(threads=threads))
        for got, want in zip(other, one, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("op", GATES)
def test_clip(op):
    check(Case(op, clip=0.3))


@pytest.mark.parametrize(
    ("op", "names"),
    [("RNN", ["Relu"]), ("GRU", ["HardSigmoid", "Softsign"]),
     ("LSTM", ["HardSigmoid", "Softsign", "LeakyRelu"])],
)  # fmt: skip
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_other_activations(op, names, direction):
    check(Case(op, direction, names=names))


def test_lstm_peepholes_and_coupled_gates():
    check(Case("LSTM", "bidirectional", peepholes=True))
    check(Case("LSTM", input_forget=1))


@pytest.mark.parametrize("linear_before_reset", [0, 1])
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_gru_resets_before_or_after_the_product(linear_before_reset, direction):
    check(Case("GRU", direction, linear_before_reset=linear_before_reset))


@pytest.mark.parametrize("op", GATES)
def test_batch_first_is_the_same_transposed(op):
    case = Case(op, "bidirectional", lengths=(2, 5, 4))
    plain, turned = case.run(), case.run(batch_first=True)
    np.testing.assert_array_equal(turned[0].transpose(1, 2, 0, 3), plain[0])
    for a, b in zip(turned[1:], plain[1:], strict=True):
        np.testing.assert_array_equal(a.swapaxes(0, 1), b)


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("opset", [7, 14, 22])
def test_every_version(op, opset):
    case = Case(op)
    inputs = [case.x, case.w, case.r, case.b]
    y, _ = chipdock.run_op(op, *inputs, outputs=2, opset=opset, hidden_size=case.hidden)
    case.h = case.c = None
    np.testing.assert_allclose(y.numpy(), case.answer()[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("op", GATES)
def test_no_steps_leave_the_state(op):
    case = Case(op, steps=0)
    got = case.run()
    assert got[0].shape == (0, 1, 3, 6)
    np.testing.assert_array_equal(got[1], case.h)


def test_unfit_weights_are_named():
    case = Case("LSTM")
    case.w = normal(1, 24, 5)
    with pytest.raises(chipdock.ChipdockError, match=r"LSTM.*W.*\[1,24,5\].*\[1,24,4\]"):
        case.run()


def test_unknown_activation_is_named():
    case = Case("RNN")
    with pytest.raises(chipdock.ChipdockError, match=r"RNN.*Sine"):
        case.run(activations=["Sine"])


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("length", [-1, 6, 2**31 - 1])
def test_sequence_length_beyond_the_steps_is_named(op, length):
    case = Case(op, steps=5)
    lens = np.array([5, length, 0], np.int32)
    with pytest.raises(
        chipdock.ChipdockError, match=rf"INVALID_ARGUMENT.*{op}: sequence_lens has {length} at 1.*5"
    ):
        chipdock.run_op(op, case.x, case.w, case.r, None, lens, hidden_size=case.hidden)


@pytest.mark.parametrize("op", GATES)
def test_hidden_size_whose_gates_wrap_is_named(op):
    x, w, r = np.zeros((1, 0, 4), "f4"), np.zeros((1, 0, 4), "f4"), np.zeros((1, 0, 2**60), "f4")
    with pytest.raises(chipdock.ChipdockError, match=rf"INVALID_ARGUMENT.*{op}: R .*fit int64"):
        chipdock.run_op(op, x, w, r)

# SPDX-License-Identifier: Apache-2.0
"""References against plain loops, and against the data that onnx ships with its node cases."""

import itertools
import math
import subprocess
import sys

import numpy as np
import pytest

from chipdock.conformance.case import CheckError
from chipdock.conformance.numerics.reference.elementwise import ELEMENTWISE
from chipdock.conformance.numerics.reference.linear import LINEAR
from chipdock.conformance.numerics.reference.moves import OWN_MOVES
from chipdock.conformance.numerics.reference.resample import resize
from chipdock.conformance.numerics.reference.rnn import recur
from chipdock.conformance.numerics.reference.window import conv, conv_transpose, pool
from chipdock.conformance.opcases import onnx_nodes, run_node

RNG = np.random.default_rng(0)


def plain_conv(x, w, b, *, stride, pads, dilation, group):
    """Two spatial axes, one loop for each index."""
    n, _, height, width = x.shape
    m, per, kh, kw = w.shape
    out_h = (height + pads[0] + pads[2] - (kh - 1) * dilation[0] - 1) // stride[0] + 1
    out_w = (width + pads[1] + pads[3] - (kw - 1) * dilation[1] - 1) // stride[1] + 1
    y = np.zeros((n, m, out_h, out_w))
    for i, o, r, c in np.ndindex(y.shape):
        total = b[o]
        for k, u, v in np.ndindex(per, kh, kw):
            row = r * stride[0] - pads[0] + u * dilation[0]
            column = c * stride[1] - pads[1] + v * dilation[1]
            if 0 <= row < height and 0 <= column < width:
                total += w[o, k, u, v] * x[i, o // (m // group) * per + k, row, column]
        y[i, o, r, c] = total
    return y


@pytest.mark.parametrize(
    ("stride", "pads", "dilation", "group"),
    [((1, 1), (0, 0, 0, 0), (1, 1), 1), ((2, 1), (1, 0, 2, 1), (1, 2), 2),
     ((3, 2), (2, 2, 2, 2), (2, 1), 4)],
)  # fmt: skip
def test_convolution_is_what_loops_give(stride, pads, dilation, group):
    x = RNG.standard_normal((2, 4, 7, 6))
    w = RNG.standard_normal((4, 4 // group, 3, 2))
    b = RNG.standard_normal(4)
    attributes = {"strides": stride, "pads": pads, "dilations": dilation, "group": group}
    y, size, terms = conv(x, w, b, attributes)
    assert np.allclose(
        y, plain_conv(x, w, b, stride=stride, pads=pads, dilation=dilation, group=group), atol=1e-12
    )
    assert (size >= np.abs(y) - 1e-12).all()
    assert terms == 4 // group * 6 + 1


def test_transposed_convolution_is_the_gradient():
    x, w = RNG.standard_normal((1, 3, 4, 5)), RNG.standard_normal((3, 2, 3, 2))
    y, _, _ = conv_transpose(x, w, None, {"strides": (2, 1), "pads": (1, 0, 0, 1)})
    other = RNG.standard_normal(y.shape)
    # <conv_transpose(x), z> = <x, conv(z)> with the same weights.
    back, _, _ = conv(other, w, None, {"strides": (2, 1), "pads": (1, 0, 0, 1)})
    assert np.isclose((y * other).sum(), (x * back).sum())


def test_pooling_is_what_loops_give():
    x = RNG.standard_normal((1, 2, 5, 6))
    attributes = {"kernel_shape": (3, 2), "strides": (2, 2), "pads": (1, 0, 1, 1)}
    (most, index), _, _ = pool("MaxPool", x, attributes)
    (mean,), _, _ = pool("AveragePool", x, attributes)
    for place in np.ndindex(most.shape):
        n, c, r, k = place
        rows = [i for i in range(r * 2 - 1, r * 2 + 2) if 0 <= i < 5]
        columns = [i for i in range(k * 2, k * 2 + 2) if 0 <= i < 6]
        part = x[n, c][np.ix_(rows, columns)]
        assert most[place] == part.max()
        assert x.reshape(-1)[index[place]] == part.max()
        assert np.isclose(mean[place], part.mean())


def test_resizing_is_what_numpy_interpolates():
    x = RNG.standard_normal((1, 9))
    y, size, _ = resize([x, None, np.array([1, 2.0])], {"mode": "linear"})
    places = np.clip((np.arange(18) + 0.5) / 2 - 0.5, 0, 8)
    assert np.allclose(y[0], np.interp(places, np.arange(9), x[0]))
    assert (size >= np.abs(y) - 1e-12).all()


def test_lstm_of_one_step_by_hand():
    x, w = RNG.standard_normal((1, 1, 2)), RNG.standard_normal((1, 12, 2))
    r, b = RNG.standard_normal((1, 12, 3)), RNG.standard_normal((1, 24))
    i, o, _, c = np.split(w[0] @ x[0, 0] + b[0, :12] + b[0, 12:], 4)

    def s(v):
        return 1 / (1 + np.exp(-v))

    cell = s(i) * np.tanh(c)
    (y, h, last), _, _ = recur("LSTM", [x, w, r, b], {})
    assert np.allclose(last[0, 0], cell)
    assert np.allclose(y[0, 0, 0], s(o) * np.tanh(cell))
    assert np.array_equal(h[0], y[0, 0])


@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
def test_reversing_twice_is_forward(op):
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[op]
    x = RNG.standard_normal((5, 2, 3))
    w, r = RNG.standard_normal((1, 4 * gates, 3)), RNG.standard_normal((1, 4 * gates, 4))
    forward, _, _ = recur(op, [x, w, r], {})
    backward, _, _ = recur(op, [x[::-1], w, r], {"direction": "reverse"})
    assert np.allclose(forward[0], backward[0][::-1])


def test_magnitudes_are_not_below_results():
    x = np.abs(RNG.standard_normal((3, 8))) + 0.5
    for op in ("ReduceSum", "ReduceMean", "ReduceL1", "Softmax", "CumSum"):
        given = [x, np.array([1])] if op.startswith("Reduce") else [x]
        given = [x, np.array(1)] if op == "CumSum" else given
        made = LINEAR[op](given, {}, 22)
        assert (made.magnitudes[0] >= np.abs(made.values[0]) - 1e-12).all(), op


def test_integers_divide_towards_zero_and_mod_takes_the_sign_of_the_divisor():
    a, b = np.array([7, -7, 7, -7]), np.array([2, 2, -2, -2])
    assert ELEMENTWISE["Div"](a, b).tolist() == [3, -3, -3, 3]
    assert ELEMENTWISE["Mod"](a, b).tolist() == [1, 1, -1, -1]
    assert ELEMENTWISE["Mod"](a, b, fmod=1).tolist() == [1, -1, 1, -1]


def test_padding_may_cut():
    y = OWN_MOVES["Pad"]([np.arange(12).reshape(3, 4), np.array([-1, 1, 0, -2])], {}, 22)
    assert y.tolist() == [[0, 4, 5], [0, 8, 9]]


def test_activations_at_points_that_are_known():
    assert ELEMENTWISE["Sigmoid"](np.array([0.0]))[0] == 0.5
    assert math.isclose(ELEMENTWISE["Softplus"](np.array([0.0]))[0][0], math.log(2))
    assert math.isclose(ELEMENTWISE["Gelu"](np.array([1.0]))[0][0], 0.8413447460685429)
    assert ELEMENTWISE["HardSwish"](np.array([-3.0, 3.0]))[0].tolist() == [0, 3]
    assert np.array_equal(ELEMENTWISE["IsInf"](np.array([np.inf, -np.inf]), detect_positive=0),
                          [False, True])  # fmt: skip


# Their data have four digits, or come from a program with fewer digits than the bound allows.
ROUNDED = {"test_averagepool_2d_ceil_last_window_starts_on_pad", "test_gridsample_bicubic",
           "test_roialign_aligned_false"}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("part", range(6))
@pytest.mark.filterwarnings("ignore")
def test_references_agree_with_the_data_of_onnx(part):
    rows = [row for _, row in onnx_nodes.cases() if row.tolerance != "D"]
    modules = sorted({row.module for row in rows})[part::6]
    wrong = {}
    for row in itertools.chain.from_iterable(
        [r for r in rows if r.module == module] for module in modules
    ):
        case = onnx_nodes.node_of(row.node, row.module)
        outputs = run_node.arrays_of(case.data_sets[0][1])
        judge = run_node.judge_of(row)
        for got, exact in zip(outputs, run_node.expected_of(case), strict=True):
            try:
                judge.check(got, exact)
            except CheckError as error:
                wrong[row.node] = str(error)
    assert set(wrong) <= ROUNDED, wrong


@pytest.mark.slow
def test_the_list_of_node_cases_is_that_of_the_installed_onnx():
    """In a process of its own, as making the cases changes modules of onnx."""
    command = [sys.executable, "-m", "chipdock.conformance.opcases.onnx_nodes", "--check"]
    done = subprocess.run(command, check=False, timeout=240, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]

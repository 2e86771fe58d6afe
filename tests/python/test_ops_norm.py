# SPDX-License-Identifier: Apache-2.0
"""Softmax and normalisations on cpu:0 against formulas in fp64, class R of CONFORMANCE.md."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ops_numeric import FLOATS, random, run

import chipdock

EPSILON = float(np.float32(1e-3))  # An attribute is a float32.
TOLERANCE = {2: 1e-2, 4: 3e-6, 8: 1e-12}


def close(got: np.ndarray, want: np.ndarray, dtype: Any) -> None:
    assert got.dtype == np.dtype(dtype)
    limit = TOLERANCE[got.dtype.itemsize]
    np.testing.assert_allclose(got.astype(np.float64), want, rtol=limit, atol=limit)


def softmax(x: np.ndarray, axis: Any) -> np.ndarray:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_softmax_13_works_along_one_axis(axis: int, dtype: Any) -> None:
    for shape in [(3, 5, 7), (2, 33, 300), (1, 1, 1), (2, 4, 17)]:
        x = random(shape, dtype) * dtype(5)
        want = softmax(x.astype(np.float64), axis)
        close(run("Softmax", x, opset=13, axis=axis), want, dtype)
        close(run("LogSoftmax", x, opset=13, axis=axis), np.log(want), dtype)


@pytest.mark.parametrize("axis", [0, 1, 2, 3, -1])
def test_softmax_before_13_flattens(axis: int) -> None:
    x = random((3, 5, 7))
    start = axis if axis >= 0 else 3 + axis
    flat = x.reshape(int(np.prod(x.shape[:start])), -1)
    want = softmax(flat.astype(np.float64), 1).reshape(x.shape)
    if axis < 3:
        close(run("Softmax", x, opset=11, axis=axis), want, np.float32)
        hard = (flat.argmax(1)[:, None] == np.arange(flat.shape[1])).reshape(x.shape)
        np.testing.assert_array_equal(run("Hardmax", x, opset=11, axis=axis), hard)


def test_softmax_is_stable_and_keeps_nan_in_its_row() -> None:
    x = np.array(
        [[1e4, 1e4 + 1, -1e4], [np.nan, 0, 1], [-np.inf, 0, 0], [-88, -200, 3e38]], np.float32
    )
    got = run("Softmax", x, opset=13, axis=1)
    np.testing.assert_allclose(got[0], softmax(x[0].astype(np.float64), 0), rtol=1e-6)
    assert np.isnan(got[1]).all()
    np.testing.assert_array_equal(got[2:], np.array([[0, 0.5, 0.5], [0, 0, 1]], np.float32))
    turned = run("Softmax", np.ascontiguousarray(x.T), opset=13, axis=0)
    np.testing.assert_allclose(turned, got.T, rtol=1e-6)


def test_softmax_of_nothing_and_of_a_scalar_axis_error() -> None:
    assert run("Softmax", np.zeros((2, 0), np.float32), opset=13).shape == (2, 0)
    with pytest.raises(chipdock.ChipdockError, match=r"Softmax.*axis 2"):
        run("Softmax", random((2, 3)), opset=13, axis=2)


def test_hardmax_marks_the_first_largest() -> None:
    x = np.array([[1, 3, 3], [2, 1, 0]], np.float32)
    np.testing.assert_array_equal(run("Hardmax", x, opset=13, axis=1), [[0, 1, 0], [1, 0, 0]])
    np.testing.assert_array_equal(run("Hardmax", x, opset=13, axis=0), [[0, 1, 1], [1, 0, 0]])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("shape", "axis"), [((4, 384), -1), ((2, 3, 33), 1), ((5, 1), -1), ((7,), 0)]
)
def test_layer_normalization(shape: tuple, axis: int, dtype: Any) -> None:
    x = random(shape, dtype) + dtype(3)
    normalised = shape[axis:]
    scale, bias = random(normalised, dtype, 1), random(normalised, dtype, 2)
    wide = x.astype(np.float64)
    axes = tuple(range(len(shape) + axis if axis < 0 else axis, len(shape)))
    mean, variance = wide.mean(axes, keepdims=True), wide.var(axes, keepdims=True)
    inverse = 1 / np.sqrt(variance + EPSILON)
    base = (wide - mean) * inverse
    got = chipdock.run_op(
        "LayerNormalization", x, scale, bias, opset=17, axis=axis, epsilon=1e-3, outputs=3
    )
    close(got[0].numpy(), base * scale.astype(np.float64) + bias.astype(np.float64), dtype)
    for have, want in zip(got[1:], (mean, inverse), strict=True):
        assert have.numpy().dtype == np.float32
        np.testing.assert_allclose(have.numpy(), want, rtol=1e-5)
    plain = run("LayerNormalization", x, scale, opset=17, axis=axis, epsilon=1e-3)
    close(plain, base * scale.astype(np.float64), dtype)
    got_rms = run("RMSNormalization", x, scale, opset=23, axis=axis, epsilon=1e-3)
    rms = wide / np.sqrt((wide * wide).mean(axes, keepdims=True) + EPSILON)
    close(got_rms, rms * scale.astype(np.float64), dtype)


def test_layer_normalization_spreads_a_smaller_scale() -> None:
    x, scale = random((2, 3, 5)), random((3, 1), seed=1)
    wide = x.astype(np.float64)
    base = (wide - wide.mean((1, 2), keepdims=True)) / np.sqrt(
        wide.var((1, 2), keepdims=True) + 1e-5
    )
    close(run("LayerNormalization", x, scale, opset=17, axis=1), base * scale, np.float32)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(2, 6, 5, 7), (4, 6), (1, 6, 1, 1), (3, 6, 40)])
def test_batch_normalization(shape: tuple, dtype: Any) -> None:
    x = random(shape, dtype)
    scale, bias, mean = (random((6,), dtype, k) for k in range(1, 4))
    variance = np.abs(random((6,), dtype, 4)) + dtype(0.5)
    side = (1, 6) + (1,) * (len(shape) - 2)
    s, b, m, v = (p.astype(np.float64).reshape(side) for p in (scale, bias, mean, variance))
    want = (x.astype(np.float64) - m) / np.sqrt(v + 1e-5) * s + b
    close(run("BatchNormalization", x, scale, bias, mean, variance, opset=15), want, dtype)
    if dtype == np.float32 and len(shape) == 4 and shape[0] == 2:
        axes = (0, 2, 3)
        now, spread = x.astype(np.float64).mean(axes), x.astype(np.float64).var(axes)
        got = chipdock.run_op("BatchNormalization", x, scale, bias, mean, variance, opset=15,
                              training_mode=1, momentum=0.75, outputs=3)  # fmt: skip
        want = (x - now.reshape(side)) / np.sqrt(spread.reshape(side) + 1e-5) * s + b
        close(got[0].numpy(), want, dtype)
        close(got[1].numpy(), mean * 0.75 + now * 0.25, dtype)
        close(got[2].numpy(), variance * 0.75 + spread * 0.25, dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_group_and_instance_normalization(dtype: Any) -> None:
    x, scale, bias = random((2, 6, 5, 7), dtype), random((6,), dtype, 1), random((6,), dtype, 2)
    wide = x.astype(np.float64)
    s, b = scale.astype(np.float64).reshape(6, 1, 1), bias.astype(np.float64).reshape(6, 1, 1)
    for groups in (6, 3, 1):
        grouped = wide.reshape(2, groups, -1)
        centred = grouped - grouped.mean(-1, keepdims=True)
        base = (centred / np.sqrt(grouped.var(-1, keepdims=True) + 1e-5)).reshape(x.shape)
        got = run("GroupNormalization", x, scale, bias, opset=21, num_groups=groups)
        close(got, base * s + b, dtype)
        if groups == 6:
            close(run("InstanceNormalization", x, scale, bias, opset=22), base * s + b, dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("axis", "p"), [(-1, 2), (0, 1), (1, 2)])
def test_lp_normalization(axis: int, p: int, dtype: Any) -> None:
    x = random((3, 4, 5), dtype)
    x[0, :, 0] = 0
    wide = x.astype(np.float64)
    norm = np.linalg.norm(wide, p, axis, keepdims=True)
    close(
        run("LpNormalization", x, opset=22, axis=axis, p=p),
        wide / np.where(norm == 0, 1, norm),
        dtype,
    )


def test_channels_that_do_not_match_are_named() -> None:
    x = random((2, 6, 5))
    with pytest.raises(chipdock.ChipdockError, match=r"InstanceNormalization.*\[5\].*\[6\]"):
        run("InstanceNormalization", x, random((5,)), random((5,)), opset=22)

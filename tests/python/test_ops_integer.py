# SPDX-License-Identifier: Apache-2.0
"""Products of bytes on cpu:0, bit for bit against NumPy's, at every ISA level of the machine."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import chipdock

RNG = np.random.default_rng(8)
BYTES = (np.uint8, np.int8)
PAIRS = list(itertools.product(BYTES, BYTES))


def drawn(dtype, *shape):
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)


def run(op, *inputs, outputs=1, **attributes):
    return chipdock.run_op(op, *inputs, outputs=outputs, **attributes).numpy()


def wide(values, zero=None, axis=None):
    whole = values.astype(np.int32)
    if zero is None:
        return whole
    zero = zero.astype(np.int32)
    if axis is not None and zero.ndim == 1:
        zero = zero.reshape([-1 if i == axis else 1 for i in range(values.ndim)])
    return whole - zero


SHAPES = [
    ((1, 1), (1, 1)), ((3, 4), (4, 5)), ((14, 64), (64, 32)), ((29, 67), (67, 33)),
    ((1, 511), (511, 130)), ((100, 2), (2, 3)), ((65, 1030), (1030, 17)), ((7, 9000), (9000, 5)),
    ((300, 40), (40, 70)), ((2, 3, 5, 19), (3, 19, 21)), ((4, 6, 33), (33, 40)), ((9,), (9, 4)),
    ((2, 5, 9), (9,)), ((5, 7), (2, 7, 3)), ((3, 0), (0, 4)), ((0, 3), (3, 4)), ((2, 3), (3, 0)),
    ((3, 90, 400), (3, 400, 10)),
]  # fmt: skip


@pytest.mark.parametrize(("left", "right"), SHAPES, ids=str)
@pytest.mark.parametrize(("a_type", "b_type"), PAIRS)
def test_product_is_exact(left, right, a_type, b_type):
    a, b = drawn(a_type, *left), drawn(b_type, *right)
    np.testing.assert_array_equal(run("MatMulInteger", a, b), np.matmul(wide(a), wide(b)))
    za, zb = drawn(a_type, 1)[0], drawn(b_type, 1)[0]
    want = np.matmul(wide(a, za), wide(b, zb))
    np.testing.assert_array_equal(run("MatMulInteger", a, b, za, zb), want)


@pytest.mark.parametrize(("a_type", "b_type"), PAIRS)
@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("columns", [False, True])
def test_zero_points_of_rows_and_columns(a_type, b_type, rows, columns):
    a, b = drawn(a_type, 31, 70), drawn(b_type, 70, 45)
    za, zb = drawn(a_type, 31 if rows else 1), drawn(b_type, 45 if columns else 1)
    want = wide(a, za, 0 if rows else None) @ wide(b, zb)
    np.testing.assert_array_equal(run("MatMulInteger", a, b, za, zb), want)


def test_zero_points_with_batch_dims():
    a, b = drawn(np.uint8, 2, 3, 5, 20), drawn(np.int8, 3, 20, 6)
    za, zb = drawn(np.uint8, 2, 1, 5, 1), drawn(np.int8, 3, 1, 6)
    want = np.matmul(wide(a, za), wide(b, zb))
    np.testing.assert_array_equal(run("MatMulInteger", a, b, za, zb), want)
    za = drawn(np.uint8, 5)
    want = np.matmul(wide(a, za[:, None]), wide(b, zb))
    np.testing.assert_array_equal(run("MatMulInteger", a, b, za, zb), want)


def test_sums_wrap():
    a, b = np.full((1, 40000), 255, np.uint8), np.full((40000, 1), 255, np.uint8)
    want = np.uint32(40000 * 255 * 255).astype(np.int32)
    assert run("MatMulInteger", a, b).item() == want


def test_zero_points_that_do_not_fit_are_named():
    with pytest.raises(chipdock.errors.InvalidArgumentError, match="a_zero_point of 2 elements"):
        run("MatMulInteger", drawn(np.uint8, 3, 4), drawn(np.uint8, 4, 2), drawn(np.uint8, 2))


def convolution(x, w, ways):
    """Sums as int32 of 32-bit inputs, any number of spatial axes."""
    strides, dilations, pads, group = ways
    rank = x.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:], strict=True)])
    out = [
        (x.shape[2 + i] - (w.shape[2 + i] - 1) * dilations[i] - 1) // strides[i] + 1
        for i in range(rank)
    ]
    y = np.zeros((x.shape[0], w.shape[0], *out), np.int64)
    m, c = w.shape[0] // group, w.shape[1]
    for g, tap in itertools.product(range(group), np.ndindex(*w.shape[2:])):
        cut = tuple(
            slice(t * d, t * d + (o - 1) * s + 1, s)
            for t, d, o, s in zip(tap, dilations, out, strides, strict=True)
        )
        part = x[(slice(None), slice(g * c, (g + 1) * c), *cut)].astype(np.int64)
        filters = w[(slice(g * m, (g + 1) * m), slice(None), *tap)].astype(np.int64)
        y[:, g * m : (g + 1) * m] += np.einsum("nc...,mc->nm...", part, filters)
    return y.astype(np.int32)


CONVOLUTIONS = {
    "plain": ((1, 3, 9, 11), (5, 3, 3, 3), {}),
    "pads": ((2, 5, 9, 37), (17, 5, 3, 3), {"pads": [1, 2, 0, 1]}),
    "strides": ((1, 7, 15, 16), (3, 7, 3, 2), {"strides": [2, 3], "pads": [1, 1, 1, 1]}),
    "dilations": ((1, 4, 17, 19), (6, 4, 3, 3), {"dilations": [2, 3], "pads": [2, 3, 2, 3]}),
    "groups": ((2, 12, 8, 8), (9, 4, 3, 3), {"group": 3, "pads": [1, 1, 1, 1]}),
    "depthwise": ((1, 33, 10, 13), (33, 1, 3, 3), {"group": 33, "pads": [1, 1, 1, 1]}),
    "multiplier": ((1, 4, 10, 13), (8, 1, 5, 3), {"group": 4, "strides": [2, 1]}),
    "depthwise_strided": (
        (2, 5, 23, 40),
        (5, 1, 3, 5),
        {"group": 5, "strides": [2, 2], "pads": [1, 2, 1, 2]},
    ),
    "depthwise_dilated": (
        (1, 3, 20, 21),
        (3, 1, 3, 3),
        {"group": 3, "dilations": [2, 3], "pads": [2, 3, 2, 3]},
    ),
    "depthwise_line": ((1, 6, 50), (6, 1, 7), {"group": 6, "pads": [3, 3]}),
    "depthwise_high": ((1, 2, 60, 1), (2, 1, 5, 1), {"group": 2}),
    "depthwise_volume": ((1, 4, 3, 6, 7), (4, 1, 2, 3, 3), {"group": 4}),
    "depthwise_large": ((1, 2, 20, 21), (2, 1, 17, 17), {"group": 2}),
    "pointwise": ((2, 66, 7, 9), (40, 66, 1, 1), {}),
    "pointwise_whole": ((1, 64, 8, 8), (48, 64, 1, 1), {}),
    "pointwise_512": ((1, 16, 16, 32), (48, 16, 1, 1), {}),
    "pointwise_strided": ((1, 18, 8, 9), (5, 18, 1, 1), {"strides": [2, 2]}),
    "line": ((2, 6, 40), (10, 6, 5), {"pads": [2, 2]}),
    "volume": ((1, 2, 5, 6, 7), (3, 2, 2, 3, 2), {"pads": [0, 1, 1, 1, 1, 0]}),
}


def spread(attributes, rank):
    return (
        attributes.get("strides", [1] * rank), attributes.get("dilations", [1] * rank),
        attributes.get("pads", [0] * 2 * rank), attributes.get("group", 1),
    )  # fmt: skip


@pytest.mark.parametrize("name", CONVOLUTIONS)
@pytest.mark.parametrize(("x_type", "w_type"), PAIRS)
def test_integer_convolution_is_exact(name, x_type, w_type):
    x_shape, w_shape, attributes = CONVOLUTIONS[name]
    x, w = drawn(x_type, *x_shape), drawn(w_type, *w_shape)
    ways = spread(attributes, x.ndim - 2)
    got = run("ConvInteger", x, w, **attributes)
    np.testing.assert_array_equal(got, convolution(wide(x), wide(w), ways))
    zx, zw = drawn(x_type, 1)[0], drawn(w_type, w_shape[0])
    got = run("ConvInteger", x, w, zx, zw, **attributes)
    want = convolution(wide(x, zx), wide(w, zw, 0), ways)
    np.testing.assert_array_equal(got, want)


def quantized(sums, multiplier, zero):
    """As the kernel: one float32 product, rounded to nearest even, saturated."""
    info = np.iinfo(zero.dtype)
    steps = np.rint(sums.astype(np.float32) * multiplier.astype(np.float32))
    return np.clip(steps.astype(np.float64) + zero, info.min, info.max).astype(zero.dtype)


@pytest.mark.parametrize("name", CONVOLUTIONS)
@pytest.mark.parametrize(("x_type", "w_type"), PAIRS)
@pytest.mark.parametrize("y_type", BYTES)
def test_quantized_convolution(name, x_type, w_type, y_type):
    x_shape, w_shape, attributes = CONVOLUTIONS[name]
    x, w = drawn(x_type, *x_shape), drawn(w_type, *w_shape)
    zx, zw, zy = drawn(x_type, 1)[0], drawn(w_type, w_shape[0]), drawn(y_type, 1)[0]
    scale_w = RNG.uniform(1e-3, 4e-3, w_shape[0]).astype(np.float32)
    bias = RNG.integers(-5000, 5000, w_shape[0], dtype=np.int32)
    each = (-1, *[1] * (x.ndim - 2))
    sums = convolution(wide(x, zx), wide(w, zw, 0), spread(attributes, x.ndim - 2))
    sums += bias.reshape(each)
    scale_x = np.float32(0.02)
    scale_y = np.float32(0.02 * 2.5e-3 / 50 * np.abs(sums).mean())  # About 50 steps.
    got = run("QLinearConv", x, scale_x, zx, w, scale_w, zw, scale_y, zy, bias, **attributes)
    factor = np.float64(scale_x) / scale_y * scale_w.astype(np.float64)
    np.testing.assert_array_equal(got, quantized(sums, factor.reshape(each), zy))
    assert np.unique(got).size > 5


@pytest.mark.parametrize(("left", "right"), SHAPES, ids=str)
@pytest.mark.parametrize("y_type", BYTES)
def test_quantized_product(left, right, y_type):
    a, b = drawn(np.uint8, *left), drawn(np.int8, *right)
    za, zb, zy = drawn(np.uint8, 1)[0], drawn(np.int8, 1)[0], drawn(y_type, 1)[0]
    scales = np.float32(0.02), np.float32(0.004), np.float32(0.3)
    got = run("QLinearMatMul", a, scales[0], za, b, scales[1], zb, scales[2], zy)
    sums = np.matmul(wide(a, za), wide(b, zb))
    factor = np.float64(scales[0]) / scales[2] * np.float64(scales[1])
    np.testing.assert_array_equal(got, quantized(sums, factor, zy))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_quantized_product_with_scales_of_rows_and_columns(dtype):
    a, b = drawn(np.int8, 21, 50), drawn(np.uint8, 50, 37)
    za, zb, zy = drawn(np.int8, 21), drawn(np.uint8, 37), drawn(np.uint8, 21)
    sa, sb, sy = (RNG.uniform(0.01, 0.04, n).astype(dtype) for n in (21, 37, 21))
    got = run("QLinearMatMul", a, sa, za, b, sb, zb, sy, zy, opset=21)
    sums = wide(a, za, 0) @ wide(b, zb)
    factor = (sa.astype(np.float64) / sy.astype(np.float64))[:, None] * sb.astype(np.float64)
    want = np.clip(np.rint(sums * factor * 1.0) + zy[:, None], 0, 255)
    assert np.max(np.abs(got.astype(np.float64) - want)) <= 1
    assert np.mean(got != want) < 0.01


def test_ties_go_to_even_and_ends_saturate():
    a = np.arange(-8, 8, dtype=np.int8).reshape(16, 1)
    one, zero = np.ones((1, 1), np.int8), np.int8(0)
    half = np.float32(0.5)
    got = run("QLinearMatMul", a, half, zero, one, np.float32(1), zero, np.float32(1), zero)
    np.testing.assert_array_equal(got, np.rint(a / 2).astype(np.int8))
    big = run("QLinearMatMul", a, np.float32(1e30), zero, one, np.float32(1), zero, half, zero)
    np.testing.assert_array_equal(big, np.where(a > 0, 127, np.where(a < 0, -128, 0)))


@pytest.mark.slow
def test_every_instruction_set_level_gives_the_same_bits():
    # A process opens devices of one level only.
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "import test_ops_integer as tests; tests.all_cases()"
    )
    run_levels = 0
    for level in ("baseline", "avx2", "avx512", "avx512_vnni", "avx512_bf16"):
        done = subprocess.run(
            [sys.executable, "-c", code], env=os.environ | {"CHIPDOCK_CPU_ISA": level},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if "asks for more than this machine" in done.stderr:
            break  # and so do the levels above
        assert done.returncode == 0, (level, done.stderr)
        run_levels += 1
    assert run_levels > 0


def all_cases():
    """Runs in a process of one level; pairs of dtypes take turns."""
    pairs = itertools.cycle([*PAIRS, PAIRS[1]])
    for left, right in SHAPES:
        test_product_is_exact(left, right, *next(pairs))
        test_quantized_product(left, right, np.int8)
    for rows, columns in itertools.product((False, True), (False, True)):
        test_zero_points_of_rows_and_columns(*next(pairs), rows, columns)
    for name in CONVOLUTIONS:
        test_integer_convolution_is_exact(name, *next(pairs))
        test_quantized_convolution(name, *next(pairs), np.uint8)
    test_sums_wrap()

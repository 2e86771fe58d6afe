# SPDX-License-Identifier: Apache-2.0
"""MatMul and Gemm on cpu:0, against products made in float64."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

import chipdock

RNG = np.random.default_rng(2)
UNIT = {np.dtype(np.float32): 2.0**-24, np.dtype(np.float64): 2.0**-53}
HALVES = {np.dtype(np.float16): 2.0**-11, np.dtype(ml_dtypes.bfloat16): 2.0**-8}

SHAPES = [
    ((3, 4), (4, 5)), ((1, 384), (384, 1000)), ((100, 700), (700, 33)), ((17, 1), (1, 65)),
    ((2, 3, 17, 40), (3, 40, 19)), ((5,), (5,)), ((5,), (2, 5, 3)), ((2, 4, 5), (5,)),
    ((12, 64, 32), (12, 32, 64)), ((1, 7, 2, 3), (4, 1, 3, 5)), ((2, 3, 4), (1, 1, 4, 6)),
    ((64, 512), (512, 512)), ((31, 1100), (1100, 33)), ((16, 3), (3, 16)), ((15, 3), (3, 17)),
    ((3, 90, 400), (3, 400, 10)),
]  # fmt: skip


def normal(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


def bound(a, b, y, k):
    """Class R: rounding errors of a sum of k products, in any order, and of the result."""
    work = UNIT.get(y.dtype, 2.0**-24)
    magnitude = np.matmul(np.abs(a).astype(np.float64), np.abs(b).astype(np.float64))
    growth = min(k, 6 * math.sqrt(k)) * work
    out = HALVES.get(y.dtype, work)
    # Below the smallest normal number results are equally far apart.
    least = float(ml_dtypes.finfo(y.dtype).smallest_normal)
    return growth * magnitude + out * np.maximum(np.abs(y).astype(np.float64), least) + 1e-30


def check_matmul(a, b, **options):
    y = chipdock.run_op("MatMul", a, b, **options).numpy()
    want = np.matmul(a.astype(np.float64), b.astype(np.float64))
    assert y.shape == want.shape
    assert y.dtype == a.dtype
    assert np.all(np.abs(y.astype(np.float64) - want) <= bound(a, b, y, a.shape[-1]))


@pytest.mark.parametrize(("left", "right"), SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
def test_matmul_is_within_the_rounding_bound(left, right, dtype):
    check_matmul(normal(*left, dtype=dtype), normal(*right, dtype=dtype))


@pytest.mark.parametrize("opset", [7, 9, 13])
def test_matmul_of_every_version(opset):
    check_matmul(normal(6, 10), normal(10, 9), opset=opset)


def test_matmul_over_a_long_sum():
    check_matmul(normal(3, 20000), normal(20000, 5))


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.uint64])
@pytest.mark.parametrize(("left", "right"), SHAPES[:6], ids=str)
def test_integer_matmul_wraps_exactly(left, right, dtype):
    info = np.iinfo(dtype)
    a = RNG.integers(info.min, info.max, left, dtype=dtype)
    b = RNG.integers(info.min, info.max, right, dtype=dtype)
    with np.errstate(over="ignore"):
        want = np.matmul(a, b)
    np.testing.assert_array_equal(chipdock.run_op("MatMul", a, b).numpy(), want)


@pytest.mark.parametrize(
    ("left", "right", "shape"),
    [((3, 0), (0, 4), (3, 4)), ((0, 3), (3, 4), (0, 4)), ((0, 2, 3), (3, 4), (0, 2, 4)),
     ((2, 3), (3, 0), (2, 0)), ((5, 0, 2, 0), (0, 3), (5, 0, 2, 3))],
)  # fmt: skip
def test_empty_matmul_gives_zeros_or_nothing(left, right, shape):
    y = chipdock.run_op("MatMul", normal(*left), normal(*right)).numpy()
    assert y.shape == shape
    assert not y.any()


def test_matmul_keeps_nan_and_infinity():
    a = np.array([[np.nan, 1], [np.inf, 1], [0, 1]], np.float32)
    b = np.array([[1, 0], [2, 2]], np.float32)
    y = chipdock.run_op("MatMul", a, b).numpy()
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(y, a @ b)


@pytest.mark.parametrize(
    ("left", "right"), [((2, 3), (4, 5)), ((2, 3, 4), (3, 4, 5)), ((3,), (4,))], ids=str
)
def test_matmul_of_unfit_shapes_names_them(left, right):
    with pytest.raises(chipdock.ChipdockError, match="MatMul") as caught:
        chipdock.run_op("MatMul", normal(*left), normal(*right))
    assert str(left[0]) in str(caught.value)


def check_gemm(a, b, c=None, *, alpha=1.0, beta=1.0, ta=0, tb=0):
    inputs = [a, b] if c is None else [a, b, c]
    y = chipdock.run_op("Gemm", *inputs, alpha=alpha, beta=beta, transA=ta, transB=tb).numpy()
    left = (a.T if ta else a).astype(np.float64)
    right = (b.T if tb else b).astype(np.float64)
    want = alpha * (left @ right) + (0 if c is None else beta * c.astype(np.float64))
    limit = (abs(alpha) + 1) * bound(left, right, y, left.shape[1] + 1)
    if c is not None:
        limit = limit + 4 * UNIT.get(y.dtype, 2.0**-24) * abs(beta) * np.abs(c)
    assert y.shape == want.shape
    assert np.all(np.abs(y.astype(np.float64) - want) <= limit)


@pytest.mark.parametrize("ta", [0, 1])
@pytest.mark.parametrize("tb", [0, 1])
@pytest.mark.parametrize("alpha", [1.0, 0.5, -2.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_gemm_transposes_and_scales(ta, tb, alpha, dtype):
    a = normal(19, 21, dtype=dtype) if ta else normal(21, 19, dtype=dtype)
    b = normal(37, 19, dtype=dtype) if tb else normal(19, 37, dtype=dtype)
    check_gemm(a, b, normal(37, dtype=dtype), alpha=alpha, beta=0.25, ta=ta, tb=tb)


@pytest.mark.parametrize("ta", [0, 1])
def test_gemm_of_a_left_side_that_many_threads_pack(ta):
    check_gemm(normal(401, 300) if ta else normal(300, 401), normal(401, 7), ta=ta)


@pytest.mark.parametrize("shape", [(), (1,), (37,), (1, 37), (21, 1), (21, 37), (1, 1)], ids=str)
@pytest.mark.parametrize("alpha", [1.0, 3.0])
def test_gemm_spreads_c(shape, alpha):
    c = np.asarray(RNG.standard_normal(shape), np.float32)
    check_gemm(normal(21, 5), normal(5, 37), c, alpha=alpha)


def test_gemm_without_c_and_with_beta_zero():
    check_gemm(normal(4, 6), normal(6, 3))
    nan = np.full((3,), np.nan, np.float32)
    y = chipdock.run_op("Gemm", normal(4, 6), normal(6, 3), nan, beta=0.0).numpy()
    assert np.isfinite(y).all()


def test_gemm_of_no_columns_is_c():
    c = normal(7)
    y = chipdock.run_op("Gemm", normal(3, 0), normal(0, 7), c).numpy()
    np.testing.assert_array_equal(y, np.broadcast_to(c, (3, 7)))


def test_integer_gemm():
    a, b, c = (RNG.integers(-9, 9, s).astype(np.int32) for s in ((4, 5), (5, 6), (6,)))
    y = chipdock.run_op("Gemm", a, b, c, alpha=2.0, beta=3.0).numpy()
    np.testing.assert_array_equal(y, 2 * (a @ b) + 3 * c)


def test_gemm_with_an_unfit_c_names_both_shapes():
    with pytest.raises(chipdock.ChipdockError, match=r"Gemm.*\[4\].*\[2,5\]"):
        chipdock.run_op("Gemm", normal(2, 3), normal(3, 5), normal(4))

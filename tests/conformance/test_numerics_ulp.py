# SPDX-License-Identifier: Apache-2.0
"""Distances in ULP, the limits of class U, and the bounds of class R."""

import math

import ml_dtypes
import numpy as np
import pytest

from chipdock.conformance.numerics.bounds import accumulate_unit, gamma, reduction_bound
from chipdock.conformance.numerics.dtypes import bits, float_format, numpy_dtype, short_name, wide
from chipdock.conformance.numerics.metrics import cosine, describe, rel_l2
from chipdock.conformance.numerics.ulp import COMPOSITES, ulp_error, ulp_limit, ulp_size


@pytest.mark.parametrize(
    ("dtype", "value", "size"),
    [
        ("f32", 1.0, 2.0**-23), ("f32", 1.999, 2.0**-23), ("f32", 2.0, 2.0**-22),
        ("f32", 1e-45, 2.0**-149), ("f16", 1.0, 2.0**-10), ("f16", 6e-8, 2.0**-24),
        ("bf16", 1.0, 2.0**-7), ("f64", 1.0, 2.0**-52), ("f32", 3.4e38, 2.0**104),
    ],
)  # fmt: skip
def test_size_of_the_last_place(dtype, value, size):
    high = np.longdouble if dtype == "f64" else np.float64
    assert ulp_size(np.array([value], high), dtype)[0] == size


def test_size_is_numpys_spacing_for_normal_numbers():
    values = np.random.default_rng(1).standard_normal(500).astype(np.float32)
    assert np.array_equal(ulp_size(values.astype(np.float64), "f32"), np.spacing(np.abs(values)))


def test_a_neighbour_is_one_away_and_rounding_at_most_a_half():
    exact = np.random.default_rng(2).uniform(-9, 9, 300)
    near = exact.astype(np.float32)
    assert ulp_error(near.astype(np.float64), exact, "f32").max() <= 0.5
    one = near.astype(np.float64)
    beside = np.nextafter(near, np.float32(99)).astype(np.float64)
    assert np.allclose(ulp_error(beside, one, "f32"), 1.0)


def test_infinities_and_nans():
    inf, nan = math.inf, math.nan
    got = np.array([inf, -inf, nan, inf, nan, 1.0, 65504.0, inf])
    exact = np.array([inf, inf, nan, nan, 1.0, nan, 70000.0, 65519.9])
    error = ulp_error(got, exact, "f16")
    assert list(error[[0, 2, 6, 7]]) == [0, 0, 0, 0]
    assert all(np.isinf(error[[1, 3, 4, 5]]))


@pytest.mark.parametrize(
    ("op", "dtype", "ulps"),
    [("Add", "f32", 0), ("Mul", "f16", 0), ("Div", "f32", 2.5), ("Div", "f16", 1),
     ("Sqrt", "f32", 3), ("Exp", "f32", 3), ("Sin", "f32", 4), ("Tan", "f16", 2.5),
     ("Tanh", "f32", 5), ("Atan", "f32", 5), ("Erf", "f32", 16), ("Pow", "f16", 4),
     ("Asin", "f32", 4), ("Erf", "f64", 16)],
)  # fmt: skip
def test_limits_of_the_contract(op, dtype, ulps):
    assert ulp_limit(op, dtype).ulps == ulps


def test_bf16_follows_the_fp32_rule_and_has_one_ulp_more():
    assert ulp_limit("Exp", "bf16").ulps == 1 + 3 * 2**-16
    assert ulp_limit("Add", "bf16").ulps == 1


def test_composites_have_limits_in_every_type():
    for op in COMPOSITES:
        for dtype in ("f32", "f64", "f16", "bf16"):
            assert ulp_limit(op, dtype).ulps >= 0


def test_gamma_is_the_smaller_of_k_and_six_roots():
    assert gamma(1, 1.0) == 1
    assert gamma(36, 1.0) == 36
    assert gamma(100, 1.0) == 60
    assert gamma(0, 1.0) == 1


def test_accumulators_are_f32_unless_declared():
    assert accumulate_unit("f16") == accumulate_unit("f32") == 2.0**-24
    assert accumulate_unit("f64") == 2.0**-53
    assert accumulate_unit("f16", ["accumulate:f16:f16"]) == 2.0**-11
    assert accumulate_unit("f32", ["accumulate:f32:tf32"]) == 2.0**-11
    assert accumulate_unit("f32", ["accumulate:f16:f16"]) == 2.0**-24


def test_bound_of_a_sum_holds_for_numpy_and_not_for_half_sums():
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal(4096).astype(np.float32) for _ in range(2))
    exact = np.array(a.astype(np.float64) @ b.astype(np.float64))
    size = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))
    bound = reduction_bound(exact, size, 4096, dtype="f32", unit=2.0**-24)
    assert abs(float(a @ b) - exact) <= bound
    half = np.float16(0)
    for term in (a * b).astype(np.float16):
        half = np.float16(half + term)
    assert abs(float(half) - exact) > bound


def test_metrics():
    exact = np.array([1.0, -2.0, 3.0])
    assert rel_l2(exact.astype(np.float32), exact) == 0
    assert rel_l2(np.array([1.0, -2.0, 3.3]), exact) == pytest.approx(0.3 / math.sqrt(14))
    assert cosine(-exact, exact) == pytest.approx(-1)
    assert cosine(np.zeros(3), np.zeros(3)) == 1
    assert cosine(np.zeros(3), exact) == 0
    assert rel_l2(np.array([1e200, 0.0]), np.array([1e200, 1e-200])) == 0
    shown = describe(np.array([1.0, 2.0], np.float32), np.array([1.0, 2.0 + 2**-22]))
    assert shown["max_ulp"] == 1


@pytest.mark.parametrize("name", ["f16", "bf16", "f8e4m3fn", "f8e5m2", "f32", "f64"])
def test_formats(name):
    form = float_format(name)
    dtype = numpy_dtype(name)
    assert short_name(dtype) == name
    assert np.array(1 + 2 * form.unit).astype(dtype) != np.array(1).astype(dtype)
    assert np.isfinite(np.array(form.largest).astype(dtype).astype(np.float64))


def test_bits_of_sub_byte_elements_have_no_upper_half():
    dirty = np.array([0xF3, 0x0F, 0x18], np.uint8).view(ml_dtypes.int4)
    clean = np.array([3, -1, -8], ml_dtypes.int4)
    assert np.array_equal(bits(dirty), bits(clean))
    assert wide(clean).tolist() == [3, -1, -8]
    assert bits(np.zeros((2, 3), np.complex64)).shape == (2, 3, 2)
    assert bits(np.array(1.0, np.float32)).shape == ()

# SPDX-License-Identifier: Apache-2.0
"""Functions of one tensor on cpu:0: ULP against fp64 over the whole range, edges, every dtype."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ops_numeric import BFLOAT16, EDGES, FLOATS, INTEGERS, random, run, ulp_distance

erf = np.vectorize(math.erf, otypes=[np.float64])
erfc = np.vectorize(math.erfc, otypes=[np.float64])


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def softplus(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


# Operator, exact function, ULP that CONFORMANCE.md's class U allows in fp32; class E is 0, and
# composed functions have 16.
FUNCTIONS: list[tuple[str, Callable[[np.ndarray], np.ndarray], float]] = [
    ("Abs", np.abs, 0), ("Neg", np.negative, 0), ("Floor", np.floor, 0), ("Ceil", np.ceil, 0),
    ("Round", np.rint, 0), ("Sign", np.sign, 0), ("Relu", lambda x: np.maximum(x, 0), 0),
    ("Reciprocal", lambda x: 1 / x, 2.5), ("Sqrt", np.sqrt, 3), ("Exp", np.exp, 3),
    ("Log", np.log, 3), ("Sin", np.sin, 4), ("Cos", np.cos, 4), ("Tan", np.tan, 5),
    ("Asin", np.arcsin, 4), ("Acos", np.arccos, 4), ("Atan", np.arctan, 5), ("Sinh", np.sinh, 4),
    ("Cosh", np.cosh, 4), ("Tanh", np.tanh, 5), ("Asinh", np.arcsinh, 4),
    ("Acosh", np.arccosh, 4), ("Atanh", np.arctanh, 5), ("Erf", erf, 16),
    ("Sigmoid", sigmoid, 16), ("Softplus", softplus, 16),
    ("Softsign", lambda x: np.where(np.isinf(x), np.sign(x), x / (1 + np.abs(x))), 3),
    ("Elu", lambda x: np.where(x < 0, np.expm1(x), x), 16),
    ("ThresholdedRelu", lambda x: np.where(x > 1, x, 0), 0),
]  # fmt: skip


def all_scales(dtype: Any, count: int) -> np.ndarray:
    """Bit patterns drawn evenly: every exponent, both signs, NaN, denormals, infinities."""
    size = np.dtype(dtype).itemsize
    bits = np.random.default_rng(7).integers(0, 2 ** (8 * size), count, dtype=np.uint64)
    return bits.astype(f"u{size}").view(dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("op", "exact", "limit"), FUNCTIONS, ids=[f[0] for f in FUNCTIONS])
def test_function_is_within_its_ulp_limit_over_the_whole_range(
    op: str, exact: Callable, limit: float, dtype: Any
) -> None:
    near_one = random((1037,), np.float64).astype(dtype)
    with np.errstate(all="ignore"):
        x = np.concatenate([all_scales(dtype, 2000), EDGES.astype(dtype), near_one])
        want = exact(x.astype(np.float64))
    got = run(op, x, opset=22)
    assert got.dtype == x.dtype
    rounding = 1.0 if got.dtype.itemsize == 2 and limit else 0.0
    allowed = {2: min(limit, 0.5) + rounding, 4: limit, 8: max(limit, 2.0)}[got.dtype.itemsize]
    assert ulp_distance(got, np.asarray(want, np.float64)) <= allowed


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_activations_match_their_formulas(dtype: Any) -> None:
    x = random((7, 33), dtype) * 4
    wide = x.astype(np.float64)
    celu = np.where(wide < 0, 2 * np.expm1(wide / 2), wide)
    alpha, gamma = 1.6732631921768188, 1.0507010221481323
    cases = {
        ("LeakyRelu", ("alpha", 0.25)): np.where(wide < 0, 0.25 * wide, wide),
        ("HardSigmoid", ("alpha", 0.25)): np.clip(0.25 * wide + 0.5, 0, 1),
        ("HardSwish",): wide * np.clip(wide / 6 + 0.5, 0, 1),
        ("Selu",): gamma * np.where(wide <= 0, alpha * np.expm1(wide), wide),
        ("Gelu",): 0.5 * wide * erfc(-wide * math.sqrt(0.5)),
        ("Mish",): wide * np.tanh(softplus(wide)),
        ("Swish", ("alpha", 0.5)): wide * sigmoid(0.5 * wide),
        ("Gelu", ("approximate", "tanh")): 0.5 * wide * (
            1 + np.tanh(math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3))
        ),
    }  # fmt: skip
    for (op, *attributes), want in cases.items():
        got = run(op, x, opset=24, **dict(attributes))
        np.testing.assert_allclose(got, want, rtol=2e-6, atol=3e-7, err_msg=op)
    if dtype == np.float32:
        got = run("Celu", x, opset=12, alpha=2.0)
        np.testing.assert_allclose(got, celu, rtol=2e-6, atol=3e-7)


def test_activations_keep_nan_and_know_infinity() -> None:
    ends = np.array([np.nan, -np.inf, np.inf], np.float32)
    for op, low, high in [
        ("Relu", 0, np.inf), ("Sigmoid", 0, 1), ("Tanh", -1, 1), ("Erf", -1, 1),
        ("Elu", -1, np.inf),
        ("Softplus", 0, np.inf), ("HardSigmoid", 0, 1), ("Softsign", -1, 1), ("Exp", 0, np.inf),
    ]:  # fmt: skip
        np.testing.assert_array_equal(run(op, ends, opset=20), [np.nan, low, high], err_msg=op)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_functions_wrap(dtype: Any) -> None:
    info = np.iinfo(dtype)
    x = np.array([info.min, info.max, 0, 1, 77], dtype)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(run("Abs", x, opset=13), np.abs(x))
        np.testing.assert_array_equal(run("BitwiseNot", x, opset=18), ~x)
        if info.min < 0:
            np.testing.assert_array_equal(run("Neg", x, opset=13), -x)
            np.testing.assert_array_equal(run("Relu", x, opset=14), np.maximum(x, 0))
    np.testing.assert_array_equal(run("Sign", x, opset=13), np.sign(x))


@pytest.mark.parametrize("n", [0, 1, 3, 15, 16, 17, 31, 64, 65, 1000, 40001])
def test_length_does_not_matter(n: int) -> None:
    x = random((n,))
    np.testing.assert_array_equal(run("Exp", x, opset=13), run("Exp", x[::-1], opset=13)[::-1])
    np.testing.assert_array_equal(run("Neg", x, opset=13), -x)


def test_scalar_and_empty() -> None:
    assert run("Exp", np.float32(0), opset=13).shape == ()
    assert run("Relu", np.zeros((2, 0, 3), np.float16), opset=14).shape == (2, 0, 3)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_clip_with_any_bound_missing(dtype: Any) -> None:
    x = random((3, 41), dtype)
    low, high = np.array(3, dtype), np.array(20, dtype)
    for bounds in [(None, None), (low, None), (None, high), (low, high), (high, low)]:
        want = x if bounds[0] is None else np.maximum(x, bounds[0])
        want = want if bounds[1] is None else np.minimum(want, bounds[1])
        np.testing.assert_array_equal(run("Clip", x, *bounds, opset=13), want)


def test_clip_6_has_its_bounds_as_attributes() -> None:
    x = np.array([-3, np.nan, 0.5, 9], np.float32)
    got = run("Clip", x, opset=10, min=-1.0, max=2.0)
    np.testing.assert_array_equal(got, np.array([-1, np.nan, 0.5, 2], np.float32))


@pytest.mark.parametrize("dtype", FLOATS)
def test_predicates(dtype: Any) -> None:
    x = np.array([1, -1, np.inf, -np.inf, np.nan, -np.nan, 0, -0.0] * 5, dtype)
    wide = x.astype(np.float64)
    np.testing.assert_array_equal(run("IsNaN", x, opset=20), np.isnan(wide))
    for up in (0, 1):
        for down in (0, 1):
            got = run("IsInf", x, opset=20, detect_positive=up, detect_negative=down)
            want = (np.isposinf(wide) & bool(up)) | (np.isneginf(wide) & bool(down))
            np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(run("Not", wide > 0, opset=1 + 6), ~(wide > 0))


def test_half_types_are_rounded_once() -> None:
    x = np.arange(2**16, dtype=np.uint16)
    for dtype in (np.float16, BFLOAT16):
        values = x.view(dtype)
        with np.errstate(all="ignore"):
            want = np.sqrt(values.astype(np.float64)).astype(np.float32).astype(dtype)
        got = run("Sqrt", values, opset=13)
        np.testing.assert_array_equal(got.astype(np.float32), want.astype(np.float32))

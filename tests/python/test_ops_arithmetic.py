# SPDX-License-Identifier: Apache-2.0
"""Operators of several broadcast tensors on cpu:0, against NumPy: dtypes, shapes, IEEE edges."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from ops_numeric import BFLOAT16, EDGES, FLOATS, INTEGERS, random, run, ulp_distance

import chipdock

SHAPES = [
    ((), ()), ((5,), ()), ((), (5,)), ((3, 4), (3, 4)), ((3, 4), (4,)), ((3, 1), (1, 4)),
    ((2, 3, 40), (3, 1)), ((2, 64, 7, 9), (64, 1, 1)), ((2, 1, 5), (3, 1)), ((0, 3), (3,)),
    ((300, 3), (300, 1)), ((300, 3), (3,)), ((1, 1, 1), (1,)), ((4, 1, 6, 1), (5, 1, 7)),
    ((33, 700), (700,)), ((33, 700), (33, 1)), ((1, 0), (4, 1)), ((2, 1, 1, 65), (2, 3, 5, 65)),
]  # fmt: skip
ARITHMETIC = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide}
COMPARISONS = {
    "Equal": np.equal, "Less": np.less, "LessOrEqual": np.less_equal, "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
}  # fmt: skip


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("op", ARITHMETIC)
def test_broadcasting_is_numpys(op: str, shapes: tuple) -> None:
    a, b = random(shapes[0], seed=1), random(shapes[1], seed=2)
    np.testing.assert_array_equal(run(op, a, b, opset=14), ARITHMETIC[op](a, b))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", ARITHMETIC)
def test_floats_are_rounded_once(op: str, dtype: Any) -> None:
    with np.errstate(all="ignore"):
        a, b = (v.reshape(-1) for v in np.meshgrid(EDGES.astype(dtype), EDGES.astype(dtype)))
        want = ARITHMETIC[op](a.astype(np.float64), b.astype(np.float64))
    got = run(op, a, b, opset=14)
    # A float64 is its own reference; the others are at most half a unit from the exact result.
    assert ulp_distance(got, want) <= 0.5
    np.testing.assert_array_equal(np.isnan(got.astype(np.float64)), np.isnan(want))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_wrap_and_division_by_zero_is_zero(dtype: Any) -> None:
    info = np.iinfo(dtype)
    values = np.array([info.min, info.max, 0, 1, 2, 7, info.max // 2, info.min // 2], dtype)
    a, b = (v.reshape(-1) for v in np.meshgrid(values, values))
    if info.min < 0:
        a, b = (
            np.append(a, np.array([info.min, -7, 7], dtype)),
            np.append(b, np.array([-1, 2, -2], dtype)),
        )
    with np.errstate(all="ignore"):
        for op in ("Add", "Sub", "Mul"):
            np.testing.assert_array_equal(run(op, a, b, opset=14), ARITHMETIC[op](a, b), err_msg=op)
        fits = (b != 0) & ~((a == info.min) & (b.astype(object) == -1))
        got = run("Div", a, b, opset=14)
        exact = [int(x) // int(y) if (x < 0) == (y < 0) else -(-int(x) // int(y)) if y > 0 else
                 -(int(x) // -int(y)) for x, y in zip(a[fits], b[fits], strict=True)]  # fmt: skip
        np.testing.assert_array_equal(got[fits], np.array(exact, object).astype(dtype))
        assert not got[b == 0].any()
        fits = b != 0
        np.testing.assert_array_equal(run("Mod", a, b, opset=13)[fits], np.mod(a, b)[fits])
        got = run("Mod", a, b, opset=13, fmod=1)
        np.testing.assert_array_equal(got[fits], np.fmod(a, b)[fits])


@pytest.mark.parametrize("dtype", FLOATS)
def test_fmod_takes_the_sign_of_the_dividend(dtype: Any) -> None:
    a, b = random((9, 13), dtype, 1) * dtype(9), random((13,), dtype, 2)
    want = np.fmod(a.astype(np.float64), b.astype(np.float64))
    got = run("Mod", a, b, opset=13, fmod=1)
    np.testing.assert_array_equal(got.astype(np.float64), want.astype(dtype).astype(np.float64))


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("op", COMPARISONS)
def test_comparisons(op: str, dtype: Any) -> None:
    with np.errstate(over="ignore"):
        edges = np.concatenate([EDGES, [3, 4]]).astype(dtype if dtype in FLOATS else np.float32)
    x = edges if dtype in FLOATS else random((30,), dtype)
    for a, b in ((x[:, None], x), (x, x), (x, x[3]), (x[3], x)):
        got = run(op, a, b, opset=16)
        assert got.dtype == np.bool_
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(got, COMPARISONS[op](a, b))


@pytest.mark.parametrize("shapes", [((3, 1), (257,)), ((261,), (3, 1)), ((5, 259), (5, 259)),
                                    ((1025,), ()), ((), (1025,))], ids=str)  # fmt: skip
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_comparisons_of_whole_vectors_and_a_rest(dtype: Any, shapes: tuple) -> None:
    # Few distinct values of both ends of the range: all three outcomes in every vector.
    ends = np.array([1, 2, 3], dtype)
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        ends = np.array([info.min, info.min + 1, 1, info.max - 1, info.max], dtype)
    rng = np.random.default_rng(5)
    a, b = (ends[rng.integers(0, len(ends), shape)] for shape in shapes)
    for op, want in COMPARISONS.items():
        np.testing.assert_array_equal(run(op, a, b, opset=16), want(a, b), err_msg=op)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_arithmetic_with_one_element_for_each_row(dtype: Any) -> None:
    a, b = random((3, 1), dtype, 1), random((3, 300), dtype, 2)
    for x, y in ((a, b), (b, a)):
        np.testing.assert_array_equal(run("Sub", x, y, opset=14), np.subtract(x, y))


def test_logic_and_bool_equality() -> None:
    a, b = random((5, 1, 60), bool, 1), random((7, 1), bool, 2)
    for op, want in {"And": a & b, "Or": a | b, "Xor": a ^ b, "Equal": a == b}.items():
        np.testing.assert_array_equal(run(op, a, b, opset=13), want, err_msg=op)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_bits(dtype: Any) -> None:
    a, b = random((9, 50), dtype, 1), random((50,), dtype, 2)
    for op, want in {"BitwiseAnd": a & b, "BitwiseOr": a | b, "BitwiseXor": a ^ b}.items():
        np.testing.assert_array_equal(run(op, a, b, opset=18), want, err_msg=op)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64])
def test_shifts_as_wide_as_the_dtype_give_zero(dtype: Any) -> None:
    bits = np.iinfo(dtype).bits
    x = np.array([1, 255, 3, 200, 5], dtype)
    by = np.array([0, 1, bits - 1, bits, 99], dtype)
    left = [int(v) << int(k) & (2**bits - 1) for v, k in zip(x, by, strict=True)]
    right = [int(v) >> int(k) for v, k in zip(x, by, strict=True)]
    np.testing.assert_array_equal(run("BitShift", x, by, opset=11, direction="LEFT"), left)
    np.testing.assert_array_equal(run("BitShift", x, by, opset=11, direction="RIGHT"), right)


def test_pow_of_floats_over_edges_and_usual_exponents() -> None:
    for exponent in (2, 3, 1, -1, 0.5, 0, -2.5, 1.7):
        y = np.float32(exponent)
        # Not NumPy: it takes the root of -inf for an exponent of 0.5.
        with np.errstate(all="ignore"):
            want = np.float_power(EDGES.astype(np.float64), np.full(EDGES.shape, y, np.float64))
        assert ulp_distance(run("Pow", EDGES, y, opset=15), want) <= 16, exponent
    a, b = (v.reshape(-1) for v in np.meshgrid(EDGES, EDGES))
    with np.errstate(all="ignore"):
        want = np.power(a.astype(np.float64), b.astype(np.float64))
    assert ulp_distance(run("Pow", a, b, opset=15), want) <= 16


def _powers(x: Any, y: Any) -> Any:
    with np.errstate(all="ignore"):
        return np.float_power(x.astype(np.float64), y.astype(np.float64))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_pow_over_the_whole_range(dtype: Any) -> None:
    rng = np.random.default_rng(9)
    # Any bits at all, then bases near 1 under large exponents, then what models have.
    x = rng.integers(0, 2**32, 4001, np.uint32).view(np.float32)
    y = rng.integers(0, 2**32, 4001, np.uint32).view(np.float32)
    x[1000:2000] = 1 + rng.integers(-1000, 1000, 1000) * np.float32(2.0**-20)
    y[1000:2000] = rng.uniform(-9e4, 9e4, 1000)
    x[2000:] = np.exp2(rng.uniform(-20, 20, 2001))
    y[2000:] = rng.uniform(-8, 8, 2001)
    with np.errstate(all="ignore"):
        x, y = x.astype(dtype), y.astype(dtype)
    for a, b in ((x, y), (x, y[2500]), (x[2500], y), (x[:5], y[:5])):
        assert ulp_distance(run("Pow", a, b, opset=15), _powers(a, b)) <= 1


def test_pow_of_negative_bases_takes_the_sign_of_whole_exponents() -> None:
    wholes = np.float32([0, 1, 2, 3, -1, -2, -3, 7, 2**23 + 1, 2**24 - 1, 2**24, 2**25, -(2**24)])
    others = np.float32([0.5, 1.5, -2.5, 2**22 + 0.5, np.inf, -np.inf, np.nan])
    bases = np.float32([-1, -2, -0.5, -3, -0.0, 0.0, -np.inf, np.inf, -(1 + 2**-23), 1, np.nan])
    x, y = np.meshgrid(bases, np.concatenate([wholes, others]))
    x, y = x.astype(np.float32).reshape(-1), y.astype(np.float32).reshape(-1)
    want = _powers(x, y)
    got = run("Pow", x, y, opset=15)
    assert ulp_distance(got, want) <= 1
    numbers = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[numbers]), np.signbit(want[numbers]))


@pytest.mark.parametrize(
    "exponent",
    [np.int64(3), np.int32(-2), np.float64(1.7), np.uint8(4), np.int64(2**24 + 1),
     np.int64(2**63 - 1)], ids=str,
)  # fmt: skip
@pytest.mark.parametrize("dtype", FLOATS)
def test_pow_by_one_exponent_of_another_dtype(dtype: Any, exponent: Any) -> None:
    x = np.array([-1, 0.5, 1, 1.25, 1.5, 0, -0.75, 1 + 2**-7], dtype)
    if exponent == 1.7:
        x = np.abs(x)
    got = run("Pow", x, exponent, opset=15)
    assert got.dtype == np.dtype(dtype)
    assert ulp_distance(got, _powers(x, np.asarray(exponent))) <= 1


@pytest.mark.parametrize("base", [np.int32, np.int64, *FLOATS])
@pytest.mark.parametrize("exponent", [np.uint8, np.int32, np.int64, np.float32, np.float64])
def test_pow_of_mixed_dtypes_has_the_bases(base: Any, exponent: Any) -> None:
    x, y = np.array([1, 2, 3, 4, 7], base), np.array([0, 3, 2, 1, 5], exponent)
    want = np.array([1, 8, 9, 4, 16807]).astype(base)
    got = run("Pow", x, y, opset=15)
    assert got.dtype == np.dtype(base)
    np.testing.assert_array_equal(got.astype(np.float64), want.astype(np.float64))


def test_prelu_broadcasts_its_slope_one_way() -> None:
    x, slope = random((2, 5, 7, 3)), random((5, 1, 1))
    np.testing.assert_array_equal(run("PRelu", x, slope, opset=16), np.where(x < 0, x * slope, x))
    with pytest.raises(chipdock.ChipdockError, match="PRelu"):
        run("PRelu", slope, x, opset=16)


@pytest.mark.parametrize("count", [1, 2, 3, 5])
@pytest.mark.parametrize("dtype", FLOATS)
def test_variadic(count: int, dtype: Any) -> None:
    shapes = [(4, 1, 700), (3, 1), (), (700,), (4, 3, 1)][:count]
    arrays = [random(s, dtype, k) for k, s in enumerate(shapes)]
    full = np.stack(np.broadcast_arrays(*(a.astype(np.float64) for a in arrays)))
    for op, want in [("Max", full.max(0)), ("Min", full.min(0)), ("Sum", full.sum(0)),
                     ("Mean", full.mean(0))]:  # fmt: skip
        got = run(op, *arrays, opset=13)
        assert got.dtype == np.dtype(dtype)
        magnitude = np.abs(full).sum(0)
        unit = {2: 2.0**-11 if dtype == np.float16 else 2.0**-8, 4: 2.0**-22, 8: 2.0**-50}
        error = np.abs(got.astype(np.float64) - want)
        assert (error <= unit[got.dtype.itemsize] * magnitude + 1e-7).all(), op


def test_extremes_keep_nan_wherever_it_stands() -> None:
    nan = np.float32(np.nan)
    a = np.array([nan, 1, nan, -np.inf], np.float32)
    b = np.array([1, nan, nan, np.inf], np.float32)
    np.testing.assert_array_equal(run("Max", a, b, opset=13), [nan, nan, nan, np.inf])
    np.testing.assert_array_equal(run("Min", a, b, opset=13), [nan, nan, nan, -np.inf])
    np.testing.assert_array_equal(run("Max", a, b, a, opset=13), [nan, nan, nan, np.inf])


@pytest.mark.parametrize("dtype", [np.bool_, np.complex64, np.complex128, *FLOATS, *INTEGERS])
def test_where(dtype: Any) -> None:
    for shapes in [((3, 5),) * 3, ((3, 1), (5,), ()), ((), (3, 5), (5,)), ((4, 300), (), (300,)),
                   ((0, 2), (2,), ())]:  # fmt: skip
        condition, x, y = (
            random(shapes[0], bool),
            random(shapes[1], dtype, 1),
            random(shapes[2], dtype, 2),
        )
        got = run("Where", condition, x, y, opset=16)
        np.testing.assert_array_equal(
            got.astype(np.complex128) if dtype != BFLOAT16 else got.astype(float),
            np.where(condition, x, y).astype(np.complex128 if dtype != BFLOAT16 else float),
        )


def test_shapes_that_do_not_fit_name_the_operator_and_both() -> None:
    with pytest.raises(chipdock.ChipdockError, match=r"Add.*\[2,3\].*\[4\]"):
        run("Add", random((2, 3)), random((4,)), opset=14)

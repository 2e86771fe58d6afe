# SPDX-License-Identifier: Apache-2.0
"""Reductions, ArgMax, CumSum on cpu:0: every placement of axes, every version, fp64 as judge."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from ops_numeric import FLOATS, INTEGERS, random, run

import chipdock


def exact(op: str, x: np.ndarray, axes: tuple[int, ...] | None, keep: bool) -> np.ndarray:
    how: dict[str, Any] = {"axis": axes, "keepdims": keep}
    with np.errstate(all="ignore"):
        match op:
            case "ReduceSum":
                return x.sum(**how)
            case "ReduceMean":
                return x.mean(**how)
            case "ReduceMax":
                return x.max(**how)
            case "ReduceMin":
                return x.min(**how)
            case "ReduceProd":
                return x.prod(**how)
            case "ReduceL1":
                return np.abs(x).sum(**how)
            case "ReduceL2":
                return np.sqrt((x * x).sum(**how))
            case "ReduceLogSum":
                return np.log(x.sum(**how))
            case "ReduceSumSquare":
                return (x * x).sum(**how)
            case _:
                return np.log(np.exp(x).sum(**how))


OPS = ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
       "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"]  # fmt: skip
AXES = [c for n in range(5) for c in itertools.combinations(range(4), n)]


def reduce(op: str, x: np.ndarray, axes: tuple[int, ...], opset: int, **more: Any) -> np.ndarray:
    if opset >= 18 or (op == "ReduceSum" and opset >= 13):
        return run(op, x, np.array(axes, np.int64), opset=opset, **more)
    return (
        run(op, x, opset=opset, axes=list(axes), **more)
        if axes
        else run(op, x, opset=opset, **more)
    )


@pytest.mark.parametrize("op", OPS)
def test_every_choice_of_axes(op: str) -> None:
    x = np.abs(random((3, 5, 4, 37))) + np.float32(0.1)
    for axes, keep, opset in itertools.product(AXES, (0, 1), (11, 13, 18)):
        got = reduce(op, x, axes, opset, keepdims=keep)
        want = exact(op, x.astype(np.float64), axes or None, bool(keep))
        assert got.shape == want.shape, (axes, keep, opset)
        np.testing.assert_allclose(
            got, want, rtol=3e-6, atol=1e-6, err_msg=f"{axes} {keep} {opset}"
        )


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.uint64])
@pytest.mark.parametrize("extent", [2, 16, 17])
def test_many_short_rows(op: str, dtype: Any, extent: int) -> None:
    x = np.random.default_rng(3).integers(1, 4, (7, 2500, extent)).astype(dtype)
    got = reduce(op, x, (2,), 18, keepdims=0)
    want = exact(op, x.astype(np.float64), (2,), False)
    if np.dtype(dtype).kind == "f":
        np.testing.assert_allclose(got, want, rtol=3e-6, atol=1e-6)
    else:
        np.testing.assert_array_equal(got, want.astype(dtype))


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin"])
def test_nan_stays_in_short_rows(op: str) -> None:
    x = random((40, 3))
    x[np.arange(40), np.arange(40) % 3] = np.nan
    assert np.isnan(reduce(op, x, (1,), 18)).all()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "shape", [(1, 5000), (5000, 1), (700, 33), (5, 600, 3), (2, 3, 1100), (130000,)]
)
def test_error_stays_within_the_bound_of_class_r(shape: tuple, dtype: Any) -> None:
    x = random(shape, dtype)
    wide = x.astype(np.float64)
    unit = {2: 2.0**-11 if dtype == np.float16 else 2.0**-8, 4: 2.0**-24, 8: 2.0**-53}
    u = unit[x.dtype.itemsize]
    for axes in [(0,), (len(shape) - 1,), tuple(range(len(shape)))]:
        want, total = wide.sum(axes), np.abs(wide).sum(axes)
        got = reduce("ReduceSum", x, axes, 13, keepdims=0).astype(np.float64)
        assert (np.abs(got - want) <= 16 * 2.0**-24 * total + u * np.abs(want)).all(), axes


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.uint64])
def test_integers(dtype: Any) -> None:
    x = random((6, 7, 8), dtype)
    for axes in [(0,), (1,), (2,), (0, 2), (0, 1, 2)]:
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(
                reduce("ReduceSum", x, axes, 13, keepdims=0), x.sum(axes, dtype=dtype)
            )
            np.testing.assert_array_equal(
                reduce("ReduceProd", x, axes, 13, keepdims=0), x.prod(axes, dtype=dtype)
            )
        np.testing.assert_array_equal(reduce("ReduceMax", x, axes, 13, keepdims=0), x.max(axes))
        mean = np.trunc(x.astype(np.float64).mean(axes)).astype(dtype)
        np.testing.assert_array_equal(reduce("ReduceMean", x, axes, 13, keepdims=0), mean)


def test_extremes_of_bool_and_bytes() -> None:
    x = random((4, 300), bool)
    np.testing.assert_array_equal(reduce("ReduceMax", x, (1,), 20, keepdims=0), x.any(1))
    np.testing.assert_array_equal(reduce("ReduceMin", x, (0,), 20, keepdims=0), x.all(0))
    y = random((4, 300), np.int8)
    np.testing.assert_array_equal(
        reduce("ReduceMin", y, (0,), 20, keepdims=1), y.min(0, keepdims=True)
    )


def test_negative_axes_and_noop() -> None:
    x = random((2, 3, 4))
    np.testing.assert_allclose(
        reduce("ReduceSum", x, (-1, 0), 13, keepdims=0), x.sum((2, 0)), rtol=1e-5
    )
    got = run("ReduceSum", x, np.zeros(0, np.int64), opset=13, noop_with_empty_axes=1)
    np.testing.assert_array_equal(got, x)
    np.testing.assert_array_equal(run("ReduceMean", x, opset=18, noop_with_empty_axes=1), x)
    np.testing.assert_allclose(run("ReduceMean", x, opset=18, keepdims=0), x.mean(), rtol=1e-5)
    with pytest.raises(chipdock.ChipdockError, match=r"ReduceSum.*axis 3"):
        reduce("ReduceSum", x, (3,), 13)


def test_nothing_to_fold_gives_the_neutral_element() -> None:
    x = np.zeros((2, 0, 3), np.float32)
    for op, want in {"ReduceSum": 0, "ReduceProd": 1, "ReduceMax": -np.inf, "ReduceMin": np.inf,
                     "ReduceLogSum": -np.inf, "ReduceL2": 0, "ReduceLogSumExp": -np.inf,
                     "ReduceMean": np.nan}.items():  # fmt: skip
        got = reduce(op, x, (1,), 18, keepdims=0)
        np.testing.assert_array_equal(got, np.full((2, 3), want, np.float32), err_msg=op)
    assert reduce("ReduceSum", x, (0,), 13, keepdims=0).shape == (0, 3)


def test_nan_and_infinities() -> None:
    x = np.array([[1, np.nan, 2], [np.inf, 1, -np.inf], [-np.inf] * 3, [np.inf, 1, 2]], np.float32)
    nan, inf = np.nan, np.inf
    for along, y in (((1,), x), ((0,), x.T.copy())):
        np.testing.assert_array_equal(
            reduce("ReduceMax", y, along, 18, keepdims=0), [nan, inf, -inf, inf]
        )
        np.testing.assert_array_equal(
            reduce("ReduceSum", y, along, 18, keepdims=0), [nan, nan, -inf, inf]
        )
        got = reduce("ReduceLogSumExp", y, along, 18, keepdims=0)
        np.testing.assert_array_equal(got, [nan, inf, -inf, inf])
    big = np.full((1, 50), 1000, np.float32)
    np.testing.assert_allclose(
        reduce("ReduceLogSumExp", big, (1,), 18), [[1000 + np.log(50)]], rtol=1e-6
    )


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
def test_arg_takes_first_or_last_of_equals(op: str, dtype: Any) -> None:
    x = np.random.default_rng(3).integers(0, 4, (5, 6, 150)).astype(dtype)
    choose = np.argmax if op == "ArgMax" else np.argmin
    for axis in (0, 1, 2, -1):
        got = run(op, x, opset=13, axis=axis, keepdims=0)
        assert got.dtype == np.int64
        np.testing.assert_array_equal(got, choose(x, axis))
        got = run(op, x, opset=13, axis=axis, keepdims=1, select_last_index=1)
        want = x.shape[axis] - 1 - choose(np.flip(x, axis), axis)
        np.testing.assert_array_equal(got, np.expand_dims(want, axis))


def test_arg_prefers_nan_as_numpy_does() -> None:
    x = np.array([[1, np.nan, 5], [np.nan, 9, np.nan]], np.float32)
    np.testing.assert_array_equal(run("ArgMax", x, opset=13, axis=1, keepdims=0), np.argmax(x, 1))
    np.testing.assert_array_equal(run("ArgMin", x, opset=13, axis=0, keepdims=0), np.argmin(x, 0))


@pytest.mark.parametrize("dtype", [*FLOATS, np.int32, np.int64, np.uint32, np.uint64])
def test_cumulative_sum(dtype: Any) -> None:
    x = np.random.default_rng(5).integers(0, 3, (4, 5, 140)).astype(dtype)
    for axis, exclusive, reverse in itertools.product((0, 1, -1), (0, 1), (0, 1)):
        y = np.flip(x, axis) if reverse else x
        want = np.cumsum(y.astype(np.float64), axis)
        want = want - y.astype(np.float64) if exclusive else want
        want = np.flip(want, axis) if reverse else want
        got = run(
            "CumSum", x, np.array(axis, np.int32), opset=14, exclusive=exclusive, reverse=reverse
        )
        np.testing.assert_array_equal(got.astype(np.float64), want.astype(dtype).astype(np.float64))


def _place(x: Any, axis: int, largest: bool, last: bool) -> Any:
    """The first NaN, else the first or last of the best elements."""
    x = np.moveaxis(x, axis, -1)
    wide = x.astype(np.float64) if x.dtype.kind not in "iu" else x
    bad = np.isnan(wide)
    best = (wide.max if largest else wide.min)(-1, keepdims=True)
    hit = np.where(bad.any(-1, keepdims=True), bad, wide == best)
    first = hit.argmax(-1)
    latest = hit.shape[-1] - 1 - hit[..., ::-1].argmax(-1)
    return np.where(bad.any(-1), first, latest if last else first)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((3, 1), 1), ((7, 5), 1), ((2, 600), 1), ((1, 9001), 1), ((5, 3), 0), ((600, 70), 0),
     ((3, 300, 129), 1), ((40, 260), 0)], ids=str,
)  # fmt: skip
def test_places_among_many_equal_elements(shape: tuple, axis: int, dtype: Any) -> None:
    rng = np.random.default_rng(3)
    x = rng.integers(0, 4, shape).astype(dtype)
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        x[rng.random(shape) < 0.01] = info.min
        x[rng.random(shape) < 0.01] = info.max
    else:
        x = -x if shape[0] % 2 else x  # Zeros of either sign are equal.
        x[rng.random(shape) < 0.02] = dtype(0)
    cases = [x]
    if dtype in FLOATS:
        odd = x.copy()
        odd[rng.random(shape) < 0.01] = dtype(np.nan)
        odd[rng.random(shape) < 0.01] = -dtype(np.nan)
        ends = x.copy()
        ends[rng.random(shape) < 0.1] = dtype(np.inf)
        ends[rng.random(shape) < 0.1] = dtype(-np.inf)
        cases += [odd, ends, np.full_like(x, np.nan)]
    for case in cases:
        for op, last in [("ArgMax", 0), ("ArgMax", 1), ("ArgMin", 0), ("ArgMin", 1)]:
            got = run(op, case, opset=13, axis=axis, keepdims=0, select_last_index=last)
            want = _place(case, axis, op == "ArgMax", last == 1)
            np.testing.assert_array_equal(got, want, err_msg=f"{op} {last}")


@pytest.mark.parametrize("dtype", [*FLOATS, np.int32, np.int64, np.uint32, np.uint64])
@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (6, 1100), (1, 16), (300, 3), (40, 130)])
def test_cumulative_over_long_and_odd_axes(shape: tuple, dtype: Any) -> None:
    rng = np.random.default_rng(7)
    # Sums below 128 and powers of two: exact in every dtype.
    x = (rng.random(shape) < 0.1).astype(dtype)
    two = np.where(rng.random(shape) < 0.02, 2, 1).astype(dtype)
    for axis, exclusive, reverse in itertools.product((0, 1), (0, 1), (0, 1)):
        options = {"exclusive": exclusive, "reverse": reverse}
        for op, values, fold in (("CumSum", x, np.cumsum), ("CumProd", two, np.cumprod)):
            y = np.flip(values, axis) if reverse else values
            if exclusive:
                first = np.full_like(np.take(y, [0], axis), op == "CumProd")
                y = np.concatenate([first, np.delete(y, -1, axis)], axis)
            with np.errstate(over="ignore"):
                want = fold(y.astype(np.float64), axis)
                want = (np.flip(want, axis) if reverse else want).astype(dtype)
            got = run(op, values, np.int64(axis), opset=26, **options)
            np.testing.assert_array_equal(got, want, err_msg=f"{op} {axis} {options}")


def test_cumulative_sum_in_place() -> None:
    x = random((6, 500))
    node = helper.make_node
    for axis in (0, 1):
        nodes = [node("Neg", ["x"], ["a"]), node("CumSum", ["a", "i"], ["b"]),
                 node("Neg", ["b"], ["y"])]  # fmt: skip
        kinds = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, None) for n in "xy"]
        constant = numpy_helper.from_array(np.int64(axis), "i")
        graph = helper.make_graph(nodes, "g", kinds[:1], kinds[1:], [constant])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)])
        got = chipdock.load(model).run({"x": x})["y"]
        want = np.cumsum(x.astype(np.float64), axis)
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)


def test_cumulative_sum_accumulates_in_double() -> None:
    x = np.full((2, 40_000), 0.1, np.float32)
    want = np.cumsum(x.astype(np.float64), 1)
    np.testing.assert_array_equal(run("CumSum", x, np.int64(1), opset=14), want.astype(np.float32))
    odd = np.array([[1, np.inf, 2, -np.inf, 1, 0, 0, 0, np.nan, 1]], np.float32)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(run("CumSum", odd, np.int64(1), opset=14), np.cumsum(odd, 1))

# SPDX-License-Identifier: Apache-2.0
"""Operators that pick or place elements by index, on cpu:0, against the reference of ONNX."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from movement_support import WIDTHS, check, data, ints, refuses

import chipdock

NUMBERS = [
    np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64,
    np.float16, np.float32, np.float64, ml_dtypes.bfloat16,
]  # fmt: skip


def indices(
    shape: tuple[int, ...], extent: int, seed: int = 0, dtype: Any = np.int64
) -> np.ndarray:
    """Valid indices, half of them counted from the end."""
    return np.random.default_rng(seed).integers(-extent, extent, size=shape).astype(dtype)


# Gather


@pytest.mark.parametrize("dtype", [*WIDTHS, np.bool_, ml_dtypes.bfloat16])
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_gather_on_every_axis(dtype: Any, kind: Any) -> None:
    x = data((3, 4, 5), dtype)
    for axis in (0, 1, 2, -1, -3):
        for case, shape in enumerate([(), (1,), (7,), (2, 3), (0,)]):
            picked = indices(shape, x.shape[axis], case, kind)
            opset = 13 if dtype is ml_dtypes.bfloat16 else [11, 13][case % 2]
            check("Gather", x, picked, opset=opset, axis=axis)
    if dtype is not ml_dtypes.bfloat16:
        check("Gather", x, np.abs(indices((2,), 3)), opset=7, axis=0)


def test_gather_of_shape_vectors_and_rows() -> None:
    check("Gather", ints(7, 8, 9), np.array(1, np.int64))
    check("Gather", ints(7, 8, 9), np.array(-1, np.int64))
    table = data((500, 96))
    ids = indices((4, 128), 500)
    got = chipdock.run_op("Gather", table, ids).numpy()
    assert np.array_equal(got, table[ids])
    check("Gather", data((3, 0)), ints(1, 1))
    check("Gather", data((0, 3)), np.zeros(0, np.int64))


def test_gather_names_an_index_out_of_range() -> None:
    refuses(r"index 3 at position 1 is outside \[-3, 2\]", "Gather", data((3, 2)), ints(0, 3))
    refuses(r"index -4 at position 0", "Gather", data((3, 2)), ints(-4))
    refuses("outside", "Gather", data((0, 2)), ints(0))
    refuses("axis 2 is outside", "Gather", data((3, 2)), ints(0), axis=2)


def test_gather_names_an_index_out_of_range_in_a_large_tensor() -> None:
    ids = np.zeros(200_000, np.int64)
    ids[123_456] = 99
    refuses("index 99 at position 123456", "Gather", data((3, 8)), ids)


@pytest.mark.parametrize("dtype", WIDTHS)
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_gather_elements(dtype: Any, kind: Any) -> None:
    x = data((3, 4, 5), dtype)
    for axis in (0, 1, 2, -1):
        shape = [3, 4, 5]
        shape[axis] = 7
        at = indices(tuple(shape), x.shape[axis], axis + 9, kind)
        if axis >= 0:  # The reference refuses -1.
            check("GatherElements", x, at, axis=axis)
        got = chipdock.run_op("GatherElements", x, at, axis=axis, opset=13).numpy()
        assert np.array_equal(got, np.take_along_axis(x, at % x.shape[axis], axis))
    check("GatherElements", data((6,), dtype), indices((9,), 6, dtype=kind))
    check("GatherElements", x, np.zeros((3, 0, 5), kind), axis=1)
    part = indices((2, 4, 3), 4, dtype=kind)
    got = chipdock.run_op("GatherElements", x, part, axis=1, opset=11).numpy()
    assert np.array_equal(got, np.take_along_axis(x[:2, :, :3], part % 4, 1))


def test_gather_elements_of_a_large_tensor() -> None:
    x = data((300, 200))
    for axis in (0, 1):
        at = indices((300, 200), x.shape[axis])
        got = chipdock.run_op("GatherElements", x, at, axis=axis).numpy()
        assert np.array_equal(got, np.take_along_axis(x, at % x.shape[axis], axis))


def test_gather_elements_refuses() -> None:
    refuses("index 4", "GatherElements", data((3, 4)), ints(4).reshape(1, 1), axis=1)
    refuses("reach beyond", "GatherElements", data((3, 4)), np.zeros((4, 1), np.int64), axis=1)
    refuses("rank", "GatherElements", data((3, 4)), ints(0), axis=1)


@pytest.mark.parametrize("dtype", WIDTHS)
def test_gather_nd(dtype: Any) -> None:
    x = data((2, 3, 4), dtype)
    for opset in (11, 13):
        check("GatherND", x, np.array([[0, 1], [-1, -2], [1, 0]]), opset=opset)
        check("GatherND", x, np.array([[[0], [1]], [[-1], [0]]]), opset=opset)
        check("GatherND", x, np.array([1, 2, 3]), opset=opset)
    check("GatherND", x, np.array([[1], [2]]), batch_dims=1)
    check("GatherND", x, np.array([[[1, 0], [2, 3]], [[0, -1], [-1, 0]]]), batch_dims=1)
    check("GatherND", x, np.zeros((2, 3, 1), np.int64), batch_dims=2)
    assert chipdock.run_op("GatherND", x, np.zeros((0, 2), np.int64)).numpy().shape == (0, 4)
    got = chipdock.run_op("GatherND", x, np.zeros((2, 0), np.int64)).numpy()
    assert np.array_equal(got, np.stack([x, x]))


def test_gather_nd_refuses() -> None:
    refuses("index 3 at position 1", "GatherND", data((2, 3)), np.array([[0, 3]]))
    refuses("do not fit", "GatherND", data((2, 3)), np.array([[0, 1, 2]]))
    refuses("batch_dims", "GatherND", data((2, 3)), np.array([[0]]), batch_dims=2)


# Scatter


@pytest.mark.parametrize("dtype", WIDTHS)
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_scatter_elements_replaces(dtype: Any, kind: Any) -> None:
    x = data((3, 4, 5), dtype)
    for axis in (0, 1, 2, -1):
        shape = [2, 3, 4]
        at = np.argsort(np.random.default_rng(axis + 9).random(x.shape), axis=axis)
        at = at[: shape[0], : shape[1], : shape[2]].astype(kind)
        at = np.where(at % 2 == 0, at, at - x.shape[axis]).astype(kind)
        new = data(at.shape, dtype, 9)
        check("ScatterElements", x, at, new, axis=axis, opset=[11, 13, 16, 18][axis % 4])
    x, new = data((5,), dtype), data((2,), dtype, 3)
    got = chipdock.run_op("Scatter", x, ints(1, 3, dtype=kind), new, opset=9, axis=0).numpy()
    assert np.array_equal(got, [x[0], new[0], x[2], new[1], x[4]])
    check("ScatterElements", x, np.zeros(0, kind), np.zeros(0, dtype))


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("reduction", ["add", "mul", "min", "max"])
def test_scatter_elements_reduces(dtype: Any, reduction: str) -> None:
    rng = np.random.default_rng(5)
    x = rng.integers(0, 5, (4, 3)).astype(dtype)
    at = rng.integers(-4, 4, (7, 3))
    new = rng.integers(1, 3, (7, 3)).astype(dtype)
    want = x.copy()
    combine = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}[reduction]
    for i, j in np.ndindex(at.shape):
        with np.errstate(over="ignore"):
            want[at[i, j], j] = combine(want[at[i, j], j], new[i, j])
    opset = 18 if reduction in ("min", "max") else 16
    got = chipdock.run_op("ScatterElements", x, at, new, reduction=reduction, opset=opset).numpy()
    assert got.tobytes() == want.tobytes()
    got = chipdock.run_op("ScatterND", x, at[:, :1], new, reduction=reduction, opset=opset).numpy()
    want = x.copy()
    for i in range(7):
        with np.errstate(over="ignore"):
            want[at[i, 0]] = combine(want[at[i, 0]], new[i])
    assert got.tobytes() == want.tobytes()


def test_scatter_keeps_nan_and_wraps_integers() -> None:
    nan = np.float32("nan")
    for reduction in ("min", "max"):
        x, new = np.array([nan, 1], np.float32), np.array([2, nan], np.float32)
        got = chipdock.run_op("ScatterElements", x, ints(0, 1), new, reduction=reduction).numpy()
        assert np.isnan(got).all()
    x = np.array([2**63 - 1], np.int64)
    got = chipdock.run_op("ScatterElements", x, ints(0), ints(1), reduction="add").numpy()
    assert got.tolist() == [-(2**63)]


def test_scatter_of_large_tensors() -> None:
    rng = np.random.default_rng(0)
    x, new = data((300, 256)), data((300, 256), seed=1)
    for axis in (0, 1):
        at = np.argsort(rng.random(x.shape), axis=axis)
        want = x.copy()
        np.put_along_axis(want, at, new, axis)
        got = chipdock.run_op("ScatterElements", x, at, new, axis=axis).numpy()
        assert np.array_equal(got, want)


@pytest.mark.parametrize("dtype", WIDTHS)
def test_scatter_nd_replaces(dtype: Any) -> None:
    x = data((4, 3, 2), dtype)
    for opset in (11, 13, 16, 18):
        check("ScatterND", x, np.array([[0], [-1]]), data((2, 3, 2), dtype, 1), opset=opset)
        check("ScatterND", x, np.array([[0, 1], [3, -1]]), data((2, 2), dtype, 2), opset=opset)
        check("ScatterND", x, np.array([[0, 1, 1]]), data((1,), dtype, 3), opset=opset)
    check("ScatterND", x, np.zeros((0, 1), np.int64), np.zeros((0, 3, 2), dtype))


def test_scatter_refuses() -> None:
    x = data((3, 2))
    one = np.ones((1, 1), np.float32)
    refuses("index 3 at position 0", "ScatterElements", x, ints(3).reshape(1, 1), one)
    refuses("updates", "ScatterElements", x, ints(0).reshape(1, 1), np.ones((1, 2), np.float32))
    refuses("index -4", "ScatterND", x, np.array([[-4]]), np.ones((1, 2), np.float32))
    refuses("must have shape", "ScatterND", x, np.array([[0]]), np.ones((1, 3), np.float32))
    refuses("reduction is avg", "ScatterND", x, np.array([[0]]), np.ones((1, 2), np.float32),
            reduction="avg")  # fmt: skip


# TopK


@pytest.mark.parametrize("dtype", NUMBERS)
def test_top_k_of_every_dtype(dtype: Any) -> None:
    x = np.random.default_rng(1).permutation(120)[:60].reshape(3, 4, 5).astype(np.int64)
    x = (x - (60 if dtype not in (np.uint8, np.uint16, np.uint32, np.uint64) else 0)).astype(dtype)
    for axis, k in [(0, 2), (1, 4), (2, 1), (-1, 3), (1, 0)]:
        for largest in (0, 1):
            order = np.argsort(
                x if not largest else -x.astype(np.float64), axis=axis, kind="stable"
            )
            at = order.take(range(k), axis)
            values, places = chipdock.run_op(
                "TopK",
                x,
                ints(k),
                axis=axis,
                largest=largest,
                outputs=2,
                opset=24 if dtype is ml_dtypes.bfloat16 else 11,
            )
            assert np.array_equal(places.numpy(), at)
            assert values.numpy().tobytes() == np.take_along_axis(x, at, axis).tobytes()


def test_top_k_in_every_version() -> None:
    x = np.random.default_rng(0).permutation(24).reshape(4, 6).astype(np.float32)
    check("TopK", x, opset=7, outputs=2, k=2, axis=1)
    check("TopK", x, ints(2), opset=10, outputs=2, axis=1)
    for opset in (11, 24):
        check("TopK", x, ints(3), opset=opset, outputs=2, axis=0, largest=0)
        check("TopK", x, ints(6), opset=opset, outputs=2)


def test_top_k_breaks_ties_by_the_lower_index() -> None:
    x = np.array([1, 3, 3, 2, 3, 1, 0.0, -0.0], np.float32)
    _, at = chipdock.run_op("TopK", x, ints(4), outputs=2)
    assert at.numpy().tolist() == [1, 2, 4, 3]
    _, at = chipdock.run_op("TopK", x, ints(3), outputs=2, largest=0)
    assert at.numpy().tolist() == [6, 7, 0]


def test_top_k_counts_nan_as_largest() -> None:
    x = np.array([1, np.nan, np.inf, -np.inf, -np.nan], np.float32)
    _, at = chipdock.run_op("TopK", x, ints(3), outputs=2)
    assert at.numpy().tolist() == [1, 4, 2]
    _, at = chipdock.run_op("TopK", x, ints(5), outputs=2, largest=0)
    assert at.numpy().tolist() == [3, 0, 2, 1, 4]


@pytest.mark.parametrize("k", [1, 5, 40, 900])
def test_top_k_of_long_rows(k: int) -> None:
    x = np.random.default_rng(k).integers(0, 300, (20, 1000)).astype(np.float32)
    values, at = chipdock.run_op("TopK", x, ints(k), outputs=2)
    want = np.argsort(-x, axis=1, kind="stable")[:, :k]
    assert np.array_equal(at.numpy(), want)
    assert np.array_equal(values.numpy(), np.take_along_axis(x, want, 1))


def test_top_k_refuses_k_out_of_range() -> None:
    refuses("k is 4.*allows 0 to 3", "TopK", data((2, 3)), ints(4), outputs=2)
    refuses("k is -1", "TopK", data((2, 3)), ints(-1), outputs=2)


# Data-dependent extents


@pytest.mark.parametrize("dtype", [*NUMBERS, np.bool_, np.complex64, np.complex128])
def test_nonzero(dtype: Any) -> None:
    for shape in [(7,), (3, 4), (2, 3, 4), (0,), (2, 0)]:
        x = (np.random.default_rng(2).integers(0, 3, shape) % 2).astype(dtype)
        check("NonZero", x, opset=13 if dtype is ml_dtypes.bfloat16 else [9, 13][len(shape) % 2])
    check("NonZero", np.zeros((3, 3), dtype))
    check("NonZero", np.ones((3, 3), dtype))


def test_nonzero_of_negative_zero_nan_and_scalar() -> None:
    x = np.array([0.0, -0.0, np.nan, 1e-40], np.float32)
    assert chipdock.run_op("NonZero", x).numpy().tolist() == [[2, 3]]
    # The operator's text: a scalar gives shape (0, N).
    assert chipdock.run_op("NonZero", np.array(3, np.float32)).numpy().shape == (0, 1)


@pytest.mark.parametrize("dtype", WIDTHS)
def test_compress(dtype: Any) -> None:
    x = data((3, 4, 2), dtype)
    for opset in (9, 11):
        check("Compress", x, np.array([True, False, True]), opset=opset, axis=0)
        check("Compress", x, np.array([False, True]), opset=opset, axis=1)
        check("Compress", x, np.array([True, False, False, True, True]), opset=opset)
    check("Compress", x, np.array([False, True]), opset=11, axis=-1)
    check("Compress", x, np.array([False, False]), opset=11, axis=1)
    check("Compress", x, np.zeros(0, bool), opset=11)
    refuses("condition has 3", "Compress", x, np.ones(3, bool), axis=2)


# Unique's schema has no bfloat16.
@pytest.mark.parametrize("dtype", [d for d in NUMBERS if d is not ml_dtypes.bfloat16] + [np.bool_])
@pytest.mark.parametrize("sorted_", [0, 1])
def test_unique(dtype: Any, sorted_: int) -> None:
    rng = np.random.default_rng(3)
    cases = [((20,), None), ((4, 5), None), ((6, 2), 0), ((2, 7), 1), ((2, 6, 2), -2), ((1,), 0)]
    for shape, axis in cases:
        x = rng.integers(0, 3, shape).astype(dtype)
        wide = x.astype(np.float64)
        want, first, inverse, counts = np.unique(wide, True, True, True, axis=axis)
        inverse = inverse.ravel()
        if not sorted_:
            order = np.argsort(first)
            want = want.take(order, 0 if axis is None else axis)
            first, counts, inverse = first[order], counts[order], np.argsort(order)[inverse]
        extra = {} if axis is None else {"axis": axis}
        got = chipdock.run_op("Unique", x, outputs=4, sorted=sorted_, opset=11, **extra)
        assert np.array_equal(got[0].numpy().astype(np.float64), want)
        for have, expected in zip(got[1:], (first, inverse, counts), strict=True):
            assert have.numpy().tolist() == expected.tolist()


def test_unique_of_nothing_and_of_equal_floats() -> None:
    got = chipdock.run_op("Unique", np.zeros(0, np.float32), outputs=4)
    assert [g.numpy().shape for g in got] == [(0,)] * 4
    x = np.array([np.nan, 0.0, -0.0, np.nan, 1], np.float32)
    got = chipdock.run_op("Unique", x, outputs=4)
    assert got[0].numpy()[:2].tolist() == [0, 1]
    assert got[3].numpy().tolist() == [2, 1, 2]

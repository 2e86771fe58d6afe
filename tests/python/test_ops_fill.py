# SPDX-License-Identifier: Apache-2.0
"""Operators that make tensors from a rule or from random numbers, on cpu:0."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx.parser
import pytest
from movement_support import check, ints, refuses
from onnx import helper

import chipdock

DTYPES = [
    np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64,
    np.float16, np.float32, np.float64, ml_dtypes.bfloat16,
]  # fmt: skip


def onnx_dtype(dtype: Any) -> int:
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_constant_of_shape(dtype: Any) -> None:
    for value in (0, 1, 3):
        filled = np.array([value]).astype(dtype)
        for shape in [(2, 3), (0, 4), (1,), ()]:
            opset = 9 if dtype is not ml_dtypes.bfloat16 else 20
            got = chipdock.run_op(
                "ConstantOfShape", np.array(shape, np.int64), opset=opset,
                value=onnx.numpy_helper.from_array(filled),
            ).numpy()  # fmt: skip
            assert got.dtype == filled.dtype
            assert np.array_equal(got, np.full(shape, filled[0]))


def test_constant_of_shape_defaults_to_float_zero() -> None:
    check("ConstantOfShape", ints(2, 3), opset=9)
    big = chipdock.run_op(
        "ConstantOfShape", ints(300, 1000), value=onnx.numpy_helper.from_array(ints(-7))
    )
    assert np.array_equal(big.numpy(), np.full((300, 1000), -7))
    refuses("negative", "ConstantOfShape", ints(2, -1))
    refuses("2\\^62", "ConstantOfShape", ints(2**40, 2**40))


@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.int64, np.float32, np.float64])
def test_range(dtype: Any) -> None:
    for start, limit, delta in [
        (0, 5, 1), (3, 9, 3), (10, 4, -2), (1, 5, 3), (5, 5, 1), (5, 1, 1), (-3, 4, 2), (1, 2, 10),
    ]:  # fmt: skip
        check("Range", *(np.array(v, dtype) for v in (start, limit, delta)), opset=11)


def test_range_at_the_ends_of_int64() -> None:
    low, high = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    got = chipdock.run_op("Range", *(np.array(v, np.int64) for v in (low, high, high))).numpy()
    assert got.tolist() == [low, -1, high - 1]
    refuses("at most 2", "Range", *(np.array(v, np.int64) for v in (low, high, 1)))
    refuses("delta is 0", "Range", *(np.array(v, np.int64) for v in (0, 3, 0)))
    refuses("finite", "Range", *(np.array(v, np.float32) for v in (0, np.inf, 1)))


def test_range_of_many_floats() -> None:
    got = chipdock.run_op("Range", *(np.array(v, np.float32) for v in (0.5, 1e5, 0.25))).numpy()
    assert got.shape == (399_998,)
    want = np.float32(0.5) + np.arange(399_998, dtype=np.float32) * np.float32(0.25)
    assert np.array_equal(got, want)


@pytest.mark.parametrize("dtype", DTYPES)
def test_eye_like(dtype: Any) -> None:
    for shape in [(3, 3), (2, 5), (4, 2), (0, 3)]:
        for k in (-9, -1, 0, 2, 9):
            opset = 9 if dtype is not ml_dtypes.bfloat16 else 22
            x = np.zeros(shape, np.float32)
            got = chipdock.run_op("EyeLike", x, opset=opset, k=k, dtype=onnx_dtype(dtype)).numpy()
            assert got.dtype == dtype
            assert np.array_equal(got.astype(np.float64), np.eye(*shape, k=k))
    assert chipdock.run_op("EyeLike", np.zeros((2, 2), np.int32)).numpy().dtype == np.int32
    refuses("rank 2", "EyeLike", np.zeros(3, np.float32))


# OneHot's schema has no bfloat16.
@pytest.mark.parametrize(
    "dtype", [d for d in DTYPES if d is not ml_dtypes.bfloat16] + [np.complex64]
)
def test_one_hot(dtype: Any) -> None:
    values = np.array([2, 5]).astype(dtype)
    picked = np.array([[1, -1, 7], [0, 3, -8]])
    for axis in (-1, 0, 1, -2, 2):
        want = np.moveaxis((picked[..., None] % 8 == np.arange(8)), -1, axis)
        # 7 and -8 are the last positions that count; 8 and beyond would be all off.
        got = chipdock.run_op("OneHot", picked, ints(8), values, opset=11, axis=axis).numpy()
        assert np.array_equal(got, np.where(want, values[1], values[0]))


@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.int32, np.float16, np.float32, np.float64])
def test_one_hot_of_every_index_dtype(kind: Any) -> None:
    values = np.array([0, 1], np.float32)
    got = chipdock.run_op("OneHot", np.array([0, 2, 3], kind), np.array(3, kind), values).numpy()
    assert got.tolist() == [[1, 0, 0], [0, 0, 1], [0, 0, 0]]


def test_one_hot_edges() -> None:
    values = np.array([0, 1], np.float32)
    wild = np.array([np.nan, np.inf, -1e30, 1], np.float32)
    got = chipdock.run_op("OneHot", wild, ints(2), values).numpy()
    assert got.tolist() == [[0, 0], [0, 0], [0, 0], [0, 1]]
    assert chipdock.run_op("OneHot", np.array(1), ints(3), values).numpy().tolist() == [0, 1, 0]
    assert chipdock.run_op("OneHot", ints(0, 0), ints(0), values).numpy().shape == (2, 0)
    refuses("depth is -1", "OneHot", ints(0), ints(-1), values)
    refuses("off, on", "OneHot", ints(0), ints(2), values[:1])


FLOATS = [np.float16, np.float32, np.float64, ml_dtypes.bfloat16]


@pytest.mark.parametrize("dtype", FLOATS)
def test_random_uniform_and_normal_have_the_right_moments(dtype: Any) -> None:
    opset = 22
    shape = [50, 401]
    kind = onnx_dtype(dtype)
    u = chipdock.run_op("RandomUniform", opset=opset, shape=shape, dtype=kind, low=-1.0, high=3.0,
                        seed=1.0).numpy()  # fmt: skip
    assert u.shape == (50, 401)
    assert u.dtype == dtype
    u = u.astype(np.float64)
    assert u.min() >= -1
    assert u.max() <= 3
    # Five standard deviations of the mean and of the variance.
    assert abs(u.mean() - 1) < 5 * (4 / 12**0.5) / u.size**0.5
    assert abs(u.var() - 16 / 12) < 0.05
    z = chipdock.run_op("RandomNormal", opset=opset, shape=shape, dtype=kind, mean=2.0, scale=0.5,
                        seed=1.0).numpy().astype(np.float64)  # fmt: skip
    assert abs(z.mean() - 2) < 5 * 0.5 / z.size**0.5
    assert abs(z.std() - 0.5) < 0.02
    assert abs(np.mean(((z - 2) / 0.5) ** 4) - 3) < 0.3


def test_random_numbers_follow_from_the_seed() -> None:
    def draw(seed: float) -> bytes:
        return chipdock.run_op("RandomNormal", shape=[7], seed=seed).numpy().tobytes()

    assert draw(3.0) == draw(3.0)
    assert draw(3.0) != draw(4.0)


def test_random_like_takes_shape_and_dtype() -> None:
    x = np.zeros((2, 3), np.float64)
    for op in ("RandomNormalLike", "RandomUniformLike"):
        got = chipdock.run_op(op, x, seed=1.0).numpy()
        assert got.shape == (2, 3)
        assert got.dtype == np.float64
        assert chipdock.run_op(op, x, seed=1.0, dtype=1).numpy().dtype == np.float32
    assert chipdock.run_op("RandomNormal", shape=[0, 3]).numpy().shape == (0, 3)


@pytest.mark.parametrize("dtype", FLOATS)
def test_bernoulli(dtype: Any) -> None:
    p = np.repeat(np.array([0, 0.25, 1]), 10_000).astype(dtype).reshape(3, -1)
    opset = 22 if dtype is ml_dtypes.bfloat16 else 15
    got = chipdock.run_op("Bernoulli", p, opset=opset, seed=2.0, dtype=onnx_dtype(np.int32)).numpy()
    assert got.dtype == np.int32
    assert got[0].sum() == 0
    assert got[2].sum() == 10_000
    assert abs(got[1].mean() - 0.25) < 5 * (0.25 * 0.75 / 10_000) ** 0.5
    assert chipdock.run_op("Bernoulli", p, opset=opset).numpy().dtype == dtype


def test_multinomial() -> None:
    chances = np.array([[0.1, 0.2, 0.7], [1.0, 0.0, 0.0]])
    with np.errstate(divide="ignore"):
        logits = np.log(chances).astype(np.float32) + 3
    got = chipdock.run_op("Multinomial", logits, opset=7, sample_size=10_000, seed=5.0).numpy()
    assert got.dtype == np.int32
    assert got.shape == (2, 10_000)
    share = np.bincount(got[0], minlength=3) / 10_000
    assert np.abs(share - chances[0]).max() < 5 * 0.5 / 100
    assert (got[1] == 0).all()
    wide = chipdock.run_op("Multinomial", logits, sample_size=2, dtype=7).numpy()
    assert wide.dtype == np.int64


@pytest.mark.parametrize("dtype", FLOATS)
def test_dropout_in_training(dtype: Any) -> None:
    x = np.full((100, 201), 2, dtype)
    y, mask = chipdock.run_op("Dropout", x, np.array(0.25, np.float32), np.array(True), opset=22,
                              seed=7, outputs=2)  # fmt: skip
    keep = mask.numpy()
    assert keep.dtype == np.bool_
    assert abs(keep.mean() - 0.75) < 5 * (0.25 * 0.75 / x.size) ** 0.5
    assert np.array_equal(y.numpy(), np.where(keep, 2 / 0.75, 0).astype(dtype))
    refuses("ratio is 1", "Dropout", x, np.array(1, np.float32))


@pytest.mark.parametrize("op", ["RandomUniform", "RandomNormal"])
def test_a_generator_without_dtype_makes_what_its_schema_says(op: str) -> None:
    assert chipdock.run_op(op, shape=[3]).dtype == np.float32
    body = f"g () => (float[3] y) {{ y = {op}<shape=[3]>() }}"
    text = f'<ir_version: 10, opset_import: ["" : 21]> {body}'
    assert chipdock.load(onnx.parser.parse_model(text)).run({})["y"].dtype == np.float32

# SPDX-License-Identifier: Apache-2.0
"""QuantizeLinear and DequantizeLinear in every granularity; integer products by their bodies."""

import ml_dtypes
import numpy as np
import pytest
from api_support import model, value
from onnx import helper

import chipdock

node = helper.make_node


def run(op, *inputs, outputs=1, **attributes):
    return chipdock.run_op(op, *inputs, outputs=outputs, **attributes).numpy()


def test_rounds_half_to_even_and_saturates():
    x = np.float32([-1000, -0.5, 0.5, 1.5, 2.5, 1000, np.inf, -np.inf])
    got = run("QuantizeLinear", x, np.float32(1), np.int8(0))
    assert got.tolist() == [-128, 0, 0, 2, 2, 127, 127, -128]
    got = run("QuantizeLinear", x, np.float32(1), np.uint16(10))
    assert got.tolist() == [0, 10, 10, 12, 12, 1010, 65535, 0]


@pytest.mark.parametrize("shape", [(0, 3), (7, 3), (700, 3)], ids=str)
@pytest.mark.parametrize("axis", [0, -1])
def test_one_scale_per_slice(shape, axis):
    rng = np.random.default_rng(0)
    x = rng.normal(0, 50, shape).astype(np.float32)
    scale = rng.uniform(0.5, 2, shape[axis]).astype(np.float32)
    zero = rng.integers(-5, 5, shape[axis]).astype(np.int8)
    spread = (slice(None), None) if axis == 0 else (None, slice(None))
    want = np.clip(np.rint(x / scale[spread]) + zero[spread], -128, 127).astype(np.int8)
    got = run("QuantizeLinear", x, scale, zero, axis=axis)
    np.testing.assert_array_equal(got, want)
    back = run("DequantizeLinear", got, scale, zero, axis=axis)
    wide = want.astype(np.float32) - zero[spread]
    np.testing.assert_array_equal(back, wide * scale[spread])


def test_one_scale_per_block_with_a_short_last_block():
    x = np.arange(20, dtype=np.float32).reshape(2, 5, 2)
    scale = np.arange(1, 13, dtype=np.float32).reshape(2, 3, 2)
    got = run("QuantizeLinear", x, scale, np.zeros_like(scale, np.int16), axis=1, block_size=2)
    want = np.rint(x / np.repeat(scale, 2, axis=1)[:, :5])
    np.testing.assert_array_equal(got, want.astype(np.int16))


@pytest.mark.parametrize("dtype", [ml_dtypes.int4, ml_dtypes.uint4])
def test_four_bits_hold_their_range(dtype):
    x = np.linspace(-20, 20, 1037, dtype=np.float32)
    info = ml_dtypes.iinfo(dtype)
    got = run("QuantizeLinear", x, np.float32(1), np.zeros((), dtype))
    want = np.clip(np.rint(x), int(info.min), int(info.max))
    np.testing.assert_array_equal(got.astype(np.float32), want)


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("dtype", [ml_dtypes.float6_e2m3fn, ml_dtypes.float6_e3m2fn])
def test_six_bits_are_quantized_and_back(dtype, axis):
    x = np.random.default_rng(0).normal(0, 8, (13, 41)).astype(np.float32)
    scale = (2.0 ** np.arange(-2, 3).repeat(9))[: x.shape[axis or 0]].astype(np.float32)
    scale = np.float32(0.5) if axis is None else scale
    spread = scale if axis is None else np.expand_dims(scale, 1 - axis)
    got = run("QuantizeLinear", x, scale, np.zeros(np.shape(scale), dtype), axis=axis or 0)
    assert got.dtype == np.dtype(dtype)
    want = (x / spread).astype(dtype)
    np.testing.assert_array_equal(got.view(np.uint8), want.view(np.uint8))
    kind = helper.np_dtype_to_tensor_dtype(got.dtype)
    same = run("QuantizeLinear", x, scale, axis=axis or 0, output_dtype=kind)
    np.testing.assert_array_equal(same.view(np.uint8), want.view(np.uint8))
    back = run("DequantizeLinear", got, scale, axis=axis or 0)
    np.testing.assert_array_equal(back, want.astype(np.float32) * spread)


def test_zero_points_of_floats_are_added_and_taken_away():
    x = np.float32([-1, 0, 0.5, 2, 100])
    zero = np.array(1.5).astype(ml_dtypes.float6_e2m3fn)
    got = run("QuantizeLinear", x, np.float32(0.5), zero)
    assert got.astype(np.float32).tolist() == [-0.5, 1.5, 2.5, 5.5, 7.5]
    back = run("DequantizeLinear", got, np.float32(0.5), zero)
    assert back.tolist() == [-1, 0, 0.5, 2, 3]


def test_scales_that_do_not_fit_are_named():
    with pytest.raises(chipdock.errors.InvalidArgumentError, match="2 scales for axis 1 with 3"):
        run("QuantizeLinear", np.ones((1, 3), np.float32), np.float32([1, 2]), np.int8([0, 0]))


def test_integer_product_takes_zero_points_of_rows_and_columns():
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 255, (5, 300), np.uint8), rng.integers(-128, 127, (300, 4), np.int8)
    rows, columns = rng.integers(0, 9, 5).astype(np.uint8), rng.integers(-9, 9, 4).astype(np.int8)
    proto = model(
        [node("MatMulInteger", ["a", "b", "za", "zb"], ["y"])],
        [
            value("a", helper.np_dtype_to_tensor_dtype(a.dtype), [5, 300]),
            value("b", helper.np_dtype_to_tensor_dtype(b.dtype), [300, 4]),
            value("za", helper.np_dtype_to_tensor_dtype(rows.dtype), [5]),
            value("zb", helper.np_dtype_to_tensor_dtype(columns.dtype), [4]),
        ],
        [value("y", helper.np_dtype_to_tensor_dtype(np.dtype(np.int32)))],
    )
    got = chipdock.load(proto).run({"a": a, "b": b, "za": rows, "zb": columns})["y"].numpy()
    wide = (a.astype(np.int64) - rows[:, None]) @ (b.astype(np.int64) - columns)
    np.testing.assert_array_equal(got, wide)


def test_integer_convolution_is_exact():
    rng = np.random.default_rng(2)
    x = rng.integers(0, 255, (1, 64, 5, 5), np.uint8)
    w = rng.integers(0, 255, (2, 64, 3, 3), np.uint8)
    got = run("ConvInteger", x, w, np.uint8(3), np.uint8(7))
    want = np.zeros((1, 2, 3, 3), np.int64)
    wide_x, wide_w = x.astype(np.int64) - 3, w.astype(np.int64) - 7
    for i in range(3):
        for j in range(3):
            want[0, :, i, j] = (wide_w * wide_x[0, :, i : i + 3, j : j + 3]).sum((1, 2, 3))
    np.testing.assert_array_equal(got, want)


def dynamic(x):
    return [a.numpy() for a in chipdock.run_op("DynamicQuantizeLinear", x, outputs=3)]


@pytest.mark.parametrize("size", [1, 15, 16, 33, 4097, 100_003])
@pytest.mark.parametrize("shift", [0, 5, -5])
def test_dynamic_range_is_found_and_rounded_as_the_operator_says(size, shift):
    rng = np.random.default_rng(size)
    x = (rng.normal(0, 1, size) + shift).astype(np.float32)
    x[rng.integers(size)] *= 3  # an end of the range anywhere
    low, high = min(x.min(), np.float32(0)), max(x.max(), np.float32(0))
    scale = (high - low) / np.float32(255)
    zero = np.rint(np.clip(-low / scale, 0, 255)).astype(np.uint8)
    got, got_scale, got_zero = dynamic(x)
    assert (got_scale.shape, got_scale, got_zero) == ((), scale, zero)
    want = np.clip(np.rint(x / scale) + zero.astype(np.float32), 0, 255)
    np.testing.assert_array_equal(got, want.astype(np.uint8))


@pytest.mark.parametrize("shape", [(0,), (), (3, 4)], ids=str)
def test_dynamic_range_of_nothing_and_of_zeros(shape):
    got, scale, zero = dynamic(np.zeros(shape, np.float32))
    assert got.shape == shape
    assert (scale, zero) == (0, 0)
    assert not got.any()


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("size", [1, 63, 64, 65, 1000, 40_001])
def test_bytes_of_one_scale_and_of_channels(dtype, size):
    rng = np.random.default_rng(size)
    x = rng.normal(0, 90, (2, 3, size)).astype(np.float32)
    x.flat[:4] = [np.nan, np.inf, -np.inf, 1e30]
    info = np.iinfo(dtype)
    for channels in (1, 3):
        scale = rng.uniform(0.4, 1.5, channels).astype(np.float32)
        zero = rng.integers(info.min, info.max, channels).astype(dtype)
        each = (scale[:, None], zero[:, None].astype(np.float32))
        moved = np.rint(x / each[0]) + each[1]
        want = np.where(np.isnan(moved), 0, np.clip(moved, info.min, info.max)).astype(dtype)
        args = (scale, zero) if channels > 1 else (scale[0], zero[0])
        got = run("QuantizeLinear", x, *args, axis=1)
        np.testing.assert_array_equal(got, want)
        back = run("DequantizeLinear", got, *args, axis=1)
        np.testing.assert_array_equal(back, (want.astype(np.float32) - each[1]) * each[0])


@pytest.mark.parametrize("kinds", ["ffb", "fbf", "bff", "fff"])
def test_quantized_product_of_8_bit_floats(kinds):
    rng = np.random.default_rng(3)
    types = {"f": ml_dtypes.float8_e4m3fn, "b": np.int8}
    a, b = (rng.integers(-8, 8, shape).astype(types[kind])
            for shape, kind in zip([(2, 5, 9), (9, 7)], kinds, strict=False))  # fmt: skip
    scales = [np.float32(s) for s in (0.5, 0.25, 1.5)]
    zeros = [np.zeros((), types[kind]) for kind in kinds]
    got = run("QLinearMatMul", a, scales[0], zeros[0], b, scales[1], zeros[1], scales[2], zeros[2],
              opset=21)  # fmt: skip
    steps = np.matmul(a.astype(np.float32), b.astype(np.float32)) * np.float32(0.125) / scales[2]
    want = np.rint(steps).astype(np.int8) if kinds[2] == "b" else steps.astype(types["f"])
    np.testing.assert_array_equal(got.astype(np.float32), want.astype(np.float32))

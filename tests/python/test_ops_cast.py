# SPDX-License-Identifier: Apache-2.0
"""Cast and CastLike on cpu:0 between all numeric dtypes, against NumPy and ml_dtypes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import helper
from ops_numeric import BFLOAT16, FLOATS, INTEGERS, run

import chipdock

NATIVE = [np.bool_, *INTEGERS, *FLOATS]
FLOAT8 = [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2,
          ml_dtypes.float8_e5m2fnuz]  # fmt: skip
FLOAT6 = [ml_dtypes.float6_e2m3fn, ml_dtypes.float6_e3m2fn]


def cast(x: np.ndarray, dtype: Any, **attributes: Any) -> np.ndarray:
    to = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    opset = 28 if {np.dtype(dtype), x.dtype} & {np.dtype(t) for t in FLOAT6} else 25
    got = run("Cast", x, opset=opset, to=to, **attributes)
    assert got.dtype == np.dtype(dtype)
    return got


def same_bits(a: np.ndarray, b: np.ndarray) -> None:
    nan = np.isnan(a.astype(np.float32))
    np.testing.assert_array_equal(nan, np.isnan(b.astype(np.float32)))
    width = f"u{a.dtype.itemsize}"
    np.testing.assert_array_equal(a[~nan].view(width), b[~nan].view(width))


@pytest.mark.parametrize("target", NATIVE)
@pytest.mark.parametrize("source", NATIVE)
def test_values_that_fit_are_kept(source: Any, target: Any) -> None:
    x = np.array([0, 1, 2, 3, 100, 5] * 200, np.int64).astype(source)
    np.testing.assert_array_equal(
        cast(x, target).astype(np.float64), x.astype(target).astype(np.float64)
    )
    like = run("CastLike", x, np.zeros(1, target), opset=25)
    assert like.dtype == np.dtype(target)


@pytest.mark.parametrize("target", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32])
def test_integers_that_do_not_fit_lose_their_high_bits(target: Any) -> None:
    x = np.array([-(2**40) + 77, 300, -300, 2**31, 2**63 - 1, -1], np.int64)
    np.testing.assert_array_equal(cast(x, target), x.astype(target))


def test_floats_are_cut_off_towards_zero() -> None:
    x = np.array([1.9, -1.9, 0.5, -0.5, 127.99], np.float32)
    np.testing.assert_array_equal(cast(x, np.int8), [1, -1, 0, 0, 127])
    np.testing.assert_array_equal(cast(x, np.int64), [1, -1, 0, 0, 127])
    np.testing.assert_array_equal(
        cast(np.array([np.nan, 0, -0.0, 1e-45], np.float32), np.bool_), [True, False, False, True]
    )


@pytest.mark.parametrize("source", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("target", [np.float16, BFLOAT16, *FLOAT8])
def test_narrow_floats_are_rounded_once(source: Any, target: Any) -> None:
    # Halfway between two float16 or bfloat16, and a hair to either side: twice rounded goes wrong.
    half = np.array([1 + 2.0**-11, 1 + 3 * 2.0**-11, 1 + 2.0**-8, 1 + 3 * 2.0**-8, 1 + 2.0**-4])
    hair = 2.0**-40
    x = np.concatenate([half, half + hair, half - hair]) * 2.0**0
    if source == np.int64:
        x = np.round(np.concatenate([half, half + hair, half - hair]) * 2.0**52)
    got = cast(x.astype(source), target, saturate=0).astype(np.float64)
    exact = x.astype(source).astype(np.float64)
    info = ml_dtypes.finfo(target)
    fits = exact <= float(info.max)
    spacing = 2.0 ** (np.floor(np.log2(exact)) - info.nmant)
    want = np.round(exact / spacing) * spacing  # Half to even, exactly in float64.
    np.testing.assert_array_equal(got[fits], want[fits])


@pytest.mark.parametrize("target", [np.float16, BFLOAT16])
def test_half_types_over_all_scales(target: Any) -> None:
    bits = np.random.default_rng(1).integers(0, 2**32, 5000, dtype=np.uint64).astype(np.uint32)
    ends = np.array(
        [65504, 65519.99, 65520, 3.4e38, np.inf, -np.inf, np.nan, 2**-24, 2**-25, 3e-8], np.float32
    )
    x = np.concatenate([bits.view(np.float32), ends])
    with np.errstate(all="ignore"):
        same_bits(cast(x, target), x.astype(target))
    every = np.arange(2**16, dtype=np.uint16).view(target)
    same_bits(cast(every, np.float32), every.astype(np.float32))


@pytest.mark.parametrize("target", FLOAT8)
def test_float8_over_all_scales_with_and_without_saturation(target: Any) -> None:
    bits = np.random.default_rng(2).integers(0, 2**16, 2000, dtype=np.uint64)
    x = (bits << 16).astype(np.uint32).view(np.float32)
    x = np.concatenate(
        [x, np.float32([0, -0.0, 448, 464, 465, 57344, 61440, 1e-9, np.inf, -np.inf])]
    )
    largest = np.float32(ml_dtypes.finfo(target).max)
    with np.errstate(all="ignore"):
        same_bits(cast(x, target, saturate=0), x.astype(target))
        same_bits(cast(x, target), np.clip(x, -largest, largest).astype(target))
    every = np.arange(256, dtype=np.uint8).view(target)
    same_bits(cast(every, np.float32), every.astype(np.float32))


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("target", [ml_dtypes.float4_e2m1fn, *FLOAT6])
def test_floats_without_infinity_are_saturated_whatever_is_asked(
    target: Any, saturate: int
) -> None:
    bits = np.random.default_rng(3).integers(0, 2**16, 2000, dtype=np.uint64)
    x = (bits << 16).astype(np.uint32).view(np.float32)
    edges = [0, -0.0, 0.06, 0.0625, 0.09375, 7.5, 7.75, 28, 30, -1e9, np.inf, -np.inf]
    x = np.concatenate([x[~np.isnan(x)], np.float32(edges), np.linspace(-31, 31, 997)])
    x = x.astype(np.float32)
    with np.errstate(all="ignore"):
        same_bits(cast(x, target, saturate=saturate), x.astype(target))
        # No NaN either: as ml_dtypes, which onnx's reference evaluator casts by, has it.
        assert cast(np.float32([np.nan]), target).astype(np.float32) == 0


@pytest.mark.parametrize("target", [np.float16, BFLOAT16, np.float32, np.int8, np.bool_])
@pytest.mark.parametrize("source", FLOAT6)
def test_every_code_of_six_bits_is_read(source: Any, target: Any) -> None:
    every = np.arange(64, dtype=np.uint8).view(source)
    np.testing.assert_array_equal(
        cast(every, target).astype(np.float64), every.astype(np.float32).astype(target)
    )


@pytest.mark.parametrize("source", [np.float64, np.int64, np.uint8, BFLOAT16, *FLOAT8])
def test_six_bits_are_made_of_every_kind_of_number(source: Any) -> None:
    x = np.array([0, 1, 1.5, 2, 3, 5, 7, 9, 26, 27, 60] * 31).astype(source)
    for target in FLOAT6:
        same_bits(cast(x, target), x.astype(np.float32).astype(target))


@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("dtype", FLOAT6)
def test_weights_of_six_bits_are_read_as_onnx_stores_them(dtype: Any, raw: bool) -> None:
    want = np.arange(61, dtype=np.uint8).view(dtype)
    kind = helper.np_dtype_to_tensor_dtype(want.dtype)
    weight = helper.make_tensor("w", kind, [61], want, raw=raw)
    assert len(weight.raw_data if raw else weight.int32_data) == (46 if raw else 61)
    nodes = [helper.make_node("Cast", ["w"], ["y"], to=1)]
    y = helper.make_tensor_value_info("y", 1, [61])
    w = helper.make_tensor_value_info("w2", kind, [61])
    graph = helper.make_graph(
        [*nodes, helper.make_node("Optional", ["w"], ["o"]),
         helper.make_node("OptionalGetElement", ["o"], ["w2"])],
        "six", [], [y, w], [weight],
    )  # fmt: skip
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 28)])
    got = chipdock.load(proto).run({})
    np.testing.assert_array_equal(got["y"].numpy(), want.astype(np.float32))
    same_bits(got["w2"].numpy(), want)


def test_power_of_two_scale_rounds_as_asked() -> None:
    x = np.array([1, 1.5, 1.75, 2, 3, 0, np.nan, 2.0**-127, 3e38], np.float32)
    code = {
        m: cast(x, ml_dtypes.float8_e8m0fnu, round_mode=m).view(np.uint8)
        for m in ("up", "down", "nearest")
    }
    np.testing.assert_array_equal(code["up"][:5], [127, 128, 128, 128, 129])
    np.testing.assert_array_equal(code["down"][:5], [127, 127, 127, 128, 128])
    np.testing.assert_array_equal(code["nearest"][:5], [127, 128, 128, 128, 129])
    assert all(c[6] == 255 and c[8] == 254 for c in code.values())


@pytest.mark.parametrize("n", [1, 2, 5, 513, 40001])
@pytest.mark.parametrize("dtype", [ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.int2, ml_dtypes.uint2,
                                   ml_dtypes.float4_e2m1fn, *FLOAT6])  # fmt: skip
def test_sub_byte_types_survive_the_round_trip(dtype: Any, n: int) -> None:
    few = 4 if "2" in np.dtype(dtype).name[-2:] else 16
    codes = (np.arange(n) % few).astype(np.float32)
    x = codes - few // 2 if np.dtype(dtype).name.startswith("int") else codes
    x = np.minimum(x, 6) if np.dtype(dtype).name.startswith("float") else x
    narrow = cast(x, dtype)
    np.testing.assert_array_equal(narrow.astype(np.float32), x.astype(dtype).astype(np.float32))
    np.testing.assert_array_equal(cast(narrow, np.float32), narrow.astype(np.float32))

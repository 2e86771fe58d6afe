# SPDX-License-Identifier: Apache-2.0
"""Expand, Tile, Pad and their like on cpu:0, against ONNX's reference implementation.

They never look at values, so results are compared bit for bit, in every element width.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from movement_support import DTYPES, WIDTHS, check, data, ints, refuses

import chipdock

# Expand and Tile


@pytest.mark.parametrize("dtype", DTYPES)
def test_expand_broadcasts_both_ways(dtype: Any) -> None:
    for shape, to in [
        ((3, 1), (2, 1, 6)), ((1,), (4,)), ((), (2, 3)), ((3,), (1,)), ((2, 1, 4), (5, 1)),
        ((1, 3, 1), (2, 3, 4)), ((1,), (0,)), ((0, 1), (1, 3)), ((3, 4), ()),
    ]:  # fmt: skip
        opset = 13 if dtype == ml_dtypes.bfloat16 else [8, 13][len(to) % 2]  # bfloat16 is of 13
        check("Expand", data(shape, dtype), np.array(to, np.int64), opset=opset)


def test_expand_of_large_tensors() -> None:
    for shape, to in [((1, 1, 513), (40, 30, 513)), ((300, 1), (300, 400)), ((1,), (200_000,))]:
        x = data(shape)
        got = chipdock.run_op("Expand", x, ints(*to)).numpy()
        assert np.array_equal(got, np.broadcast_to(x, to))


def test_expand_refuses_what_does_not_broadcast() -> None:
    refuses("do not broadcast", "Expand", data((3,)), ints(4))
    refuses("negative", "Expand", data((3,)), ints(-1))
    refuses("2\\^62", "Expand", data((1,)), ints(2**40, 2**40))


@pytest.mark.parametrize("dtype", DTYPES)
def test_tile(dtype: Any) -> None:
    for shape, repeats in [
        ((2, 3), (2, 2)), ((4,), (3,)), ((1, 3), (5, 1)), ((2, 1, 3), (1, 4, 2)), ((2, 3), (0, 2)),
        ((0, 2), (3, 2)), ((3, 1), (1, 5)), ((2, 2, 2), (3, 1, 1)),
    ]:  # fmt: skip
        opset = 13 if dtype == ml_dtypes.bfloat16 else [7, 13][len(shape) % 2]
        check("Tile", data(shape, dtype), ints(*repeats), opset=opset)
    check("Tile", data((), dtype), np.zeros(0, np.int64))


def test_tile_refuses_bad_repeats() -> None:
    refuses("one entry for each dim", "Tile", data((2, 3)), ints(2))
    refuses("negative", "Tile", data((2, 3)), ints(2, -1))
    refuses("int64", "Tile", data((2, 3)), ints(2**62, 2**62))


# Pad


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
@pytest.mark.parametrize("dtype", WIDTHS)
def test_pad_in_every_mode(mode: str, dtype: Any) -> None:
    opset = 19 if mode == "wrap" else 13
    for case, (shape, pads) in enumerate([
        ((3, 4), (1, 2, 0, 3)), ((5,), (2, 4)), ((2, 3, 4), (0, 1, 0, 0, 1, 0)),
        ((2, 3, 4, 2), (0, 0, 1, 1, 0, 0, 2, 1)), ((4, 3), (0, 0, 0, 0)),
        ((3, 2, 5), (2, 0, 0, 1, 0, 0)),
        ((2, 3), (5, 7, 6, 8)),
    ]):  # fmt: skip
        x = data(shape, dtype, case)
        pairs = list(zip(pads[: len(shape)], pads[len(shape) :], strict=True))
        got = chipdock.run_op("Pad", x, ints(*pads), opset=opset, mode=mode).numpy()
        assert np.array_equal(got, np.pad(x, pairs, mode=mode)), (shape, pads)


def test_pad_with_value_axes_and_old_versions() -> None:
    x = data((3, 4))
    check("Pad", x, opset=7, pads=[1, 0, 0, 2], value=1.5)
    check("Pad", x, opset=7, pads=[1, 0, 0, 2], mode="edge")
    check("Pad", x, ints(1, 0, 0, 2), np.array(7, np.float32), opset=11)
    check("Pad", x, ints(1, 0, 0, 2), np.array(7, np.float32), opset=13)
    check("Pad", x, ints(1, 2), np.array(7, np.float32), ints(1), opset=18)
    check("Pad", x, ints(1, 2), None, ints(-2, dtype=np.int32), opset=19, mode="reflect")
    check("Pad", x, ints(1, 2, 3, 4), None, ints(1, 0), opset=21, mode="wrap")


def test_pad_of_ones_edges_and_empties() -> None:
    x = data((1, 2))
    got = chipdock.run_op("Pad", x, ints(3, 0, 2, 0), mode="reflect").numpy()
    assert np.array_equal(got, np.repeat(x, 6, axis=0))
    got = chipdock.run_op("Pad", data((0, 2)), ints(1, 0, 1, 0), np.array(3, np.float32)).numpy()
    assert np.array_equal(got, np.full((2, 2), 3, np.float32))
    assert chipdock.run_op("Pad", data(()), np.zeros(0, np.int64)).numpy().shape == ()
    refuses("is empty", "Pad", data((0, 2)), ints(1, 0, 1, 0), mode="edge")
    refuses("mode is around", "Pad", data((2,)), ints(1, 1), mode="around")


def test_pad_crops_with_negative_pads() -> None:
    x = data((4, 5))
    fill = np.array(9, np.float32)
    got = chipdock.run_op("Pad", x, ints(-1, 2, 1, -3), fill).numpy()
    want = np.pad(x[1:, :2], [(0, 1), (2, 0)], constant_values=9)
    assert np.array_equal(got, want)
    got = chipdock.run_op("Pad", x, ints(-4, 0, 2, 0), fill).numpy()
    assert np.array_equal(got, np.full((2, 5), 9, np.float32))
    refuses("take more", "Pad", x, ints(-3, 0, -2, 0), fill)
    refuses("entries", "Pad", x, ints(1, 2))


# Rearrangements


@pytest.mark.parametrize("dtype", WIDTHS)
def test_depth_to_space_and_back(dtype: Any) -> None:
    x = data((2, 12, 3, 5), dtype)
    check("DepthToSpace", x, opset=7, blocksize=2)
    for mode in ("DCR", "CRD"):
        check("DepthToSpace", x, opset=13, blocksize=2, mode=mode)
    check("SpaceToDepth", data((2, 3, 4, 6), dtype), opset=13, blocksize=2)
    check("SpaceToDepth", data((1, 2, 6, 3), dtype), opset=7, blocksize=3)
    check("DepthToSpace", data((0, 4, 2, 2), dtype), opset=13, blocksize=2)


def test_depth_to_space_refuses_what_does_not_divide() -> None:
    refuses("multiple", "DepthToSpace", data((1, 6, 2, 2)), blocksize=2)
    refuses("multiples", "SpaceToDepth", data((1, 6, 3, 2)), blocksize=2)


@pytest.mark.parametrize("dtype", DTYPES)
def test_trilu(dtype: Any) -> None:
    for shape in [(4, 5), (5, 3), (2, 3, 3), (0, 3), (3, 0)]:
        x = data(shape, dtype)
        for upper in (0, 1):
            check("Trilu", x, upper=upper, opset=14)
            for k in (-7, -2, 0, 1, 6):
                want = np.triu(x, k) if upper else np.tril(x, k)
                got = chipdock.run_op("Trilu", x, np.array(k, np.int64), upper=upper).numpy()
                assert np.array_equal(got, want), (shape, upper, k)


@pytest.mark.parametrize("dtype", WIDTHS)
def test_reverse_sequence(dtype: Any) -> None:
    x = data((4, 3, 2), dtype)
    check("ReverseSequence", x, ints(4, 1, 2), opset=10, time_axis=0, batch_axis=1)
    check("ReverseSequence", x, ints(3, 1, 2, 3), opset=10, time_axis=1, batch_axis=0)
    check("ReverseSequence", data((4, 4), dtype), ints(1, 2, 3, 4), time_axis=0, batch_axis=1)
    refuses("sequence_lens", "ReverseSequence", x, ints(5, 1, 2))

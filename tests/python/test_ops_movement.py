# SPDX-License-Identifier: Apache-2.0
"""Views, Transpose, Concat, Split and Slice on cpu:0, against ONNX's reference implementation.

They never look at values, so results are compared bit for bit, in every element width.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from movement_support import DTYPES, WIDTHS, check, data, ints, refuses

import chipdock

# Views


@pytest.mark.parametrize("opset", [7, 13, 14, 19, 21])
def test_reshape_takes_zero_and_minus_one(opset: int) -> None:
    x = data((2, 3, 4))
    for shape in [(24,), (4, 6), (-1,), (0, -1), (0, 0, 2, 2), (2, 1, -1, 4), (1, 24, 1)]:
        check("Reshape", x, ints(*shape), opset=opset)
    check("Reshape", data(()), np.zeros(0, np.int64), opset=opset)
    check("Reshape", data((1, 1)), np.zeros(0, np.int64), opset=opset)
    check("Reshape", data(()), ints(1, 1), opset=opset)
    check("Reshape", data((0, 3)), ints(0, 3, 1), opset=opset)


def test_reshape_with_allowzero_makes_empty_dims() -> None:
    check("Reshape", data((0, 3, 4)), ints(3, 4, 0), allowzero=1)
    refuses("0 and -1", "Reshape", data((0, 3)), ints(0, -1), allowzero=1)


def test_reshape_infers_minus_one_of_an_empty_batch() -> None:
    assert chipdock.run_op("Reshape", data((0, 3, 4)), ints(0, -1)).numpy().shape == (0, 12)
    assert chipdock.run_op("Reshape", data((0, 3, 4)), ints(-1, 12)).numpy().shape == (0, 12)


def test_reshape_refuses_what_does_not_fit() -> None:
    x = data((2, 3, 4))
    refuses("-1 twice", "Reshape", x, ints(-1, -1))
    refuses("24 elements.*with 25", "Reshape", x, ints(5, 5))
    refuses("no extent in place of -1", "Reshape", x, ints(5, -1))
    refuses("has -2", "Reshape", x, ints(-2, 12))
    refuses("copies dim 3", "Reshape", x, ints(2, 3, 4, 0))
    refuses("2\\^62", "Reshape", x, ints(2**40, 2**40))


def test_squeeze_by_attribute_and_by_input() -> None:
    x = data((1, 3, 1, 2, 1))
    for opset in (7, 11):
        check("Squeeze", x, opset=opset)
        check("Squeeze", x, opset=opset, axes=[0, 2])
    check("Squeeze", x, opset=11, axes=[-1, 0])
    for axes in [(0,), (0, 2), (-1, 0), (-3,)]:
        check("Squeeze", x, ints(*axes), opset=13)
    check("Squeeze", x, opset=13)
    check("Squeeze", data((1, 1)), opset=13)
    check("Squeeze", data((0, 1)), ints(1), opset=21)
    refuses("extent 3, must be 1", "Squeeze", x, ints(1))
    refuses("twice", "Squeeze", x, ints(0, -5))
    refuses("outside", "Squeeze", x, ints(5))


def test_unsqueeze_by_attribute_and_by_input() -> None:
    x = data((3, 2))
    check("Unsqueeze", x, opset=7, axes=[0, 2])
    check("Unsqueeze", x, opset=11, axes=[-1, 1])
    for axes in [(0,), (1, 3), (3, 0), (-1,), (-4, -1), (2,)]:
        check("Unsqueeze", x, ints(*axes), opset=13)
    check("Unsqueeze", data(()), ints(0), opset=13)
    check("Unsqueeze", data((0,)), ints(0), opset=21)
    refuses("twice", "Unsqueeze", x, ints(0, -4))
    refuses("outside", "Unsqueeze", x, ints(3))


@pytest.mark.parametrize("opset", [7, 9, 11, 13])
def test_flatten(opset: int) -> None:
    x = data((2, 3, 4, 5))
    for axis in range(5) if opset < 11 else range(-4, 5):
        check("Flatten", x, opset=opset, axis=axis)
    check("Flatten", data((7,)), opset=opset, axis=0)
    check("Flatten", data((2, 0, 3)), opset=opset, axis=1)


def test_flatten_refuses_an_axis_outside() -> None:
    refuses("axis 3 is outside", "Flatten", data((2, 3)), axis=3)


@pytest.mark.parametrize("dtype", DTYPES)
def test_identity_and_dropout_copy_every_dtype(dtype: Any) -> None:
    for shape in [(), (0,), (2, 3)]:
        x = data(shape, dtype)
        assert chipdock.run_op("Identity", x).numpy().tobytes() == x.tobytes()


def test_dropout_in_inference_keeps_all() -> None:
    x = data((3, 4))
    for opset in (7, 10):
        check("Dropout", x, opset=opset, ratio=0.7)
    check("Dropout", x, opset=10, ratio=0.7, outputs=2)
    check("Dropout", x, np.array(0.5, np.float32), opset=13)
    check("Dropout", x, np.array(0.5, np.float32), np.array(False), opset=13, outputs=2)


# Shape and Size


def test_shape_with_start_and_end() -> None:
    x = data((2, 3, 4))
    check("Shape", x, opset=7)
    for start in (-5, -2, 0, 1, 3, 7):
        for end in (-5, -1, 0, 2, 3, 9):
            want = np.array(x.shape[start:end], np.int64)
            got = chipdock.run_op("Shape", x, opset=15, start=start, end=end).numpy()
            assert got.dtype == np.int64
            assert got.tolist() == want.tolist()
    check("Shape", data(()), opset=15)
    check("Shape", data((0, 2)), opset=15, start=0)


def test_size() -> None:
    for shape in [(), (0, 3), (2, 3, 4)]:
        check("Size", data(shape), opset=13)


# Transpose


@pytest.mark.parametrize("dtype", DTYPES)
def test_transpose_of_every_dtype(dtype: Any) -> None:
    check("Transpose", data((5, 7), dtype))
    check("Transpose", data((3, 2, 5), dtype), perm=[1, 2, 0])


@pytest.mark.parametrize("rank", range(1, 6))
def test_transpose_of_random_permutations(rank: int) -> None:
    rng = np.random.default_rng(rank)
    for case in range(12):
        shape = tuple(int(d) for d in rng.choice([1, 2, 3, 5, 8], size=rank))
        perm = [int(p) for p in rng.permutation(rank)]
        x = data(shape, WIDTHS[case % len(WIDTHS)], case)
        check("Transpose", x, opset=[7, 13, 21][case % 3], perm=perm)


@pytest.mark.parametrize("dtype", WIDTHS)
def test_transpose_of_large_matrices(dtype: Any) -> None:
    # Past one tile and one thread, with rests on both sides.
    for shape, perm in [
        ((131, 257), (1, 0)), ((2, 67, 3, 129), (0, 3, 1, 2)), ((3, 129, 2, 65), (0, 2, 3, 1)),
        ((9, 70, 66), (2, 1, 0)), ((2, 1025, 3), (0, 2, 1)), ((40, 12, 130), (1, 0, 2)),
    ]:  # fmt: skip
        x = data(shape, dtype)
        got = chipdock.run_op("Transpose", x, perm=perm).numpy()
        assert np.array_equal(got, x.transpose(perm)), (shape, perm)


def test_transpose_of_empty_and_full_rank() -> None:
    check("Transpose", data((0, 3, 2)), perm=[2, 0, 1])
    check("Transpose", data((3, 0)))
    check("Transpose", data(()))
    check("Transpose", data((1,) * 30 + (2, 3)))


def test_transpose_refuses_a_wrong_perm() -> None:
    refuses("twice", "Transpose", data((2, 3)), perm=[0, 0])
    refuses("needs 2", "Transpose", data((2, 3)), perm=[0, 1, 2])
    refuses("outside", "Transpose", data((2, 3)), perm=[0, 2])


# Concat and Split


@pytest.mark.parametrize("dtype", DTYPES)
def test_concat_on_every_axis(dtype: Any) -> None:
    for axis in (0, 1, 2, -1):
        shapes = [[2, 3, 4], [2, 3, 4], [2, 3, 4]]
        shapes[1][axis] = 1
        shapes[2][axis] = 0
        check(
            "Concat", *[data(tuple(s), dtype, i) for i, s in enumerate(shapes)], axis=axis, opset=13
        )


def test_concat_of_many_large_and_few() -> None:
    check("Concat", *[data((2, 3), seed=i) for i in range(40)], axis=1, opset=11)
    check("Concat", data((5,)), axis=0, opset=7)
    check("Concat", data((0, 2)), data((0, 3)), axis=1)
    parts = [data((64, n, 33), seed=n) for n in (17, 1, 60)]
    check("Concat", *parts, axis=1)
    check("Concat", *[p.transpose(0, 2, 1).copy() for p in parts], axis=2)


def test_concat_refuses_shapes_that_differ() -> None:
    refuses(r"input 1 has shape \[2, ?4\]", "Concat", data((2, 3)), data((2, 4)), axis=0)
    refuses("outside", "Concat", data((2, 3)), data((2, 3)), axis=2)
    refuses("must be the same|dtype", "Concat", data((2,)), data((2,), np.int32), axis=0)


@pytest.mark.parametrize("dtype", WIDTHS)
def test_split_by_sizes(dtype: Any) -> None:
    x = data((4, 6, 5), dtype)
    for opset in (7, 11):
        check("Split", x, opset=opset, outputs=3, axis=1, split=[1, 3, 2])
    check("Split", x, opset=11, outputs=2, axis=-1, split=[5, 0])
    check("Split", x, ints(1, 3, 2), opset=13, outputs=3, axis=1)
    check("Split", x, ints(0, 4), opset=18, outputs=2, axis=0)
    check("Split", data((0, 2), dtype), ints(1, 1), opset=18, outputs=2, axis=1)


def test_split_into_equal_and_uneven_parts() -> None:
    x = data((6, 7))
    check("Split", x, opset=7, outputs=3)
    check("Split", x, opset=13, outputs=2)
    check("Split", x, opset=18, outputs=3, num_outputs=3)
    check("Split", x, opset=18, outputs=2, axis=1, num_outputs=2)
    check("Split", x, opset=18, outputs=4, axis=1, num_outputs=4)
    parts = chipdock.run_op("Split", data((5,)), opset=18, outputs=4, num_outputs=4)
    assert [p.numpy().shape[0] for p in parts] == [2, 2, 1, 0]


def test_split_refuses_wrong_sizes() -> None:
    x = data((6,))
    refuses("sum 6", "Split", x, ints(1, 2), outputs=2, opset=13)
    refuses("negative", "Split", x, ints(-1, 7), outputs=2, opset=13)
    refuses("equal outputs", "Split", data((5,)), outputs=2, opset=13)


# Slice


def sliced(extent: int, start: int, end: int, step: int) -> list[int]:
    """Positions by the operator's text; numpy differs for a start below 0 with a negative step."""
    start, end = (v + extent if v < 0 else v for v in (start, end))
    if step > 0:
        return list(range(min(max(start, 0), extent), min(max(end, 0), extent), step))
    return list(range(min(max(start, 0), extent - 1), min(max(end, -1), extent - 1), step))


@pytest.mark.parametrize("seed", range(8))
def test_slice_at_random(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for case in range(25):
        rank = int(rng.integers(1, 5))
        x = data(tuple(int(d) for d in rng.integers(0, 7, rank)), WIDTHS[case % len(WIDTHS)], case)
        count = int(rng.integers(1, rank + 1))
        axes = rng.permutation(rank)[:count]
        axes = np.where(rng.random(count) < 0.5, axes, axes - rank)
        starts, ends = rng.integers(-9, 9, (2, count))
        steps = rng.choice([-3, -2, -1, 1, 2, 3], count)
        kind = np.int32 if case % 2 else np.int64
        steering = [v.astype(kind) for v in (starts, ends, axes, steps)]
        got = chipdock.run_op("Slice", x, *steering, opset=[10, 11, 13][case % 3]).numpy()
        want = x
        for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
            want = want.take(sliced(x.shape[axis], start, end, step) or np.zeros(0, int), axis)
        assert got.shape == want.shape
        assert np.array_equal(got, want), (x.shape, steering)


def test_slice_with_extreme_bounds_and_steps() -> None:
    x = data((5, 4))
    low, high = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    for start, end, step in [
        (0, high, 1), (low, high, 1), (high, low, -1), (-1, low, -1), (0, high, high),
        (4, low, low),
        (low, high, high), (3, 3, 1), (4, 1, 1), (1, 4, -1), (high, high, 1), (low, low, 1),
        (-9, low, -1),
    ]:  # fmt: skip
        want = x[sliced(5, start, end, step)]
        got = chipdock.run_op("Slice", x, ints(start), ints(end), ints(0), ints(step)).numpy()
        assert np.array_equal(got, want), (start, end, step)


def test_slice_by_attributes() -> None:
    x = data((5, 4, 3))
    check("Slice", x, opset=7, starts=[1, -3], ends=[4, 100], axes=[0, 1])
    check("Slice", x, opset=9, starts=[1, 0, -2], ends=[-1, 2, 3])
    check("Slice", x, ints(1), ints(3), opset=10)
    check("Slice", x, ints(1), ints(3), None, ints(2), opset=13)


def test_slice_of_a_large_tensor() -> None:
    x = data((64, 65, 66))
    got = chipdock.run_op("Slice", x, ints(60, 1), ints(1, 65), ints(0, 2), ints(-2, 3)).numpy()
    assert np.array_equal(got, x[60:1:-2, :, 1:65:3])
    got = chipdock.run_op("Slice", x, ints(1), ints(60), ints(1)).numpy()
    assert np.array_equal(got, x[:, 1:60])


def test_slice_refuses_bad_arguments() -> None:
    x = data((5, 4))
    refuses("is 0", "Slice", x, ints(0), ints(1), ints(0), ints(0))
    refuses("twice", "Slice", x, ints(0, 0), ints(1, 1), ints(0, -2))
    refuses("equal length", "Slice", x, ints(0, 0), ints(1))
    refuses("outside", "Slice", x, ints(0), ints(1), ints(2))


@pytest.mark.parametrize("dtype", ["int4", "uint4", "int2", "uint2", "float4_e2m1fn"])
def test_elements_below_a_byte_are_moved(dtype):
    kind = np.dtype(getattr(ml_dtypes, dtype))
    bits = 2 if dtype[-1] == "2" else 4
    x = np.arange(15, dtype=np.uint8) % 2**bits
    if dtype.startswith("int"):
        x = (x.astype(np.int8) << (8 - bits)) >> (8 - bits)
    x = x.astype(np.uint8).view(kind).reshape(3, 5)
    got = chipdock.run_op("Transpose", x).numpy()
    assert got.tolist() == x.T.tolist()
    padded = chipdock.run_op("Pad", x, np.int64([0, 1, 1, 0])).numpy()
    assert padded.shape == (4, 6)
    assert padded[:3, 1:].tolist() == x.tolist()
    assert not padded[:, 0].astype(np.float32).any()
    assert not padded[3].astype(np.float32).any()

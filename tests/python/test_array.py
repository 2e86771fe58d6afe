# SPDX-License-Identifier: Apache-2.0
"""Array: shapes, dtypes, slices as views, and where a copy is made and where not."""

import gc

import ml_dtypes
import numpy as np
import pytest
from api_support import PLAIN_DTYPES, open_fake

import chipdock

BYTES = [
    "bfloat16",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
]
SMALL = {
    "int4": 4, "uint4": 4, "int2": 2, "uint2": 2, "float4_e2m1fn": 4, "float6_e2m3fn": 6,
    "float6_e3m2fn": 6,
}  # fmt: skip


def data(dtype, shape):
    size = int(np.prod(shape))
    return (np.arange(size) % 2).astype(np.dtype(dtype)).reshape(shape)


@pytest.fixture(scope="module")
def hidden():
    """A device whose memory the host cannot see."""
    device = open_fake("nano")
    assert not device.host_visible
    return device


@pytest.mark.parametrize("dtype", PLAIN_DTYPES, ids=lambda d: np.dtype(d).name)
def test_plain_dtypes_come_back_as_they_went(dtype):
    source = data(dtype, (3, 5))
    array = chipdock.array(source)
    assert array.dtype == np.dtype(dtype)
    assert array.shape == (3, 5)
    assert array.nbytes == source.nbytes
    np.testing.assert_array_equal(array.numpy(), source)


@pytest.mark.parametrize("name", BYTES)
def test_small_floats_keep_every_bit_pattern(name):
    dtype = np.dtype(getattr(ml_dtypes, name))
    source = np.arange(256, dtype=np.uint8).repeat(dtype.itemsize).view(dtype)
    array = chipdock.array(source)
    assert array.dtype == dtype
    assert array.numpy().tobytes() == source.tobytes()


@pytest.mark.parametrize("name", SMALL)
def test_sub_byte_types_are_packed_low_part_first(name):
    dtype = np.dtype(getattr(ml_dtypes, name))
    bits = SMALL[name]
    codes = np.arange(1 << bits, dtype=np.uint8)[
        : (1 << bits) - 1
    ]  # an odd count: the last byte is half full
    if name in ("int4", "int2"):  # ml_dtypes keeps the sign extended
        codes = np.where(codes >> (bits - 1), codes | (0xFF << bits & 0xFF), codes).astype(np.uint8)
    source = codes.view(dtype)
    array = chipdock.array(source)
    assert array.dtype == dtype
    assert array.nbytes == -(-source.size * bits // 8)
    assert array.numpy().tobytes() == source.tobytes()


@pytest.mark.parametrize("name", SMALL)
def test_sub_byte_types_are_not_taken_for_int8(name):
    dtype = np.dtype(getattr(ml_dtypes, name))
    assert chipdock.empty((3,), dtype).dtype == dtype
    assert chipdock.array(np.zeros(3, dtype)).dtype == dtype


def test_scalar_and_empty_arrays():
    scalar = chipdock.array(np.float32(2.5))
    assert (scalar.shape, scalar.ndim, scalar.size, scalar.nbytes) == ((), 0, 1, 4)
    assert scalar.numpy() == np.float32(2.5)
    with pytest.raises(TypeError, match="rank 0"):
        len(scalar)
    for shape in [(0,), (3, 0, 2)]:
        empty = chipdock.array(np.zeros(shape, np.int32))
        assert (empty.shape, empty.size, empty.nbytes) == (shape, 0, 0)
        assert empty.numpy().shape == shape
        assert empty.numpy().dtype == np.int32
    assert len(chipdock.array(np.zeros((3, 0)))) == 3


def test_values_from_python_numbers_and_lists():
    assert chipdock.array([[1, 2], [3, 4]]).dtype == np.int64
    assert chipdock.array([1.5]).dtype == np.float64
    assert chipdock.array(True).dtype == np.bool_


@pytest.mark.parametrize(
    "bad",
    [
        np.array(["a"]),
        np.array([object()]),
        np.zeros(2, ">f4"),
        np.zeros(2, "M8[s]"),
        np.zeros(2, [("a", "f4")]),
        np.zeros(2, np.longdouble),
    ],
    ids=["text", "object", "byte order", "dates", "record", "long double"],
)
def test_dtypes_that_no_device_holds_are_named(bad):
    with pytest.raises(chipdock.errors.InvalidArgumentError, match=r"dtype .* cannot be held"):
        chipdock.array(bad)


def test_array_copies_its_source():
    source = np.arange(4.0)
    array = chipdock.array(source)
    source[:] = 9
    np.testing.assert_array_equal(array.numpy(), [0, 1, 2, 3])


@pytest.mark.parametrize("order", ["F", "strided", "reversed"])
def test_sources_of_any_memory_layout(order):
    base = np.arange(24.0).reshape(4, 6)
    source = {"F": np.asfortranarray(base), "strided": base[::2, 1::2], "reversed": base[::-1]}[
        order
    ]
    np.testing.assert_array_equal(chipdock.array(source).numpy(), source)


def test_numpy_shares_memory_of_the_cpu_device():
    array = chipdock.array(np.arange(4, dtype=np.float32))
    view = array.numpy()
    view[1] = 7
    assert array.numpy()[1] == 7
    assert not np.shares_memory(array.copy_to_numpy(), view)
    np.testing.assert_array_equal(array.copy_to_numpy(), [0, 7, 2, 3])


def test_numpy_view_outlives_the_array():
    view = chipdock.array(np.arange(1000)).numpy()
    gc.collect()
    np.testing.assert_array_equal(view, np.arange(1000))


KEYS = [
    np.s_[1],
    np.s_[-1],
    np.s_[1:3],
    np.s_[:, 2],
    np.s_[..., 0],
    np.s_[::2],
    np.s_[::-1],
    np.s_[3:0:-2, ::-1],
    np.s_[1, 2, 3],
    np.s_[1:1],
    np.s_[..., ::-2],
    np.s_[1, ..., 2],
    np.s_[:, 1:, -1],
    np.s_[100:],
    np.s_[()],
    np.s_[...],
]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_slices_are_views_that_numpy_shares(key):
    source = np.arange(4 * 5 * 6, dtype=np.int32).reshape(4, 5, 6)
    array = chipdock.array(source)
    view = array[key]
    want = source[key]
    assert view.shape == want.shape
    np.testing.assert_array_equal(view.numpy(), want)
    np.testing.assert_array_equal(view.copy_to_numpy(), want)
    if want.size:
        assert np.shares_memory(view.numpy(), array.numpy())
        assert [s * 4 for s, n in zip(view.strides, view.shape, strict=True) if n > 1] == [
            s for s, n in zip(np.asarray(want).strides, want.shape, strict=True) if n > 1
        ]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_slices_of_memory_that_the_host_cannot_see(hidden, key):
    source = np.arange(4 * 5 * 6, dtype=np.int32).reshape(4, 5, 6)
    array = chipdock.array(source, hidden)
    np.testing.assert_array_equal(array[key].numpy(), source[key])
    assert array[key].device is hidden


def test_slices_of_slices():
    source = np.arange(60).reshape(6, 10)
    view = chipdock.array(source)[::-1][1:5][:, ::3][::2, -2]
    np.testing.assert_array_equal(view.numpy(), source[::-1][1:5][:, ::3][::2, -2])


def test_a_contiguous_slice_knows_it():
    array = chipdock.array(np.zeros((4, 6)))
    assert array[1:3].is_contiguous
    assert array[2].is_contiguous
    assert not array[:, 1:].is_contiguous
    assert array[:, 1:].contiguous().is_contiguous


def test_writing_through_a_view_is_seen_by_its_base():
    array = chipdock.array(np.zeros((3, 2), np.float32))
    array[1].copy_from(np.float32([5, 6]))
    np.testing.assert_array_equal(array.numpy(), [[0, 0], [5, 6], [0, 0]])


def test_a_view_keeps_its_base_alive():
    view = chipdock.array(np.arange(100000))[10:20]
    gc.collect()
    chipdock.array(np.zeros(100000, np.int64))  # would land on freed memory
    np.testing.assert_array_equal(view.numpy(), np.arange(10, 20))


@pytest.mark.parametrize(
    ("key", "error"),
    [
        (4, IndexError),
        (-5, IndexError),
        ((0, 0, 0), IndexError),
        ("a", TypeError),
        (None, TypeError),
        (1.5, TypeError),
        (True, TypeError),
        ((0, False), TypeError),
        (np.True_, TypeError),
        ([0, 1], TypeError),
        (np.s_[::0], ValueError),
        ((..., ...), (IndexError, chipdock.errors.InvalidArgumentError)),
        (2**70, (IndexError, OverflowError)),
    ],
    ids=str,
)
def test_bad_keys_are_refused(key, error):
    array = chipdock.array(np.zeros((4, 4)))
    with pytest.raises(error):
        array[key]


def test_iteration_ends():
    assert [row.shape for row in chipdock.array(np.zeros((3, 2)))] == [(2,)] * 3
    assert list(chipdock.array(np.zeros((0, 2)))) == []


def test_an_array_of_rank_0_cannot_be_iterated():
    with pytest.raises(TypeError, match="iteration over an array of rank 0"):
        iter(chipdock.array(1.0))


def test_sub_byte_slices_that_would_split_a_byte_are_refused():
    array = chipdock.array(np.zeros((4, 3), ml_dtypes.int4))
    with pytest.raises(chipdock.errors.UnsupportedError, match="share bytes"):
        array[1:]
    assert array[:2].shape == (2, 3)


def test_copy_from_wants_the_very_dtype_and_shape():
    array = chipdock.empty((2, 3), np.float32)
    array.copy_from(np.ones((2, 3), np.float32))
    np.testing.assert_array_equal(array.numpy(), np.ones((2, 3)))
    for bad in (np.ones((2, 3)), np.ones((3, 2), np.float32), np.ones((2, 3), np.int32)):
        with pytest.raises(chipdock.errors.InvalidArgumentError, match="copy_from got"):
            array.copy_from(bad)
    with pytest.raises(chipdock.errors.UnsupportedError, match="contiguous"):
        array[:, ::2].copy_from(np.ones((2, 2), np.float32))
    np.testing.assert_array_equal(array.numpy(), np.ones((2, 3)))


def test_copy_from_packs_sub_byte_values():
    array = chipdock.empty((5,), ml_dtypes.int4)
    values = np.array([-8, -1, 0, 3, 7]).astype(ml_dtypes.int4)
    array.copy_from(values)
    np.testing.assert_array_equal(array.numpy().astype(int), values.astype(int))


def test_to_moves_between_devices(hidden):
    source = np.arange(6, dtype=np.float32).reshape(2, 3)
    there = chipdock.array(source).to(hidden)
    assert there.device is hidden
    back = there[:, ::-1].to(chipdock.device("cpu:0"))
    assert back.device.name == "cpu:0"
    np.testing.assert_array_equal(back.numpy(), source[:, ::-1])
    assert chipdock.array(back, hidden).device is hidden


@pytest.mark.parametrize("shape", [(-1,), (2, -3)])
def test_empty_refuses_negative_extents(shape):
    with pytest.raises(chipdock.errors.InvalidArgumentError):
        chipdock.empty(shape)


@pytest.mark.parametrize("shape", [(2**62, 4), (2**40, 2**40), (2**31,) * 3, (2**62,)])
def test_shapes_that_overflow_or_cannot_fit(shape):
    with pytest.raises((chipdock.errors.InvalidArgumentError, chipdock.errors.OutOfMemoryError)):
        chipdock.empty(shape, np.float64)
    assert chipdock.empty((2,)).size == 2  # nothing is broken by it


def test_out_of_memory_is_also_pythons(hidden):
    with pytest.raises(MemoryError, match="OUT_OF_MEMORY"):
        chipdock.empty((2**50,), np.uint8, hidden)


def test_host_index_types():
    array = chipdock.array(np.arange(5))
    assert array[np.int64(2)].numpy() == 2
    np.testing.assert_array_equal(array[np.int8(1) : np.int8(3)].numpy(), [1, 2])

# SPDX-License-Identifier: Apache-2.0
"""DFT of lengths that are powers of two, primes and one; STFT; Einsum; boxes; sampling."""

import ml_dtypes
import numpy as np
import pytest

import chipdock
from chipdock.errors import InvalidArgumentError


def run(op, *inputs, **attributes):
    return chipdock.run_op(op, *inputs, **attributes).numpy()


@pytest.mark.parametrize("length", [1, 2, 3, 8, 97, 360])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_transform_and_back(length, dtype):
    rng = np.random.default_rng(length)
    x = rng.normal(size=(2, length, 3, 2)).astype(dtype)
    tolerance = 1e-12 if dtype == np.float64 else 1e-5
    got = run("DFT", x, None, np.int64(1))
    want = np.fft.fft(x[..., 0].astype(np.float64) + 1j * x[..., 1], axis=1)
    np.testing.assert_allclose(got[..., 0] + 1j * got[..., 1], want, atol=tolerance * length)
    back = run("DFT", got, None, np.int64(1), inverse=1)
    np.testing.assert_allclose(back, x, atol=tolerance * 10)


@pytest.mark.parametrize("shape", [(21, 64), (3, 100), (17, 1), (1, 2048), (9, 27)], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
def test_many_lines_are_transformed_alike(shape, dtype):
    x = np.random.default_rng(2).normal(size=(*shape, 2)).astype(dtype)
    wide = x.astype(np.float64)
    unit = {8: 1e-13, 4: 1e-6}.get(x.dtype.itemsize, 1e-3 if dtype == np.float16 else 8e-3)
    for axis in (0, 1):
        got = run("DFT", x, None, np.int64(axis)).astype(np.float64)
        want = np.fft.fft(wide[..., 0] + 1j * wide[..., 1], axis=axis)
        tolerance = unit * np.abs(want).max()
        np.testing.assert_allclose(got[..., 0] + 1j * got[..., 1], want, atol=tolerance)
        cut = run("DFT", x[..., :1].copy(), np.int64(shape[axis]), np.int64(axis), onesided=1)
        half = np.fft.rfft(wide[..., 0], axis=axis)
        cut = cut.astype(np.float64)
        np.testing.assert_allclose(cut[..., 0] + 1j * cut[..., 1], half, atol=tolerance)


@pytest.mark.parametrize("length", [7, 8])
def test_one_side_of_a_real_signal_and_back(length):
    x = np.random.default_rng(0).normal(size=(2, length, 1))
    half = run("DFT", x, onesided=1)
    want = np.fft.rfft(x[..., 0])
    np.testing.assert_allclose(half[..., 0] + 1j * half[..., 1], want, atol=1e-12)
    back = run("DFT", half, np.int64(length), onesided=1, inverse=1)
    np.testing.assert_allclose(back, x, atol=1e-12)


def test_frames_are_weighed_by_the_window():
    x = np.random.default_rng(1).normal(size=(2, 20, 1))
    window = np.hanning(8)
    got = run("STFT", x, np.int64(3), window, np.int64(8))
    assert got.shape == (2, 5, 5, 2)
    for frame in range(5):
        want = np.fft.rfft(x[:, 3 * frame : 3 * frame + 8, 0] * window)
        np.testing.assert_allclose(got[:, frame, :, 0], want.real, atol=1e-12)
        np.testing.assert_allclose(got[:, frame, :, 1], want.imag, atol=1e-12)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(3, 4), (4, 5)]),
        ("ij,jk", [(3, 4), (4, 5)]),
        ("bij , bjk -> bik", [(2, 3, 4), (2, 4, 5)]),
        ("...ij,...jk->...ik", [(2, 1, 3, 4), (3, 4, 5)]),
        ("ii->i", [(4, 4)]),
        ("ii", [(4, 4)]),
        ("ij->ji", [(2, 3)]),
        ("ij->", [(2, 3)]),
        ("i,j,k->kij", [(2,), (3,), (4,)]),
        ("...a->...", [(2, 3, 4)]),
        ("ijki->kij", [(3, 4, 5, 3)]),
        ("a...b->b...a", [(2, 1, 4, 3)]),
        ("ij->ji", [(0, 3)]),
    ],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int32])
def test_einsum_agrees_with_numpy(equation, shapes, dtype):
    rng = np.random.default_rng(3)
    arrays = [rng.integers(-9, 9, s).astype(dtype) for s in shapes]
    np.testing.assert_array_equal(
        run("Einsum", *arrays, equation=equation), np.einsum(equation, *arrays)
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(17, 33), (33, 19)]),
        ("ij,jk->ki", [(17, 33), (33, 19)]),
        ("ij,kj->ik", [(17, 33), (19, 33)]),
        ("ji,jk->ik", [(33, 17), (33, 1)]),
        ("i,ij->j", [(33,), (33, 40)]),
        ("i,i->", [(300,), (300,)]),
        ("i,j->ij", [(40,), (30,)]),
        ("bqhd,bkhd->bhqk", [(2, 9, 3, 8), (2, 7, 3, 8)]),
        ("bhqk,bkhd->bqhd", [(2, 3, 9, 7), (2, 7, 3, 8)]),
        ("btd,dhk->bthk", [(2, 5, 12), (12, 3, 4)]),
        ("bthk,hkd->btd", [(2, 5, 3, 4), (3, 4, 12)]),
        ("bthk,khd->btd", [(2, 5, 3, 4), (4, 3, 12)]),
        ("abcd,cbe->aed", [(3, 4, 5, 6), (5, 4, 7)]),
        ("...ij,...jk->...ik", [(2, 1, 9, 8), (3, 8, 7)]),
        ("...ij,...jk->ik...", [(2, 3, 9, 8), (1, 3, 8, 7)]),
        ("bi,bi->b", [(5, 90), (5, 90)]),
        ("ab,ab->ab", [(9, 90), (9, 90)]),
        ("ijk,jl->il", [(6, 7, 8), (7, 9)]),
        ("iij,jk->ik", [(6, 6, 7), (7, 9)]),
        ("ij,jk,kl->il", [(6, 7), (7, 8), (8, 9)]),
        ("ij,jk->ik", [(6, 0), (0, 9)]),
    ],
)
def test_products_of_einsum(equation, shapes, dtype):
    rng = np.random.default_rng(8)
    # Small integers: sums are exact in every dtype but for the last rounding.
    arrays = [rng.integers(-3, 4, s).astype(dtype) for s in shapes]
    got = run("Einsum", *arrays, equation=equation)
    want = np.einsum(equation, *(a.astype(np.float64) for a in arrays))
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, want.astype(dtype))


def test_a_label_with_two_extents_is_refused():
    with pytest.raises(chipdock.errors.InvalidArgumentError, match="'jk' has the extent 3 where"):
        run("Einsum", np.ones((2, 4)), np.ones((3, 2)), equation="ij,jk->ik")


@pytest.mark.parametrize("most", [0, 1, 9])
def test_boxes_are_suppressed_by_better_ones_of_their_class(most):
    boxes = np.float32([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 5, 1, 6]]])
    scores = np.float32([[[0.9, 0.8, 0.1], [0.2, 0.3, 0.4]]])
    got = run("NonMaxSuppression", boxes, scores, np.int64([most]), np.float32([0.5]))
    want = [[0, 0, 0], [0, 0, 2], [0, 1, 2], [0, 1, 1]]
    if most == 1:
        want = [want[0], want[2]]
    assert got.tolist() == ([] if most == 0 else want)


@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_a_grid_of_pixel_centres_gives_the_image_back(mode, align):
    x = np.random.default_rng(4).normal(size=(2, 3, 4, 5))
    rows, columns = np.meshgrid(np.arange(4), np.arange(5), indexing="ij")
    if align:
        grid = np.stack([columns / 2 - 1, rows / 1.5 - 1], -1)
    else:
        grid = np.stack([(2 * columns + 1) / 5 - 1, (2 * rows + 1) / 4 - 1], -1)
    grid = np.broadcast_to(grid, (2, *grid.shape)).copy()
    got = run("GridSample", x, grid, mode=mode, align_corners=align)
    np.testing.assert_allclose(got, x, atol=1e-12)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_grid_values_far_outside_or_not_a_number_do_no_harm(mode, padding):
    grid = np.array([[[[1e30, 0], [-1e30, 1e30]], [[np.nan, np.inf], [-np.inf, 0]]]])
    got = run("GridSample", np.ones((1, 1, 3, 3)), grid, mode=mode, padding_mode=padding)
    assert got.shape == (1, 1, 2, 2)
    assert np.isfinite(got).all()


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_the_parts_of_complex_images_are_sampled_alone(dtype, mode):
    rng = np.random.default_rng(6)
    x = (rng.normal(size=(2, 3, 4, 5)) + 1j * rng.normal(size=(2, 3, 4, 5))).astype(dtype)
    grid = rng.uniform(-1.2, 1.2, (2, 3, 7, 2)).astype(np.float32)
    got = run("GridSample", x, grid, mode=mode)
    assert got.dtype == dtype
    parts = [run("GridSample", part.copy(), grid, mode=mode) for part in (x.real, x.imag)]
    np.testing.assert_array_equal(got, parts[0] + 1j * parts[1])


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.bool_, np.int8, np.float16])
def test_the_nearest_pixel_keeps_its_bits(dtype):
    x = np.arange(6).reshape(1, 1, 2, 3).astype(dtype)
    if np.dtype(dtype).itemsize == 8:
        x += dtype(2**62 + 1)
    grid = np.float32([[[[1, -1], [-1, 1], [0.1, 0.9], [1.8, 0]]]])
    got = run("GridSample", x, grid, mode="nearest", align_corners=1)
    assert got.tolist() == [[[[x[0, 0, 0, 2], x[0, 0, 1, 0], x[0, 0, 1, 1], 0]]]]


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_columns_of_complex_numbers_are_added_up(dtype):
    columns = np.arange(8).reshape(1, 4, 2).astype(dtype) * dtype(1 - 2j)
    got = run("Col2Im", columns, np.int64([2, 3]), np.int64([2, 2]))
    # Two blocks of 2x2, one column apart: the middle column is in both.
    want = np.array([[0, 1 + 2, 3], [4, 5 + 6, 7]]) * (1 - 2j)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, want[None, None])


def test_determinants_of_a_batch():
    x = np.random.default_rng(5).normal(size=(3, 2, 4, 4))
    x[0, 0, 0] = x[0, 0, 1]
    np.testing.assert_allclose(run("Det", x), np.linalg.det(x), atol=1e-12)
    assert run("Det", np.zeros((2, 0, 0))).tolist() == [1, 1]


def test_bit_cast_keeps_the_bits():
    x = np.float32([1, -0.0, np.nan])
    np.testing.assert_array_equal(run("BitCast", x, to=6), x.view(np.int32))
    with pytest.raises(chipdock.errors.InvalidArgumentError, match="width"):
        run("BitCast", x, to=7)


def test_a_cache_is_written_from_each_index():
    cache = np.zeros((2, 4, 1))
    update = np.arange(1.0, 5).reshape(2, 2, 1)
    got = run("TensorScatter", cache, update, np.int64([1, 3]), axis=1, mode="circular")
    assert got[..., 0].tolist() == [[0, 1, 2, 0], [4, 0, 0, 3]]
    with pytest.raises(chipdock.errors.InvalidArgumentError, match="reach beyond the 4"):
        run("TensorScatter", cache, update, np.int64([1, 3]), axis=1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize("size", [(1, 3, 4, 5), (2, 1, 2, 3), (3, 0, 1, 2), (1, 1, 2, 3, 4)])
def test_affine_grid(size, align, dtype):
    axes = len(size) - 2
    theta = np.random.default_rng(4).standard_normal((size[0], axes, axes + 1)).astype(dtype)

    def middles(extent):
        at = np.arange(extent, dtype=np.float64)
        return -1 + 2 * at / max(extent - 1, 1) if align else (2 * at + 1) / extent - 1

    # x runs along the last axis of the image, and is the first coordinate.
    places = np.meshgrid(*map(middles, size[2:]), indexing="ij")[::-1]
    stacked = np.stack([*places, np.ones_like(places[0])], axis=-1)
    wanted = np.einsum("nik,...k->n...i", theta.astype(np.float64), stacked)
    got = run("AffineGrid", theta, np.array(size), align_corners=align)
    assert got.dtype == dtype
    assert got.shape == (size[0], *size[2:], axes)
    np.testing.assert_allclose(got.astype(np.float64), wanted, atol=8 * np.finfo(dtype).eps)


def test_a_theta_that_does_not_fit_is_named():
    with pytest.raises(InvalidArgumentError, match=r"theta \[1,2,4\] for size \[1,1,4,4\]"):
        run("AffineGrid", np.ones((1, 2, 4)), np.array([1, 1, 4, 4]))
    with pytest.raises(InvalidArgumentError, match=r"size \[1,1,4\], allowed"):
        run("AffineGrid", np.ones((1, 2, 3)), np.array([1, 1, 4]))

# SPDX-License-Identifier: Apache-2.0
"""Pooling on cpu:0, against windows walked one by one in float64."""

from __future__ import annotations

import itertools
import math

import ml_dtypes
import numpy as np
import pytest

import chipdock

RNG = np.random.default_rng(4)
TOLERANCE = {np.float32: 2e-6, np.float64: 1e-14, np.float16: 1e-3, ml_dtypes.bfloat16: 8e-3}


def normal(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


def extents(space, *, kernel, strides, dilations, pads, ceil_mode):
    out = []
    rank = len(space)
    for i in range(rank):
        free = space[i] + pads[i] + pads[rank + i] - (kernel[i] - 1) * dilations[i] - 1
        n = (-(-free // strides[i]) if ceil_mode else free // strides[i]) + 1
        if ceil_mode and (n - 1) * strides[i] >= space[i] + pads[i]:
            n -= 1
        out.append(n)
    return out


def windows(x, *, kernel, strides, dilations, pads, ceil_mode):
    """Yields output position, the flat input positions of its window, and how many padded ones."""
    space = x.shape[2:]
    rank = len(space)
    out = extents(
        space, kernel=kernel, strides=strides, dilations=dilations, pads=pads, ceil_mode=ceil_mode
    )
    for at in itertools.product(*map(range, out)):
        inside, padded = [], 0
        for tap in itertools.product(*map(range, kernel)):
            p = [a * s - b + t * d for a, s, b, t, d in
                 zip(at, strides, pads[:rank], tap, dilations, strict=True)]  # fmt: skip
            if all(0 <= v < n for v, n in zip(p, space, strict=True)):
                inside.append(int(np.ravel_multi_index(p, space)))
            elif all(v < n + e for v, n, e in zip(p, space, pads[rank:], strict=True)):
                padded += 1
        yield out, at, inside, padded


def reduce_windows(x, options, function):
    rank = x.ndim - 2
    pads = options.get("pads", [0] * 2 * rank)
    strides, dilations = options.get("strides", [1] * rank), options.get("dilations", [1] * rank)
    flat = x.astype(np.float64).reshape(*x.shape[:2], -1)
    y = None
    walk = windows(
        x, kernel=options["kernel_shape"], strides=strides, dilations=dilations, pads=pads,
        ceil_mode=options.get("ceil_mode", 0),
    )  # fmt: skip
    for out, at, inside, padded in walk:
        if y is None:
            y = np.zeros((*x.shape[:2], *out))
        y[(slice(None), slice(None), *at)] = function(flat[..., inside], len(inside) + padded)
    return y


CASES = [
    ((1, 2, 9, 10), {"kernel_shape": [2, 2], "strides": [2, 2]}),
    ((2, 3, 11, 13), {"kernel_shape": [3, 2], "strides": [3, 2]}),
    ((1, 1, 12, 13), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    ((1, 2, 7, 8), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 0, 1, 1],
                    "ceil_mode": 1}),
    ((1, 2, 10, 21), {"kernel_shape": [3, 4], "dilations": [2, 3]}),
    ((2, 2, 17), {"kernel_shape": [5], "strides": [3], "pads": [2, 1], "ceil_mode": 1}),
    ((1, 2, 5, 6, 7), {"kernel_shape": [2, 3, 2], "strides": [1, 2, 2],
                       "pads": [1, 1, 0, 0, 1, 1]}),
    ((1, 1, 3, 38), {"kernel_shape": [3, 9], "pads": [1, 4, 1, 4]}),
]  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize(("shape", "options"), CASES, ids=str)
def test_max_pool_is_exact(shape, options, dtype):
    x = normal(*shape, dtype=dtype)
    y = chipdock.run_op("MaxPool", x, opset=22, **options).numpy()
    np.testing.assert_array_equal(
        y.astype(np.float64), reduce_windows(x, options, lambda v, _: v.max(-1))
    )


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_max_pool_of_bytes(dtype):
    x = RNG.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, (2, 2, 9, 9)).astype(dtype)
    options = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    y = chipdock.run_op("MaxPool", x, **options).numpy()
    np.testing.assert_array_equal(y, reduce_windows(x, options, lambda v, _: v.max(-1)))


@pytest.mark.parametrize("storage_order", [0, 1])
@pytest.mark.parametrize(("shape", "options"), CASES, ids=str)
def test_max_pool_indices_lead_to_the_maxima(shape, options, storage_order):
    x = normal(*shape)
    y, indices = chipdock.run_op("MaxPool", x, outputs=2, storage_order=storage_order, **options)
    y, indices = y.numpy(), indices.numpy()
    assert indices.dtype == np.int64
    planes = x.reshape(shape[0] * shape[1], *shape[2:])
    flat = np.concatenate([p.ravel(order="F" if storage_order else "C") for p in planes])
    np.testing.assert_array_equal(flat[indices], y)
    np.testing.assert_array_equal(y, chipdock.run_op("MaxPool", x, **options).numpy())


def test_max_pool_names_the_first_of_equal_elements():
    _, indices = chipdock.run_op(
        "MaxPool", np.zeros((1, 1, 4, 4), np.float32), outputs=2, kernel_shape=[2, 2],
        strides=[2, 2],
    )  # fmt: skip
    np.testing.assert_array_equal(indices.numpy().ravel(), [0, 2, 8, 10])


def test_max_pool_lets_nan_win():
    x = normal(1, 1, 4, 4)
    x[0, 0, 1, 1] = np.nan
    y = chipdock.run_op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]).numpy()
    np.testing.assert_array_equal(np.isnan(y[0, 0]), [[True, False], [False, False]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("with_pads", [0, 1])
@pytest.mark.parametrize(("shape", "options"), CASES, ids=str)
def test_average_pool(shape, options, with_pads, dtype):
    x = normal(*shape, dtype=dtype)
    y = chipdock.run_op("AveragePool", x, opset=22, count_include_pad=with_pads, **options).numpy()
    want = reduce_windows(
        x, options, lambda v, all_: v.sum(-1) / (all_ if with_pads else v.shape[-1])
    )
    np.testing.assert_allclose(y.astype(np.float64), want, rtol=TOLERANCE[dtype],
                               atol=TOLERANCE[dtype])  # fmt: skip


@pytest.mark.parametrize("p", [1, 2, 3])
@pytest.mark.parametrize(("shape", "options"), CASES, ids=str)
def test_lp_pool(shape, options, p):
    x = normal(*shape)
    y = chipdock.run_op("LpPool", x, opset=22, p=p, **options).numpy()
    want = reduce_windows(x, options, lambda v, _: (np.abs(v) ** p).sum(-1) ** (1 / p))
    np.testing.assert_allclose(y, want, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
def test_pool_pads_by_itself(op, auto_pad):
    x = normal(1, 2, 7, 8)
    given = {"kernel_shape": [3, 2], "strides": [2, 1]}
    y = chipdock.run_op(op, x, auto_pad=auto_pad, **given).numpy()
    pads = {"SAME_UPPER": [1, 0, 1, 1], "SAME_LOWER": [1, 1, 1, 0], "VALID": [0] * 4}[auto_pad]
    np.testing.assert_array_equal(y, chipdock.run_op(op, x, pads=pads, **given).numpy())


@pytest.mark.parametrize("opset", [8, 10, 11, 12, 19])
def test_max_pool_of_every_version(opset):
    x = normal(1, 1, 6, 6)
    y = chipdock.run_op("MaxPool", x, opset=opset, kernel_shape=[2, 2], strides=[2, 2]).numpy()
    np.testing.assert_array_equal(y, x.reshape(1, 1, 3, 2, 3, 2).max((3, 5)))


@pytest.mark.parametrize(
    "shape", [(2, 3, 7), (1, 5, 30, 41), (1, 2, 3, 4, 5), (2, 9, 1, 1)], ids=str
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_global_pools(shape, dtype):
    x = normal(*shape, dtype=dtype)
    axes = tuple(range(2, len(shape)))
    wide = x.astype(np.float64)
    tolerance = {"rtol": TOLERANCE[dtype], "atol": TOLERANCE[dtype]}
    y = chipdock.run_op("GlobalMaxPool", x).numpy()
    np.testing.assert_array_equal(y, x.max(axes, keepdims=True))
    y = chipdock.run_op("GlobalAveragePool", x).numpy()
    np.testing.assert_allclose(y, wide.mean(axes, keepdims=True), **tolerance)
    y = chipdock.run_op("GlobalLpPool", x, p=3).numpy()
    want = (np.abs(wide) ** 3).sum(axes, keepdims=True) ** (1 / 3)
    np.testing.assert_allclose(y, want, rtol=5 * TOLERANCE[dtype])


def test_global_average_of_a_large_plane_is_accurate():
    x = (normal(1, 1, 1000, 700) + 100).astype(np.float32)
    y = chipdock.run_op("GlobalAveragePool", x).numpy()
    growth = 6 * math.sqrt(x.size) * 2.0**-24
    assert abs(float(y.item()) - x.astype(np.float64).mean()) <= growth * float(np.abs(x).mean())


def test_pool_of_no_images_is_empty():
    y = chipdock.run_op("MaxPool", normal(0, 2, 4, 4), kernel_shape=[2, 2]).numpy()
    assert y.shape == (0, 2, 3, 3)


@pytest.mark.parametrize(
    ("options", "words"),
    [({"kernel_shape": [5, 2]}, "spans 5"), ({"kernel_shape": [2]}, "kernel_shape"),
     ({"kernel_shape": [2, 2], "strides": [1, 0]}, "strides"),
     ({"kernel_shape": [2, 2], "auto_pad": "SOME"}, "SAME_UPPER")],
)  # fmt: skip
def test_unfit_pool_is_named(options, words):
    with pytest.raises(chipdock.ChipdockError, match=f"AveragePool.*{words}"):
        chipdock.run_op("AveragePool", normal(1, 1, 4, 4), **options)


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "LpPool"])
@pytest.mark.parametrize("value", [2**31, 2**32, 2**62, 2**63 - 1])
@pytest.mark.parametrize("auto_pad", ["NOTSET", "SAME_UPPER", "VALID"])
@pytest.mark.parametrize("name", ["kernel_shape", "strides", "dilations", "pads"])
def test_window_beyond_int64_is_named(op, value, auto_pad, name):
    options = {"kernel_shape": [2, 2], name: [value] * (4 if name == "pads" else 2)}
    if name == "kernel_shape":
        options["pads"] = [2**31 - 1] * 4
    with pytest.raises(
        chipdock.ChipdockError,
        match=rf"INVALID_ARGUMENT.*{op}: {name} .* value {value}.*does not fit int64",
    ):
        chipdock.run_op(op, normal(1, 1, 4, 4), auto_pad=auto_pad, opset=22, **options)


def test_kernel_of_more_positions_than_int64_has_is_named():
    with pytest.raises(
        chipdock.ChipdockError, match=r"INVALID_ARGUMENT.*product of kernel_shape.*fit int64"
    ):
        chipdock.run_op(
            "MaxPool", normal(1, 1, 1, 1, 1), kernel_shape=[2**31 - 1] * 3, pads=[2**31 - 1] * 6
        )


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "LpPool"])
def test_largest_window_costs_only_what_lies_in_the_input(op):
    x = np.array([[[[3, 4], [0, 0]]]], np.float32)
    far = 2**31 - 1
    y = chipdock.run_op(
        op, x, kernel_shape=[far, far], pads=[far - 1, far - 1, 0, 0], strides=[2, 2], opset=22
    ).numpy()
    np.testing.assert_allclose(y, [[[[3]]]])


def test_largest_window_with_indices():
    x = np.array([[[[3, 4], [0, 5]]]], np.float32)
    far = 2**31 - 1
    y, at = chipdock.run_op(
        "MaxPool", x, outputs=2, kernel_shape=[far, far], pads=[far - 2, far - 2, 0, 0]
    )
    assert y.numpy().ravel().tolist() == [5]
    assert at.numpy().ravel().tolist() == [3]


@pytest.mark.parametrize(
    ("op", "x", "options", "want"),
    [("AveragePool", [1, 1], {"kernel_shape": [3], "strides": [2]}, [1]),
     ("AveragePool", [1, 3], {"kernel_shape": [3], "strides": [2], "count_include_pad": 1}, [2]),
     ("LpPool", [3, 4], {"kernel_shape": [3], "strides": [2]}, [5]),
     ("MaxPool", [0, 1, 2, 3], {"kernel_shape": [3], "dilations": [2], "strides": [3]}, [2])],
)  # fmt: skip
def test_ceil_mode_keeps_one_partial_window(op, x, options, want):
    x = np.array([[x]], np.float32)
    y = chipdock.run_op(op, x, ceil_mode=1, opset=22, **options).numpy()
    assert y.ravel().tolist() == want
    if op == "MaxPool":
        y, at = chipdock.run_op(op, x, ceil_mode=1, opset=22, outputs=2, **options)
        assert (y.numpy().ravel().tolist(), at.numpy().ravel().tolist()) == (want, [2])
    with pytest.raises(chipdock.ChipdockError, match=rf"{op}.*spans"):
        chipdock.run_op(op, x, ceil_mode=1, opset=22, **{**options, "strides": [1]})

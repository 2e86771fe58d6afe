# SPDX-License-Identifier: Apache-2.0
"""Products of float16 and bfloat16 on cpu:0: exact where sums are, rounded once where they are not.

Small integers have exact products and sums in float32, so a result is the exact one rounded to the
half type, bit for bit, at every instruction set level and whatever the kernel packs or splits.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import helper

import chipdock

Array = NDArray[Any]
BF16 = ml_dtypes.bfloat16
HALVES = [BF16, np.float16]
LEVELS = ("baseline", "avx2", "avx512", "avx512_vnni", "avx512_bf16")

# Odd and even k, less and more than a vector, a panel, a block of rows and a slice of k.
SHAPES = [
    ((1, 1), (1, 1)), ((3, 2), (2, 5)), ((1, 64), (64, 33)), ((5, 7), (7, 32)),
    ((14, 30), (30, 65)), ((29, 31), (31, 16)), ((2, 1025), (1025, 40)), ((3, 2100), (2100, 31)),
    ((300, 6), (6, 70)), ((2, 3, 5, 6), (3, 6, 9)), ((4, 1, 2, 9), (3, 9, 33)), ((8,), (8, 3)),
    ((6, 9), (9,)), ((3, 4, 10), (10, 17)), ((1, 4, 0), (0, 5)), ((2, 0), (0, 40)),
]  # fmt: skip


def whole(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Array:
    """Integers from -4 to 4."""
    return np.random.default_rng([seed, *shape]).integers(-4, 5, shape).astype(dtype)


def rounded(exact: Array, dtype: Any) -> Array:
    return exact.astype(np.float32).astype(dtype)


def model(op: str, x: Array, constants: list[Array], threads: int, **attributes: Any) -> Array:
    """The result of one node whose other inputs are constants, which the plugin may pack."""
    names = {np.dtype(BF16): "BFLOAT16", np.dtype(np.float16): "FLOAT16"}
    kind = getattr(helper.TensorProto, names[x.dtype])
    weights = [
        helper.make_tensor(f"w{i}", kind, value.shape, value.tobytes(), raw=True)
        for i, value in enumerate(constants)
    ]
    node = helper.make_node(op, ["x", *(w.name for w in weights)], ["y"], **attributes)
    graph = helper.make_graph(
        [node], "product", [helper.make_tensor_value_info("x", kind, x.shape)],
        [helper.make_tensor_value_info("y", kind, None)], weights,
    )  # fmt: skip
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    loaded = chipdock.load(proto, threads=threads)
    result: Array = loaded.run({"x": x})["y"]
    return np.asarray(result)


def same_bits(got: Array, want: Array) -> None:
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    np.testing.assert_array_equal(got.view(np.uint16), want.view(np.uint16))


@pytest.mark.parametrize(("left", "right"), SHAPES, ids=str)
@pytest.mark.parametrize("dtype", HALVES)
def test_products_of_whole_numbers_are_exact(left, right, dtype):
    a, b = whole(left, dtype, 1), whole(right, dtype, 2)
    want = rounded(np.matmul(a.astype(np.float32), b.astype(np.float32)), dtype)
    same_bits(chipdock.run_op("MatMul", a, b, opset=13).numpy() + dtype(0), want + dtype(0))
    if 0 not in left:
        same_bits(model("MatMul", a, [b], 1) + dtype(0), want + dtype(0))


@pytest.mark.parametrize("k", [1, 2, 17, 18])
@pytest.mark.parametrize(("ta", "tb"), list(itertools.product((0, 1), (0, 1))))
@pytest.mark.parametrize("dtype", HALVES)
def test_transposed_products_are_exact(k, ta, tb, dtype):
    a = whole((k, 21) if ta else (21, k), dtype, 3)
    b = whole((37, k) if tb else (k, 37), dtype, 4)
    c = whole((37,), dtype, 5)
    exact = (a.T if ta else a).astype(np.float32) @ (b.T if tb else b).astype(np.float32)
    for alpha, beta in ((1.0, 1.0), (1.0, 2.0), (0.5, 1.0)):
        want = rounded(alpha * exact + beta * c.astype(np.float32), dtype)
        options = {"alpha": alpha, "beta": beta, "transA": ta, "transB": tb}
        got = chipdock.run_op("Gemm", a, b, c, opset=13, **options).numpy()
        same_bits(got + dtype(0), want + dtype(0))
        same_bits(model("Gemm", a, [b, c], 1, **options) + dtype(0), want + dtype(0))


CONVOLUTIONS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "3x3": ((2, 5, 9, 11), (7, 5, 3, 3), {"pads": [1, 1, 1, 1]}),
    "3x3_wide": ((1, 130, 6, 40), (20, 130, 3, 3), {"pads": [1, 0, 1, 2], "strides": [1, 2]}),
    "1x1": ((1, 13, 6, 7), (9, 13, 1, 1), {}),
    "1x1_even": ((2, 14, 5, 13), (33, 14, 1, 1), {}),
    "groups": ((1, 6, 8, 9), (4, 3, 3, 2), {"group": 2, "dilations": [1, 2]}),
    "1d": ((2, 3, 50), (5, 3, 7), {"strides": [2]}),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
@pytest.mark.parametrize("dtype", HALVES)
def test_convolutions_of_whole_numbers_are_exact(name, dtype):
    x_shape, w_shape, options = CONVOLUTIONS[name]
    x, w, b = whole(x_shape, dtype, 6), whole(w_shape, dtype, 7), whole(w_shape[:1], dtype, 8)
    wide = [value.astype(np.float64) for value in (x, w, b)]
    exact = chipdock.run_op("Conv", *wide, opset=22, **options).numpy()
    got = chipdock.run_op("Conv", x, w, b, opset=22, **options).numpy()
    same_bits(got + dtype(0), rounded(exact, dtype) + dtype(0))
    same_bits(model("Conv", x, [w, b], 1, **options), got)


@pytest.mark.parametrize("dtype", HALVES)
def test_bits_do_not_depend_on_threads_nor_on_packing(dtype):
    rng = np.random.default_rng(11)
    for m, k, n in ((1, 700, 300), (37, 1300, 130), (260, 65, 97)):
        a, b = (rng.standard_normal(shape).astype(dtype) for shape in ((m, k), (k, n)))
        one = model("MatMul", a, [b], 1)
        same_bits(model("MatMul", a, [b], 2), one)
        same_bits(chipdock.run_op("MatMul", a, b, opset=13).numpy(), one)
        # Nor on the rows beside one.
        same_bits(model("MatMul", a[:1], [b], 1), one[:1])


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("k", [3, 4])
def test_nan_and_infinity_stay_where_they_are(k, dtype):
    a, b = np.ones((40, k), dtype), np.ones((k, 34), dtype)
    a[3, k - 1], a[5, 0], a[7, 1] = np.nan, np.inf, -np.inf
    b[1, 33], b[k - 1, 2] = np.nan, 0
    for y in (chipdock.run_op("MatMul", a, b, opset=13).numpy(), model("MatMul", a, [b], 1)):
        with np.errstate(invalid="ignore"):
            want = a.astype(np.float32) @ b.astype(np.float32)
        np.testing.assert_array_equal(y.astype(np.float32), want)


def test_sums_are_rounded_once():
    # 256 + 1 + … in bfloat16 would never leave 256.
    a = np.ones((1, 257), BF16)
    a[0, 0] = 256
    got = model("MatMul", a, [np.ones((257, 3), BF16)], 1)
    np.testing.assert_array_equal(got.astype(np.float32), np.full((1, 3), 512, np.float32))


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
def test_every_instruction_set_level(level):
    # A process opens devices of one level only.
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "import test_ops_half as tests; tests.all_cases()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"CHIPDOCK_CPU_ISA": level},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if "asks for more than this machine" in done.stderr:
        pytest.skip(f"this machine has no {level}")
    assert done.returncode == 0, done.stderr


def all_cases():
    """Runs in a process of one level."""
    for dtype in HALVES:
        for left, right in SHAPES:
            test_products_of_whole_numbers_are_exact(left, right, dtype)
        for k, ta, tb in itertools.product((1, 18), (0, 1), (0, 1)):
            test_transposed_products_are_exact(k, ta, tb, dtype)
        for name in CONVOLUTIONS:
            test_convolutions_of_whole_numbers_are_exact(name, dtype)
        test_bits_do_not_depend_on_threads_nor_on_packing(dtype)
        for k in (3, 4):
            test_nan_and_infinity_stay_where_they_are(k, dtype)
    test_sums_are_rounded_once()

# SPDX-License-Identifier: Apache-2.0
"""FusedConv and FusedMatMul on cpu:0, against the plain operators in float64.

Conv in float64 is judged by test_ops_conv.py; what is added to it here is numpy's.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from api_support import open_cpu, python
from numpy.typing import NDArray
from onnx import helper, numpy_helper

import chipdock

DOMAIN = "ai.chipdock"
HALVES = {np.dtype(np.float16): 2.0**-11, np.dtype(ml_dtypes.bfloat16): 2.0**-8}
DTYPES = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]
erf = np.vectorize(math.erf, otypes=[np.float64])
Floats = NDArray[Any]


def normal(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Floats:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def sigmoid(x: Floats) -> Floats:
    return 1 / (1 + np.exp(-x))


# Name: what it reads, and the function in float64. None grows faster than twice its argument.
ACTIVATIONS: dict[str, tuple[dict[str, float], Any]] = {
    "": ({}, lambda x: x),
    "Relu": ({}, lambda x: np.maximum(x, 0)),
    "LeakyRelu": ({"alpha": 0.25}, lambda x: np.where(x < 0, 0.25 * x, x)),
    "Clip": ({"alpha": -0.5, "beta": 1.5}, lambda x: np.clip(x, -0.5, 1.5)),
    "HardSigmoid": ({"alpha": 0.25, "beta": 0.5}, lambda x: np.clip(0.25 * x + 0.5, 0, 1)),
    "HardSwish": ({}, lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    "Sigmoid": ({}, sigmoid),
    "Swish": ({"alpha": 1.5}, lambda x: x * sigmoid(1.5 * x)),
    "Tanh": ({}, np.tanh),
    "Gelu": ({}, lambda x: x / 2 * (1 + erf(x / math.sqrt(2)))),
    "GeluTanh": (
        {},
        lambda x: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    ),
}


def check(got: Floats, sums: Floats, size: Floats, terms: int, activation: str) -> None:
    """Within the rounding of a sum of `terms` terms in any order, of f, and of one rounding.

    Args:
        got: What was computed.
        sums: What f is applied to, exact.
        size: Sums of the magnitudes of all terms.
        terms: How many there are.
        activation: Names f.
    """
    want = ACTIVATIONS[activation][1](sums)
    assert got.shape == want.shape
    unit = 2.0**-53 if got.dtype == np.float64 else 2.0**-24
    limit = 2 * (min(terms, 6 * math.sqrt(terms)) + 1) * unit * size
    limit = limit + 8 * unit * (1 + np.abs(want)) + HALVES.get(got.dtype, 0.0) * np.abs(want)
    assert np.all(np.abs(got.astype(np.float64) - want) <= limit)


def f64(*values: Floats | None) -> list[Floats | None]:
    return [None if v is None else v.astype(np.float64) for v in values]


def check_conv(  # noqa: PLR0917  all that one node has
    x_shape: tuple[int, ...],
    w_shape: tuple[int, ...],
    options: dict[str, Any],
    extras: str = "bz",
    activation: str = "Relu",
    dtype: Any = np.float32,
    device: Any = None,
    constant: bool = False,
) -> None:
    """`extras` says which optional inputs there are; `constant` makes W and B part of a model."""
    x, w = normal(*x_shape, dtype=dtype), normal(*w_shape, dtype=dtype, seed=1)
    bias = normal(w_shape[0], dtype=dtype, seed=2) if "b" in extras else None
    wide_x, wide_w, wide_b = f64(x, w, bias)
    sums = chipdock.run_op("Conv", *[v for v in (wide_x, wide_w, wide_b) if v is not None],
                           opset=22, **options).numpy()  # fmt: skip
    magnitudes = [np.abs(v) for v in (wide_x, wide_w, wide_b) if v is not None]
    size = chipdock.run_op("Conv", *magnitudes, opset=22, **options).numpy()
    z = normal(*sums.shape, dtype=dtype, seed=3) if "z" in extras else None
    if z is not None:
        sums, size = sums + z.astype(np.float64), size + np.abs(z).astype(np.float64)
    attributes = {**options, "activation": activation, **ACTIVATIONS[activation][0]}
    inputs = {"x": x, "w": w, "b": bias, "z": z}
    held = {"w", "b"} if constant else set()
    for got in run("FusedConv", inputs, attributes, held, device):
        check(got, sums, size, math.prod(w_shape[1:]) + 2, activation)


def run(
    op: str, inputs: dict[str, Floats | None], attributes: dict[str, Any], held: set[str],
    device: Any,
) -> list[Floats]:  # fmt: skip
    """Two runs of one node, as an operator, or as a model in which `held` are constants."""
    if not held:
        values = list(inputs.values())
        while values[-1] is None:
            values.pop()
        options = {**attributes, "domain": DOMAIN, "device": device}
        return [chipdock.run_op(op, *values, **options).numpy() for _ in range(2)]
    given = {name: v for name, v in inputs.items() if v is not None}
    kind = helper.np_dtype_to_tensor_dtype(inputs["x"].dtype)
    node = helper.make_node(op, [n if n in given else "" for n in inputs], ["y"], domain=DOMAIN,
                            **attributes)  # fmt: skip
    fed = {n: v for n, v in given.items() if n not in held}
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info(n, kind, v.shape) for n, v in fed.items()],
        [helper.make_tensor_value_info("y", kind, None)],
        [numpy_helper.from_array(v, n) for n, v in given.items() if n in held],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(DOMAIN, 1)], ir_version=10)
    loaded = chipdock.load(model, device=device or "cpu:0")
    return [np.asarray(loaded.run(fed)["y"]) for _ in range(2)]


def pads(*values: int) -> dict[str, Any]:
    return {"pads": list(values)}


CONVS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "1x1": ((2, 20, 9, 11), (30, 20, 1, 1), {}),
    "1x1_one_pixel": ((1, 64, 1, 1), (48, 64, 1, 1), {}),
    "1x1_long_sum": ((1, 1100, 3, 5), (17, 1100, 1, 1), {}),
    "1x1_wide": ((1, 3, 40, 41), (15, 3, 1, 1), {}),
    "3x3": ((2, 5, 13, 40), (7, 5, 3, 3), pads(1, 1, 1, 1)),
    "3x3_s2": ((1, 3, 32, 37), (16, 3, 3, 3), {**pads(0, 0, 1, 1), "strides": [2, 2]}),
    "same": ((1, 4, 9, 7), (5, 4, 3, 2), {"auto_pad": "SAME_UPPER", "strides": [2, 1]}),
    "dilated": ((1, 3, 19, 20), (6, 3, 3, 3), {**pads(2, 3, 2, 3), "dilations": [2, 3]}),
    "groups": ((2, 12, 8, 9), (8, 3, 3, 3), {**pads(1, 1, 1, 1), "group": 4}),
    "1d": ((2, 6, 50), (9, 6, 7), pads(3, 3)),
    "1d_depthwise": ((1, 4, 100), (4, 1, 9), {**pads(4, 4), "group": 4}),
    "3d": ((1, 3, 6, 7, 8), (4, 3, 3, 2, 3), {**pads(1, 0, 1, 1, 1, 1), "strides": [1, 2, 2]}),
    "3d_depthwise": ((1, 4, 5, 6, 7), (4, 1, 3, 3, 3), {**pads(*[1] * 6), "group": 4}),
    "depthwise": ((2, 9, 20, 70), (9, 1, 3, 3), {**pads(1, 1, 1, 1), "group": 9}),
    "depthwise_s2": ((1, 8, 21, 23), (8, 1, 5, 5),
                     {**pads(1, 1, 2, 2), "group": 8, "strides": [2, 2]}),
    "depthwise_twice": ((1, 3, 10, 10), (6, 1, 3, 3), {"group": 3}),
    "depthwise_tall": ((1, 2, 701, 30), (2, 1, 3, 3), {**pads(1, 1, 1, 1), "group": 2}),
    "width_1": ((2, 6, 150, 1), (9, 6, 5, 1), pads(2, 0, 2, 0)),
    "one_element": ((1, 1, 1, 1), (1, 1, 1, 1), {}),
    "no_channels": ((1, 0, 5, 5), (4, 0, 3, 3), {}),
    "no_images": ((0, 3, 8, 8), (4, 3, 3, 3), {}),
    # What cpu gives to oneDNN where that is built in.
    "first_layer": ((2, 3, 33, 47), (32, 3, 3, 3), {**pads(0, 1, 1, 1), "strides": [2, 2]}),
    "small_image": ((2, 160, 7, 7), (130, 160, 1, 1), {}),
}  # fmt: skip
EXTRAS = ["", "b", "z", "bz"]


@pytest.mark.parametrize("extras", EXTRAS)
@pytest.mark.parametrize("name", CONVS)
def test_fused_conv_is_conv_residual_and_activation(name, extras):
    check_conv(*CONVS[name], extras)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("name", ["1x1", "3x3", "depthwise", "depthwise_twice"])
def test_fused_conv_of_every_activation(name, activation):
    check_conv(*CONVS[name], activation=activation)


@pytest.mark.parametrize("dtype", DTYPES[1:])
@pytest.mark.parametrize("extras", ["", "bz"])
@pytest.mark.parametrize("name", ["1x1", "3x3", "groups", "1d", "3d", "depthwise", "width_1"])
def test_fused_conv_of_other_dtypes(name, extras, dtype):
    check_conv(*CONVS[name], extras, "Gelu", dtype)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_fused_conv_of_every_activation_and_dtype(activation, dtype):
    check_conv((1, 3, 5, 7), (4, 3, 3, 3), {}, "bz", activation, dtype)


@pytest.mark.parametrize("extras", EXTRAS)
@pytest.mark.parametrize("name", ["1x1", "3x3", "depthwise", "first_layer", "small_image"])
def test_fused_conv_with_constant_filters(name, extras):
    check_conv(*CONVS[name], extras, "HardSwish", constant=True)


def check_matmul(  # noqa: PLR0917  all that one node has
    a_shape: tuple[int, ...], b_shape: tuple[int, ...], extras: str = "cz",
    activation: str = "Relu", dtype: Any = np.float32, trans_b: int = 0, scale: float = 1.0,
    device: Any = None, constant: bool = False,
) -> None:  # fmt: skip
    """`b_shape` is that before an exchange of axes."""
    a, right = normal(*a_shape, dtype=dtype), normal(*b_shape, dtype=dtype, seed=1)
    wide_a, wide_b = a.astype(np.float64), right.astype(np.float64)
    sums = scale * np.matmul(wide_a, wide_b)
    size = abs(scale) * np.matmul(np.abs(wide_a), np.abs(wide_b))
    columns = b_shape[-1] if len(b_shape) > 1 else 1
    c = normal(columns, dtype=dtype, seed=2) if "c" in extras else None
    if c is not None:
        spread = c if len(b_shape) > 1 else c[0]
        sums, size = sums + spread.astype(np.float64), size + np.abs(spread.astype(np.float64))
    z = normal(*sums.shape, dtype=dtype, seed=3) if "z" in extras else None
    if z is not None:
        sums, size = sums + z.astype(np.float64), size + np.abs(z.astype(np.float64))
    b = np.ascontiguousarray(right.swapaxes(-1, -2)) if trans_b else right
    attributes = {"activation": activation, **ACTIVATIONS[activation][0], "trans_b": trans_b}
    if scale != 1:
        attributes["scale"] = scale
    held = {"b", "c"} if constant else set()
    for got in run("FusedMatMul", {"x": a, "b": b, "c": c, "z": z}, attributes, held, device):
        check(got, np.asarray(sums), size, a_shape[-1] + 3, activation)


PRODUCTS = [
    ((3, 4), (4, 5)), ((1, 384), (384, 100)), ((100, 700), (700, 33)), ((17, 1), (1, 65)),
    ((1, 1), (1, 1)), ((2, 3, 17, 40), (3, 40, 19)), ((5,), (5, 6)), ((5,), (2, 5, 3)),
    ((12, 64, 32), (12, 32, 64)), ((1, 7, 2, 3), (4, 1, 3, 5)), ((2, 3, 4), (1, 1, 4, 6)),
    ((31, 1100), (1100, 33)), ((16, 3), (3, 16)), ((2, 9, 24), (24, 40)), ((3, 0), (0, 4)),
    ((0, 3), (3, 4)), ((2, 3), (3, 0)),
]  # fmt: skip
VECTORS = [((5,), (5,)), ((2, 4, 5), (5,))]


@pytest.mark.parametrize("extras", ["", "c", "z", "cz"])
@pytest.mark.parametrize("trans_b", [0, 1])
@pytest.mark.parametrize(("left", "right"), PRODUCTS, ids=str)
def test_fused_matmul_is_product_bias_residual_and_activation(left, right, trans_b, extras):
    check_matmul(left, right, extras, trans_b=trans_b)


@pytest.mark.parametrize("extras", ["", "c", "z", "cz"])
@pytest.mark.parametrize(("left", "right"), VECTORS, ids=str)
def test_fused_matmul_by_a_vector(left, right, extras):
    check_matmul(left, right, extras, "Tanh")


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("extras", ["", "cz"])
def test_fused_matmul_of_every_activation_and_dtype(activation, dtype, extras):
    check_matmul((2, 7, 9), (9, 35), extras, activation, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("left", "right"), [PRODUCTS[i] for i in (1, 2, 5, 7, 9)], ids=str)
def test_fused_matmul_scales_the_product_alone(left, right, dtype):
    check_matmul(left, right, "cz", "Sigmoid", dtype, trans_b=1, scale=0.125)
    check_matmul(left, right, "", "", dtype, scale=-0.375)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("trans_b", [0, 1])
@pytest.mark.parametrize(("left", "right"), [PRODUCTS[i] for i in (1, 2, 5, 9)], ids=str)
def test_fused_matmul_with_constant_weights(left, right, trans_b, dtype):
    check_matmul(left, right, "cz", "Gelu", dtype, trans_b, constant=True)


@pytest.mark.parametrize("extras", ["", "c", "z", "cz"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((300, 257), (257, 64)),
        ((2, 3, 50, 30), (30, 7)),
        ((15, 512), (512, 40)),
        ((15, 513), (513, 40)),
    ],
    ids=str,
)
def test_fused_matmul_of_rows_that_are_read_once(left, right, dtype, extras):
    check_matmul(left, right, extras, "Tanh", dtype, constant=True)


def sweep(device: Any) -> None:
    """A few of each, for settings of the device."""
    for name, extras in itertools.product(CONVS, EXTRAS):
        check_conv(*CONVS[name], extras, "Swish", device=device)
    for (left, right), trans_b in itertools.product(PRODUCTS, [0, 1]):
        check_matmul(left, right, "cz", "Gelu", trans_b=trans_b, device=device)
    for dtype, activation in itertools.product(DTYPES, ACTIVATIONS):
        check_conv(*CONVS["3x3"], "bz", activation, dtype, device)
    for name in ("1x1", "first_layer", "small_image"):
        check_conv(*CONVS[name], "bz", "Clip", device=device, constant=True)


@pytest.mark.slow
@pytest.mark.parametrize("threads", ["1", "2", "5"])
def test_any_number_of_threads(threads):
    sweep(open_cpu(threads=threads))


@pytest.mark.slow
@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
def test_every_instruction_set_level(isa):
    done = python("""
import chipdock, test_ops_fused
try:
    device = chipdock.device("cpu:0")
except chipdock.UnsupportedError as error:
    print("absent:", error)
else:
    test_ops_fused.sweep(device)
    print("swept", device.name)
""", CHIPDOCK_CPU_ISA=isa)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "swept" in done.stdout or "absent:" in done.stdout


def test_a_nan_stays_where_the_plain_operator_keeps_it():
    x = np.array([[[[np.nan, -1, np.inf, -np.inf]]]], np.float32)
    w = np.ones((1, 1, 1, 1), np.float32)
    for activation in ("Relu", "Sigmoid", "Tanh", "HardSwish"):
        want = chipdock.run_op(activation, x).numpy()
        y = chipdock.run_op("FusedConv", x, w, domain=DOMAIN, activation=activation).numpy()
        np.testing.assert_array_equal(y, want)


@pytest.mark.parametrize("activation", [a for a in ACTIVATIONS if a not in {"", "Clip"}])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_activation_has_the_bits_of_the_plain_operator(activation, dtype):
    x, w = normal(2, 16, 9, 11, dtype=dtype), normal(40, 16, 3, 3, dtype=dtype)
    options = ACTIVATIONS[activation][0]
    plain = {"op": activation.removesuffix("Tanh") or activation, **options}
    if activation == "GeluTanh":
        plain["approximate"] = "tanh"
    want = chipdock.run_op(plain.pop("op"), chipdock.run_op("Conv", x, w), **plain).numpy()
    y = chipdock.run_op("FusedConv", x, w, domain=DOMAIN, activation=activation, **options)
    np.testing.assert_array_equal(y.numpy(), want)


X, W = (1, 3, 9, 9), (2, 3, 3, 3)


@pytest.mark.parametrize(
    ("op", "shapes", "options", "words"),
    [("FusedConv", [X, W, (3,)], {}, r"FusedConv: B \[3\] must be \[2\]"),
     ("FusedConv", [X, W, (2,), (1, 2, 7, 1)], {}, r"Z \[1,2,7,1\] must have Y's shape"),
     ("FusedConv", [X, (2, 4, 3, 3)], {}, "FusedConv: .*channels"),
     ("FusedConv", [X, W], {"activation": "Softmax"}, 'activation "Softmax" is unknown'),
     ("FusedMatMul", [(2, 3), (4, 5)], {}, "FusedMatMul: .*last but one dim"),
     ("FusedMatMul", [(2, 3), (3, 5)], {"trans_b": 1}, "FusedMatMul: .* the last dim of B"),
     ("FusedMatMul", [(3,), (3,)], {"trans_b": 1}, "no two axes"),
     ("FusedMatMul", [(2, 3), (3, 5), (1,)], {}, r"C \[1\] must be \[5\]"),
     ("FusedMatMul", [(2, 3), (3, 5), (5,), (5,)], {}, r"Z \[5\] must have Y's shape \[2,5\]")],
)  # fmt: skip
def test_what_does_not_fit_is_named(op, shapes, options, words):
    with pytest.raises(chipdock.ChipdockError, match=words):
        chipdock.run_op(op, *[normal(*s) for s in shapes], domain=DOMAIN, **options)


def test_mixed_dtypes_are_refused():
    with pytest.raises(chipdock.ChipdockError, match="they must have one dtype"):
        chipdock.run_op("FusedMatMul", normal(2, 3), normal(3, 4, dtype=np.float16), domain=DOMAIN)

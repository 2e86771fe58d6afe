# SPDX-License-Identifier: Apache-2.0
"""Conv and ConvTranspose on cpu:0, against sums made in float64 and against onnx.reference."""

from __future__ import annotations

import itertools
import math

import ml_dtypes
import numpy as np
import pytest
from api_support import model, value
from onnx import helper
from onnx.reference import ReferenceEvaluator

import chipdock

RNG = np.random.default_rng(3)
OUT_UNIT = {np.float32: 2.0**-24, np.float64: 2.0**-53, np.float16: 2.0**-11}
OUT_UNIT[ml_dtypes.bfloat16] = 2.0**-8


def normal(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


def convolve(x, w, *, strides, dilations, pads, group):
    """Convolution by shifting the padded input once for each kernel position, in float64."""
    rank = x.ndim - 2
    x = np.pad(x.astype(np.float64), [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:], strict=True)])
    kernel = w.shape[2:]
    out = [(x.shape[2 + i] - (kernel[i] - 1) * dilations[i] - 1) // strides[i] + 1
           for i in range(rank)]  # fmt: skip
    y = np.zeros((x.shape[0], w.shape[0], *out))
    per_group = w.shape[0] // group
    for tap in itertools.product(*map(range, kernel)):
        window = tuple(
            slice(t * d, t * d + (o - 1) * s + 1, s)
            for t, d, o, s in zip(tap, dilations, out, strides, strict=True)
        )
        seen = x[(slice(None), slice(None), *window)]
        for g in range(group):
            channels = seen[:, g * w.shape[1] : (g + 1) * w.shape[1]]
            rows = slice(g * per_group, (g + 1) * per_group)
            filters = w[(rows, slice(None), *tap)].astype(np.float64)
            y[:, rows] += np.einsum("oc,nc...->no...", filters, channels)
    return y


def check_conv(x_shape, w_shape, *, strides=None, dilations=None, pads=None, group=1, bias=True,
               dtype=np.float32, opset=21):  # fmt: skip
    rank = len(x_shape) - 2
    strides, dilations = strides or [1] * rank, dilations or [1] * rank
    pads = pads or [0] * (2 * rank)
    x, w = normal(*x_shape, dtype=dtype), normal(*w_shape, dtype=dtype)
    b = normal(w_shape[0], dtype=dtype)
    y = chipdock.run_op(
        "Conv", x, w, *([b] if bias else []), strides=strides, dilations=dilations, pads=pads,
        group=group, opset=opset,
    ).numpy()  # fmt: skip
    shift = b.astype(np.float64).reshape(-1, *[1] * rank) if bias else 0.0
    window = {"strides": strides, "dilations": dilations, "pads": pads, "group": group}
    want = convolve(x, w, **window) + shift
    size = convolve(np.abs(x), np.abs(w), **window) + np.abs(shift)
    assert y.shape == want.shape
    k = math.prod(w_shape[1:]) + 1
    unit = 2.0**-53 if dtype is np.float64 else 2.0**-24
    limit = min(k, 6 * math.sqrt(k)) * unit * size + OUT_UNIT[dtype] * np.abs(want) * 1.01 + 1e-30
    assert np.all(np.abs(y.astype(np.float64) - want) <= limit)


CASES = {
    "1x1": ((2, 40, 9, 11), (30, 40, 1, 1), {}),
    "1x1_wide": ((1, 12, 30, 40), (20, 12, 1, 1), {}),
    "1x1_long": ((1, 700, 5, 7), (33, 700, 1, 1), {}),
    "3x3": ((1, 5, 13, 40), (7, 5, 3, 3), {"pads": [1, 1, 1, 1]}),
    "3x3_s2_asymmetric": ((2, 3, 32, 37), (16, 3, 3, 3),
                          {"pads": [0, 0, 1, 1], "strides": [2, 2]}),
    "5x2_s3x1": ((1, 4, 20, 17), (3, 4, 5, 2), {"strides": [3, 1], "pads": [2, 0, 1, 1]}),
    "dilated": ((1, 3, 19, 20), (6, 3, 3, 3), {"dilations": [2, 3], "pads": [2, 3, 2, 3]}),
    "groups": ((2, 12, 8, 9), (8, 3, 3, 3), {"group": 4, "pads": [1, 1, 1, 1]}),
    "11x11": ((1, 2, 23, 24), (3, 2, 11, 11), {"pads": [5, 5, 5, 5]}),
    "1d": ((2, 6, 50), (9, 6, 7), {"pads": [3, 3]}),
    "1d_s4": ((1, 1, 200), (20, 1, 40), {"strides": [4]}),
    "1d_groups_dilated": ((1, 8, 33), (8, 2, 3), {"group": 4, "dilations": [4]}),
    "3d": ((1, 3, 6, 7, 8), (4, 3, 3, 2, 3), {"pads": [1, 0, 1, 1, 1, 1], "strides": [1, 2, 2]}),
    "3d_depthwise": ((1, 4, 5, 6, 7), (4, 1, 3, 3, 3), {"group": 4, "pads": [1] * 6}),
    "depthwise_3x3": ((2, 9, 20, 70), (9, 1, 3, 3), {"group": 9, "pads": [1, 1, 1, 1]}),
    "depthwise_5x5_s2": ((1, 8, 21, 23), (8, 1, 5, 5),
                         {"group": 8, "pads": [1, 1, 2, 2], "strides": [2, 2]}),
    "depthwise_7x7": ((1, 5, 7, 7), (5, 1, 7, 7), {"group": 5, "pads": [3, 3, 3, 3]}),
    "depthwise_s3_dilated": ((1, 4, 40, 41), (4, 1, 3, 3),
                             {"group": 4, "strides": [3, 3], "dilations": [2, 2]}),
    "depthwise_multiplier": ((1, 3, 10, 10), (6, 1, 3, 3), {"group": 3}),
    "depthwise_tall": ((1, 2, 700, 30), (2, 1, 3, 3), {"group": 2, "pads": [1, 1, 1, 1]}),
    "depthwise_1d": ((1, 4, 100), (4, 1, 9), {"group": 4, "pads": [4, 4]}),
    "depthwise_small": ((1, 20, 7, 7), (20, 1, 5, 5), {"group": 20, "pads": [2, 2, 2, 2]}),
    "depthwise_3_wide": ((2, 5, 9, 3), (5, 1, 3, 3), {"group": 5, "pads": [1, 1, 1, 1]}),
    "depthwise_s2_odd": ((1, 3, 17, 71), (3, 1, 3, 5),
                         {"group": 3, "pads": [1, 2, 1, 2], "strides": [2, 2]}),
    "depthwise_s2_even": ((1, 3, 16, 28), (3, 1, 5, 3),
                          {"group": 3, "pads": [2, 1, 2, 1], "strides": [2, 2]}),
    "depthwise_s2_narrow": ((1, 3, 9, 5), (3, 1, 3, 3),
                            {"group": 3, "pads": [0, 1, 0, 1], "strides": [1, 2]}),
    "depthwise_s2_dilated": ((1, 3, 20, 37), (3, 1, 5, 4),
                             {"group": 3, "strides": [2, 2], "dilations": [2, 3]}),
    "depthwise_1d_s2": ((1, 3, 203), (3, 1, 9), {"group": 3, "pads": [4, 4], "strides": [2]}),
    "depthwise_1d_s3": ((1, 3, 403), (3, 1, 5), {"group": 3, "strides": [3]}),
    "one_pixel": ((1, 64, 1, 1), (48, 64, 1, 1), {}),
    # A width in which no window moves is merged into the height.
    "5x1_width_1": ((2, 6, 150, 1), (9, 6, 5, 1), {"pads": [2, 0, 2, 0]}),
    "5x1_width_1_s2": ((1, 6, 151, 1), (9, 6, 5, 1), {"pads": [1, 0, 2, 0], "strides": [2, 1]}),
    "5x1_width_1_stride": ((1, 6, 90, 1), (9, 6, 5, 1), {"strides": [1, 2]}),
    "5x1_width_1_padded": ((1, 6, 40, 1), (9, 6, 5, 1), {"pads": [0, 1, 0, 0]}),
    "5x1_dilated": ((2, 3, 31, 5), (4, 3, 5, 1), {"pads": [3, 0, 1, 0], "dilations": [2, 3]}),
    "5x1_s2": ((1, 3, 31, 5), (4, 3, 5, 1), {"pads": [2, 0, 2, 0], "strides": [2, 1]}),
    "5x1_groups": ((2, 8, 31, 5), (4, 4, 5, 1), {"group": 2, "pads": [2, 0, 2, 0]}),
    "3d_depth_only": ((1, 3, 9, 2, 3), (4, 3, 3, 1, 1), {"pads": [1, 0, 0, 2, 0, 0]}),
    "3d_width_1": ((2, 3, 9, 7, 1), (4, 3, 3, 3, 1), {"pads": [1, 1, 0, 2, 1, 0]}),
    "3d_height_and_width_1": ((1, 3, 90, 1, 1), (4, 3, 3, 1, 1), {"strides": [3, 1, 1]}),
    "depthwise_width_1": ((2, 4, 150, 1), (8, 1, 9, 1), {"group": 4, "pads": [4, 0, 4, 0]}),
    "depthwise_width_1_s2": ((1, 4, 9000, 1), (4, 1, 3, 1), {"group": 4, "strides": [2, 1]}),
    "depthwise_5x1": ((1, 4, 30, 21), (4, 1, 5, 1), {"group": 4, "pads": [2, 0, 2, 0]}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_conv_is_within_the_rounding_bound(name):
    x, w, options = CASES[name]
    check_conv(x, w, **options)


@pytest.mark.parametrize("dtype", [np.float64, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("name", ["1x1", "3x3", "groups", "1d", "3d", "depthwise_3x3",
                                  "5x1_width_1", "depthwise_width_1"])  # fmt: skip
def test_conv_of_other_dtypes(name, dtype):
    x, w, options = CASES[name]
    check_conv(x, w, dtype=dtype, opset=22, **options)


@pytest.mark.parametrize("opset", [7, 11, 22])
def test_conv_of_every_version_without_bias(opset):
    check_conv((1, 3, 9, 9), (4, 3, 3, 3), bias=False, opset=opset)


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_conv_pads_by_itself(auto_pad, stride):
    x, w = normal(1, 3, 14, 17), normal(4, 3, 4, 5)
    y = chipdock.run_op("Conv", x, w, auto_pad=auto_pad, strides=[stride, stride]).numpy()
    pads = [0, 0, 0, 0]
    if auto_pad != "VALID":
        for i, (n, k) in enumerate(((14, 4), (17, 5))):
            total = max((-(-n // stride) - 1) * stride + k - n, 0)
            low = total // 2 if auto_pad == "SAME_UPPER" else total - total // 2
            pads[i], pads[i + 2] = low, total - low
    want = convolve(x, w, strides=[stride] * 2, dilations=[1, 1], pads=pads, group=1)
    assert y.shape == want.shape
    np.testing.assert_allclose(y, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [(1, 4, 5, 0), (1, 4, 0, 1)])
def test_conv_of_an_empty_image_is_empty(shape):
    y = chipdock.run_op("Conv", normal(*shape), normal(4, 1, 1, 1), group=4, auto_pad="SAME_UPPER")
    assert y.numpy().shape == shape


def test_conv_of_no_images_is_empty():
    assert chipdock.run_op("Conv", normal(0, 3, 8, 8), normal(4, 3, 3, 3)).numpy().shape == (
        0, 4, 6, 6,
    )  # fmt: skip


def test_conv_of_no_channels_is_the_bias():
    bias = normal(4)
    y = chipdock.run_op("Conv", normal(1, 0, 5, 5), normal(4, 0, 3, 3), bias).numpy()
    np.testing.assert_array_equal(y, np.broadcast_to(bias.reshape(1, 4, 1, 1), (1, 4, 3, 3)))


@pytest.mark.parametrize(
    ("x", "w", "options", "words"),
    [((1, 3, 4, 4), (2, 3, 5, 5), {}, "spans 5"), ((1, 3, 9, 9), (2, 4, 3, 3), {}, "channels"),
     ((1, 4, 9, 9), (3, 2, 3, 3), {"group": 2}, "group"),
     ((1, 3, 9, 9), (2, 3, 3, 3), {"strides": [0, 1]}, "strides"),
     ((1, 3, 9, 9), (2, 3, 3, 3), {"pads": [1, 1]}, "pads"), ((1, 3), (2, 3), {}, "rank")],
)  # fmt: skip
def test_unfit_conv_is_named(x, w, options, words):
    with pytest.raises(chipdock.ChipdockError, match=f"Conv.*{words}"):
        chipdock.run_op("Conv", normal(*x), normal(*w), **options)


def reference_transpose(x, w, b, **attributes):
    node = helper.make_node("ConvTranspose", ["x", "w", "b"], ["y"], **attributes)
    infos = [helper.make_tensor_value_info(n, 1, v.shape) for n, v in zip("xwb", (x, w, b),
                                                                        strict=True)]  # fmt: skip
    graph = helper.make_graph([node], "g", infos, [helper.make_tensor_value_info("y", 1, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return ReferenceEvaluator(model).run(None, {"x": x, "w": w, "b": b})[0]


TRANSPOSED = {
    "2x2_s2": ((1, 6, 5, 7), (6, 4, 2, 2), {"strides": [2, 2]}),
    "overlap": ((2, 3, 6, 5), (3, 2, 3, 4), {"strides": [2, 1], "pads": [1, 0, 1, 2]}),
    "dilated": ((1, 2, 5, 6), (2, 3, 3, 3), {"dilations": [2, 2]}),
    "output_padding": ((1, 2, 5, 6), (2, 3, 3, 3), {"strides": [3, 2], "output_padding": [2, 1]}),
    "1d": ((1, 3, 9), (3, 5, 4), {"strides": [2], "pads": [1, 1]}),
}


@pytest.mark.parametrize("name", TRANSPOSED)
def test_conv_transpose_equals_the_reference(name):
    x_shape, w_shape, attributes = TRANSPOSED[name]
    x, w, b = normal(*x_shape), normal(*w_shape), normal(w_shape[1])
    y = chipdock.run_op("ConvTranspose", x, w, b, **attributes).numpy()
    want = reference_transpose(x, w, b, **attributes)
    assert y.shape == want.shape
    np.testing.assert_allclose(y, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("group", [1, 2])
def test_conv_transpose_is_the_adjoint_of_conv(dtype, group):
    """<conv(a), b> = <a, transpose(b)> for all a and b."""
    options = {"strides": [2, 3], "pads": [1, 2, 0, 1], "dilations": [1, 2], "group": group}
    w = normal(4, 6 // group, 3, 2, dtype=dtype)
    a = normal(2, 6, 8, 12, dtype=dtype)  # Sizes at which no input element is left over.
    forward = chipdock.run_op("Conv", a, w, **options).numpy()
    b = RNG.standard_normal(forward.shape).astype(dtype)
    back = chipdock.run_op("ConvTranspose", b, w, **options).numpy().astype(np.float64)
    assert back.shape == a.shape
    left = float(np.sum(forward.astype(np.float64) * b.astype(np.float64)))
    right = float(np.sum(a.astype(np.float64) * back))
    scale = float(np.linalg.norm(forward.astype(np.float64)) * np.linalg.norm(b.astype(np.float64)))
    assert abs(left - right) <= {2: 1e-3, 4: 1e-6, 8: 1e-14}[a.dtype.itemsize] * scale


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER"])
def test_conv_transpose_to_a_given_size(auto_pad):
    x, w = normal(1, 2, 4, 5), normal(2, 3, 3, 3)
    full = chipdock.run_op("ConvTranspose", x, w, strides=[2, 2]).numpy()
    y = chipdock.run_op("ConvTranspose", x, w, strides=[2, 2], auto_pad=auto_pad).numpy()
    assert y.shape == (1, 3, 8, 10)
    low = 0 if auto_pad == "SAME_UPPER" else 1
    np.testing.assert_allclose(y, full[:, :, low : low + 8, low : low + 10], rtol=1e-5, atol=1e-6)


def test_conv_transpose_with_too_much_padding_is_named():
    with pytest.raises(chipdock.ChipdockError, match=r"ConvTranspose.*pads"):
        chipdock.run_op("ConvTranspose", normal(1, 2, 1, 1), normal(2, 3, 2, 2), pads=[3, 3, 3, 3])


# Shapes for which cpu prefers oneDNN where it is built in: few channels, and small images.
PREFERRED = {
    "first_layer": ((2, 3, 33, 47), (32, 3, 3, 3), {"strides": [2, 2], "pads": [0, 1, 1, 1]}),
    "first_layer_7x7": ((1, 1, 40, 21), (16, 1, 7, 7), {"pads": [3, 3, 3, 3]}),
    "first_layer_dilated": ((1, 4, 20, 21), (16, 4, 3, 3), {"dilations": [2, 3]}),
    "first_layer_one_row": ((1, 2, 5, 40), (16, 2, 5, 3), {}),
    "small_image": ((2, 160, 7, 7), (130, 160, 1, 1), {}),
    "thin_image": ((1, 128, 1, 20), (128, 128, 1, 1), {}),
}


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("name", PREFERRED)
def test_conv_of_accelerated_shapes_with_constant_filters(name, bias):
    x_shape, w_shape, options = PREFERRED[name]
    x, w, b = normal(*x_shape), normal(*w_shape), normal(w_shape[0])
    weights = [helper.make_tensor("w", 1, w_shape, w.tobytes(), raw=True)]
    if bias:
        weights.append(helper.make_tensor("b", 1, b.shape, b.tobytes(), raw=True))
    node = helper.make_node("Conv", ["x", *[t.name for t in weights]], ["y"], **options)
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", 1, x_shape)],
        [helper.make_tensor_value_info("y", 1, None)], weights,
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    loaded = chipdock.load(model, device="cpu:0")
    window = {"strides": [1, 1], "dilations": [1, 1], "pads": [0] * 4, "group": 1, **options}
    want = convolve(x, w, **window) + (b.astype(np.float64).reshape(-1, 1, 1) if bias else 0)
    for _ in range(2):
        y = np.asarray(loaded.run({"x": x})["y"])
        np.testing.assert_allclose(y, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("op", ["Conv", "ConvTranspose"])
@pytest.mark.parametrize("value", [2**31, 2**62, 2**63 - 1])
@pytest.mark.parametrize("auto_pad", ["NOTSET", "SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("name", ["strides", "dilations", "pads", "output_padding"])
def test_window_beyond_int64_is_named(op, value, auto_pad, name):
    if op == "Conv" and name == "output_padding":
        name = "pads"
    options = {name: [value] * (4 if name == "pads" else 2)}
    with pytest.raises(
        chipdock.ChipdockError,
        match=rf"INVALID_ARGUMENT.*{op}: {name} .* value {value}.*does not fit int64",
    ):
        chipdock.run_op(op, normal(1, 1, 4, 4), normal(1, 1, 2, 2), auto_pad=auto_pad, **options)


def test_depthwise_window_beyond_any_memory_is_named():
    far = 2**31 - 1
    with pytest.raises(chipdock.ChipdockError, match=r"INVALID_ARGUMENT.*Conv.*2\^40"):
        chipdock.run_op(
            "Conv", normal(1, 2, 1, 1), normal(2, 1, 1, 1), group=2, strides=[far, far],
            pads=[far] * 4,
        )  # fmt: skip


@pytest.mark.parametrize("op", ["Conv", "ConvTranspose"])
def test_group_times_channels_beyond_int64_is_named(op):
    x, w = normal(1, 0, 3), normal(0, 4, 2)
    with pytest.raises(chipdock.ChipdockError, match=rf"INVALID_ARGUMENT.*{op}.*fit int64"):
        chipdock.run_op(op, x, w, group=2**62)


@pytest.mark.parametrize("layouts", ["on", "off"])
@pytest.mark.parametrize("image", [(0, 4), (4, 0), (0, 0), (1, 1), (2, 3)])
@pytest.mark.parametrize("pads", [[2, 3, 2, 3], [9, 8, 7, 6], [6, 3, 0, 2]])
def test_windows_that_lie_in_the_padding(monkeypatch, layouts, image, pads):
    """Every kernel: first layers, 1x1, depthwise; sums without terms are the bias."""
    monkeypatch.setenv("CHIPDOCK_LAYOUTS", layouts)
    rng = np.random.default_rng(1)
    for channels, filters, kernel, group in [
        (3, 64, (4, 3), 1), (1, 16, (1, 4), 1), (3, 8, (3, 3), 1),
        (128, 128, (1, 1), 1), (16, 16, (3, 3), 16),
    ]:  # fmt: skip
        weight = rng.standard_normal((filters, channels // group, *kernel)).astype(np.float32)
        bias = rng.standard_normal(filters).astype(np.float32)
        nodes = [
            helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=pads, group=group),
            helper.make_node("Relu", ["c"], ["y"]),
        ]
        loaded = chipdock.load(
            model(nodes, [value("x", shape=[None, channels, None, None])], [value("y")],
                  {"w": weight, "b": bias})
        )  # fmt: skip
        x = rng.standard_normal((2, channels, *image)).astype(np.float32)
        padded = np.pad(x, [(0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])])
        windows = np.lib.stride_tricks.sliding_window_view(padded, kernel, (2, 3))
        each = weight.reshape(group, filters // group, channels // group, *kernel)
        windows = windows.reshape(2, group, channels // group, *windows.shape[2:])
        sums = np.einsum("ngchwij,gfcij->ngfhw", windows.astype(np.float64), each)
        wanted = sums.reshape(2, filters, *sums.shape[3:]) + bias[:, None, None]
        got = loaded.run({"x": x})["y"].numpy()
        np.testing.assert_allclose(got, np.maximum(wanted, 0), rtol=1e-5, atol=1e-5)

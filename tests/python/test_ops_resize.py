# SPDX-License-Identifier: Apache-2.0
"""Resize and Upsample on cpu:0, against onnx.reference and against hand-made answers."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

import chipdock

RNG = np.random.default_rng(5)
COORDINATES = [
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
    "tf_crop_and_resize",
]  # fmt: skip
NO_ROI = None


def normal(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


def reference(*inputs, **attributes):
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    node = helper.make_node("Resize", names, ["y"], **attributes)
    given = {n: x for n, x in zip(names, inputs, strict=True) if n}
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for n, x in given.items()
    ]
    elem = helper.np_dtype_to_tensor_dtype(inputs[0].dtype)
    graph = helper.make_graph([node], "g", infos, [helper.make_tensor_value_info("y", elem, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return ReferenceEvaluator(model).run(None, given)[0]


def check(*inputs, **attributes):
    y = chipdock.run_op("Resize", *inputs, opset=21, **attributes).numpy()
    want = reference(*inputs, **attributes)
    assert y.shape == want.shape
    assert y.dtype == inputs[0].dtype
    np.testing.assert_allclose(y.astype(np.float64), want.astype(np.float64), rtol=1e-4, atol=2e-5)


def f32(*values):
    return np.array(values, np.float32)


def i64(*values):
    return np.array(values, np.int64)


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("sizes", [(5, 9), (3, 3), (11, 4)], ids=str)
def test_resize_to_sizes_equals_the_reference(mode, coordinates, sizes):
    roi = f32(0, 0, 0.1, 0.25, 1, 1, 0.95, 1.3) if coordinates == "tf_crop_and_resize" else None
    check(normal(1, 2, 5, 7), roi, None, i64(1, 2, *sizes), mode=mode,
          coordinate_transformation_mode=coordinates, extrapolation_value=7.5)  # fmt: skip


@pytest.mark.parametrize("coordinates", COORDINATES[:5])
@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("scales", [(2, 3), (0.6, 0.8), (1.7, 0.45)], ids=str)
def test_resize_by_scales_equals_the_reference(mode, coordinates, scales):
    check(normal(2, 1, 6, 9), NO_ROI, f32(1, 1, *scales), mode=mode,
          coordinate_transformation_mode=coordinates)  # fmt: skip


@pytest.mark.parametrize(
    "nearest_mode", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
)
@pytest.mark.parametrize("coordinates", COORDINATES[:5])
@pytest.mark.parametrize("scales", [(2, 2), (3, 0.5), (0.65, 1.5)], ids=str)
def test_nearest_rounds_as_asked(nearest_mode, coordinates, scales):
    check(normal(1, 1, 6, 8), NO_ROI, f32(1, 1, *scales), mode="nearest",
          nearest_mode=nearest_mode, coordinate_transformation_mode=coordinates)  # fmt: skip


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("scales", [(0.6, 0.3), (0.25, 1.5)], ids=str)
@pytest.mark.parametrize("exclude_outside", [0, 1])
def test_antialias_equals_the_reference(mode, scales, exclude_outside):
    check(normal(1, 1, 12, 13), NO_ROI, f32(1, 1, *scales), mode=mode, antialias=1,
          exclude_outside=exclude_outside)  # fmt: skip


@pytest.mark.parametrize("coefficient", [-0.5, -0.75])
def test_cubic_without_outside_elements(coefficient):
    check(normal(1, 1, 4, 5), NO_ROI, f32(1, 1, 2, 1.5), mode="cubic", exclude_outside=1,
          cubic_coeff_a=coefficient)  # fmt: skip


@pytest.mark.parametrize("policy", ["stretch", "not_larger", "not_smaller"])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_aspect_ratio_policies_over_chosen_axes(policy, mode):
    check(normal(1, 2, 5, 8), NO_ROI, None, i64(8, 9), axes=[2, 3], mode=mode,
          keep_aspect_ratio_policy=policy)  # fmt: skip


def test_axes_may_be_negative_and_out_of_order():
    x = normal(2, 3, 4, 5)
    y = chipdock.run_op("Resize", x, None, f32(2, 3), axes=[-1, 0], mode="nearest").numpy()
    want = chipdock.run_op("Resize", x, None, f32(3, 1, 1, 2), mode="nearest").numpy()
    np.testing.assert_array_equal(y, want)


@pytest.mark.parametrize(
    "dtype",
    [np.bool_, np.int8, np.uint8, np.int16, np.int32, np.int64, np.float16, np.float64,
     ml_dtypes.bfloat16],
)  # fmt: skip
def test_nearest_moves_every_dtype(dtype):
    x = RNG.integers(0, 100, (1, 2, 3, 4)).astype(dtype)
    y = chipdock.run_op(
        "Resize",
        x,
        None,
        f32(1, 1, 2, 3),
        mode="nearest",
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    ).numpy()
    np.testing.assert_array_equal(y, x.repeat(2, 2).repeat(3, 3))  # fmt: skip


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float16, 2e-3),
                                                  (ml_dtypes.bfloat16, 2e-2)])  # fmt: skip
def test_linear_of_other_floats(dtype, tolerance):
    x = normal(1, 1, 5, 6, dtype=dtype)
    y = chipdock.run_op("Resize", x, None, f32(1, 1, 1.6, 0.7), mode="linear").numpy()
    want = chipdock.run_op("Resize", x.astype(np.float32), None, f32(1, 1, 1.6, 0.7), mode="linear")
    assert y.dtype == x.dtype
    limit = max(tolerance, 1e-5)  # The comparison itself is in float32.
    np.testing.assert_allclose(y.astype(np.float64), want.numpy(), rtol=limit, atol=limit)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_bytes_saturate(mode):
    check(RNG.integers(0, 2, (1, 1, 6, 6)).astype(np.uint8) * np.uint8(255), None,
          f32(1, 1, 2.5, 1.5), mode=mode)  # fmt: skip


def test_linear_over_three_and_one_axes():
    check(normal(3, 4, 5), None, f32(1.5, 2, 0.7), mode="linear")
    check(normal(9), None, f32(2.4), mode="linear")


@pytest.mark.parametrize("opset", [10, 11, 13, 18, 19])
def test_resize_of_every_version(opset):
    x = normal(1, 1, 3, 3)
    inputs = [f32(1, 1, 2, 2)] if opset == 10 else [np.zeros(0, np.float32), f32(1, 1, 2, 2)]
    modes = {} if opset == 10 else {"coordinate_transformation_mode": "asymmetric",
                                    "nearest_mode": "floor"}  # fmt: skip
    y = chipdock.run_op("Resize", x, *inputs, opset=opset, mode="nearest", **modes).numpy()
    np.testing.assert_array_equal(y, x.repeat(2, 2).repeat(2, 3))


def test_upsample_of_both_versions():
    x = normal(1, 2, 3, 4)
    want = x.repeat(2, 2).repeat(3, 3)
    old = chipdock.run_op("Upsample", x, opset=7, scales=[1.0, 1.0, 2.0, 3.0]).numpy()
    new = chipdock.run_op("Upsample", x, f32(1, 1, 2, 3), opset=9).numpy()
    np.testing.assert_array_equal(old, want)
    np.testing.assert_array_equal(new, want)


def test_empty_resize():
    assert chipdock.run_op("Resize", normal(0, 2, 3, 3), None, f32(1, 1, 2, 2)).numpy().shape == (
        0, 2, 6, 6,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("inputs", "options", "words"),
    [((None, f32(1, 2)), {}, "2 values for 4 axes"),
     ((None, None, i64(1, 1, -2, 3)), {}, "size -2"),
     ((None, f32(1, 1, 2, 2)), {"axes": [0, 1, 2, 7]}, "axis 7"),
     ((None, f32(1, 1, 2, 0)), {}, "scale 0")],
)  # fmt: skip
def test_unfit_resize_is_named(inputs, options, words):
    with pytest.raises(chipdock.ChipdockError, match=rf"Resize.*{words}"):
        chipdock.run_op("Resize", normal(1, 1, 3, 3), *inputs, **options)


def test_unknown_mode_is_named_with_the_known_ones():
    with pytest.raises(chipdock.ChipdockError, match=r"lanczos.*nearest.*linear.*cubic"):
        chipdock.run_op("Resize", normal(1, 1, 3, 3), None, f32(1, 1, 2, 2), mode="lanczos")


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_empty_input_makes_only_an_empty_output(mode):
    x = normal(1, 1, 0, 2)
    empty = chipdock.run_op("Resize", x, None, None, i64(1, 1, 0, 4), mode=mode)
    assert empty.numpy().shape == (1, 1, 0, 4)
    with pytest.raises(
        chipdock.ChipdockError, match=r"INVALID_ARGUMENT.*Resize.*\[1,1,0,2\] is empty.*\[1,1,4,2\]"
    ):
        chipdock.run_op("Resize", x, None, None, i64(1, 1, 4, 2), mode=mode)


@pytest.mark.parametrize("scale", [1e30, np.inf])
@pytest.mark.parametrize(("op", "roi"), [("Resize", [None]), ("Upsample", [])])
def test_scale_that_makes_no_extent_is_named(op, roi, scale):
    opset = {"opset": 9} if op == "Upsample" else {}
    with pytest.raises(
        chipdock.ChipdockError, match=rf"INVALID_ARGUMENT.*{op}: scale .*out of range"
    ):
        chipdock.run_op(op, normal(1, 1, 3, 3), *roi, f32(1, 1, scale, 1), **opset)


def test_kept_aspect_ratio_beyond_any_extent_is_named():
    with pytest.raises(chipdock.ChipdockError, match=r"INVALID_ARGUMENT.*out of range"):
        chipdock.run_op(
            "Resize", normal(1, 1, 1, 9), None, None, i64(2**62, 3), axes=[2, 3],
            keep_aspect_ratio_policy="not_smaller",
        )  # fmt: skip


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_the_parts_of_complex_numbers_are_resized_alone(dtype, mode):
    x = (normal(1, 2, 5, 4) + 1j * normal(1, 2, 5, 4)).astype(dtype)
    roi = f32(0, 0, -0.2, 0, 1, 1, 1, 1.2)
    options = {
        "mode": mode,
        "coordinate_transformation_mode": "tf_crop_and_resize",
        "extrapolation_value": 3.0,
    }
    scales = f32(1, 1, 1.6, 2)
    y = chipdock.run_op("Resize", x, roi, scales, **options).numpy()
    assert y.dtype == dtype
    real = chipdock.run_op("Resize", x.real.copy(), roi, scales, **options).numpy()
    options["extrapolation_value"] = 0.0
    imaginary = chipdock.run_op("Resize", x.imag.copy(), roi, scales, **options).numpy()
    np.testing.assert_array_equal(y, real + 1j * imaginary)
    assert (y == 3).any()


@pytest.mark.parametrize("dtype", [np.int16, np.uint16, np.uint32, np.uint64])
def test_weighed_integers_are_rounded(dtype):
    x = np.array([[0, 7, 30000]], dtype)
    y = chipdock.run_op("Resize", x, None, f32(1, 2), mode="linear").numpy()
    # Weights of a quarter: 1.75, 5.25, 7505.25, 22501.75.
    assert y.tolist() == [[0, 2, 5, 7505, 22502, 30000]]
    assert y.dtype == dtype


def test_a_weighed_truth_value_is_the_nearer_one():
    x = np.array([[False, True]])
    y = chipdock.run_op("Resize", x, None, f32(1, 3), mode="linear").numpy()
    assert y.tolist() == [[False, False, False, True, True, True]]

# SPDX-License-Identifier: Apache-2.0
"""Gradients of normalizations, convolutions and pools, against differences."""

import numpy as np
import pytest
from gradient_support import check_gradients, normal, rng
from onnx import helper

node = helper.make_node
KINDS = pytest.mark.parametrize("kind", [{}, {"dynamic": True}], ids=str)


@pytest.mark.parametrize("axis", [-1, 1, -2])
@pytest.mark.parametrize("bias", [False, True])
@KINDS
def test_layer_normalization(axis, bias, kind):
    extents = (4,) if axis == -1 else (3, 4)
    feeds = {"x": normal(2, 3, 4), "s": normal(*extents, seed=1), "b": normal(*extents, seed=2)}
    if not bias:
        del feeds["b"]
    check_gradients([node("LayerNormalization", [*feeds], ["y"], axis=axis)], feeds, **kind)


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("axis", [1, -1])
@KINDS
def test_lp_normalization(p, axis, kind):
    y = [node("LpNormalization", ["x"], ["y"], p=p, axis=axis)]
    check_gradients(y, {"x": normal(2, 3, 4)}, **kind)


@pytest.mark.parametrize("size", [1, 3, 4])
@KINDS
def test_local_response_normalization(size, kind):
    y = [node("LRN", ["x"], ["y"], size=size, alpha=0.5, beta=0.6, bias=1.2)]
    check_gradients(y, {"x": normal(2, 5, 2, 2)}, **kind)


@KINDS
def test_rms_normalization(kind):
    feeds = {"x": normal(2, 3, 4), "s": normal(4, seed=1)}
    check_gradients([node("RMSNormalization", [*feeds], ["y"])], feeds, opset=23, **kind)


@pytest.mark.parametrize("extents", [(3, 2), (3, 2, 5), (2, 2, 3, 2)], ids=str)
@pytest.mark.parametrize("training", [False, True])
@KINDS
def test_batch_normalization(extents, training, kind):
    feeds = {n: normal(2, seed=i) for i, n in enumerate(("s", "b", "m"))}
    feeds = {"x": normal(*extents, seed=9), **feeds, "v": rng(4).uniform(0.5, 2, 2)}
    outputs = ["y", "rm", "rv"] if training else ["y"]
    nodes = [node("BatchNormalization", [*feeds], outputs, training_mode=int(training))]
    check_gradients(nodes, feeds, **kind)


@KINDS
def test_instance_and_group_normalization(kind):
    feeds = {"x": normal(2, 4, 5), "s": normal(4, seed=1), "b": normal(4, seed=2)}
    check_gradients([node("InstanceNormalization", [*feeds], ["y"])], feeds, **kind)
    groups = [node("GroupNormalization", [*feeds], ["y"], num_groups=2)]
    check_gradients(groups, feeds, **kind)


CONVOLUTIONS = {
    "plain": ((2, 3, 5, 6), (4, 3, 3, 2), {}),
    "of 1 axis": ((2, 3, 9), (4, 3, 3), {"strides": [2], "pads": [1, 2]}),
    "of 3 axes": ((1, 2, 3, 4, 3), (2, 2, 2, 2, 2), {"strides": [1, 2, 1]}),
    "strided": ((1, 2, 7, 8), (3, 2, 3, 3), {"strides": [2, 3], "pads": [1, 0, 1, 2]}),
    "dilated": ((1, 2, 8, 7), (3, 2, 2, 3), {"dilations": [3, 2], "strides": [2, 1]}),
    "grouped": ((2, 4, 5, 5), (6, 2, 3, 3), {"group": 2, "pads": [1, 1, 1, 1]}),
    "depthwise": ((2, 3, 5, 5), (3, 1, 3, 3), {"group": 3, "strides": [2, 2]}),
    "same above": ((1, 2, 5, 6), (3, 2, 3, 2), {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    "same below": ((1, 2, 5, 6), (3, 2, 2, 2), {"auto_pad": "SAME_LOWER", "strides": [1, 1]}),
    "of many taps": ((1, 2, 70), (4, 1, 51), {"group": 2, "strides": [3], "pads": [2, 1]}),
    "of several filters": ((2, 2, 6), (4, 1, 3), {"group": 2, "dilations": [2]}),
    "valid": ((1, 2, 5, 6), (3, 2, 2, 2), {"auto_pad": "VALID", "strides": [2, 2]}),
}


@pytest.mark.parametrize("case", CONVOLUTIONS)
@KINDS
def test_convolutions(case, kind):
    image, weight, ways = CONVOLUTIONS[case]
    feeds = {"x": normal(*image), "w": normal(*weight, seed=1), "b": normal(weight[0], seed=2)}
    check_gradients([node("Conv", [*feeds], ["y"], **ways)], feeds, **kind)


TRANSPOSED = {
    "plain": ((1, 2, 3, 3), (2, 3, 3, 2), {}),
    "strided": ((1, 2, 3, 3), (2, 3, 3, 2), {"strides": [2, 3], "pads": [1, 0, 0, 1]}),
    "grouped": ((2, 4, 3), (4, 3, 2), {"group": 2, "dilations": [2]}),
    "longer": ((1, 2, 3), (2, 1, 2), {"strides": [3], "output_padding": [2]}),
    "sized": ((1, 2, 3), (2, 1, 3), {"strides": [2], "output_shape": [6]}),
    "same": ((1, 2, 3), (2, 1, 3), {"strides": [2], "auto_pad": "SAME_UPPER"}),
}


@pytest.mark.parametrize("case", TRANSPOSED)
@KINDS
def test_transposed_convolutions(case, kind):
    image, weight, ways = TRANSPOSED[case]
    feeds = {"x": normal(*image), "w": normal(*weight, seed=1)}
    feeds["b"] = normal(weight[1] * ways.get("group", 1), seed=2)
    check_gradients([node("ConvTranspose", [*feeds], ["y"], **ways)], feeds, **kind)


POOLS = {
    "plain": {"kernel_shape": [2, 3]},
    "strided": {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1]},
    "rounded up": {"kernel_shape": [2, 2], "strides": [2, 3], "ceil_mode": 1},
    "dilated": {"kernel_shape": [2, 2], "dilations": [2, 3]},
    "same above": {"kernel_shape": [2, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
    "same below": {"kernel_shape": [2, 2], "auto_pad": "SAME_LOWER"},
}


@pytest.mark.parametrize("case", POOLS)
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
@KINDS
def test_pools(op, case, kind):
    feeds = {"x": normal(2, 2, 5, 6)}
    check_gradients([node(op, ["x"], ["y"], **POOLS[case])], feeds, **kind)
    if op == "AveragePool":
        counted = [node(op, ["x"], ["y"], count_include_pad=1, **POOLS[case])]
        check_gradients(counted, feeds, **kind)


@pytest.mark.parametrize("op", ["GlobalAveragePool", "GlobalMaxPool"])
@KINDS
def test_global_pools(op, kind):
    check_gradients([node(op, ["x"], ["y"])], {"x": normal(2, 3, 4, 2)}, **kind)


@pytest.mark.parametrize("training", [None, False])
def test_dropout_at_rest_is_no_node(training):
    constants = {} if training is None else {"r": np.array(0.5), "t": np.array(training)}
    nodes = [node("Dropout", ["x", *constants], ["d"]), node("Mul", ["d", "d"], ["y"])]
    check_gradients(nodes, {"x": normal(3, 4)}, constants=constants)


RESIZES = {
    "nearest": {"mode": "nearest"},
    "linear": {"mode": "linear"},
    "linear between corners": {
        "mode": "linear",
        "coordinate_transformation_mode": "align_corners",
    },
    "cubic": {"mode": "cubic", "coordinate_transformation_mode": "asymmetric"},
    "antialiased": {"mode": "linear", "antialias": 1},
}


@pytest.mark.parametrize("case", RESIZES)
@KINDS
def test_resizes(case, kind):
    x, ways = normal(1, 2, 4, 5), RESIZES[case]
    for scales in ([1, 1, 2, 1.6], [1, 1, 0.5, 0.7]):
        constants = {"scales": np.array(scales, np.float32)}
        y = [node("Resize", ["x", "", "scales"], ["y"], **ways)]
        check_gradients(y, {"x": x}, constants=constants, **kind)
    constants = {"sizes": np.array([3, 7])}
    y = [node("Resize", ["x", "", "", "sizes"], ["y"], axes=[-2, 3], **ways)]
    check_gradients(y, {"x": x}, constants=constants, **kind)

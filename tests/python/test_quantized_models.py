# SPDX-License-Identifier: Apache-2.0
"""Models with QuantizeLinear and DequantizeLinear written out run on integer kernels."""

from collections import Counter

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper
from onnxruntime import quantization

import chipdock

_RNG = np.random.default_rng(11)
_TYPES = {"u8": quantization.QuantType.QUInt8, "i8": quantization.QuantType.QInt8}
_NUMBERS = {np.dtype(np.uint8): onnx.TensorProto.UINT8, np.dtype(np.int8): onnx.TensorProto.INT8}


def graph(nodes, shape, out, **weights):
    """A float32 model with one input x and one output y."""
    floats = onnx.TensorProto.FLOAT
    made = helper.make_graph(
        nodes, "g",
        [helper.make_tensor_value_info("x", floats, shape)],
        [helper.make_tensor_value_info("y", floats, out)],
        [numpy_helper.from_array(np.asarray(w), name) for name, w in weights.items()],
    )  # fmt: skip
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def random(*shape):
    return (_RNG.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)


def convolutions():
    """Pointwise, strided, depthwise, with a residual, a pool and a Gemm at the end."""
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w1", "b1"], ["c1"], pads=[1, 1, 1, 1]), node("Relu", ["c1"], ["r1"]),
        node("Conv", ["r1", "w2", "b2"], ["c2"], group=8, pads=[1, 1, 1, 1]),
        node("Clip", ["c2", "low", "high"], ["r2"]), node("Conv", ["r2", "w3"], ["c3"]),
        node("Add", ["c3", "r1"], ["s"]), node("MaxPool", ["s"], ["p"], kernel_shape=[2, 2]),
        node("Conv", ["p", "w4", "b4"], ["c4"], strides=[2, 2]),
        node("GlobalAveragePool", ["c4"], ["a"]), node("Flatten", ["a"], ["f"]),
        node("Gemm", ["f", "w5", "b5"], ["y"], transB=1),
    ]  # fmt: skip
    weights = {
        "w1": random(8, 3, 3, 3), "b1": random(8), "w2": random(8, 1, 3, 3), "b2": random(8),
        "low": np.float32(0), "high": np.float32(6), "w3": random(8, 8, 1, 1),
        "w4": random(12, 8, 3, 3), "b4": random(12), "w5": random(5, 12), "b5": random(5),
    }  # fmt: skip
    return graph(nodes, [2, 3, 16, 16], [2, 5], **weights)


def layers():
    """Products with and without bias, the last of two activations."""
    node = helper.make_node
    nodes = [
        node("MatMul", ["x", "w1"], ["m1"]), node("Add", ["m1", "b1"], ["a1"]),
        node("Relu", ["a1"], ["r1"]), node("Gemm", ["r1", "w2", "b2"], ["r2"]),
        node("Transpose", ["r2"], ["t"]), node("MatMul", ["r2", "t"], ["y"]),
    ]  # fmt: skip
    weights = {"w1": random(24, 40), "b1": random(40), "w2": random(40, 17), "b2": random(17)}
    return graph(nodes, [9, 24], [9, 9], **weights)


class _Reader(quantization.CalibrationDataReader):
    def __init__(self, shape):
        self.samples = iter(
            [{"x": _RNG.standard_normal(shape).astype(np.float32)} for _ in range(4)]
        )

    def get_next(self):
        return next(self.samples, None)


def quantized(model, folder, activations, weights, per_channel):
    onnx.save(model, folder / "float.onnx")
    shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    quantization.quantize_static(
        folder / "float.onnx", folder / "int8.onnx", _Reader(shape), per_channel=per_channel,
        quant_format=quantization.QuantFormat.QDQ, activation_type=_TYPES[activations],
        weight_type=_TYPES[weights],
    )  # fmt: skip
    return onnx.load(folder / "int8.onnx")


def compared(model, feeds):
    """Our outputs and onnxruntime's, with the operators that ran here."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    loaded = chipdock.load(model)
    nodes = [n for n in loaded.explain().nodes if n.placement not in {"folded", "view"}]
    ops = Counter(n.op.removeprefix("ai.chipdock.") for n in nodes)
    return loaded.run(feeds)["y"].numpy(), session.run(["y"], feeds)[0], ops


def step(model):
    """The scale of what is dequantized into y."""
    last = next(n for n in model.graph.node if "y" in n.output)
    scales = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    return float(scales[last.input[1]])


_WAYS = [("u8", "i8", True), ("u8", "i8", False), ("i8", "i8", True), ("u8", "u8", False)]


@pytest.mark.slow
@pytest.mark.parametrize(("activations", "weights", "per_channel"), _WAYS)
@pytest.mark.parametrize("make", [convolutions, layers])
def test_static_quantization_runs_on_integer_kernels(
    tmp_path, make, activations, weights, per_channel
):
    model = quantized(make(), tmp_path, activations, weights, per_channel)
    shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    feeds = {"x": _RNG.standard_normal(shape).astype(np.float32)}
    got, want, ops = compared(model, feeds)
    assert np.abs(got - want).max() <= step(model) * 1.001
    floats = {"Conv", "FusedConv", "MatMul", "FusedMatMul", "Gemm"}
    assert not floats & set(ops), ops
    if make is convolutions:
        assert (ops["QLinearConv"], ops["QLinearGemm"]) == (4, 1)
    else:
        assert ops["QLinearMatMul"] + ops["QLinearGemm"] == 3


def linear(op, name, output, weights, *, scale, zero, **attributes):
    weights[f"{output}_s"] = np.float32(scale)
    inputs = [name, f"{output}_s"]
    if zero is not None:
        weights[f"{output}_z"] = np.asarray(zero)
        inputs.append(f"{output}_z")
    return helper.make_node(op, inputs, [output], **attributes)


_U8, _I8 = np.uint8, np.int8
_BOTH = {"scale": 0.02, "zero": _I8(0)}
_ZEROS = (_U8(3), _U8(7))


def written_out(middle, weights, filters, zeros=_ZEROS, **of_weights):
    """x quantized, `middle` between, y dequantized."""
    weights["w"] = filters
    return [
        linear("QuantizeLinear", "x", "xq", weights, scale=0.05, zero=zeros[0]),
        linear("DequantizeLinear", "xq", "xd", weights, scale=0.05, zero=zeros[0]),
        linear("DequantizeLinear", "w", "wd", weights, **(_BOTH | of_weights)),
        *middle,
        linear("QuantizeLinear", "m", "yq", weights, scale=0.3, zero=zeros[1]),
        linear("DequantizeLinear", "yq", "y", weights, scale=0.3, zero=zeros[1]),
    ]


def ran(model, feeds, *, limit):
    got, want, ops = compared(model, feeds)
    assert np.abs(got - want).max(initial=0) <= limit * 1.001
    del ops["QuantizeLinear"], ops["DequantizeLinear"]
    return dict(ops)


def bytes_of(*shape):
    return _RNG.integers(-100, 100, shape).astype(np.int8)


_CONV = helper.make_node("Conv", ["xd", "wd"], ["m"])
_MATMUL = helper.make_node("MatMul", ["xd", "wd"], ["m"])


@pytest.mark.parametrize("zeros", [(np.uint8(3), np.uint8(7)), (np.int8(-9), np.int8(0))], ids=str)
def test_weights_of_channels_and_without_a_zero_point(zeros):
    weights: dict = {}
    scale = _RNG.uniform(0.01, 0.03, 6)
    nodes = written_out(
        [_CONV], weights, bytes_of(6, 4, 3, 3), zeros, scale=scale, axis=0, zero=None
    )
    model = graph(nodes, [1, 4, 9, 9], [1, 6, 7, 7], **weights)
    assert ran(model, {"x": random(1, 4, 9, 9) * 30}, limit=0.3) == {"QLinearConv": 1}


def test_scales_along_another_axis_stay_floats():
    weights: dict = {}
    scale = _RNG.uniform(0.01, 0.03, 8)
    nodes = written_out([_MATMUL], weights, bytes_of(8, 5), scale=scale, axis=0, zero=None)
    model = graph(nodes, [3, 8], [3, 5], **weights)
    assert ran(model, {"x": random(3, 8) * 9}, limit=0.3) == {"MatMul": 1}


@pytest.mark.parametrize(("zero", "wanted"), [(0, {"QLinearConv": 1}), (7, {"FusedConv": 1})])
def test_an_activation_goes_where_saturation_does_the_same(zero, wanted):
    weights: dict = {}
    middle = [
        helper.make_node("Conv", ["xd", "wd"], ["c"]),
        helper.make_node("Relu", ["c"], ["m"]),
    ]
    nodes = written_out(middle, weights, bytes_of(6, 4, 3, 3), (_U8(3), _U8(zero)))
    model = graph(nodes, [1, 4, 9, 9], [1, 6, 7, 7], **weights)
    assert ran(model, {"x": random(1, 4, 9, 9) * 30}, limit=0.3) == wanted


def test_values_that_others_read_are_dequantized_for_them_once():
    weights: dict = {"v": random(6, 4, 3, 3)}
    middle = [
        helper.make_node("Conv", ["xd", "wd"], ["c"]),
        helper.make_node("Conv", ["xd", "v"], ["d"]),
        helper.make_node("Conv", ["xd", "v"], ["e"]),
        linear("QuantizeLinear", "c", "cq", weights, scale=0.3, zero=np.uint8(7)),
        linear("DequantizeLinear", "cq", "cd", weights, scale=0.3, zero=np.uint8(7)),
        helper.make_node("Sub", ["cd", "d"], ["f"]),
        helper.make_node("Sub", ["f", "e"], ["m"]),
    ]
    nodes = written_out(middle, weights, bytes_of(6, 4, 3, 3))
    model = graph(nodes, [1, 4, 9, 9], [1, 6, 7, 7], **weights)
    got, want, ops = compared(model, {"x": random(1, 4, 9, 9) * 30})
    assert np.abs(got - want).max() <= 0.6
    # x for two float convolutions, c, y
    assert (ops["QLinearConv"], ops["Conv"], ops["DequantizeLinear"]) == (1, 2, 3)


@pytest.mark.parametrize("form", ["float", "int", "add"])
def test_a_bias_is_rounded_to_the_scale_of_the_product(form):
    weights: dict = {"b": random(5) * 10}
    bias = "b"
    middle = []
    if form == "int":
        weights["b"] = np.arange(-2000, 2000, 900).astype(np.int32)
        middle = [
            linear("DequantizeLinear", "b", "bd", weights, scale=0.05 * 0.02, zero=np.int32(0))
        ]
        bias = "bd"
    if form == "add":
        middle += [
            helper.make_node("MatMul", ["xd", "wd"], ["c"]),
            helper.make_node("Add", [bias, "c"], ["m"]),
        ]
    else:
        middle += [helper.make_node("Gemm", ["xd", "wd", bias], ["m"], transB=1)]
    filters = bytes_of(8, 5) if form == "add" else bytes_of(5, 8)
    nodes = written_out(middle, weights, filters)
    model = graph(nodes, [3, 8], [3, 5], **weights)
    assert ran(model, {"x": random(3, 8) * 9}, limit=0.3) == {"QLinearGemm": 1}


@pytest.mark.parametrize("op", ["MaxPool", "Transpose", "Flatten"])
def test_bytes_that_only_move_stay_bytes(op):
    weights: dict = {}
    attributes = {"MaxPool": {"kernel_shape": [2, 2]}, "Flatten": {"axis": 2}}.get(op, {})
    nodes = [
        linear("QuantizeLinear", "x", "xq", weights, scale=0.05, zero=np.int8(3)),
        linear("DequantizeLinear", "xq", "xd", weights, scale=0.05, zero=np.int8(3)),
        helper.make_node(op, ["xd"], ["m"], **attributes),
        linear("QuantizeLinear", "m", "yq", weights, scale=0.05, zero=np.int8(3)),
        linear("DequantizeLinear", "yq", "y", weights, scale=0.05, zero=np.int8(3)),
    ]
    model = graph(nodes, [1, 4, 6, 6], None, **weights)
    got, want, ops = compared(model, {"x": random(1, 4, 6, 6) * 9})
    np.testing.assert_array_equal(got, want)
    assert (ops["QuantizeLinear"], ops["DequantizeLinear"]) == (1, 1)

# SPDX-License-Identifier: Apache-2.0
"""Nets whose tensors stay in blocks of channels on cpu:0, against the same nets without layouts
and against onnx's reference.

What each kernel computes in blocks is tests/cpp/test_cpu_blocked*.cpp's matter; here they meet.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from api_support import model, open_cpu, python, value
from numpy.typing import NDArray
from onnx import helper
from onnx.reference import ReferenceEvaluator

import chipdock

Floats = NDArray[Any]
# Channels that fill no block, images of odd extents and of one pixel.
SHAPES = [(3, 3, 19, 21), (1, 3, 16, 16), (2, 3, 1, 1), (0, 3, 8, 8)]


class Net:
    """A net under construction, of one float type; methods take and return names of values."""

    def __init__(self, dtype: Any = np.float32) -> None:
        self.dtype = np.dtype(dtype)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, np.ndarray] = {}
        self.rng = np.random.default_rng(0)

    def op(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], f"n{name}", **attributes))
        return name

    def constant(self, array: Any, dtype: Any = None) -> str:
        name = f"w{len(self.weights)}"
        self.weights[name] = np.asarray(array, dtype or self.dtype)
        return name

    def conv(
        self, x: str, inside: int, outside: int, size: int, group: int = 1, **more: Any
    ) -> str:
        shape = (outside, inside // group, size, size)
        scale = 1.5 / np.sqrt(np.prod(shape[1:]))
        w = self.constant(self.rng.standard_normal(shape) * scale)
        b = self.constant(self.rng.standard_normal(outside) * 0.1)
        dilation = more.get("dilations", [1, 1])[0]
        border = [dilation * (size - 1) // 2] * 4
        return self.op("Conv", x, w, b, group=group, **{"pads": border, **more})

    def build(self, out: str) -> onnx.ModelProto:
        kind = helper.np_dtype_to_tensor_dtype(self.dtype)
        x = value("x", kind, ["N", 3, "H", "W"])
        return model(self.nodes, [x], [value(out, kind)], self.weights)


def mobile(dtype: Any = np.float32) -> onnx.ModelProto:
    """Strided, depthwise and pointwise layers, squeeze and excitation, residuals, a reduction."""
    net = Net(dtype)
    x = net.conv("x", 3, 24, 3, strides=[2, 2])
    x = net.op("HardSwish", x)
    y = net.op("Clip", net.conv(x, 24, 40, 1), net.constant(0.0), net.constant(6.0))
    y = net.op("HardSwish", net.conv(y, 40, 40, 5, group=40))
    squeezed = net.op("Relu", net.conv(net.op("GlobalAveragePool", y), 40, 17, 1))
    gate = net.op("HardSigmoid", net.conv(squeezed, 17, 40, 1))
    x = net.op("Add", net.conv(net.op("Mul", y, gate), 40, 24, 1), x)
    x = net.op("Sigmoid", net.conv(x, 24, 17, 3, dilations=[2, 2]))
    x = net.op("Mul", x, net.constant(net.rng.standard_normal((17, 1, 1))))
    x = net.conv(net.op("Sub", net.constant(1.0), x), 17, 33, 3, strides=[2, 2])
    return net.build(net.op("ReduceMean", x, net.constant([2, 3], np.int64), keepdims=0))


def pyramid() -> onnx.ModelProto:
    """Pools, joins and images made larger, back to a map of the input's size or one more."""
    net = Net()
    scales = net.constant([1, 1, 2, 2])
    x = net.op("Relu", net.conv("x", 3, 24, 3))
    pads = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    y = net.op("Relu", net.conv(net.op("MaxPool", x, **pads), 24, 20, 3))
    z = net.op("LeakyRelu", net.conv(net.op("AveragePool", y, **pads), 20, 48, 3, group=1))
    z = net.op("Resize", net.conv(z, 48, 24, 1), "", scales, mode="nearest", nearest_mode="floor")
    z = net.op("Elu", net.conv(z, 24, 20, 3))
    shape = net.op("Shape", y)
    channels = net.constant([20], np.int64)
    batch = net.op("Slice", shape, net.constant([0], np.int64), net.constant([1], np.int64))
    rest = net.op("Slice", shape, net.constant([2], np.int64), net.constant([4], np.int64))
    z = net.op("Resize", z, "", "", net.op("Concat", batch, channels, rest, axis=0))
    joined = net.op("Concat", y, z, y, axis=1)
    return net.build(net.conv(net.op("Max", joined, joined), 60, 5, 3))


def run(proto: onnx.ModelProto, device: chipdock.Device, layouts: str, x: Floats) -> Floats:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CHIPDOCK_LAYOUTS", layouts)
        loaded = chipdock.load(proto, device)
    return loaded(x).numpy()


def layouts_of(proto: onnx.ModelProto, device: chipdock.Device) -> list[int]:
    return [node.layout for node in chipdock.load(proto, device).explain().nodes]


def numbers(shape: tuple[int, ...]) -> Floats:
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def test_channels_that_only_the_filters_know():
    net = Net()
    x = net.op("Relu", net.conv("x", 33, 24, 3))
    proto = net.build(net.conv(x, 24, 17, 1))
    proto.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "C"
    device = open_cpu()
    assert 1 in layouts_of(proto, device)
    x = numbers((2, 33, 9, 7))
    want = ReferenceEvaluator(proto).run(None, {"x": x})[0]
    np.testing.assert_allclose(run(proto, device, "on", x), want, rtol=1e-4, atol=1e-4)
    with pytest.raises(chipdock.errors.InvalidArgumentError, match="Conv"):
        run(proto, device, "on", numbers((2, 32, 9, 7)))


def check(got: Floats, want: Floats) -> None:
    """Equal but for the order of sums: thousands of terms of about 1, a few layers deep."""
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


def sweep(device: chipdock.Device) -> None:
    """Both nets on all shapes, with layouts and without."""
    for proto in (mobile(), pyramid()):
        for shape in SHAPES:
            x = numbers(shape)
            check(run(proto, device, "on", x), run(proto, device, "off", x))


@pytest.fixture(scope="module")
def device() -> chipdock.Device:
    return chipdock.device("cpu:0")


@pytest.mark.parametrize("make", [mobile, pyramid])
def test_nets_agree_with_and_without_blocks(device, make):
    for shape in SHAPES:
        x = numbers(shape)
        check(run(make(), device, "on", x), run(make(), device, "off", x))


@pytest.mark.parametrize("make", [mobile, pyramid])
def test_nets_agree_with_the_reference(device, make):
    x = numbers((2, 3, 9, 7))
    (want,) = ReferenceEvaluator(make()).run(None, {"x": x})
    check(run(make(), device, "on", x), want)


@pytest.mark.skipif(
    "avx2" not in Path("/proc/cpuinfo").read_text(), reason="no vectors of eight floats: no blocks"
)
def test_nets_stay_in_blocks_from_end_to_end(device):
    assert set(layouts_of(mobile(), device)) == {1}
    found = layouts_of(pyramid(), device)
    assert found.count(0) <= 5  # The shape of the second Resize, and what makes the output plain.


def test_other_types_are_left_alone(device):
    for dtype in (np.float64, np.float16):
        assert set(layouts_of(mobile(dtype), device)) == {0}


def test_what_is_not_finite_stays_in_its_image(device):
    x = numbers((3, 3, 9, 7))
    x[1, 2, 4, 4] = np.nan
    x[2, 0, 0, 0] = np.inf
    got, want = (run(mobile(), device, layouts, x) for layouts in ("on", "off"))
    check(got[0], want[0])
    assert np.isnan(got[1:]).any()
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))


def test_strict_mode_and_checked_calls_agree():
    x = numbers((2, 3, 9, 7))
    want = run(mobile(), open_cpu(), "off", x)
    check(run(mobile(), open_cpu(layers="validate", strict="1"), "on", x), want)


@pytest.mark.slow
@pytest.mark.parametrize("threads", ["1", "2", "5"])
def test_any_number_of_threads(threads):
    sweep(open_cpu(threads=threads))


@pytest.mark.slow
@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
def test_every_instruction_set_level(isa):
    done = python("""
import chipdock, test_cpu_blocked as t
try:
    device = chipdock.device("cpu:0")
except chipdock.UnsupportedError as error:
    print("absent:", error)
else:
    t.sweep(device)
    print("swept with layouts", sorted(set(t.layouts_of(t.mobile(), device))))
""", CHIPDOCK_CPU_ISA=isa)  # fmt: skip
    assert done.returncode == 0, done.stderr
    expected = "[0]" if isa == "baseline" else "[1]"
    assert f"swept with layouts {expected}" in done.stdout or "absent:" in done.stdout

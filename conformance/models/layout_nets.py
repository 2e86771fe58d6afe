# SPDX-License-Identifier: Apache-2.0
"""Small convolution nets, run with private layouts of the device and without.

Their channels fill blocks or do not, their images have odd extents. Both runs are judged against
fp64, and one against the other.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from chipdock.conformance.case import NotSupported, Variant
from chipdock.conformance.models.net import Net, Network
from chipdock.conformance.models.run_net import expected_of
from chipdock.conformance.numerics.dtypes import numpy_dtype, wide
from chipdock.conformance.numerics.judge import Expected, Judge
from chipdock.conformance.opcases.execute import explained, guarded_run, judge_all, load_on

if TYPE_CHECKING:
    import chipdock
    from chipdock.conformance.target import Target

__all__ = ["LAYOUT_NETS", "run_with_and_without"]

_SWITCH = "CHIPDOCK_LAYOUTS"
_SHAPES = ((1, 3, 15, 17), (3, 3, 16, 12))
"""Extents of the inputs, one run each on the same load."""


def _conv(net: Net, x: str, given: int, out: int, *, kernel: int = 3, stride: int = 1,
          group: int = 1) -> str:  # fmt: skip
    return net("Conv", x, net.weight(out, given // group, kernel, kernel),
               net.weight(out, scale=0.1), kernel_shape=[kernel, kernel],
               pads=[kernel // 2] * 4, strides=[stride, stride], group=group)  # fmt: skip


def _pool(net: Net, op: str, x: str, stride: int = 2) -> str:
    return net(op, x, kernel_shape=[3, 3], strides=[stride, stride], pads=[1] * 4)


def _finish(net: Net, x: str, channels: int) -> Network:
    x = net("Flatten", net("GlobalAveragePool", x))
    net("Gemm", x, net.weight(channels, 10), net.weight(10, scale=0.1), out="y")
    return net.finish({"y": ""})


def _residual(dtype: str, width: int) -> Network:
    """Sums of branches, of which one is the input itself."""
    net = Net(11, dtype)
    x = net("Relu", _conv(net, net.input("x", ("N", 3, "H", "W")), 3, width, stride=2))
    x = _pool(net, "MaxPool", x)
    for _ in range(2):
        inner = net("Relu", _conv(net, x, width, width))
        x = net("Relu", net("Add", _conv(net, inner, width, width), x))
    return _finish(net, _conv(net, x, width, width + 8, kernel=1), width + 8)


def _joined(dtype: str) -> Network:
    """Branches of 24, 17 and 3 channels one behind the other, so that blocks shift."""
    net = Net(12, dtype)
    image = net.input("x", ("N", 3, "H", "W"))
    x = net("Relu", _conv(net, image, 3, 32))
    branches = [_conv(net, x, 32, 24, kernel=1), _conv(net, x, 32, 17)]
    x = net("Relu", net("Concat", *branches, image, axis=1))
    x = net("Concat", _conv(net, x, 44, 20), _pool(net, "AveragePool", x, 1), axis=1)
    return _finish(net, _conv(net, net("Relu", x), 64, 40), 40)


def _gated(dtype: str) -> Network:
    """Depthwise layers, and a gate of each channel."""
    net = Net(13, dtype)
    x = net("HardSwish", _conv(net, net.input("x", ("N", 3, "H", "W")), 3, 24, stride=2))
    x = net("HardSwish", _conv(net, _conv(net, x, 24, 40, kernel=1), 40, 40, kernel=5, group=40))
    gate = _conv(net, net("GlobalAveragePool", x), 40, 17, kernel=1)
    gate = net("HardSigmoid", _conv(net, net("Relu", gate), 17, 40, kernel=1))
    x = _conv(net, net("Mul", x, gate), 40, 33, kernel=1)
    return _finish(net, net("Sigmoid", _conv(net, x, 33, 33, stride=2)), 33)


def _pyramid(dtype: str) -> Network:
    """Down and up again; both a map in the middle and one at the end are outputs."""
    net = Net(14, dtype)
    fine = net("Relu", _conv(net, net.input("x", (1, 3, 16, 24)), 3, 20))
    coarse = net("Relu", _conv(net, _pool(net, "MaxPool", fine), 20, 40))
    up = net("Resize", coarse, "", "", net.ints(1, 40, 16, 24), mode="nearest",
             coordinate_transformation_mode="asymmetric", nearest_mode="floor")  # fmt: skip
    net("LeakyRelu", _conv(net, coarse, 40, 6, kernel=1), out="middle", alpha=0.25)
    x = net("Relu", _conv(net, net("Concat", up, fine, axis=1), 60, 24))
    net("Tanh", _conv(net, x, 24, 5, kernel=1), out="y")
    return net.finish({"middle": "", "y": ""})


LAYOUT_NETS: Mapping[str, Callable[[str], Network]] = {
    "residual_full": lambda dtype: _residual(dtype, 32),
    "residual_ragged": lambda dtype: _residual(dtype, 17),
    "joined": _joined, "gated": _gated, "pyramid": _pyramid,
}  # fmt: skip
"""By name, what makes them in a type."""


@contextlib.contextmanager
def _layouts(value: str) -> Iterator[None]:
    before = os.environ.get(_SWITCH)
    os.environ[_SWITCH] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SWITCH]
        else:
            os.environ[_SWITCH] = before


def _working(model: chipdock.Model) -> tuple[list[str], int]:
    """The operators that work in a layout, and how many Reorders there are."""
    inside = [node.op for node in model.explain().nodes if node.layout]
    work = [op for op in inside if op != "ai.chipdock.Reorder"]
    return work, len(inside) - len(work)


def run_with_and_without(target: Target, variant: Variant) -> None:
    """Load a net twice, with layouts and without, and run both with every set of inputs.

    Raises:
        CheckError: An output is not close enough.
        NotSupported: The plugin lists no kernel for a node, or the host uses no layout for the net.
    """
    network = LAYOUT_NETS[variant.name](variant.dtype)
    loaded = {}
    for value in ("on", "off"):
        with _layouts(value):
            loaded[value] = load_on(target, network.model)
    work, reorders = _working(loaded["on"])
    if not work:
        raise NotSupported(f"kernels that gain by a layout in {variant.dtype}")
    assert _working(loaded["off"]) == ([], 0), "layouts are off, and a node works in one"
    target.record(in_layouts=len(work), reorders=reorders, operators=sorted(set(work)))
    shapes = _SHAPES if variant.name != "pyramid" else ((1, 3, 16, 24),)
    for shape in shapes:
        feeds: dict[str, Any] = {
            "x": target.rng.standard_normal(shape).astype(numpy_dtype(variant.dtype))
        }
        expected = expected_of(network, feeds)
        with explained(target, network.model):
            with_, without = (
                guarded_run(loaded[value], feeds, expected, dynamic=False)
                for value in ("on", "off")
            )
        target.digest(*with_)
        judge_all(target, Judge("M"), with_, [Expected(wide(a)) for a in without], None)
        judge_all(target, Judge("M"), with_, expected, None)

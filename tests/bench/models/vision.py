# SPDX-License-Identifier: Apache-2.0
"""Convolutional nets: ResNet-50 and a small diffusion UNet.

Source:
    He et al., "Deep Residual Learning for Image Recognition" (2015), with the stride in the 3x3
    convolution as torchvision has it; Ho et al., "Denoising Diffusion Probabilistic Models" (2020).
"""

import math

from bench.models.net import Net

UNET_TIME = 128
_GROUPS = 8


def _conv_norm(net: Net, x: str, sizes: tuple[int, int], kernel: int, stride: int = 1) -> str:
    """Conv without bias and BatchNormalization kept apart: folding it is the runtime's work."""
    inside, outside = sizes
    y = net.conv(x, inside, outside, kernel, stride, bias=False)
    scale, shift = net.positive((outside,), 0.4, 0.8), net.weight((outside,), 0.02)
    mean, variance = net.weight((outside,), 0.02), net.positive((outside,), 0.8, 1.2)
    return net.op("BatchNormalization", y, scale, shift, mean, variance, epsilon=1e-5)


def _bottleneck(net: Net, x: str, inside: int, middle: int, stride: int) -> str:
    y = net.op("Relu", _conv_norm(net, x, (inside, middle), 1))
    y = net.op("Relu", _conv_norm(net, y, (middle, middle), 3, stride))
    y = _conv_norm(net, y, (middle, 4 * middle), 1)
    if stride != 1 or inside != 4 * middle:
        x = _conv_norm(net, x, (inside, 4 * middle), 1, stride)
    return net.op("Relu", net.op("Add", y, x))


def _residual_net(net: Net, blocks: tuple[int, ...], width: int) -> None:
    x = net.input("x", ["N", 3, "H", "W"])
    y = net.op("Relu", _conv_norm(net, x, (3, width), 7, 2))
    y = net.op("MaxPool", y, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    inside = width
    for stage, count in enumerate(blocks):
        middle = width << stage
        for block in range(count):
            stride = 2 if block == 0 and stage > 0 else 1
            y = _bottleneck(net, y, inside, middle, stride)
            inside = 4 * middle
    y = net.op("Flatten", net.op("GlobalAveragePool", y))
    weight, bias = net.weight((1000, inside), 1 / math.sqrt(inside)), net.weight((1000,), 0.02)
    net.output(net.op("Gemm", y, weight, bias, transB=1), 2)


def resnet50(net: Net) -> None:
    """x [N, 3, H, W] to 1000 classes."""
    _residual_net(net, (3, 4, 6, 3), 64)


def small(net: Net) -> None:
    """The same, of a few milliseconds."""
    _residual_net(net, (1, 1), 32)


def tiny(net: Net) -> None:
    """The same with next to nothing in it: shows that a benchmark runs."""
    _residual_net(net, (1, 1), 4)


def _silu(net: Net, x: str) -> str:
    return net.op("Mul", x, net.op("Sigmoid", x))


def _group_norm(net: Net, x: str, channels: int) -> str:
    """Five nodes, as torch's exporter writes it before opset 21."""
    y = net.reshape(x, 0, _GROUPS, -1)
    ones, zeros = net.constant([1.0] * _GROUPS), net.constant([0.0] * _GROUPS)
    y = net.op("InstanceNormalization", y, ones, zeros, epsilon=1e-5)
    y = net.op("Reshape", y, net.op("Shape", x))
    y = net.op("Mul", y, net.weight((channels, 1, 1), 0.02, around=1.0))
    return net.op("Add", y, net.weight((channels, 1, 1), 0.02))


def _residual(net: Net, x: str, time: str, inside: int, outside: int) -> str:
    y = net.conv(_silu(net, _group_norm(net, x, inside)), inside, outside, 3)
    shift = net.dense(_silu(net, time), UNET_TIME, outside)
    y = net.op("Add", y, net.op("Unsqueeze", shift, net.ints(2, 3)))
    y = net.conv(_silu(net, _group_norm(net, y, outside)), outside, outside, 3)
    if inside != outside:
        x = net.conv(x, inside, outside, 1)
    return net.op("Add", x, y)


def _attention(net: Net, x: str, channels: int, heads: int) -> str:
    """Self-attention between all places of the picture."""
    y = net.reshape(_group_norm(net, x, channels), 0, channels, -1)
    y = net.op("Transpose", y, perm=[0, 2, 1])
    size = channels // heads
    parts = []
    for order in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]):
        part = net.reshape(net.dense(y, channels, channels, bias=False), 0, 0, heads, size)
        parts.append(net.op("Transpose", part, perm=order))
    scores = net.op("MatMul", parts[0], parts[1])
    scores = net.op("Mul", scores, net.constant(1 / math.sqrt(size)))
    y = net.op("MatMul", net.op("Softmax", scores, axis=-1), parts[2])
    y = net.reshape(net.op("Transpose", y, perm=[0, 2, 1, 3]), 0, 0, channels)
    y = net.op("Transpose", net.dense(y, channels, channels), perm=[0, 2, 1])
    return net.op("Add", x, net.op("Reshape", y, net.op("Shape", x)))


def unet(net: Net, width: int = 64) -> None:
    """x [N, 4, H, W] and a time embedding [N, 128] to [N, 4, H, W]; H and W are multiples of 4."""
    x = net.input("x", ["N", 4, "H", "W"])
    time = net.dense(net.input("time", ["N", UNET_TIME]), UNET_TIME, UNET_TIME)
    wide = 2 * width
    top = _residual(net, net.conv(x, 4, width, 3), time, width, width)
    half = _residual(net, net.conv(top, width, width, 3, 2), time, width, wide)
    half = _attention(net, half, wide, 4)
    low = _residual(net, net.conv(half, wide, wide, 3, 2), time, wide, wide)
    low = _residual(net, _attention(net, low, wide, 4), time, wide, wide)
    scales = net.constant([1, 1, 2, 2])
    for skip, channels, outside in ((half, wide, wide), (top, width, width)):
        low = net.op("Resize", low, "", scales, mode="nearest", nearest_mode="floor",
                     coordinate_transformation_mode="asymmetric")  # fmt: skip
        low = net.op("Concat", net.conv(low, wide, wide, 3), skip, axis=1)
        low = _residual(net, low, time, wide + channels, outside)
    y = _silu(net, _group_norm(net, low, width))
    net.output(net.conv(y, width, 4, 3), 4)

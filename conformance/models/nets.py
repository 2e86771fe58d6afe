# SPDX-License-Identifier: Apache-2.0
"""The small networks of level 5: one of each shape that models have, some 10,000 weights each.

A network with free extents has several sets of inputs, which one load has to serve.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from chipdock.conformance.models.net import Net, Network

__all__ = ["NETS", "Shapes", "decoder"]

Shapes = Sequence[Mapping[str, tuple[int, ...]]]
"""For each run the extents of each input."""


def _linear(net: Net, x: str, width: int, out: int) -> str:
    return net("Add", net("MatMul", x, net.weight(width, out)), net.weight(out, scale=0.1))


def _mlp(dtype: str) -> Network:
    net = Net(1, dtype)
    x = net.input("x", ("N", 32))
    for width, out in ((32, 64), (64, 64)):
        x = net("Relu", _linear(net, x, width, out))
    x = net("Gemm", x, net.weight(10, 64, scale=0.125), net.weight(10, scale=0.1), transB=1)
    net("Softmax", x, out="y", axis=-1)
    return net.finish({"y": ""})


def _norm(net: Net, x: str, channels: int) -> str:
    return net("BatchNormalization", x, net.weight(channels, scale=0.1, mean=1.0),
               net.weight(channels, scale=0.1), net.weight(channels, scale=0.1),
               net.constant(0.5 + net.rng.random(channels)))  # fmt: skip


def _conv(net: Net, x: str, given: int, out: int, *, kernel: int = 3, stride: int = 1,
          group: int = 1, relu: str = "Relu") -> str:  # fmt: skip
    weight = net.weight(out, given // group, kernel, kernel)
    x = net("Conv", x, weight, kernel_shape=[kernel, kernel], pads=[kernel // 2] * 4,
            strides=[stride, stride], group=group)  # fmt: skip
    x = _norm(net, x, out)
    return net(relu, x) if relu else x


def _head(net: Net, x: str, channels: int) -> None:
    x = net("Flatten", net("GlobalAveragePool", x))
    net("Add", net("MatMul", x, net.weight(channels, 10)), net.weight(10, scale=0.1), out="y")


def _resnet(dtype: str) -> Network:
    net = Net(2, dtype)
    x = _conv(net, net.input("x", ("N", 3, "H", "W")), 3, 16)
    x = net("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for given, out, stride in ((16, 16, 1), (16, 32, 2)):
        side = x if stride == 1 else _conv(net, x, given, out, kernel=1, stride=stride, relu="")
        inner = _conv(net, _conv(net, x, given, out, stride=stride), out, out, relu="")
        x = net("Relu", net("Add", inner, side))
    _head(net, x, 32)
    return net.finish({"y": ""})


def _separable(dtype: str) -> Network:
    net = Net(3, dtype)
    x = _conv(net, net.input("x", ("N", 3, "H", "W")), 3, 16, stride=2)
    for given, out, stride in ((16, 24, 1), (24, 32, 2)):
        x = _conv(net, x, given, given, stride=stride, group=given, relu="HardSwish")
        # Squeeze and excite: a gate of each channel.
        gate = net("GlobalAveragePool", x)
        gate = net("HardSigmoid", net("Conv", gate, net.weight(given, given, 1, 1)))
        x = _conv(net, net("Mul", x, gate), given, out, kernel=1, relu="")
    _head(net, net("Relu", x), 32)
    return net.finish({"y": ""})


def _unet(dtype: str) -> Network:
    net = Net(4, dtype)
    a = _conv(net, net.input("x", (1, 2, 16, 24)), 2, 8)
    b = _conv(net, net("MaxPool", a, kernel_shape=[2, 2], strides=[2, 2]), 8, 16)
    c = _conv(net, net("AveragePool", b, kernel_shape=[2, 2], strides=[2, 2]), 16, 16)
    up = net("Resize", c, "", "", net.ints(1, 16, 8, 12), mode="linear")
    d = _conv(net, net("Concat", up, b, axis=1), 32, 16)
    up = net("ConvTranspose", d, net.weight(16, 8, 2, 2, scale=0.2), strides=[2, 2])
    e = _conv(net, net("Concat", up, a, axis=1), 16, 8)
    net("Sigmoid", net("Conv", e, net.weight(1, 8, 1, 1, scale=1.0), out="y"), out="mask")
    return net.finish({"y": "", "mask": ""})


def _layer_norm(net: Net, x: str, width: int) -> str:
    return net("LayerNormalization", x, net.weight(width, scale=0.1, mean=1.0),
               net.weight(width, scale=0.1), axis=-1)  # fmt: skip


def _heads(net: Net, x: str, width: int) -> str:
    """[B, S, 32] to [B, 4, S, 8]."""
    split = net("Reshape", _linear(net, x, width, width), net.ints(0, 0, 4, width // 4))
    return net("Transpose", split, perm=[0, 2, 1, 3])


def _attend(net: Net, query: str, key: str, value: str, width: int) -> str:
    turned = net("Transpose", key, perm=[0, 1, 3, 2])
    scores = net("Mul", net("MatMul", query, turned), net.constant((width // 4) ** -0.5))
    mixed = net("MatMul", net("Softmax", scores, axis=-1), value)
    flat = net("Reshape", net("Transpose", mixed, perm=[0, 2, 1, 3]), net.ints(0, 0, width))
    return _linear(net, flat, width, width)


def _feed_forward(net: Net, x: str, width: int) -> str:
    inner = _linear(net, _layer_norm(net, x, width), width, 2 * width)
    return net("Add", x, _linear(net, net("Gelu", inner), 2 * width, width))


def _encoder(dtype: str) -> Network:
    net, width = Net(5, dtype), 32
    x = net("Gather", net.weight(100, width, scale=1.0), net.input("tokens", ("B", "S"), "i64"))
    for _ in range(2):
        normed = _layer_norm(net, x, width)
        query, key, value = (_heads(net, normed, width) for _ in range(3))
        x = net("Add", x, _attend(net, query, key, value, width))
        x = _feed_forward(net, x, width)
    net("MatMul", _layer_norm(net, x, width), net.weight(width, 20), out="y")
    return net.finish({"y": ""})


def decoder(dtype: str) -> Network:
    """Return one step of a decoder: a token, its place, and caches [1, 4, 16, 8] to write into.

    Inputs: token int64 [1, 1], place int64 [1], keys, values. Outputs: y [1, 1, 50], and the
    caches with the row of this place set, which may lie in the memory of the inputs.
    """
    net, width = Net(6, dtype), 32
    token, place = net.input("token", (1, 1), "i64"), net.input("place", (1,), "i64")
    old = [net.input(name, (1, 4, 16, 8)) for name in ("keys", "values")]
    x = net("Gather", net.weight(50, width, scale=1.0), token)
    x = net("Add", x, net("Gather", net.weight(16, width, scale=0.3), place))
    normed = _layer_norm(net, x, width)
    query, key, value = (_heads(net, normed, width) for _ in range(3))
    # The row of this place comes from the step, all others from the cache.
    rows = net("Reshape", net.ints(*range(16)), net.ints(1, 1, 16, 1))
    here = net("Equal", rows, place)
    new = [net("Where", here, step, cache, out=name)
           for step, cache, name in zip((key, value), old, ("keys_out", "values_out"),
                                        strict=True)]  # fmt: skip
    future = net("Greater", net.ints(*range(16)), place)
    mask = net("Where", future, net.constant(-1e4), net.constant(0.0))
    scores = net("MatMul", query, net("Transpose", new[0], perm=[0, 1, 3, 2]))
    scores = net("Add", net("Mul", scores, net.constant(8**-0.5)), mask)
    mixed = net("MatMul", net("Softmax", scores, axis=-1), new[1])
    flat = net("Reshape", net("Transpose", mixed, perm=[0, 2, 1, 3]), net.ints(0, 0, width))
    x = _feed_forward(net, net("Add", x, _linear(net, flat, width, width)), width)
    net("MatMul", x, net.weight(width, 50), out="y")
    return net.finish({"y": "", "keys_out": "", "values_out": ""})


def _recurrent(op: str, gates: int, seed: int) -> Callable[[str], Network]:
    def build(dtype: str) -> Network:
        net = Net(seed, dtype)
        x = net.input("x", ("T", "B", 12))
        states = []
        for given in (12, 32):
            shape = (2, gates * 16)
            outs = (net.fresh(), net.fresh())
            net.many(op, x, net.weight(*shape, given, scale=given**-0.5),
                     net.weight(*shape, 16, scale=0.25), net.weight(2, 2 * gates * 16, scale=0.1),
                     outputs=outs, hidden_size=16, direction="bidirectional")  # fmt: skip
            # [T, 2, B, 16] to [T, B, 32]
            x = net("Reshape", net("Transpose", outs[0], perm=[0, 2, 1, 3]), net.ints(0, 0, 32))
            states.append(outs[1])
        net("Tanh", _linear(net, x, 32, 5), out="y")
        net("Concat", *states, out="states", axis=0)
        return net.finish({"y": "", "states": ""})

    return build


_IMAGES: Shapes = ({"x": (1, 3, 32, 32)}, {"x": (3, 3, 20, 28)}, {"x": (1, 3, 17, 33)})

NETS: Mapping[str, tuple[Callable[[str], Network], Shapes]] = {
    "mlp": (_mlp, ({"x": (4, 32)}, {"x": (1, 32)}, {"x": (33, 32)})),
    "resnet": (_resnet, _IMAGES),
    "separable": (_separable, _IMAGES),
    "unet": (_unet, ({"x": (1, 2, 16, 24)},)),
    "encoder": (_encoder, ({"tokens": (2, 7)}, {"tokens": (1, 1)}, {"tokens": (3, 40)})),
    "lstm": (_recurrent("LSTM", 4, 7), ({"x": (6, 2, 12)}, {"x": (1, 1, 12)}, {"x": (15, 3, 12)})),
    "gru": (_recurrent("GRU", 3, 8), ({"x": (6, 2, 12)}, {"x": (15, 1, 12)})),
}
"""By name: what builds it in a type, and the sets of inputs that one load has to serve."""

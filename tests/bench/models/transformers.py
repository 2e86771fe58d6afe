# SPDX-License-Identifier: Apache-2.0
"""Transformers: ViT-B/16, BERT-base, and a stack of Llama blocks with grouped-query attention.

Source:
    Dosovitskiy et al., "An Image is Worth 16x16 Words" (2020); Devlin et al., "BERT" (2018);
    Touvron et al., "Llama 2" (2023). Written as torch's exporter writes them at opset 18.
"""

import math

import numpy as np
from onnx import TensorProto

from bench.models.net import Net

LLAMA_VOCABULARY = 8192


def _attend(net: Net, qkv: tuple[str, str, str], size: int, mask: str = "") -> str:
    """[N, heads, L, size] each, k with its last axes swapped; back to [N, L, heads * size]."""
    q, k, v = qkv
    root = net.constant(1 / math.sqrt(math.sqrt(size)))
    scores = net.op("MatMul", net.op("Mul", q, root), net.op("Mul", k, root))
    if mask:
        scores = net.op("Add", scores, mask)
    y = net.op("MatMul", net.op("Softmax", scores, axis=-1), v)
    return net.reshape(net.op("Transpose", y, perm=[0, 2, 1, 3]), 0, 0, -1)


def _heads(net: Net, x: str, heads: int, size: int, *, swapped: bool = False) -> str:
    """[N, L, heads * size] to [N, heads, L, size], or with the last two axes swapped."""
    order = [0, 2, 3, 1] if swapped else [0, 2, 1, 3]
    return net.op("Transpose", net.reshape(x, 0, 0, heads, size), perm=order)


def _self_attention(net: Net, x: str, width: int, heads: int, mask: str = "") -> str:
    size = width // heads
    q = _heads(net, net.dense(x, width, width), heads, size)
    k = _heads(net, net.dense(x, width, width), heads, size, swapped=True)
    v = _heads(net, net.dense(x, width, width), heads, size)
    return net.dense(_attend(net, (q, k, v), size, mask), width, width)


def _feed_forward(net: Net, x: str, width: int) -> str:
    return net.dense(net.gelu(net.dense(x, width, 4 * width)), 4 * width, width)


def vit_b16(net: Net) -> None:
    """x [N, 3, 224, 224] to 1000 classes; norms in front of each half of a block."""
    width, heads = 768, 12
    x = net.input("x", ["N", 3, 224, 224])
    w, bias = net.weight((width, 3, 16, 16), 0.04), net.weight((width,), 0.02)
    y = net.op("Conv", x, w, bias, kernel_shape=[16, 16], strides=[16, 16])
    y = net.op("Transpose", net.reshape(y, 0, width, -1), perm=[0, 2, 1])
    batch = net.op("Shape", x, start=0, end=1)
    shape = net.op("Concat", batch, net.ints(-1), net.ints(-1), axis=0)
    shape = net.op("Where", net.op("Equal", shape, net.ints(-1)), net.ints(1), shape)
    token = net.op("Expand", net.weight((1, 1, width), 0.02), shape)
    y = net.op("Concat", token, y, axis=1)
    y = net.op("Add", y, net.weight((1, 197, width), 0.02))
    for _ in range(12):
        y = net.op("Add", y, _self_attention(net, net.layer_norm(y, width), width, heads))
        y = net.op("Add", y, _feed_forward(net, net.layer_norm(y, width), width))
    y = net.layer_norm(y, width)
    y = net.op("Gather", y, net.constant(0, np.int64), axis=1)
    weight, bias = net.weight((1000, width), 0.03), net.weight((1000,), 0.02)
    net.output(net.op("Gemm", y, weight, bias, transB=1), 2)


def bert_base(net: Net) -> None:
    """input_ids and attention_mask [N, L] to [N, L, 768]; norms behind each half of a block."""
    width, heads, longest = 768, 12, 512
    ids = net.input("input_ids", ["N", "L"], TensorProto.INT64)
    given = net.input("attention_mask", ["N", "L"], TensorProto.INT64)
    y = net.op("Gather", net.weight((30522, width), 0.3), ids)
    length = net.op("Shape", ids, start=1, end=2)
    places = net.op("Slice", net.weight((1, longest, width), 0.1), net.ints(0), length, net.ints(1))
    y = net.op("Add", net.op("Add", y, places), net.weight((1, 1, width), 0.1))
    y = net.layer_norm(y, width, 1e-12)
    mask = net.op("Unsqueeze", given, net.ints(1, 2))
    mask = net.op("Cast", mask, to=TensorProto.FLOAT)
    mask = net.op("Sub", net.constant(1.0), mask)
    mask = net.op("Mul", mask, net.constant(np.finfo(np.float32).min))
    for _ in range(12):
        half = net.op("Add", _self_attention(net, y, width, heads, mask), y)
        half = net.layer_norm(half, width, 1e-12)
        y = net.layer_norm(net.op("Add", _feed_forward(net, half, width), half), width, 1e-12)
    net.output(y, 3)


def _rms_norm(net: Net, x: str, width: int) -> str:
    square = net.op("Pow", x, net.constant(2.0))
    mean = net.op("ReduceMean", square, net.ints(-1), keepdims=1)
    root = net.op("Sqrt", net.op("Add", mean, net.constant(1e-5)))
    scaled = net.op("Mul", x, net.op("Reciprocal", root))
    return net.op("Mul", net.weight((width,), 0.02, around=1.0), scaled)


def _rotate(net: Net, x: str, cos: str, sin: str, size: int) -> str:
    """x cos + rotated x sin; the rotated one is (-second half, first half)."""
    axis = net.ints(3)
    first = net.op("Slice", x, net.ints(0), net.ints(size // 2), axis)
    second = net.op("Slice", x, net.ints(size // 2), net.ints(2**62), axis)
    turned = net.op("Concat", net.op("Neg", second), first, axis=-1)
    return net.op("Add", net.op("Mul", x, cos), net.op("Mul", turned, sin))


def _repeated(net: Net, x: str, kv_heads: int, heads: int, size: int) -> str:
    """[N, kv_heads, L, size] to [N, heads, L, size]: each head stands for a group of queries."""
    group = heads // kv_heads
    outer = net.op("Shape", x, start=0, end=2)
    inner = net.op("Shape", x, start=2, end=4)
    shape = net.op("Concat", outer, net.ints(group), inner, axis=0)
    wide = net.op("Expand", net.op("Unsqueeze", x, net.ints(2)), shape)
    return net.reshape(wide, 0, heads, -1, size)


def llama_stack(net: Net, blocks: int = 4, width: int = 1024) -> None:
    """input_ids [N, L] to logits [N, L, 8192]; 16 heads of queries share 4 of keys and values."""
    heads, kv_heads, hidden = 16, 4, 2816
    size = width // heads
    ids = net.input("input_ids", ["N", "L"], TensorProto.INT64)
    y = net.op("Gather", net.weight((LLAMA_VOCABULARY, width), 0.5), ids)
    length = net.op("Squeeze", net.op("Shape", ids, start=1, end=2), net.ints(0))
    zero, one = net.constant(0, np.int64), net.constant(1, np.int64)
    places = net.op("Range", zero, length, one)
    steps = net.op("Cast", net.op("Unsqueeze", places, net.ints(1)), to=TensorProto.FLOAT)
    speeds = net.constant([[10000.0 ** (-2 * i / size) for i in range(size // 2)]])
    angles = net.op("MatMul", steps, speeds)
    angles = net.op("Concat", angles, angles, axis=-1)
    cos, sin = net.op("Cos", angles), net.op("Sin", angles)
    row = net.op("Unsqueeze", places, net.ints(0))
    later = net.op("Greater", row, net.op("Unsqueeze", places, net.ints(1)))
    lowest = net.constant(np.finfo(np.float32).min)
    mask = net.op("Where", later, lowest, net.constant(0.0))
    for _ in range(blocks):
        x = _rms_norm(net, y, width)
        q = _heads(net, net.dense(x, width, width, bias=False), heads, size)
        k = _heads(net, net.dense(x, width, kv_heads * size, bias=False), kv_heads, size)
        v = _heads(net, net.dense(x, width, kv_heads * size, bias=False), kv_heads, size)
        q, k = _rotate(net, q, cos, sin, size), _rotate(net, k, cos, sin, size)
        k, v = (_repeated(net, part, kv_heads, heads, size) for part in (k, v))
        k = net.op("Transpose", k, perm=[0, 1, 3, 2])
        found = net.dense(_attend(net, (q, k, v), size, mask), width, width, bias=False)
        y = net.op("Add", y, found)
        x = _rms_norm(net, y, width)
        gate = net.dense(x, width, hidden, bias=False)
        gate = net.op("Mul", gate, net.op("Sigmoid", gate))
        x = net.op("Mul", gate, net.dense(x, width, hidden, bias=False))
        y = net.op("Add", y, net.dense(x, hidden, width, bias=False))
    y = _rms_norm(net, y, width)
    net.output(net.dense(y, width, LLAMA_VOCABULARY, bias=False), 3)

# SPDX-License-Identifier: Apache-2.0
"""Nets in bfloat16: one narrowed from float32, and torch's own form of the Llama blocks."""

import math
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# The first one whose Cos and Sin take bfloat16.
_OPSET = 22


def narrowed(path: Path) -> Path:
    """Write a model beside one of floats whose floats are bfloat16 throughout; returns its file."""
    model = onnx.load(path)
    for weight in model.graph.initializer:
        if weight.data_type == TensorProto.FLOAT:
            values = numpy_helper.to_array(weight)
            # What bfloat16 would round to infinity: the lowest float, as masks have it.
            values = np.maximum(values, float(ml_dtypes.finfo(ml_dtypes.bfloat16).min))
            weight.CopyFrom(
                helper.make_tensor(
                    weight.name, TensorProto.BFLOAT16, weight.dims,
                    values.astype(ml_dtypes.bfloat16).tobytes(), raw=True,
                )
            )  # fmt: skip
    for node in model.graph.node:
        for attribute in node.attribute:
            if node.op_type == "Cast" and attribute.i == TensorProto.FLOAT:
                attribute.i = TensorProto.BFLOAT16
    for value in (*model.graph.input, *model.graph.output):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = TensorProto.BFLOAT16
    model.opset_import[0].version = _OPSET
    model.ir_version = 10
    target = path.with_name(f"{path.stem}-bf16.onnx")
    onnx.save(model, target)
    return target


def matmul(k: int, n: int, dtype: int = TensorProto.BFLOAT16, seed: int = 1) -> onnx.ModelProto:
    """Return x [M, k] times constant weights [k, n]."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((k, n), np.float32) / np.float32(math.sqrt(k))
    weights = helper.make_tensor(
        "w", dtype, (k, n), values.astype(helper.tensor_dtype_to_np_dtype(dtype)).tobytes(),
        raw=True,
    )  # fmt: skip
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], "matmul",
        [helper.make_tensor_value_info("x", dtype, ["M", k])],
        [helper.make_tensor_value_info("y", dtype, ["M", n])], [weights],
    )  # fmt: skip
    opset = helper.make_opsetid("", _OPSET)
    return helper.make_model(graph, opset_imports=[opset], ir_version=10)


def torch_llama(
    torch: ModuleType, vocabulary: int, blocks: int, width: int
) -> Callable[[Any], Any]:
    """Return the sizes of transformers.llama_stack as torch writes them, ids [N, L] to logits.

    Its weights are others, and its attention is torch's fused one.
    """
    heads, kv_heads, hidden = 16, 4, 2816
    size = width // heads
    functional = torch.nn.functional
    generator = torch.Generator().manual_seed(3)

    def weight(outside: int, inside: int) -> Any:
        values = torch.randn((outside, inside), generator=generator) / math.sqrt(inside)
        return values.to(torch.bfloat16)

    ones = torch.ones(width, dtype=torch.bfloat16)
    table, last = weight(vocabulary, width), weight(vocabulary, width)
    shapes = [
        (width, width), (kv_heads * size, width), (kv_heads * size, width), (width, width),
        (hidden, width), (hidden, width), (width, hidden),
    ]  # fmt: skip
    layers = [[weight(*shape) for shape in shapes] for _ in range(blocks)]
    speeds = torch.tensor([10000.0 ** (-2 * i / size) for i in range(size // 2)])

    def turned(x: Any, cos: Any, sin: Any) -> Any:
        first, second = x.chunk(2, -1)
        return x * cos + torch.cat((-second, first), -1) * sin

    def run(ids: Any) -> Any:
        y = functional.embedding(ids, table)
        count, length = ids.shape
        angles = torch.outer(torch.arange(length).float(), speeds)
        angles = torch.cat((angles, angles), -1)
        cos, sin = angles.cos().to(y.dtype), angles.sin().to(y.dtype)
        for wq, wk, wv, wo, gate, up, down in layers:
            x = functional.rms_norm(y, (width,), ones, 1e-5)
            q, k, v = (
                functional.linear(x, w).view(count, length, -1, size).transpose(1, 2)
                for w in (wq, wk, wv)
            )
            found = functional.scaled_dot_product_attention(
                turned(q, cos, sin), turned(k, cos, sin), v, is_causal=True, enable_gqa=True
            )
            y = y + functional.linear(found.transpose(1, 2).reshape(count, length, width), wo)
            x = functional.rms_norm(y, (width,), ones, 1e-5)
            x = functional.silu(functional.linear(x, gate)) * functional.linear(x, up)
            y = y + functional.linear(x, down)
        return functional.linear(functional.rms_norm(y, (width,), ones, 1e-5), last)

    return run

# SPDX-License-Identifier: Apache-2.0
"""Tiny ONNX models for the cases that need a loaded one."""

from __future__ import annotations

import itertools

import numpy as np
import onnx
from onnx import helper

__all__ = ["chain", "mlp"]

_FLOAT = onnx.TensorProto.FLOAT


def _model(
    nodes: list[onnx.NodeProto],
    shape: list[int | str],
    weights: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]]],
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", _FLOAT, shape)],
        [helper.make_tensor_value_info("y", _FLOAT, None)],
        [onnx.numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def chain(length: int, op: str = "Neg") -> onnx.ModelProto:
    """Return `length` unary operators one after another, from x [N] to y [N], float32."""
    names = ["x", *(f"t{i}" for i in range(length - 1)), "y"]
    return _model([helper.make_node(op, [a], [b]) for a, b in itertools.pairwise(names)], ["N"], {})


def mlp() -> onnx.ModelProto:
    """Return y = Softmax(Relu(x W1 + b) W2) with x [N, 8] and y [N, 4], float32."""
    rng, node = np.random.default_rng(0), helper.make_node
    nodes = [
        node("MatMul", ["x", "w1"], ["a"]),
        node("Add", ["a", "b"], ["c"]),
        node("Relu", ["c"], ["d"]),
        node("MatMul", ["d", "w2"], ["e"]),
        node("Softmax", ["e"], ["y"], axis=-1),
    ]
    weights = {
        "w1": rng.standard_normal((8, 16), np.float32),
        "b": rng.standard_normal(16, np.float32),
        "w2": rng.standard_normal((16, 4), np.float32),
    }
    return _model(nodes, ["N", 8], weights)

# SPDX-License-Identifier: Apache-2.0
"""Writes a net with random weights node by node, as an exporter would; what it is made of is said
in vision.py and transformers.py.
"""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 18


class Net:
    """A graph under construction; names of values are what its methods take and return."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._nodes: list[onnx.NodeProto] = []
        self._weights: list[onnx.TensorProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []
        self._shared: dict[bytes, str] = {}
        self._count = 0

    def _name(self, stem: str) -> str:
        self._count += 1
        return f"{stem}_{self._count}"

    def input(self, name: str, shape: Sequence[int | str], dtype: int = TensorProto.FLOAT) -> str:
        self._inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        return name

    def output(self, value: str, rank: int) -> None:
        self._outputs.append(helper.make_tensor_value_info(value, TensorProto.FLOAT, [None] * rank))

    def op(self, op: str, *inputs: str, **attributes: Any) -> str:
        """Append a node with one output; returns its name."""
        name = self._name(op.lower())
        self._nodes.append(helper.make_node(op, inputs, [name], name=f"/{name}", **attributes))
        return name

    def weight(self, shape: Sequence[int], scale: float, around: float = 0.0) -> str:
        """Normally distributed weights."""
        array = self._rng.standard_normal(shape, np.float32) * np.float32(scale)
        return self._add((array + np.float32(around)).astype(np.float32))

    def positive(self, shape: Sequence[int], low: float, high: float) -> str:
        return self._add(self._rng.uniform(low, high, shape).astype(np.float32))

    def _add(self, array: np.ndarray) -> str:
        name = self._name("w")
        self._weights.append(numpy_helper.from_array(array, name))
        return name

    def constant(self, value: Any, dtype: Any = np.float32) -> str:
        """A small constant; equal ones are one initializer."""
        array = np.asarray(value, dtype)
        key = repr((array.dtype.str, array.shape)).encode() + array.tobytes()
        if key not in self._shared:
            self._shared[key] = self._add(array)
        return self._shared[key]

    def ints(self, *values: int) -> str:
        return self.constant(values, np.int64)

    def reshape(self, value: str, *shape: int) -> str:
        """0 keeps the extent, -1 is what is left."""
        return self.op("Reshape", value, self.ints(*shape))

    def dense(self, value: str, inside: int, outside: int, *, bias: bool = True) -> str:
        """MatMul and, apart, Add of the bias, as exporters write a layer on three axes."""
        y = self.op("MatMul", value, self.weight((inside, outside), 1 / math.sqrt(inside)))
        return self.op("Add", y, self.weight((outside,), 0.02)) if bias else y

    def layer_norm(self, value: str, width: int, epsilon: float = 1e-5) -> str:
        scale, shift = self.weight((width,), 0.02, around=1.0), self.weight((width,), 0.02)
        return self.op("LayerNormalization", value, scale, shift, axis=-1, epsilon=epsilon)

    def gelu(self, value: str) -> str:
        """The five nodes that torch's exporter writes for the exact GELU up to opset 19."""
        erf = self.op("Erf", self.op("Div", value, self.constant(math.sqrt(2))))
        plus = self.op("Add", erf, self.constant(1.0))
        return self.op("Mul", self.op("Mul", value, plus), self.constant(0.5))

    def conv(
        self, value: str, inside: int, outside: int, kernel: int, stride: int = 1, *,
        bias: bool = True,
    ) -> str:  # fmt: skip
        shape = (outside, inside, kernel, kernel)
        inputs = [value, self.weight(shape, math.sqrt(2 / (inside * kernel * kernel)))]
        if bias:
            inputs.append(self.weight((outside,), 0.02))
        return self.op(
            "Conv", *inputs, kernel_shape=[kernel] * 2, strides=[stride] * 2,
            pads=[(kernel - 1) // 2] * 4,
        )  # fmt: skip

    def save(self, path: Path, name: str) -> None:
        """Write the model; raises onnx's ValidationError if it is none."""
        graph = helper.make_graph(self._nodes, name, self._inputs, self._outputs, self._weights)
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9
        )
        onnx.checker.check_model(model)
        onnx.save(model, path)


def saved(make: Callable[[Net], None], folder: Path, name: str = "model") -> Path:
    """Build a net with fixed weights and return its file in the folder."""
    path = folder / f"{name}.onnx"
    net = Net(seed=11)
    make(net)
    net.save(path, name)
    return path

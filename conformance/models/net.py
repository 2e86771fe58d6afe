# SPDX-License-Identifier: Apache-2.0
"""Builds the graphs of level 5: nodes one after another, weights drawn from a fixed seed.

The same calls make the network in any type. Weights are rounded to the type under test before the
fp64 twin is made, so that both compute with the same numbers. Networks are in nets.py.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from chipdock.conformance.numerics.dtypes import ONNX_TYPES, numpy_dtype
from chipdock.conformance.numerics.ulp import round_to

__all__ = ["OPSET", "Net", "Network", "outputs_of"]

OPSET = 22
_IR = 10
_Array = NDArray[Any]


@dataclass(frozen=True)
class Network:
    """A network in the type under test and its twin in fp64.

    Attributes:
        model: In the type under test.
        double: The same graph with the same weights in fp64.
        key: Hash of the twin, for the cache of references.
    """

    model: onnx.ModelProto
    double: onnx.ModelProto
    key: str


class Net:
    """A graph that is being built.

    Attributes:
        nodes: In order.
        weights: Constants by name, in fp64 but with the digits of the type under test; int64 as
            they are.
        rng: What the weights are drawn from.
    """

    def __init__(self, seed: int, dtype: str = "f32") -> None:
        """Begins an empty graph."""
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, _Array] = {}
        self.rng = np.random.default_rng(seed)
        self._dtype = dtype
        self._inputs: list[tuple[str, str, Sequence[int | str]]] = []
        self._count = 0

    def input(self, name: str, shape: Sequence[int | str], dtype: str = "") -> str:
        """Declare an input; "" is the type under test."""
        self._inputs.append((name, dtype, shape))
        return name

    def weight(self, *shape: int, scale: float | None = None, mean: float = 0.0) -> str:
        """Draw a constant, by default of 1 / sqrt(fan in), and return its name."""
        fan = int(np.prod(shape[1:])) if len(shape) > 2 else shape[0]
        deviation = 1.0 / np.sqrt(fan) if scale is None else scale
        return self.constant(mean + deviation * self.rng.standard_normal(shape))

    def constant(self, value: Any) -> str:
        """Keep a constant of the type under test, rounded to it."""
        name = self.fresh()
        exact = np.asarray(value, np.float64)
        self.weights[name] = round_to(exact, numpy_dtype(self._dtype)).astype(np.float64)
        return name

    def ints(self, *values: int) -> str:
        """Keep a vector of int64."""
        name = self.fresh()
        self.weights[name] = np.array(values, np.int64)
        return name

    def __call__(self, op: str, *inputs: str, out: str = "", **attributes: Any) -> str:
        """Add a node of one output and return the output's name."""
        return self.many(op, *inputs, outputs=(out or self.fresh(),), **attributes)[0]

    def many(
        self, op: str, *inputs: str, outputs: Sequence[str], domain: str = "", **attributes: Any
    ) -> tuple[str, ...]:
        """Add a node and return the names of its outputs."""
        self.nodes.append(helper.make_node(op, inputs, outputs, domain=domain, **attributes))
        return tuple(outputs)

    def fresh(self) -> str:
        """Return a name that no value has."""
        self._count += 1
        return f"t{self._count}"

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the extents of all values so far; the inputs' must be fixed.

        Raises:
            InferenceError: A node does not fit its inputs.
        """
        model = self._model("f64", {})
        inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
        found = {name: array.shape for name, array in self.weights.items()}
        for value in (*inferred.graph.input, *inferred.graph.value_info):
            dims = value.type.tensor_type.shape.dim
            found[value.name] = tuple(d.dim_value for d in dims)
        return found

    def finish(self, outputs: Mapping[str, str]) -> Network:
        """Close the graph.

        Args:
            outputs: Types by name; "" is the type under test.
        """
        model, double = (self._model(dtype, outputs) for dtype in (self._dtype, "f64"))
        key = hashlib.sha256(double.SerializeToString(deterministic=True)).hexdigest()
        # Values in between have types too: by them a plugin's lack of a kernel is recognized.
        return Network(onnx.shape_inference.infer_shapes(model), double, key)

    def _model(self, dtype: str, outputs: Mapping[str, str]) -> onnx.ModelProto:
        def info(name: str, own: str, shape: Any) -> onnx.ValueInfoProto:
            return helper.make_tensor_value_info(name, ONNX_TYPES[own or dtype], shape)

        kept = [
            numpy_helper.from_array(
                a if a.dtype == np.int64 else a.astype(numpy_dtype(dtype)), name
            )
            for name, a in self.weights.items()
        ]
        graph = helper.make_graph(
            self.nodes, "net", [info(*row) for row in self._inputs],
            [info(name, own, None) for name, own in outputs.items()], kept,
        )  # fmt: skip
        domains = sorted({node.domain for node in self.nodes})
        opsets = [helper.make_opsetid(d, 1 if d else OPSET) for d in domains]
        return helper.make_model(graph, opset_imports=opsets, ir_version=_IR)


def outputs_of(double: onnx.ModelProto, feeds: Mapping[str, _Array]) -> list[_Array]:
    """Return the outputs of an fp64 model, computed by onnx.reference.

    Args:
        double: The twin of a `Network`.
        feeds: Inputs of any float type, widened here; integers as they are.
    """
    from onnx.reference import ReferenceEvaluator  # noqa: PLC0415  slow to import

    wide = {
        name: a if a.dtype.kind in "iub" else np.asarray(a).astype(np.float64)
        for name, a in feeds.items()
    }
    return [np.asarray(value) for value in ReferenceEvaluator(double).run(None, wide)]

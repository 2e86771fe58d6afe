# SPDX-License-Identifier: Apache-2.0
"""Grows a graph node by node; each is evaluated at once, so every value is known while growing.

Knowing the values keeps graphs meaningful: nothing overflows, no logarithm meets a negative number,
and what would turn a rounding error into another answer (Floor, comparisons, ArgMax) is only fed
with values that have no rounding error. What nodes there are is left to the recipes.
"""

from __future__ import annotations

import functools
import random
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

LARGEST = 1e4
MOST_ELEMENTS = 20_000
TOLERANCES = {"float16": 1e-2, "float32": 1e-4, "float64": 1e-7}
OPSETS = tuple(range(18, onnx.defs.onnx_opset_version() + 1))
DTYPES = {
    "f": (np.float32, np.float32, np.float32, np.float64, np.float16),
    "i": (np.int64, np.int64, np.int32),
    "u": (np.uint8, np.int8),
    "b": (np.bool_,),
}
ORDINARY_KINDS = "ffffii"


class Skip(Exception):  # noqa: N818  no error: the recipe does not fit here
    """A recipe found nothing to work on, or its result is not wanted."""


class Choices(Protocol):
    """Where decisions come from: a seeded generator, or hypothesis."""

    def integer(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""


class Seeded:
    """Decisions of a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        return self._random.randint(low, high)


@dataclass
class Value:
    """A tensor of the graph.

    Attributes:
        name: In the graph.
        array: What the reference says it holds.
        exact: Whether any right implementation gives these very bits.
        constant: Whether it is an initializer.
        tolerance: Of the largest magnitude; that of the coarsest type on the way here.
    """

    name: str
    array: np.ndarray
    exact: bool = True
    constant: bool = False
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        self.tolerance = max(self.tolerance, TOLERANCES.get(self.array.dtype.name, 0.0))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def rank(self) -> int:
        return self.array.ndim

    @property
    def kind(self) -> str:
        """f, i, u or b: floats, wide integers, bytes, truth values."""
        if self.array.dtype.kind in "iu":
            return "u" if self.array.dtype.itemsize == 1 else "i"
        return self.array.dtype.kind

    def within(self, low: float, high: float) -> bool:
        """Whether all elements are numbers from low to high."""
        return bool(np.all((self.array >= low) & (self.array <= high)))

    def away_from_zero(self, least: float = 0.05) -> bool:
        return bool(np.all(np.abs(self.array) >= least))


def evaluate(
    nodes: Sequence[onnx.NodeProto], inputs: dict[str, np.ndarray], wanted: list[str], opset: int
) -> list[Any]:
    """Run nodes on the reference evaluator.

    Raises:
        Exception: Whatever the evaluator throws over a node that it cannot run.
    """
    graph = helper.make_graph(
        list(nodes), "g", [info(n, a) for n, a in inputs.items()], [unknown(n) for n in wanted]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=13)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return ReferenceEvaluator(model).run(wanted, inputs)


def info(name: str, array: np.ndarray, shape: Sequence[Any] | None = None) -> onnx.ValueInfoProto:
    dtype = helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor_value_info(name, dtype, array.shape if shape is None else shape)


def unknown(name: str) -> onnx.ValueInfoProto:
    """An output whose type the model leaves to inference."""
    return onnx.ValueInfoProto(name=name)


@dataclass
class Graph:
    """A graph while it grows.

    Attributes:
        choices: Where decisions come from.
        opset: Of ONNX's own domain.
        values: All tensors, oldest first.
        nodes: In order.
        inputs: Names of graph inputs.
    """

    choices: Choices
    opset: int
    values: list[Value] = field(default_factory=list)
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)

    def integer(self, low: int, high: int) -> int:
        return self.choices.integer(low, high)

    def pick(self, among: Sequence[Any]) -> Any:
        """One of `among`; the first is what hypothesis shrinks to."""
        if not among:
            raise Skip
        return among[self.integer(0, len(among) - 1)]

    def chance(self, percent: int) -> bool:
        return self.integer(0, 99) < percent

    def shape(self, low: int = 0, high: int = 4) -> tuple[int, ...]:
        """Small extents; now and then one is 0 or 1."""
        rank = self.integer(low, high)
        odd = self.integer(0, 9)
        extents = [self.integer(1, 7) for _ in range(rank)]
        if rank and odd < 2:
            extents[self.integer(0, rank - 1)] = odd if self.chance(20) else 1
        return tuple(extents)

    def fill(self, dtype: Any, shape: Sequence[int], low: float, high: float) -> np.ndarray:
        """Random elements from low to high."""
        rng = np.random.default_rng(self.integer(0, 2**31))
        if np.dtype(dtype).kind == "b":
            return rng.integers(0, 2, shape).astype(bool)
        if np.dtype(dtype).kind in "iu":
            least = max(low, np.iinfo(dtype).min)
            return rng.integers(int(least), int(high), shape, endpoint=True).astype(dtype)
        return np.asarray(rng.uniform(low, high, shape), dtype)

    def new(
        self,
        dtype: Any,
        shape: Sequence[int],
        low: float = -3,
        high: float = 3,
        *,
        constant: bool | None = None,
    ) -> Value:
        """Add an input or an initializer."""
        fixed = self.chance(40) if constant is None else constant
        return self.add(self.fill(dtype, shape, low, high), constant=fixed)

    def add(self, array: np.ndarray, *, constant: bool = True) -> Value:
        """Add an initializer, or an input, that holds `array`."""
        value = Value(f"{'c' if constant else 'x'}{len(self.values)}", array, True, constant)
        self.values.append(value)
        if not constant:
            self.inputs.append(value.name)
        return value

    def some(
        self,
        kind: str = "f",
        low: int = 0,
        high: int = 5,
        ok: Callable[[Value], bool] = lambda _: True,
        *,
        exact: bool = False,
    ) -> Value:
        """A value of a kind and a rank, mostly a young one, else a new one.

        Raises:
            Skip: There is none, and a new one would not do either.
        """
        fitting = [
            v
            for v in self.values
            if v.kind in kind and low <= v.rank <= high and (v.exact or not exact) and ok(v)
        ]
        if fitting and not self.chance(12):
            at = max(self.integer(0, len(fitting) - 1), self.integer(0, len(fitting) - 1))
            return fitting[at]
        dtype = self.pick(DTYPES[self.pick(kind)])
        value = self.new(dtype, self.shape(low, min(high, 4)))
        if ok(value):
            return value
        value.array = np.abs(value.array) + np.asarray(0.25, dtype) if value.kind == "f" else (
            np.abs(value.array)
        )  # fmt: skip
        if ok(value):
            return value
        raise Skip

    def node(
        self, op: str, inputs: Sequence[Value | None], outputs: int = 1, *, exact: bool = False,
        captured: Sequence[Value] = (), keep: Callable[[np.ndarray], bool] = lambda _: True,
        **attributes: Any,
    ) -> list[Value]:  # fmt: skip
        """Append a node and return its outputs.

        Args:
            op: Operator.
            inputs: None leaves an optional input out.
            outputs: How many.
            exact: Exact operands give exact results.
            captured: Values that bodies in the attributes read.
            keep: Says of the first output whether it may stay.
            attributes: Of the node.

        Raises:
            Skip: The reference cannot run it, or its result is too large, not finite or refused.
        """
        names = [f"v{len(self.values) + i}" for i in range(outputs)]
        given = ["" if v is None else v.name for v in inputs]
        node = helper.make_node(op, given, names, **attributes)
        operands = [v for v in (*inputs, *captured) if v is not None]
        try:
            found = evaluate([node], {v.name: v.array for v in operands}, names, self.opset)
        except Exception as error:
            raise Skip(f"{op}: {type(error).__name__}: {error}") from error
        arrays = [np.asarray(a) for a in found]
        if not keep(arrays[0]) or not all(map(_wanted, arrays)):
            raise Skip
        coarsest = max((v.tolerance for v in operands), default=0.0)
        clean = exact and all(v.exact for v in operands)
        results = [
            Value(name, array, clean or array.dtype.kind not in "f", tolerance=coarsest)
            for name, array in zip(names, arrays, strict=True)
        ]
        self.nodes.append(node)
        self.values += results
        return results


def _wanted(array: np.ndarray) -> bool:
    if array.size > MOST_ELEMENTS:
        return False
    most = 2.0**40 if array.dtype.kind in "iu" else LARGEST
    return array.size == 0 or array.dtype.kind == "b" or bool(
        np.all(np.isfinite(array)) and np.max(np.abs(array.astype(np.float64))) < most
    )  # fmt: skip


@dataclass(frozen=True)
class Sample:
    """A finished graph with its inputs and what the reference says of its outputs."""

    model: onnx.ModelProto
    feeds: dict[str, np.ndarray]
    expected: dict[str, Value]
    values: dict[str, Value]


@functools.cache
def _recipes(family: str) -> tuple[Callable[[Graph], None], ...]:
    from random_graphs import recipes

    return tuple(r for r in recipes.ALL if r.__module__.endswith(f".{family}") or not family)


def finish(graph: Graph, shown: set[str], symbolic: bool) -> Sample:
    """Make a model of what has grown.

    Args:
        graph: With at least one node.
        shown: Names that are outputs of the model.
        symbolic: Whether extents of inputs are left open.
    """
    used = {name for node in graph.nodes for name in _reads(node)}
    by_name = {v.name: v for v in graph.values}
    inputs = [by_name[n] for n in graph.inputs if n in used]
    weights = [
        numpy_helper.from_array(v.array, v.name)
        for v in graph.values
        if v.constant and v.name in used
    ]
    outputs = [v for v in graph.values if v.name in shown]
    infos = [
        info(v.name, v.array, [f"{v.name}_{i}" for i in range(v.rank)] if symbolic else None)
        for v in inputs
    ]
    proto = helper.make_graph(
        graph.nodes, "random", infos, [info(v.name, v.array, [None] * v.rank) for v in outputs],
        weights,
    )  # fmt: skip
    model = helper.make_model(
        proto, opset_imports=[helper.make_opsetid("", graph.opset)], ir_version=13
    )
    return Sample(
        model, {v.name: v.array for v in inputs}, {v.name: v for v in outputs}, by_name
    )  # fmt: skip


def _reads(node: onnx.NodeProto) -> list[str]:
    names = list(node.input)
    for attribute in node.attribute:
        for body in [attribute.g, *attribute.graphs]:
            for inner in body.node:
                names += _reads(inner)
    return names


def grow(choices: Choices, most: int = 30, family: str = "") -> Sample:
    """Grow a graph.

    Args:
        choices: Where decisions come from.
        most: Nodes at most; a pattern that is begun is ended.
        family: Module of the recipes of most nodes; "" for any.
    """
    graph = Graph(choices, OPSETS[choices.integer(0, len(OPSETS) - 1)])
    wanted = graph.integer(1, most)
    anything, chosen = _recipes(""), _recipes(family)
    tries = 0
    while len(graph.nodes) < wanted and tries < 4 * most:
        tries += 1
        before = len(graph.nodes), len(graph.values), len(graph.inputs)
        try:
            graph.pick(chosen if family and graph.chance(75) else anything)(graph)
        except Skip:
            if len(graph.nodes) == before[0]:  # nothing of it stays
                del graph.values[before[1] :], graph.inputs[before[2] :]
    if not graph.nodes:
        x = graph.new(np.float32, (2, 3), constant=False)
        graph.node("Relu", [x])
    used = {name for node in graph.nodes for name in _reads(node)}
    made = [name for node in graph.nodes for name in node.output if name]
    percent = graph.pick((0, 30, 100))
    shown = {n for n in made if n not in used or graph.chance(percent)}
    return finish(graph, shown, symbolic=graph.chance(50))

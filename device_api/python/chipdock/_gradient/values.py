# SPDX-License-Identifier: Apache-2.0
"""Values of a backward pass, which take arithmetic, and the builder that writes their nodes.

What is here knows no operator's derivative. Extents are those that inference is sure of; what is
not known at load is computed when the model runs.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

__all__ = ["FLOATS", "Builder", "Dims", "Known", "Number", "Value"]

FLOATS = {TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16}

Dims = tuple[int | str | None, ...]


@dataclass(frozen=True)
class Known:
    """What is known of a value at load.

    Attributes:
        dtype: TensorProto data type, 0 if not known.
        dims: Extents: numbers, names of dims, None where not known; None if the rank is not.
        array: Its elements if it is a small constant.
    """

    dtype: int = 0
    dims: Dims | None = None
    array: np.ndarray | None = None


class Value:
    """A tensor by name; operators write a node each, numbers take the dtype of what they meet."""

    def __init__(self, builder: "Builder", name: str, known: Known) -> None:
        """Use Builder.value() or a call of the builder."""
        self._b = builder
        self.name = name
        self.dtype = known.dtype
        self.dims = known.dims
        self.array = known.array

    def _with(self, op: str, other: "Number", *, swapped: bool = False) -> "Value":
        second = self._b.like(other, self)
        return self._b(op, second, self) if swapped else self._b(op, self, second)

    def __add__(self, other: "Number") -> "Value":
        return self._with("Add", other)

    def __radd__(self, other: float) -> "Value":
        return self._with("Add", other, swapped=True)

    def __sub__(self, other: "Number") -> "Value":
        return self._with("Sub", other)

    def __rsub__(self, other: float) -> "Value":
        return self._with("Sub", other, swapped=True)

    def __mul__(self, other: "Number") -> "Value":
        return self._with("Mul", other)

    def __rmul__(self, other: float) -> "Value":
        return self._with("Mul", other, swapped=True)

    def __truediv__(self, other: "Number") -> "Value":
        return self._with("Div", other)

    def __rtruediv__(self, other: float) -> "Value":
        return self._with("Div", other, swapped=True)

    def __neg__(self) -> "Value":
        return self._b("Neg", self)

    def __gt__(self, other: "Number") -> "Value":
        return self._with("Greater", other)

    def __lt__(self, other: "Number") -> "Value":
        return self._with("Less", other)


Number = Value | float

_BOOL = {"Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Not", "And"}
_INT64 = {"Shape", "Size", "NonZero"}
# Integers that are known stay known, so that fixed extents make plain graphs.
_FOLDED: Mapping[str, Callable[..., Any]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.floor_divide,  # of what is not negative
    "Max": np.maximum,
    "Neg": np.negative,
    "ReduceProd": lambda a: np.prod(a, keepdims=True),
}


class Builder:
    """Collects the nodes of a backward pass."""

    def __init__(self, prefix: str, known: Callable[[str], Known]) -> None:
        """Start with no node.

        Args:
            prefix: Of all names that are made.
            known: What is known of a value of the graph.
        """
        self.nodes: list[onnx.NodeProto] = []
        self._prefix = prefix
        self._known = known
        self._numbers = itertools.count()
        self._kept: dict[tuple[object, ...], Value] = {}

    def name(self, what: str) -> str:
        """A name that nothing has."""
        return f"{self._prefix}{what}{next(self._numbers)}"

    def value(self, name: str) -> Value:
        """A value of the graph."""
        return Value(self, name, self._known(name))

    def __call__(self, op: str, *inputs: Value | None, **attributes: Any) -> Value:  # noqa: ANN401  as make_node
        """Write a node with one output; None is an input that is not given."""
        arrays = [v.array for v in inputs if v is not None]
        if all(a is not None and a.dtype == np.int64 for a in arrays):
            if op in _FOLDED:
                return self.constant(_FOLDED[op](*arrays))
            if op == "Concat":
                return self.constant(np.concatenate([a for a in arrays if a is not None]))
        return self.many(1, op, *inputs, **attributes)[0]

    def many(self, count: int, op: str, *inputs: Value | None, **attributes: Any) -> list[Value]:  # noqa: ANN401  as make_node
        """Write a node with several outputs."""
        names = [self.name(op) for _ in range(count)]
        given = [v.name if v is not None else "" for v in inputs]
        while given and not given[-1]:
            given.pop()
        self.nodes.append(helper.make_node(op, given, names, names[0], **attributes))
        known = Known(_made_dtype(op, inputs, attributes))
        return [Value(self, name, known) for name in names]

    def constant(self, values: object, dtype: int = TensorProto.INT64) -> Value:
        """A constant, by default of int64; equal ones are one."""
        array: np.ndarray = np.asarray(values, helper.tensor_dtype_to_np_dtype(dtype))
        key = ("constant", dtype, array.shape, array.tobytes())
        if key not in self._kept:
            made = self.many(1, "Constant", value=numpy_helper.from_array(array))[0]
            known = Known(dtype, array.shape, array)
            self._kept[key] = Value(self, made.name, known)
        return self._kept[key]

    def ints(self, *values: int) -> Value:
        """A vector of int64."""
        return self.constant(list(values))

    def like(self, number: Number, other: Value) -> Value:
        """A number in the dtype of a value, as a scalar; a Value stays what it is."""
        if isinstance(number, Value):
            return number
        if other.dtype:
            return self.constant(number, other.dtype)
        return self("CastLike", self.constant(number, TensorProto.DOUBLE), other)

    def where(self, condition: Value, then: Number, otherwise: Number) -> Value:
        """Choose by element; one of both may be a number."""
        kind = then if isinstance(then, Value) else otherwise
        assert isinstance(kind, Value)
        return self("Where", condition, self.like(then, kind), self.like(otherwise, kind))

    def extents(self, x: Value, start: int = 0) -> Value:
        """The extents of a value of the graph from axis `start` on, as a vector."""
        key = ("extents", x.name, start)
        if key not in self._kept:
            fixed = x.dims is not None and all(isinstance(d, int) for d in x.dims[start:])
            if fixed and x.dims is not None:
                self._kept[key] = self.ints(*(d for d in x.dims[start:] if isinstance(d, int)))
            else:
                self._kept[key] = self("Shape", x, **({"start": start} if start else {}))
        return self._kept[key]

    def size(self, x: Value) -> Value:
        """Number of elements, as a scalar of int64."""
        if x.dims is not None and all(isinstance(d, int) for d in x.dims):
            return self.constant(int(np.prod([d for d in x.dims if isinstance(d, int)], dtype=int)))
        return self("Size", x)

    def filled(self, number: float, x: Value) -> Value:
        """A tensor of x's extents and dtype with one number everywhere."""
        return self("Expand", self.like(number, x), self.extents(x))

    def shaped(self, value: Value, x: Value) -> Value:
        """The same elements in the extents of x."""
        return self("Reshape", value, self.extents(x), allowzero=1)

    def flat(self, value: Value) -> Value:
        """The same elements as a vector."""
        return self("Reshape", value, self.ints(-1))

    def sum_to(self, gradient: Value, x: Value, dims: Dims | None) -> Value:
        """Sum over the axes along which x was repeated.

        Args:
            gradient: Of what x was broadcast to.
            x: The value before.
            dims: Extents of `gradient` as far as they are known, None for no rank.
        """
        axes = _repeated(x.dims, dims)
        if axes is None or x.dims is None or dims is None:
            return self._sum_when_run(gradient, x)
        if axes:
            gradient = self("ReduceSum", gradient, self.ints(*axes), keepdims=1)
        extra = len(dims) - len(x.dims)
        return self("Squeeze", gradient, self.ints(*range(extra))) if extra else gradient

    def _sum_when_run(self, gradient: Value, x: Value) -> Value:
        """sum_to() where the axes show only in the extents of a run."""
        wide, narrow = self("Shape", gradient), self.extents(x)
        extra = self("Shape", wide) - self("Shape", narrow)
        padded = self("Concat", self("Expand", self.ints(1), extra), narrow, axis=0)
        differ = self("Not", self("Equal", padded, wide))
        axes = self.flat(self("NonZero", differ))
        summed = self("ReduceSum", gradient, axes, keepdims=1, noop_with_empty_axes=1)
        return self.shaped(summed, x)

    def numbered(self, x: Value) -> Value:
        """Every element's place in a flat x, in the extents of x."""
        zero, one = self.constant(0), self.constant(1)
        return self.shaped(self("Range", zero, self.size(x), one), x)

    def scattered(self, gradient: Value, places: Value, x: Value) -> Value:
        """Add elements of a gradient to zeros of x's extents, at their places in a flat x."""
        total = self("Reshape", self.size(x), self.ints(1))
        zeros = self("Expand", self.like(0.0, gradient), total)
        flat = (self.flat(places), self.flat(gradient))
        sums = self("ScatterElements", zeros, *flat, axis=0, reduction="add")
        return self.shaped(sums, x)


def _repeated(narrow: Dims | None, wide: Dims | None) -> list[int] | None:
    """Axes of `wide` along which `narrow` was repeated, None if that cannot be told."""
    if narrow is None or wide is None:
        return None
    extra = len(wide) - len(narrow)
    axes = list(range(extra))
    for axis, (a, b) in enumerate(zip(narrow, wide[extra:], strict=True), extra):
        if a == 1:
            if b != 1:
                axes.append(axis)
        elif not isinstance(a, int) and (a is None or a != b) and b != 1:
            return None
    return axes


def _made_dtype(op: str, inputs: Sequence[Value | None], attributes: Mapping[str, Any]) -> int:
    """Dtype of what an operator computes; those with floats take it from one input."""
    if op in _BOOL:
        return int(TensorProto.BOOL)
    if op in _INT64:
        return int(TensorProto.INT64)
    if op == "Cast":
        return int(attributes["to"])
    source = 1 if op in {"CastLike", "Where"} else 0
    chosen = inputs[source] if source < len(inputs) else None
    return chosen.dtype if chosen is not None else 0

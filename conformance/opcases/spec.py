# SPDX-License-Identifier: Apache-2.0
"""The words in which families describe a case: inputs, attributes, class, version."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from chipdock.conformance.case import Variant

__all__ = [
    "CORE", "FLOAT6", "FLOATS", "HALVES", "INTEGERS", "MOVABLE", "OPSET", "SIGNED", "SMALL",
    "Cases", "In", "const", "ints", "pick", "variant",
]  # fmt: skip

Cases: TypeAlias = Iterator[tuple[str, Variant]]

OPSET = 22
"""Version of the operator set unless a case says otherwise. Fixed, so that ids keep a meaning."""

FLOATS = ("f32", "f64", "f16", "bf16")
HALVES = ("f16", "bf16")
SIGNED = ("i32", "i64", "i8", "i16")
INTEGERS = (*SIGNED, "u8", "u16", "u32", "u64")
SMALL = ("f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f8e8m0", "f4e2m1", "i4", "u4")
"""Types below a byte or without arithmetic: they are moved, cast and quantized."""
FLOAT6 = ("f6e2m3", "f6e3m2")
"""Only cast and quantized, since opset 28."""
MOVABLE = (*FLOATS, *INTEGERS, "bool", "c64", "c128")
CORE = frozenset({"f32", "f64", "bool", *INTEGERS})
"""Types whose cases no waiver can cover."""


class In(NamedTuple):
    """One input of a case.

    Attributes:
        dtype: Short name.
        shape: Extents.
        fill: How values are made, see fills.py; "values" takes `values`.
        view: "" dense; "step" every second element of a larger array along the last axis; "back"
            reversed along the first axis; "inner" the middle of a larger array.
        constant: An initializer of the model, which a plugin may pack at load.
        values: For the fill "values": all elements in row-major order, or one for all.
    """

    dtype: str
    shape: tuple[int, ...] = ()
    fill: str = "normal"
    view: str = ""
    constant: bool = False
    values: tuple[Any, ...] = ()


def ints(*values: int, dtype: str = "i64", scalar: bool = False) -> In:
    """Make an integer input with these values: axes, shapes, indices."""
    shape = () if scalar else (len(values),)
    return In(dtype, shape, "values", values=values)


def const(dtype: str, shape: Sequence[int] = (), *values: float | bool) -> In:
    """Make an input with these values, or one value for all elements."""
    return In(dtype, tuple(shape), "values", values=values)


def pick(items: Sequence[Any], *salt: Any, count: int = 1) -> tuple[Any, ...]:
    """Choose a few items, the same ones for the same salt: pairwise instead of full products."""
    if count >= len(items):
        return tuple(items)
    start = zlib.crc32(repr(salt).encode()) % len(items)
    step = max(len(items) // count, 1)
    return tuple(items[(start + i * step) % len(items)] for i in range(count))


def variant(
    op: str,
    dtype: str,
    name: str,
    inputs: Sequence[In | None],
    attributes: dict[str, Any] | None = None,
    *,
    shape_class: str,
    tolerance: str,
    opset: int = OPSET,
    outputs: int = 1,
    domain: str = "",
    **extra: Any,
) -> tuple[str, Variant]:
    """Make one case.

    Args:
        op: ONNX operator.
        dtype: The type that gives the case its name, and the type whose kernel it needs.
        name: Last part of the id.
        inputs: None for an optional one that is not given.
        attributes: Plain values; ("tensor", dtype, shape, values) for a tensor.
        shape_class: "scalar", "empty", "odd", "broadcast", "strided", "large_k", "special", "nd",
            "real", "packed", "negative_axis", "old_version", …
        tolerance: Class of the floating outputs; integers and bools are always exact.
        opset: Version of the operator set.
        outputs: How many outputs are asked for; names of left-out ones are not supported.
        domain: Of the operator.
        extra: factor (c of class R), zero_sign, dynamic (output shapes hang on values),
            own_kernel (the operator's body cannot do it), seed, …
    """
    full = f"{domain}::{op}" if domain else op
    facts: dict[str, Any] = {"mustpass": dtype in CORE and tolerance in {"E", "U", "R"}}
    facts |= {"budget_ms": 20, "tier": "pr"} | extra
    made = Variant(
        dtype=dtype,
        name=name,
        needs=f"op:{full}:{dtype}",
        op=full,
        inputs=tuple(inputs),
        attributes=dict(attributes or {}),
        shape_class=shape_class,
        tolerance=tolerance,
        opset=opset,
        outputs=outputs,
        **facts,
    )
    return op, made

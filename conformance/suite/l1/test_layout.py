# SPDX-License-Identifier: Apache-2.0
"""Private layouts: Reorder there and back, sizes, and what lies beside the elements."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipdock.conformance.case import NotSupported, Variant, case
from chipdock.conformance.numerics.dtypes import numpy_dtype
from chipdock.conformance.suite.canary import check_bytes
from chipdock.conformance.suite.device import RawDevice
from chipdock.conformance.suite.layout import (
    LayoutTensor,
    Reorders,
    check_elements,
    layouts_of,
    reorder_lists,
)
from chipdock.conformance.suite.layout_node import Argument, LayoutNode
from chipdock.conformance.suite.variants import named
from chipdock.conformance.target import Target

_NEEDS = "slot:kernel.launch and slot:kernel.layout_size"
_REORDER = ("kernel.layout_size", "kernel.create", "kernel.launch")
_Array = NDArray[Any]

# Channels that fill blocks of 4 to 32 and such that do not, planes of odd extents.
_SHAPES: dict[str, tuple[int, ...]] = {
    f"c{channels}_b{batch}": (batch, channels, 5, 7)
    for channels in (1, 3, 17, 24, 40, 64)
    for batch in (1, 3)
} | {
    "pixel": (2, 20, 1, 1), "row": (1, 33, 1, 61), "large": (1, 19, 67, 129),
    "line": (2, 17, 31), "volume": (1, 18, 2, 3, 5), "matrix": (9, 37), "vector": (41,),
}  # fmt: skip
_EMPTY = {"batch": (0, 17, 5, 7), "plane": (2, 17, 0, 7), "line": (0, 3, 4), "matrix": (0, 9)}
_DTYPES = ("f16", "bf16", "f64", "i8", "u8", "i32")


@contextlib.contextmanager
def _each(device: RawDevice, *likes: _Array) -> Iterator[list[tuple[Reorders, _Array]]]:
    """All layouts that take any of these tensors.

    Raises:
        NotSupported: None does.
    """
    with contextlib.ExitStack() as open_:
        found, lack = [], ""
        for layout in layouts_of(device):
            for like in likes:
                try:
                    found.append((open_.enter_context(Reorders(device, like, layout)), like))
                except NotSupported as error:
                    lack = str(error)
        if not found:
            raise NotSupported(lack)
        yield found


def _random(target: Target, shape: tuple[int, ...], dtype: str) -> _Array:
    kind = numpy_dtype(dtype)
    if kind.kind in "iu":
        return target.rng.integers(1, 100, shape).astype(kind)
    return target.rng.standard_normal(shape).astype(kind)


def _there_and_back(reorders: Reorders, values: _Array) -> None:
    data = np.ascontiguousarray(values).tobytes()
    source, inner, goal = reorders.plain(data), reorders.inner(), reorders.plain()
    reorders.forth(source, inner)
    body = inner.read("the tensor in the layout")
    check_elements(body, data, "the tensor in the layout")
    check_bytes(source.read("the source"), data, "the source of a Reorder")
    reorders.back(inner, goal)
    check_bytes(goal.read("the tensor out of the layout"), data, "what came back")
    check_bytes(inner.read("the tensor in the layout"), body, "the source of the way back")


@case(
    "L1.layout.round_trip",
    duties=("KRN-4", "KRN-8"),
    needs=_NEEDS,
    entry_points=_REORDER,
    tolerance="E",
    variants=[Variant("f32", name, shape=shape) for name, shape in _SHAPES.items()]
    + [Variant(dtype, name, shape=_SHAPES[name]) for dtype in _DTYPES
       for name in ("c17_b3", "c64_b1")],
)  # fmt: skip
def test_round_trip(target: Target, variant: Variant) -> None:
    """Into a layout and back all bytes are the same, and zeros lie beside the elements."""
    values = _random(target, variant.shape, variant.dtype)
    with RawDevice(target) as device, _each(device, values) as found:
        for reorders, _ in found:
            _there_and_back(reorders, values)
        target.record(layouts=len(found))


@case(
    "L1.layout.values",
    duties=("KRN-4",),
    needs=_NEEDS,
    entry_points=_REORDER,
    tolerance="E",
    variants=[Variant(dtype, name) for dtype in ("f32", "f16", "bf16", "f64")
              for name in ("nans", "infinities", "zeros", "denormals")],
)  # fmt: skip
def test_special_values(target: Target, variant: Variant) -> None:
    """A Reorder only moves elements: NaNs keep their payloads, zeros their signs."""
    kind = numpy_dtype(variant.dtype)
    if variant.name == "denormals" and target.has("flag:FLUSHES_DENORMALS"):
        raise NotSupported("denormals, which the device may take as zero")
    width, word = 8 * kind.itemsize, np.dtype(f"u{kind.itemsize}")
    digits = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}[variant.dtype]
    exponents = ((1 << (width - 1)) - 1) ^ ((1 << digits) - 1)
    shape = (2, 19, 3, 5)
    drawn = target.rng.integers(1, 1 << (digits - 1), shape).astype(np.uint64)
    if variant.name == "nans":  # quiet ones
        drawn |= np.uint64(exponents | 1 << (digits - 1))
    elif variant.name == "infinities":
        drawn[...] = exponents
    elif variant.name == "zeros":
        drawn[...] = 0
    drawn |= target.rng.integers(0, 2, shape).astype(np.uint64) << np.uint64(width - 1)
    values = drawn.astype(word).view(kind)
    with RawDevice(target) as device, _each(device, values) as found:
        for reorders, _ in found:
            _there_and_back(reorders, values)


@case(
    "L1.layout.empty",
    duties=("KRN-10",),
    needs=_NEEDS,
    entry_points=("kernel.create", "kernel.launch"),
    variants=[Variant("f32", name, shape=shape) for name, shape in _EMPTY.items()],
)
def test_no_elements(target: Target, variant: Variant) -> None:
    """A Reorder of tensors without elements needs no memory."""
    like = np.zeros(variant.shape, np.float32)
    with RawDevice(target) as device, _each(device, like) as found:
        for reorders, _ in found:
            reorders.empty()


@case(
    "L1.layout.stream",
    duties=("KRN-6", "STR-1"),
    needs=_NEEDS + " and slot:stream.create",
    entry_points=("kernel.launch", "stream.sync"),
    tolerance="E",
    variants=[Variant("f32", name) for name in ("in_order", "many")],
)
def test_stream(target: Target, variant: Variant) -> None:
    """Reorders on a stream take effect in its order."""
    values = [_random(target, (2, 17, 9, 5), "f32") for _ in range(4)]
    with RawDevice(target) as device, _each(device, values[0]) as found:
        for reorders, like in found:
            stream, inner, source = device.stream(), reorders.inner(), reorders.plain()
            goals: list[tuple[LayoutTensor, _Array]] = []
            for given in values[: 4 if variant.name == "many" else 1]:
                goals.append((reorders.plain(), given))
                at = source.place
                device.write(at.memory, given.tobytes(), at.offset, stream=stream)
                reorders.forth(source, inner, stream)
                reorders.back(inner, goals[-1][0], stream)
            device.write(at.memory, bytes(like.nbytes), at.offset, stream=stream)
            device.sync(stream)
            for goal, given in goals:
                check_bytes(goal.read("the output"), given.tobytes(), "what came back")


@case(
    "L1.layout.size",
    duties=("KRN-8", "KRN-2"),
    needs="slot:kernel.layout_size",
    entry_points=("kernel.layout_size",),
    variants=named("unknown_layout unknown_dim unknown_rank same_answer"),
)
def test_size(target: Target, variant: Variant) -> None:
    """layout_size knows its layouts, wants all dims, and says the same each time."""
    likes = [np.zeros(shape, np.float32) for shape in ((2, 17, 5, 7), (2, 17, 5), (9, 37), (41,))]
    with RawDevice(target) as device, _each(device, *likes) as found:
        known = layouts_of(device)
        for reorders, like in found:
            out = device.block("uint64_t*")
            value = reorders.value()
            arguments = (device.device, value, out)
            if variant.name == "unknown_layout":
                for layout in (max(known) + 1, 0x7FFFFFFF):
                    value.layout = layout
                    device.refuse("kernel.layout_size", "UNSUPPORTED", *arguments)
            elif variant.name == "same_answer":
                for _ in range(3):
                    _there_and_back(reorders, like)
                    device.ok("kernel.layout_size", *arguments)
                    assert out[0] == reorders.size, "another size than at first"
            else:
                dims = [-1 if axis == like.ndim - 1 else n for axis, n in enumerate(like.shape)]
                value.dims = device.block("int64_t[]", dims)
                if variant.name == "unknown_rank":
                    value.rank = -1
                device.refuse("kernel.layout_size", "INVALID_ARGUMENT", *arguments)


@case(
    "L1.layout.offers",
    duties=("KRN-8", "KRN-2"),
    needs="slot:kernel.list and slot:kernel.supports",
    entry_points=("kernel.list", "kernel.supports"),
    variants=named("reorder_listed one_side_only same_answer"),
)
def test_offers(target: Target, variant: Variant) -> None:
    """Each listed layout has a Reorder, which turns one side only, and answers stay."""
    like = np.zeros((2, 32, 5, 7), np.float32)
    with RawDevice(target) as device:
        for layout in layouts_of(device):
            if variant.name == "reorder_listed":
                assert reorder_lists(device, layout), f"no Reorder for layout {layout}"
                continue
            for sides in ((layout, layout), (0, layout), (layout, 0)):
                node = LayoutNode(
                    device, "Reorder", 1, [Argument(like, sides[0])], [Argument(like, sides[1])],
                    domain="ai.chipdock",
                )  # fmt: skip
                answers = {len(list(node.willing())) for _ in range(3)}
                assert len(answers) == 1, f"supports of a Reorder {sides} changes"
                assert 0 in sides or answers == {0}, "a Reorder from a layout into the same"

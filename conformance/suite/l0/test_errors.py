# SPDX-License-Identifier: Apache-2.0
"""The error record: filled on failure up to its size, untouched on success, and never needed."""

from __future__ import annotations

from typing import Any

from chipdock.conformance.case import Variant, case
from chipdock.conformance.suite.l0.bench import Bench
from chipdock.conformance.suite.raw import STATUS
from chipdock.conformance.target import Target

_MARK = 0xA5


def _failing(bench: Bench, name: str) -> tuple[str, list[Any], str]:
    """Return slot, arguments and status of a call that fails."""
    if name == "info":
        return (
            "device.info",
            [bench.handle, -1, bench.new("chipdock_device_info")],
            "INVALID_ARGUMENT",
        )
    if name == "open":
        desc = bench.new("chipdock_device_open_desc", index=-1)
        return (
            "device.open",
            [bench.handle, desc, bench.block("chipdock_device**")],
            ("INVALID_ARGUMENT"),
        )
    if name == "alloc":
        desc = bench.new("chipdock_alloc_desc", size=0)
        return (
            "memory.alloc",
            [bench.device, desc, bench.block("chipdock_memory**")],
            ("INVALID_ARGUMENT"),
        )
    if name == "memory":
        desc = bench.new("chipdock_alloc_desc", size=1 << 62)
        return (
            "memory.alloc",
            [bench.device, desc, bench.block("chipdock_memory**")],
            ("OUT_OF_MEMORY"),
        )
    desc = bench.copy_desc()
    desc.source = bench.null
    return "memory.copy", [bench.device, desc], "INVALID_ARGUMENT"


_CALLS = ("info", "open", "alloc", "memory", "copy")


def _variants() -> list[Variant]:
    slots = ("device.info", "device.open", "memory.alloc", "memory.alloc", "memory.copy")
    return [
        Variant(name=name, entry_points=(slot,), mustpass=True)
        for name, slot in zip(_CALLS, slots, strict=True)
    ]


@case("L0.error.filled", duties=("BASE-8",), variants=_variants())
def test_filled(target: Target, variant: Variant) -> None:
    """A failed call fills code, scope, text and its length, and the text is closed UTF-8."""
    with Bench(target) as bench:
        slot, arguments, status = _failing(bench, variant.name)
        error = bench.new("chipdock_error")
        bench.ffi.memmove(bench.ffi.addressof(error, "text"), bytes([_MARK]) * 512, 512)
        assert bench.call(slot, *arguments, error=error) == STATUS[status]
        text = bytes(bench.ffi.buffer(error.text))
        end = text.find(b"\0")
        assert error.code == STATUS[status]
        assert error.scope == 0, "only the call failed"
        assert end > 0, "the text is empty or not closed by 0"
        assert error.text_size == end
        assert text[:end].decode("utf-8").isprintable()
        assert error.struct_size == bench.ffi.sizeof("chipdock_error")


def _sized(bench: Bench, name: str, size: int) -> tuple[Any, bytes]:
    """Call with an error record of `size` bytes; return it and the 64 marked bytes behind it."""
    slot, arguments, status = _failing(bench, name)
    block = bench.block("unsigned char[]", bytes([_MARK]) * (size + 640))
    error = bench.ffi.cast("chipdock_error*", block)
    error.struct_size = size
    assert bench.call(slot, *arguments, error=error) == STATUS[status]
    assert error.struct_size == size, "struct_size was changed"
    return error, bytes(bench.ffi.buffer(block, size + 640))[size:]


@case(
    "L0.error.short",
    duties=("BASE-5", "BASE-8"),
    variants=[
        Variant(name=f"{call}_{room}", call=call, room=room)
        for call in _CALLS
        for room in (1, 16, 100)
    ],
)
def test_short_record(target: Target, variant: Variant) -> None:
    """A record with less room for the text gets it cut, closed by 0, and nothing behind it."""
    with Bench(target) as bench:
        before = bench.ffi.offsetof("chipdock_error", "text")
        error, behind = _sized(bench, variant.call, before + variant.room)
        assert set(behind) == {_MARK}, "bytes behind the record were written [BASE-5]"
        text = bytes(bench.ffi.buffer(error, before + variant.room))[before:]
        assert b"\0" in text, "the cut text is not closed by 0"
        assert error.text_size == text.index(b"\0")


@case("L0.error.longer", duties=("BASE-5",), variants=_variants())
def test_longer_record(target: Target, variant: Variant) -> None:
    """A longer record of a newer host keeps its size, and bytes behind it are left alone."""
    with Bench(target) as bench:
        error, behind = _sized(bench, variant.name, bench.ffi.sizeof("chipdock_error") + 40)
        assert set(behind) == {_MARK}
        assert error.text_size > 0


@case("L0.error.null", duties=("BASE-8", "BASE-9"), variants=_variants())
def test_null_record(target: Target, variant: Variant) -> None:
    """A failing call without a record returns the same status."""
    with Bench(target) as bench:
        slot, arguments, status = _failing(bench, variant.name)
        assert bench.call(slot, *arguments, error=bench.null) == STATUS[status]


@case(
    "L0.error.untouched",
    duties=("BASE-8",),
    variants=[
        Variant(name=name, entry_points=(slot,), mustpass=True)
        for name, slot in (
            ("count", "device.count"),
            ("info", "device.info"),
            ("alloc", "memory.alloc"),
            ("copy", "memory.copy"),
            ("free", "memory.free"),
        )
    ],
)
def test_untouched_on_success(target: Target, variant: Variant) -> None:
    """A call that succeeds leaves the record as it was."""
    with Bench(target) as bench:
        slot = variant.entry_points[0]
        if variant.name == "free":
            memory = bench.memory
            arguments = [bench.forget(memory), memory]
        else:
            arguments = bench.arguments(slot)
        error = bench.new("chipdock_error")
        size = bench.ffi.sizeof("chipdock_error")
        bench.ffi.memmove(error, bytes([_MARK]) * size, size)
        error.struct_size = size
        assert bench.call(slot, *arguments, error=error) == 0
        assert set(bytes(bench.ffi.buffer(error, size))[4:]) == {_MARK}, "a success wrote a record"
        bench.undo(slot, arguments)


@case("L0.error.text", duties=("BASE-8",), entry_points=("memory.alloc",))
def test_out_of_memory_gives_figures(target: Target, variant: object) -> None:
    """The text of an OUT_OF_MEMORY gives the size that was asked for."""
    with Bench(target) as bench:
        slot, arguments, _ = _failing(bench, "memory")
        bench.refuse(slot, "OUT_OF_MEMORY", *arguments)
        assert any(c.isdigit() for c in bench.message), f"no figures in: {bench.message}"

# SPDX-License-Identifier: Apache-2.0
"""Values in device memory that streams write and wait for."""

from __future__ import annotations

from typing import Any

from chipdock.conformance.case import Variant, case
from chipdock.conformance.suite.canary import check_bytes
from chipdock.conformance.suite.device import RawDevice
from chipdock.conformance.suite.raw import status_name
from chipdock.conformance.suite.variants import sizes
from chipdock.conformance.target import Target

_WRITE, _EQUAL, _GREATER_EQUAL, _AND = range(4)


def _value(
    device: RawDevice, stream: Any, place: tuple[Any, int], operation: int, value: int
) -> None:
    memory, offset = place
    desc = device.new(
        "chipdock_value_desc", operation=operation, memory=memory, offset=offset, value=value
    )
    device.ok("stream.value", stream, desc)


@case(
    "L1.stream.value_write",
    duties=("STR-1",),
    needs="slot:stream.value",
    tolerance="E",
    entry_points=("stream.value",),
    variants=sizes(0, 8, 4088),
)
def test_value_write(target: Target, variant: Variant) -> None:
    """A value is written whole, little endian, at its offset and nowhere else, in stream order."""
    with RawDevice(target) as device:
        stream, memory = device.stream(), device.alloc(4096)
        device.write(memory, b"\xcb" * 4096, stream=stream)
        for value in (1, 0x1122334455667788, 2**64 - 2):
            _value(device, stream, (memory, variant.size), _WRITE, value)
        device.sync(stream)
        expected = bytearray(b"\xcb" * 4096)
        expected[variant.size : variant.size + 8] = (2**64 - 2).to_bytes(8, "little")
        check_bytes(device.read(memory, 4096), bytes(expected), "the memory")


_WAITS = {
    "equal": (_EQUAL, 7, 7), "greater_equal": (_GREATER_EQUAL, 7, 9),
    "greater_equal_wraps": (_GREATER_EQUAL, 2**64 - 1, 1), "and": (_AND, 6, 4),
}  # fmt: skip


@case(
    "L1.stream.value_wait",
    duties=("STR-1",),
    needs="slot:stream.value",
    entry_points=("stream.value",),
    variants=[
        Variant(name=f"{name}_{when}", wait=wait, when=when)
        for name, wait in _WAITS.items()
        for when in ("holds", "becomes")
    ],
)
def test_value_wait(target: Target, variant: Variant) -> None:
    """A wait ends once its condition holds, also if another stream makes it hold later."""
    operation, value, good = variant.wait
    with RawDevice(target) as device:
        stream, other, memory = device.stream(), device.stream(), device.alloc(64)
        device.write(memory, (good if variant.when == "holds" else 0).to_bytes(8, "little") * 8)
        if variant.when == "becomes" and operation == _GREATER_EQUAL and value > 2**63:
            device.write(memory, (value - 5).to_bytes(8, "little") * 8)
        _value(device, stream, (memory, 8), operation, value)
        if variant.when == "becomes":
            status = status_name(device.call("stream.sync", stream, 0))
            assert status == "TIMEOUT", f"{status} before the condition holds"
            _value(device, other, (memory, 8), _WRITE, good)
            device.sync(other)
        device.sync(stream)


@case(
    "L1.stream.value_refused",
    duties=("BASE-8",),
    needs="slot:stream.value",
    entry_points=("stream.value",),
    variants=sizes(1, 4, 12),
)
def test_value_offset(target: Target, variant: Variant) -> None:
    """An offset that is no multiple of 8 is INVALID_ARGUMENT."""
    with RawDevice(target) as device:
        desc = device.new("chipdock_value_desc", memory=device.alloc(64), offset=variant.size)
        device.refuse("stream.value", "INVALID_ARGUMENT", device.stream(), desc)

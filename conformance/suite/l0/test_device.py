# SPDX-License-Identifier: Apache-2.0
"""What a device says of itself, raw: every field in its range, the same each time."""

from __future__ import annotations

import re
from typing import Any

from chipdock.conformance.case import Variant, case
from chipdock.conformance.suite.device import RawDevice
from chipdock.conformance.suite.raw import Raw
from chipdock.conformance.suite.variants import named
from chipdock.conformance.target import Target

# Bits by DLPack code; 8-bit floats and smaller have one size each.
_BITS = {
    0: {1, 2, 4, 8, 16, 32, 64, 128}, 1: {1, 2, 4, 8, 16, 32, 64, 128}, 2: {16, 32, 64, 128},
    3: {8, 16, 32, 64, 128}, 4: {16}, 5: {32, 64, 128}, 6: {8},
    **{key: {8} for key in range(7, 15)}, 15: {6, 8}, 16: {6, 8}, 17: {4},
}  # fmt: skip


def _power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0


def _count(raw: Raw) -> int:
    out = raw.block("int32_t*", -7)
    raw.ok("device.count", raw.handle, out)
    return int(out[0])


@case(
    "L0.device.count",
    duties=("DEV-1", "DEV-2", "PLG-2"),
    entry_points=("device.count",),
    mustpass=True,
    variants=named("range same while_open two_instances"),
)
def test_count(target: Target, variant: Variant) -> None:
    """Count is at least one here, and the same before, while and after a device is open."""
    raw = Raw(target)
    first = _count(raw)
    assert first >= raw.index + 1
    if variant.name == "same":
        assert [_count(raw) for _ in range(5)] == [first] * 5
    elif variant.name == "while_open":
        with RawDevice(target) as device:
            assert _count(device) == first
    elif variant.name == "two_instances":
        assert _count(Raw(target)) == first


def _check_text(raw: Raw, info: Any, field: str) -> None:
    pointer = getattr(info, field)
    assert pointer != raw.null, f"{field} is NULL"
    text = raw.text(pointer)
    assert text.isascii(), f"{field} is not ASCII: {text!r}"
    assert text.isprintable(), f"{field} is not printable: {text!r}"
    if field == "product":
        assert text.strip(), "product is empty"
    if field == "pci_address":
        assert not text or re.fullmatch(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", text)


@case(
    "L0.device.info",
    duties=("DEV-3",),
    entry_points=("device.info",),
    mustpass=True,
    variants=named("product architecture driver pci_address uuid numa_node flags peaks"),
)
def test_info(target: Target, variant: Variant) -> None:
    """Each field of every device's info is in its range."""
    raw = Raw(target)
    for index in range(_count(raw)):
        info = raw.info(index)
        if variant.name in {"product", "architecture", "driver", "pci_address"}:
            _check_text(raw, info, variant.name)
        elif variant.name == "uuid":
            assert any(bytes(info.uuid)), "the uuid is all zero"
        elif variant.name == "numa_node":
            assert info.numa_node >= -1
        elif variant.name == "flags":
            assert info.flags & ~7 == 0, f"unknown flags {info.flags:#x}"
        else:
            for i in range(info.peak_count):
                peak = info.peaks[i]
                assert peak.struct_size >= 16
                assert peak.dtype.bits in _BITS.get(peak.dtype.code, ())
                assert peak.dtype.lanes == 1
                assert peak.operations_per_second >= 0


@case(
    "L0.device.heap",
    duties=("DEV-6", "DEV-3"),
    entry_points=("device.info",),
    mustpass=True,
    variants=named("count struct_size flags bytes alignment sub_alignment max_allocation name"),
)
def test_heaps(target: Target, variant: Variant) -> None:
    """Each field of every heap is in its range."""
    raw = Raw(target)
    info = raw.info()
    assert info.heap_count >= 1
    assert info.heaps != raw.null
    for i in range(info.heap_count):
        heap = info.heaps[i]
        assert heap != raw.null
        if variant.name == "struct_size":
            assert heap.struct_size >= raw.ffi.sizeof("chipdock_heap")
        elif variant.name == "flags":
            assert heap.flags & ~7 == 0
        elif variant.name == "bytes":
            assert heap.bytes > 0
        elif variant.name == "alignment":
            assert _power_of_two(heap.alignment), heap.alignment
        elif variant.name == "sub_alignment":
            sub = heap.sub_allocation_alignment
            assert sub == 0 or (_power_of_two(sub) and sub <= max(heap.alignment, 4096))
        elif variant.name == "max_allocation":
            assert heap.max_allocation <= heap.bytes
        elif variant.name == "name":
            assert raw.text(heap.name), "a heap without a name"


def _snapshot(raw: Raw) -> tuple[object, ...]:
    info = raw.info()
    heaps = [bytes(raw.ffi.buffer(info.heaps[i], 48)) for i in range(info.heap_count)]
    texts = [raw.text(t) for t in (info.product, info.architecture, info.driver, info.pci_address)]
    return bytes(raw.ffi.buffer(info)), heaps, texts


@case(
    "L0.device.stable",
    duties=("DEV-1", "DEV-3"),
    entry_points=("device.info",),
    variants=named("twice while_open after_close"),
)
def test_info_stays(target: Target, variant: Variant) -> None:
    """Info, its strings and heaps keep address and content while devices come and go."""
    with RawDevice(target) as device:
        before = _snapshot(device)
        if variant.name == "while_open":
            device.alloc(4096)
        elif variant.name == "after_close":
            device.ok("device.close", device.open())
            device._devices.pop()
        assert _snapshot(device) == before


@case("L0.device.uuid", duties=("DEV-3", "DEV-4"), entry_points=("device.info",))
def test_uuid_is_the_chips(target: Target, variant: object) -> None:
    """The same index has the same uuid in two instances, and two indices have two."""
    first, second = Raw(target), Raw(target)
    count = _count(first)
    uuids = [bytes(first.info(i).uuid) for i in range(count)]
    assert uuids == [bytes(second.info(i).uuid) for i in range(count)]
    assert len(set(uuids)) == count


@case(
    "L0.device.truncated",
    duties=("BASE-5",),
    entry_points=("device.info",),
    variants=[
        Variant(name=field, field=field) for field in ("flags", "driver", "numa_node", "heap_count")
    ],
)
def test_info_of_an_older_host(target: Target, variant: Variant) -> None:
    """An info struct that ends early is filled at most up to its end."""
    raw = Raw(target)
    whole = raw.info()
    size = raw.ffi.offsetof("chipdock_device_info", variant.field)
    block = raw.block("unsigned char[]", b"\0" * size + b"\xa5" * 256)
    info = raw.ffi.cast("chipdock_device_info*", block)
    info.struct_size = size
    status = raw.call("device.info", raw.handle, raw.index, info)
    data = bytes(raw.ffi.buffer(block, size + 256))
    assert set(data[size:]) == {0xA5}, "bytes behind struct_size were written [BASE-5]"
    if status == 0:
        assert data[4:size] == bytes(raw.ffi.buffer(whole))[4:size]


@case(
    "L0.device.open",
    duties=("DEV-4", "DEV-5", "BASE-8"),
    entry_points=("device.open", "device.close"),
    mustpass=True,
    variants=[Variant(name=f"n{count}", count=count) for count in (1, 2, 8)],
)
def test_open_and_close(target: Target, variant: Variant) -> None:
    """One chip opens several times, with a handle each, and closes in any order."""
    with RawDevice(target) as device:
        more = [device.open() for _ in range(variant.count)]
        assert len({int(device.ffi.cast("uintptr_t", d)) for d in [device.device, *more]}) == (
            variant.count + 1
        )
        for handle in more:
            device._devices.remove(handle)
            device.ok("device.close", handle)
        assert device.alloc(64)


@case(
    "L0.device.reopen",
    duties=("DEV-5", "PLG-6"),
    entry_points=("device.open", "device.close"),
    mustpass=True,
)
def test_reopen(target: Target, variant: object) -> None:
    """A device closes and opens again many times, and works the last time."""
    raw = Raw(target)
    out = raw.block("chipdock_device**")
    desc = raw.new("chipdock_device_open_desc", index=raw.index)
    for _ in range(10):
        out[0] = raw.null
        raw.ok("device.open", raw.handle, desc, out)
        assert out[0] != raw.null
        raw.ok("device.close", out[0])
    with RawDevice(target) as device:
        memory = device.alloc(64)
        device.write(memory, b"again" * 4)
        assert device.read(memory, 20) == b"again" * 4

# SPDX-License-Identifier: Apache-2.0
"""Pinned host memory, addresses, and memory by name: exported and imported in one process."""

from __future__ import annotations

import itertools
import os
from typing import Any

from chipdock.conformance.case import NotSupported, Variant, case
from chipdock.conformance.suite.canary import check_bytes
from chipdock.conformance.suite.device import RawDevice, pattern
from chipdock.conformance.suite.raw import STATUS, status_name
from chipdock.conformance.suite.variants import named, sizes
from chipdock.conformance.target import Target

_SHARED = 8
_FD, _POINTER, _IPC = 1, 2, 3
_PINNED = ("memory.host_alloc", "memory.host_free")


def _host_alloc(device: RawDevice, size: int) -> Any:
    out = device.ffi.new("void**")
    device.ok("memory.host_alloc", device.device, size, out)
    assert out[0] != device.null, "host_alloc returned OK and NULL [BASE-8]"
    return out[0]


@case(
    "L1.pinned.size",
    duties=("MEM-4", "BASE-8"),
    needs="slot:memory.host_alloc",
    entry_points=_PINNED,
    tolerance="E",
    variants=sizes(1, 63, 64, 4097, 1048577),
)
def test_pinned(target: Target, variant: Variant) -> None:
    """Pinned memory is aligned to 64 bytes, writable throughout, and copies both ways."""
    with RawDevice(target) as device:
        host = _host_alloc(device, variant.size)
        assert int(device.ffi.cast("uintptr_t", host)) % 64 == 0
        view = device.ffi.buffer(host, variant.size)
        data = pattern(variant.size, seed=12)
        view[:] = data
        memory = device.alloc(variant.size)
        places = device.place(host=host, flags=1), device.place(memory)
        assert device.copy(*places, variant.size) == 0, device.message
        view[:] = bytes(variant.size)
        assert device.copy(places[1], places[0], variant.size) == 0, device.message
        check_bytes(bytes(view), data, "pinned memory")
        device.ok("memory.host_free", device.device, host)


@case(
    "L1.pinned.offset",
    duties=("MEM-4",),
    needs="slot:memory.host_alloc",
    entry_points=_PINNED,
    tolerance="E",
)
def test_pinned_offset(target: Target, variant: object) -> None:
    """A copy may start in the middle of pinned memory."""
    with RawDevice(target) as device:
        host = _host_alloc(device, 8192)
        view = device.ffi.buffer(host, 8192)
        view[:] = pattern(8192, seed=13)
        inner = device.ffi.cast("char*", host) + 77
        memory = device.alloc(4001)
        status = device.copy(device.place(host=inner, flags=1), device.place(memory), 4001)
        assert status == 0, device.message
        check_bytes(device.read(memory, 4001), pattern(8192, seed=13)[77 : 77 + 4001], "the copy")
        device.ok("memory.host_free", device.device, host)


@case(
    "L1.pinned.distinct", duties=("BASE-8",), needs="slot:memory.host_alloc", entry_points=_PINNED
)
def test_pinned_distinct(target: Target, variant: object) -> None:
    """Several pinned blocks share no byte, and freeing some leaves the others."""
    with RawDevice(target) as device:
        blocks = [_host_alloc(device, 1001) for _ in range(16)]
        for i, block in enumerate(blocks):
            device.ffi.buffer(block, 1001)[:] = pattern(1001, seed=i)
        for block in blocks[::2]:
            device.ok("memory.host_free", device.device, block)
        for i, block in list(enumerate(blocks))[1::2]:
            check_bytes(bytes(device.ffi.buffer(block, 1001)), pattern(1001, seed=i), f"block {i}")
            device.ok("memory.host_free", device.device, block)


@case(
    "L1.pinned.refused",
    duties=("BASE-8",),
    needs="slot:memory.host_alloc",
    entry_points=("memory.host_alloc",),
    variants=named("zero too_much"),
)
def test_pinned_refused(target: Target, variant: Variant) -> None:
    """host_alloc of 0 bytes is INVALID_ARGUMENT, of far too many OUT_OF_MEMORY."""
    with RawDevice(target) as device:
        out = device.block("void**")
        size, status = (
            (0, "INVALID_ARGUMENT") if variant.name == "zero" else (2**62, "OUT_OF_MEMORY")
        )
        device.refuse("memory.host_alloc", status, device.device, size, out)
        assert out[0] == device.null


def _address(device: RawDevice, memory: Any) -> int:
    out = device.block("void**")
    device.ok("memory.address", device.device, memory, out)
    return int(device.ffi.cast("uintptr_t", out[0]))


@case(
    "L1.address.stable",
    duties=("BASE-8", "MEM-1"),
    needs="slot:memory.address and flag:ADDRESSABLE",
    entry_points=("memory.address",),
    variants=named("same distinct"),
)
def test_address(target: Target, variant: Variant) -> None:
    """An allocation has one address as long as it lives, and ranges of two do not meet."""
    with RawDevice(target) as device:
        memories = [device.alloc(1000) for _ in range(32)]
        addresses = [_address(device, memory) for memory in memories]
        if variant.name == "same":
            device.write(memories[0], bytes(1000))
            assert [_address(device, memory) for memory in memories] == addresses
        else:
            ordered = sorted(addresses)
            gaps = [b - a for a, b in itertools.pairwise(ordered)]
            assert min(gaps) >= 1000, "two allocations overlap"


@case(
    "L1.address.visible",
    duties=("MEM-5", "DEV-6"),
    tolerance="E",
    needs="slot:memory.address and flag:HOST_VISIBLE",
    entry_points=("memory.address", "memory.flush", "memory.invalidate"),
    variants=named("host_writes device_writes"),
)
def test_host_visible(target: Target, variant: Variant) -> None:
    """The host reads and writes a HOST_VISIBLE heap in place, with flush and invalidate if due."""
    with RawDevice(target) as device:
        memory = device.alloc(4096)
        view = device.ffi.buffer(device.ffi.cast("char*", _address(device, memory)), 4096)
        coherent = bool(device.heap.flags & 2)
        data = pattern(4096, seed=14)
        if variant.name == "host_writes":
            view[:] = data
            if not coherent:
                device.ok("memory.flush", device.device, memory, 0, 4096)
            check_bytes(device.read(memory, 4096), data, "what the device sees")
        else:
            device.write(memory, data)
            if not coherent:
                device.ok("memory.invalidate", device.device, memory, 0, 4096)
            check_bytes(bytes(view), data, "what the host sees")


@case(
    "L1.address.flush",
    duties=("MEM-3", "MEM-7"),
    needs="slot:memory.flush",
    variants=[
        Variant(
            name=f"{slot}_{name}",
            slot=f"memory.{slot}",
            part=part,
            entry_points=(f"memory.{slot}",),
        )
        for slot in ("flush", "invalidate")
        for name, part in (
            ("all", (0, 4096)),
            ("part", (256, 300)),
            ("nothing", (0, 0)),
            ("nothing_at_the_end", (4096, 0)),
        )
    ],
)
def test_flush(target: Target, variant: Variant) -> None:
    """Flush and invalidate take any range of an allocation and change no byte."""
    with RawDevice(target) as device:
        memory = device.alloc(4096)
        device.write(memory, pattern(4096))
        device.ok(variant.slot, device.device, memory, *variant.part)
        check_bytes(device.read(memory, 4096), pattern(4096), "the allocation")


def _export(device: RawDevice, memory: Any, kind: int) -> Any:
    """Export, for IPC with a blob of the size that the first call gives.

    Raises:
        NotSupported: The plugin has no exports of this kind.
    """
    out = device.new("chipdock_external", kind=kind)
    status = device.call("memory.export_memory", device.device, memory, out)
    if status == STATUS["UNSUPPORTED"]:
        raise NotSupported(f"export of kind {kind}")
    assert status == 0, f"export returned {status_name(status)}: {device.message}"
    if kind == _IPC:
        assert out.blob_size > 0
        out.blob = device.block("char[]", out.blob_size)
        device.ok("memory.export_memory", device.device, memory, out)
    return out


@case(
    "L1.shared.export",
    duties=("BASE-5", "MEM-3"),
    tolerance="E",
    needs="slot:memory.export_memory and slot:memory.import_memory",
    entry_points=("memory.export_memory", "memory.import_memory"),
    variants=[
        Variant(name="fd", kind=_FD),
        Variant(name="pointer", kind=_POINTER),
        Variant(name="ipc", kind=_IPC),
    ],
)
def test_export_and_import(target: Target, variant: Variant) -> None:
    """Exported memory is imported without a copy: both handles see the same bytes."""
    with RawDevice(target) as device:
        memory = device.alloc(8192, usage=_SHARED)
        device.write(memory, pattern(8192, seed=15))
        external = _export(device, memory, variant.kind)
        assert external.size >= 8192
        out = device.block("chipdock_memory**")
        status = device.call("memory.import_memory", device.device, external, out)
        if status == STATUS["UNSUPPORTED"]:
            raise NotSupported(f"import of kind {variant.kind}")
        assert status == 0, f"import returned {status_name(status)}: {device.message}"
        device._memory.append((device.device, out[0]))
        check_bytes(device.read(out[0], 8192), pattern(8192, seed=15), "the import")
        device.write(out[0], pattern(8192, seed=16))
        check_bytes(device.read(memory, 8192), pattern(8192, seed=16), "the exported memory")
        device.free(out[0])
        check_bytes(device.read(memory, 8192), pattern(8192, seed=16), "after the import's end")


@case(
    "L1.shared.blob",
    duties=("BASE-8",),
    needs="slot:memory.export_memory",
    entry_points=("memory.export_memory",),
    variants=named("too_small"),
)
def test_blob_too_small(target: Target, variant: Variant) -> None:
    """An IPC blob without room enough is INVALID_ARGUMENT, and blob_size says what is needed."""
    with RawDevice(target) as device:
        memory = device.alloc(8192, usage=_SHARED)
        need = int(_export(device, memory, _IPC).blob_size)
        room = device.block("unsigned char[]", b"\xa5" * (need + 8))
        out = device.new("chipdock_external", kind=_IPC, blob=room, blob_size=need - 1)
        device.refuse("memory.export_memory", "INVALID_ARGUMENT", device.device, memory, out)
        assert out.blob_size == need
        assert set(bytes(device.ffi.buffer(room, need + 8))) == {0xA5}, "the blob was written"


@case(
    "L1.shared.hostile",
    duties=("BASE-8", "BASE-9"),
    needs="slot:memory.import_memory",
    entry_points=("memory.import_memory",),
    variants=named("empty zeros ones random cut"),
)
def test_damaged_blob(target: Target, variant: Variant) -> None:
    """A blob that no export made is refused without harm."""
    with RawDevice(target) as device:
        data = {
            "empty": b"", "zeros": bytes(256), "ones": b"\xff" * 256,
            "random": target.rng.bytes(256), "cut": b"\x01",
        }[variant.name]  # fmt: skip
        external = device.new(
            "chipdock_external", kind=_IPC, blob=device.block("char[]", data or b"\0"),
            blob_size=len(data), size=4096,
        )  # fmt: skip
        out = device.block("chipdock_memory**")
        allowed = ("MISMATCH", "INVALID_ARGUMENT", "UNSUPPORTED")
        device.refuse("memory.import_memory", allowed, device.device, external, out)
        assert out[0] == device.null


@case(
    "L1.shared.closed_fd",
    duties=("BASE-8",),
    needs="slot:memory.import_memory",
    entry_points=("memory.import_memory",),
    variants=named("minus_one pipe"),
)
def test_useless_fd(target: Target, variant: Variant) -> None:
    """An fd that is no memory is refused and stays the caller's."""
    with RawDevice(target) as device:
        ends = os.pipe()
        external = device.new(
            "chipdock_external",
            kind=_FD,
            fd=-1 if variant.name == "minus_one" else ends[0],
            size=4096,
        )
        out = device.block("chipdock_memory**")
        allowed = ("INVALID_ARGUMENT", "MISMATCH", "UNSUPPORTED", "OUT_OF_MEMORY")
        device.refuse("memory.import_memory", allowed, device.device, external, out)
        for end in ends:
            os.fstat(end)
            os.close(end)

# SPDX-License-Identifier: Apache-2.0
"""Allocations: sizes, alignment, that no two share a byte, and memory that runs out."""

from __future__ import annotations

from typing import Any

from chipdock.conformance.case import Variant, case, fail
from chipdock.conformance.suite.canary import check_bytes
from chipdock.conformance.suite.device import RawDevice, pattern
from chipdock.conformance.suite.raw import STATUS, status_name
from chipdock.conformance.suite.variants import named, sizes
from chipdock.conformance.target import Target

_ALLOC = ("memory.alloc", "memory.free")


@case(
    "L1.memory.size",
    duties=("MEM-1",),
    entry_points=_ALLOC,
    mustpass=True,
    variants=sizes(1, 2, 3, 31, 63, 64, 65, 255, 4095, 4096, 4097, 65537, 1048577, 16777219),
)
def test_sizes(target: Target, variant: Variant) -> None:
    """Every byte of an allocation of any size holds what was written."""
    with RawDevice(target) as device:
        memory = device.alloc(variant.size)
        data = pattern(variant.size)
        device.write(memory, data)
        check_bytes(device.read(memory, variant.size), data, "the allocation")
        device.free(memory)


@case(
    "L1.memory.alignment",
    duties=("MEM-1", "DEV-6"),
    entry_points=_ALLOC,
    mustpass=True,
    variants=sizes(0, 1, 2, 4, 8, 16, 32, 64, 128, 256),
)
def test_alignment(target: Target, variant: Variant) -> None:
    """Alignments up to the heap's are taken, and addresses keep them and the heap's own."""
    with RawDevice(target) as device:
        asked = min(variant.size, int(device.heap.alignment))
        for size in (1, 100, 5000):
            memory = device.alloc(size, alignment=asked)
            if device.heap.flags & 4 and device.has("memory.address"):
                out = device.block("void**")
                device.ok("memory.address", device.device, memory, out)
                address = int(device.ffi.cast("uintptr_t", out[0]))
                assert address % device.heap.alignment == 0, f"{address:#x} is not aligned"


def _fill_each(device: RawDevice, count: int, size: int) -> list[tuple[Any, bytes]]:
    made = []
    for i in range(count):
        memory, data = device.alloc(size), pattern(size, seed=i)
        device.write(memory, data)
        made.append((memory, data))
    return made


def _check_each(device: RawDevice, made: list[tuple[Any, bytes]], what: str) -> None:
    for i, (memory, data) in enumerate(made):
        check_bytes(device.read(memory, len(data)), data, f"allocation {i} {what}")


@case(
    "L1.memory.distinct",
    duties=("MEM-1",),
    entry_points=_ALLOC,
    mustpass=True,
    variants=[
        Variant(name=f"{count}_of_n{size}", count=count, size=size)
        for count, size in ((2, 1), (64, 1), (64, 100), (200, 4097), (8, 1048577))
    ],
)
def test_distinct(target: Target, variant: Variant) -> None:
    """Live allocations have handles of their own and share no byte."""
    with RawDevice(target) as device:
        made = _fill_each(device, variant.count, variant.size)
        handles = {int(device.ffi.cast("uintptr_t", memory)) for memory, _ in made}
        assert len(handles) == variant.count
        _check_each(device, made, "beside the others")


@case(
    "L1.memory.free",
    duties=("MEM-1", "MEM-2"),
    entry_points=_ALLOC,
    mustpass=True,
    variants=named("every_other newest_first oldest_first reuse"),
)
def test_free_leaves_others(target: Target, variant: Variant) -> None:
    """Freeing some allocations, and allocating anew, changes no byte of the others."""
    with RawDevice(target) as device:
        made = _fill_each(device, 40, 3001)
        if variant.name in {"every_other", "reuse"}:
            ended, left = made[::2], made[1::2]
        elif variant.name == "newest_first":
            ended, left = made[:19:-1], made[:20]
        else:
            ended, left = made[:20], made[20:]
        for memory, _ in ended:
            device.free(memory)
        if variant.name == "reuse":
            for i in range(20):
                memory = device.alloc(3001)
                device.write(memory, pattern(3001, seed=1000 + i))
                left.append((memory, pattern(3001, seed=1000 + i)))
        _check_each(device, left, "after others were freed")


@case("L1.memory.churn", duties=("MEM-1", "MEM-2"), entry_points=_ALLOC, variants=named("a b c"))
def test_churn(target: Target, variant: Variant) -> None:
    """Random allocations and frees: what is live keeps its bytes throughout."""
    with RawDevice(target) as device:
        live: list[tuple[Any, bytes]] = []
        for step in range(300):
            if live and target.rng.random() < 0.45:
                memory, data = live.pop(int(target.rng.integers(len(live))))
                check_bytes(device.read(memory, len(data)), data, f"step {step}")
                device.free(memory)
            else:
                size = int(2 ** target.rng.uniform(0, 14))
                memory, data = device.alloc(size), pattern(size, seed=step)
                device.write(memory, data)
                live.append((memory, data))
        _check_each(device, live, "at the end")


def _too_much(device: RawDevice, name: str) -> int:
    heap = device.heap
    return {
        "more_than_the_heap": int(heap.bytes) + 1,
        "twice_the_heap": min(2 * int(heap.bytes), 2**63),
        "more_than_max_allocation": int(heap.max_allocation or heap.bytes) + 1,
        "two_to_the_62": 2**62,
        "most": 2**64 - 1,
        "most_aligned": 2**64 - 4096,
    }[name]


_EXCESSES = (
    "more_than_the_heap twice_the_heap more_than_max_allocation two_to_the_62 most most_aligned"
)


@case(
    "L1.memory.exhausted",
    duties=("MEM-9", "BASE-8"),
    entry_points=_ALLOC,
    mustpass=True,
    variants=named(_EXCESSES),
)
def test_out_of_memory(target: Target, variant: Variant) -> None:
    """Too large an allocation is OUT_OF_MEMORY, gives nothing, and a small one works after it."""
    with RawDevice(target) as device:
        size = _too_much(device, variant.name)
        out = device.block("chipdock_memory**")
        desc = device.new("chipdock_alloc_desc", size=size)
        device.refuse("memory.alloc", "OUT_OF_MEMORY", device.device, desc, out)
        assert out[0] == device.null, "a failed alloc wrote its output [BASE-8]"
        assert device.message, "no text"
        memory = device.alloc(64)
        device.write(memory, b"after" * 4)
        assert device.read(memory, 20) == b"after" * 4


@case(
    "L1.memory.exhausted_intact",
    duties=("MEM-9",),
    entry_points=_ALLOC,
    mustpass=True,
    variants=named(_EXCESSES),
)
def test_out_of_memory_leaves_the_rest(target: Target, variant: Variant) -> None:
    """Running out of memory ten times changes no byte of live allocations."""
    with RawDevice(target) as device:
        made = _fill_each(device, 16, 2049)
        out = device.block("chipdock_memory**")
        desc = device.new("chipdock_alloc_desc", size=_too_much(device, variant.name))
        for _ in range(10):
            device.refuse("memory.alloc", "OUT_OF_MEMORY", device.device, desc, out)
        _check_each(device, made, "after OUT_OF_MEMORY")


@case(
    "L1.memory.usage",
    duties=("BASE-10", "MEM-1"),
    entry_points=_ALLOC,
    variants=sizes(0, 1, 2, 3, 4, 7),
)
def test_usage(target: Target, variant: Variant) -> None:
    """Every combination of usage hints gives memory that works."""
    with RawDevice(target) as device:
        memory = device.alloc(4097, usage=variant.size)
        device.write(memory, pattern(4097))
        check_bytes(device.read(memory, 4097), pattern(4097), "the allocation")


@case("L1.memory.heaps", duties=("DEV-6", "MEM-1"), entry_points=_ALLOC)
def test_every_heap(target: Target, variant: object) -> None:
    """Each heap that the device lists gives memory that works."""
    with RawDevice(target) as device:
        info = device.info()
        for heap in range(info.heap_count):
            memory = device.alloc(4097, heap=heap)
            device.write(memory, pattern(4097, seed=heap))
            check_bytes(device.read(memory, 4097), pattern(4097, seed=heap), f"heap {heap}")


@case(
    "L1.memory.trim",
    duties=("MEM-9", "BASE-8"),
    needs="slot:memory.trim",
    entry_points=("memory.trim",),
    variants=named("empty live twice"),
)
def test_trim(target: Target, variant: Variant) -> None:
    """Trim gives caches back and touches nothing that is live."""
    with RawDevice(target) as device:
        made = _fill_each(device, 0 if variant.name == "empty" else 8, 4097)
        for memory, _ in made[::2]:
            device.free(memory)
        for _ in range(2 if variant.name == "twice" else 1):
            device.ok("memory.trim", device.device)
        _check_each(device, made[1::2], "after trim")
        assert device.alloc(64)


def _stats(device: RawDevice) -> Any:
    out = device.new("chipdock_device_stats")
    device.ok("device.stats", device.device, out)
    return out


@case(
    "L1.memory.stats",
    duties=("BASE-5", "BASE-8", "MEM-1"),
    needs="slot:device.stats",
    entry_points=("device.stats",),
    variants=named("count bytes peak freed copied fresh failed"),
)
def test_stats(target: Target, variant: Variant) -> None:
    """Counters of the device follow allocations, frees and copies."""
    with RawDevice(target) as device:
        before = _stats(device)
        memories = [device.alloc(10_000) for _ in range(5)]
        during = _stats(device)
        name = variant.name
        if name == "count":
            assert during.allocation_count - before.allocation_count == 5
        elif name == "bytes":
            assert during.allocated_bytes - before.allocated_bytes >= 50_000
        elif name == "peak":
            for memory in memories:
                device.free(memory)
            assert _stats(device).peak_bytes >= during.allocated_bytes
        elif name == "freed":
            for memory in memories:
                device.free(memory)
            after = _stats(device)
            assert after.allocation_count == before.allocation_count
            assert after.allocated_bytes == before.allocated_bytes
        elif name == "copied":
            device.write(memories[0], bytes(10_000))
            device.read(memories[0], 10_000)
            assert _stats(device).copy_bytes - during.copy_bytes >= 20_000
        elif name == "fresh":
            assert (before.allocation_count, before.allocated_bytes, before.launch_count) == (
                0,
            ) * 3
        else:
            desc = device.new("chipdock_alloc_desc", size=2**62)
            out = device.block("chipdock_memory**")
            device.refuse("memory.alloc", "OUT_OF_MEMORY", device.device, desc, out)
            after = _stats(device)
            assert after.allocated_bytes == during.allocated_bytes, "a failed alloc was counted"
            assert after.allocation_count == during.allocation_count


@case(
    "L1.memory.info",
    duties=("BASE-5", "MEM-9"),
    needs="slot:memory.info",
    entry_points=("memory.info",),
    variants=named("figures each_heap allocated out_of_range"),
)
def test_info(target: Target, variant: Variant) -> None:
    """memory.info tells total and free of each heap, the free part no more than the total."""
    with RawDevice(target) as device:
        heaps = device.info().heap_count
        if variant.name == "out_of_range":
            out = device.new("chipdock_memory_info", heap=heaps)
            device.refuse("memory.info", "INVALID_ARGUMENT", device.device, out)
            return
        size = 16 << 20
        kept = device.alloc(size) if variant.name == "allocated" else None
        for heap in range(heaps if variant.name == "each_heap" else 1):
            out = device.new("chipdock_memory_info", heap=heap)
            device.ok("memory.info", device.device, out)
            assert out.heap == heap
            assert out.total_bytes > 0
            held = size if kept is not None else 0
            assert out.free_bytes <= out.total_bytes - held, "more is free than can be"


@case(
    "L1.memory.independent",
    duties=("DEV-4", "MEM-2"),
    entry_points=_ALLOC,
    variants=named("close_other free_after"),
)
def test_devices_are_independent(target: Target, variant: Variant) -> None:
    """Two openings of one chip: closing one leaves the memory of the other."""
    with RawDevice(target) as device:
        other = device.open()
        mine = device.alloc(4097)
        device.write(mine, pattern(4097))
        theirs = device.alloc(4097, device=other)
        device.free(theirs)
        device._devices.remove(other)
        status = device.call("device.close", other)
        if status != STATUS["OK"]:
            fail(f"close returned {status_name(status)} with nothing live: {device.message}")
        check_bytes(device.read(mine, 4097), pattern(4097), "memory of the other opening")
        if variant.name == "free_after":
            device.free(mine)

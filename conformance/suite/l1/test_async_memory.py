# SPDX-License-Identifier: Apache-2.0
"""Allocating and freeing in stream order."""

from __future__ import annotations

from typing import Any

from chipdock.conformance.case import Variant, case
from chipdock.conformance.suite.canary import check_bytes
from chipdock.conformance.suite.device import RawDevice, pattern
from chipdock.conformance.suite.gate import Gate
from chipdock.conformance.suite.variants import named, sizes
from chipdock.conformance.target import Target

_ASYNC = "slot:memory.alloc_async"
_SLOTS = ("memory.alloc_async", "memory.free_async")


def _alloc(device: RawDevice, size: int, stream: Any) -> Any:
    out = device.ffi.new("chipdock_memory**")
    desc = device.new("chipdock_alloc_desc", size=size, stream=stream)
    device.ok("memory.alloc_async", device.device, desc, out)
    assert out[0] != device.null, "alloc_async returned OK and no memory [BASE-8]"
    return out[0]


@case(
    "L1.async_memory.use",
    duties=("MEM-10", "MEM-1"),
    needs=_ASYNC,
    entry_points=_SLOTS,
    tolerance="E",
    variants=sizes(1, 63, 4097, 1048577),
)
def test_use(target: Target, variant: Variant) -> None:
    """Work queued on the stream after alloc_async uses the memory; free_async comes behind it."""
    with RawDevice(target) as device:
        stream, size = device.stream(), variant.size
        memory = _alloc(device, size, stream)
        device.write(memory, pattern(size, seed=60), stream=stream)
        host = device.read_later(memory, size, stream)
        device.ok("memory.free_async", device.device, memory, stream)
        device.sync(stream)
        check_bytes(bytes(device.ffi.buffer(host, size)), pattern(size, seed=60), "the memory")


@case(
    "L1.async_memory.behind",
    duties=("MEM-10",),
    entry_points=_SLOTS,
    tolerance="E",
    needs=_ASYNC + " and slot:stream.host_function",
    variants=named("held many"),
)
def test_free_is_behind_queued_work(target: Target, variant: Variant) -> None:
    """Memory freed in stream order stays whole for work queued before, whatever is allocated."""
    with RawDevice(target) as device:
        stream, size = device.stream(), 65537
        hosts = []
        with Gate(device, stream):
            for i in range(8 if variant.name == "many" else 1):
                memory = _alloc(device, size, stream)
                device.write(memory, pattern(size, seed=i), stream=stream)
                hosts.append(device.read_later(memory, size, stream))
                device.ok("memory.free_async", device.device, memory, stream)
            for i in range(8):
                device.write(device.alloc(size), pattern(size, seed=100 + i))
        device.sync(stream)
        for i, host in enumerate(hosts):
            check_bytes(bytes(device.ffi.buffer(host, size)), pattern(size, seed=i), f"block {i}")


@case(
    "L1.async_memory.mixed",
    duties=("MEM-10", "MEM-2"),
    needs=_ASYNC,
    tolerance="E",
    entry_points=_SLOTS,
    variants=named("async_then_free alloc_then_free_async other_stream"),
)
def test_mixed(target: Target, variant: Variant) -> None:
    """Free ends alloc_async memory, free_async ends alloc memory; others use it behind an event."""
    with RawDevice(target) as device:
        stream, other = device.stream(), device.stream()
        data = pattern(4097, seed=61)
        if variant.name == "alloc_then_free_async":
            memory = device.alloc(4097)
            device.forget(memory)
        else:
            memory = _alloc(device, 4097, stream)
        device.write(memory, data, stream=stream)
        reader = stream
        if variant.name == "other_stream":
            event = device.event()
            device.ok("event.record", event, stream)
            device.ok("stream.wait_event", other, event)
            reader = other
        host = device.read_later(memory, 4097, reader)
        if variant.name == "async_then_free":
            device.sync(stream)
            device.ok("memory.free", device.device, memory)
        else:
            device.ok("memory.free_async", device.device, memory, reader)
        device.sync(reader)
        check_bytes(bytes(device.ffi.buffer(host, 4097)), data, "the memory")


@case(
    "L1.async_memory.refused",
    duties=("MEM-10", "MEM-9", "BASE-8"),
    needs=_ASYNC,
    entry_points=_SLOTS,
    variants=named("no_stream size_zero too_much free_without_stream"),
)
def test_refused(target: Target, variant: Variant) -> None:
    """alloc_async without a stream or size is INVALID_ARGUMENT, of too much OUT_OF_MEMORY."""
    with RawDevice(target) as device:
        stream = device.stream()
        if variant.name == "free_without_stream":
            memory = device.alloc(64)
            device.refuse(
                "memory.free_async", "INVALID_ARGUMENT", device.device, memory, device.null
            )
            return
        desc = device.new("chipdock_alloc_desc", size=64, stream=stream)
        if variant.name == "no_stream":
            desc.stream = device.null
        else:
            desc.size = 0 if variant.name == "size_zero" else 2**62
        out = device.block("chipdock_memory**")
        status = "OUT_OF_MEMORY" if variant.name == "too_much" else "INVALID_ARGUMENT"
        device.refuse("memory.alloc_async", status, device.device, desc, out)
        assert out[0] == device.null
        device.sync(stream)


@case(
    "L1.async_memory.failed_stream",
    duties=("MEM-10", "STR-3"),
    entry_points=_SLOTS,
    needs=_ASYNC + " and slot:stream.abort and slot:device.stats",
)
def test_free_on_a_failed_stream(target: Target, variant: object) -> None:
    """free_async on a failed stream says so and frees all the same."""
    with RawDevice(target) as device:
        stream, memory = device.stream(), device.alloc(4096)
        device.forget(memory)
        device.ok("stream.abort", stream)
        device.refuse("memory.free_async", "FAILED_PRECONDITION", device.device, memory, stream)
        out = device.new("chipdock_device_stats")
        device.ok("device.stats", device.device, out)
        assert out.allocation_count == 0, "the memory was not freed"

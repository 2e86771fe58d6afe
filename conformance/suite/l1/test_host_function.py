# SPDX-License-Identifier: Apache-2.0
"""Host functions in stream order, and what they may call."""

from __future__ import annotations

from chipdock.conformance.case import Variant, case
from chipdock.conformance.suite.device import RawDevice
from chipdock.conformance.suite.gate import Gate, HostCall, queue_call
from chipdock.conformance.suite.variants import named, sizes
from chipdock.conformance.target import Target

_HOST = "slot:stream.create and slot:stream.host_function"


@case(
    "L1.stream.host_function",
    duties=("STR-7", "STR-1"),
    needs=_HOST,
    entry_points=("stream.host_function",),
    mustpass=True,
    variants=sizes(1, 2, 50),
)
def test_host_functions(target: Target, variant: Variant) -> None:
    """Host functions run once each, in order, with the state OK."""
    with RawDevice(target) as device:
        stream, seen = device.stream(), []
        for i in range(variant.size):
            queue_call(device, stream, lambda state, i=i: seen.append((i, state)))
        device.sync(stream)
        assert seen == [(i, 0) for i in range(variant.size)]


@case(
    "L1.stream.host_turn",
    duties=("STR-7", "STR-1"),
    needs=_HOST,
    entry_points=("stream.host_function",),
    mustpass=True,
    variants=sizes(1, 3),
)
def test_turn_of_host_functions(target: Target, variant: Variant) -> None:
    """Host functions behind a gate run after it, and after the copies between."""
    with RawDevice(target) as device:
        stream, memory = device.stream(), device.alloc(64)
        device.write(memory, bytes(64))
        done = [HostCall() for _ in range(variant.size)]
        seen: list[bytes] = []
        with Gate(device, stream) as gate:
            for i, call in enumerate(done):
                device.write(memory, bytes([i + 1]) * 64, stream=stream)
                host = device.read_later(memory, 64, stream)
                queue_call(
                    device, stream, lambda _, h=host: seen.append(bytes(device.ffi.buffer(h, 64)))
                )
                queue_call(device, stream, call)
            early = [call.done.is_set() for call in done]
            assert not any(early) or not gate.held, "it ran while work ahead of it was held"
        device.sync(stream)
        assert seen == [bytes([i + 1]) * 64 for i in range(variant.size)]
        assert all(call.done.is_set() for call in done)


@case(
    "L1.stream.host_context", duties=("STR-7",), needs=_HOST, entry_points=("stream.host_function",)
)
def test_context_of_a_host_function(target: Target, variant: object) -> None:
    """A host function gets the context of its desc, also when the desc is gone."""
    with RawDevice(target) as device:
        stream, seen = device.stream(), []
        address = device.ffi.cast("uintptr_t", 0)
        function = device.ffi.callback(
            "void(void*, int32_t)", lambda c, _: seen.append(int(device.ffi.cast("uintptr_t", c)))
        )
        desc = device.new("chipdock_host_function_desc", function=function)
        with Gate(device, stream):
            for address in (0x1234, 0xFFFFFFFFFFFFFFFF, 0):
                desc.context = device.ffi.cast("void*", address)
                device.ok("stream.host_function", stream, desc)
            desc.function = device.null
        device.sync(stream)
        assert seen == [0x1234, 0xFFFFFFFFFFFFFFFF, 0]


@case(
    "L1.stream.host_calls",
    duties=("STR-7", "MEM-8"),
    needs=_HOST,
    entry_points=("stream.host_function",),
    variants=named("alloc copy enqueue_elsewhere event_query own_stream_query"),
)
def test_host_function_calls_slots(target: Target, variant: Variant) -> None:
    """A host function may call slots that do not wait for its stream: no lock is held."""
    with RawDevice(target) as device:
        stream, other, event = device.stream(), device.stream(), device.event()
        memory, results = device.alloc(64), []

        def calls(_state: int) -> None:
            if variant.name == "alloc":
                device.free(device.alloc(4096))
            elif variant.name == "copy":
                device.write(memory, b"c" * 64)
            elif variant.name == "enqueue_elsewhere":
                device.write(memory, b"c" * 64, stream=other)
            elif variant.name == "event_query":
                device.ok("event.query", event)
            else:
                device.call("stream.query", stream)
            results.append("done")

        queue_call(device, stream, calls)
        device.sync(stream)
        device.sync(other)
        assert results == ["done"]
        if variant.name in {"copy", "enqueue_elsewhere"}:
            assert device.read(memory, 64) == b"c" * 64

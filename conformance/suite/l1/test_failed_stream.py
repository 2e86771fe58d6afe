# SPDX-License-Identifier: Apache-2.0
"""A stream that has failed, here by abort: nothing more runs, and the first cause stays."""

from __future__ import annotations

from typing import Any

from chipdock.conformance.case import Variant, case
from chipdock.conformance.suite.device import RawDevice, pattern
from chipdock.conformance.suite.gate import Gate, HostCall, queue_call
from chipdock.conformance.suite.node import KernelBench
from chipdock.conformance.suite.raw import STATUS, status_name
from chipdock.conformance.suite.variants import named
from chipdock.conformance.target import Target

_ABORT = "slot:stream.abort"
_ABORTED = STATUS["ABORTED"]


def _aborted(device: RawDevice) -> Any:
    stream = device.stream()
    device.ok("stream.abort", stream)
    return stream


@case(
    "L1.failed.sticky",
    duties=("STR-3",),
    needs=_ABORT,
    mustpass=True,
    entry_points=("stream.abort", "stream.sync", "stream.query"),
    variants=named("sync query sync_ask mixed"),
)
def test_cause_is_sticky(target: Target, variant: Variant) -> None:
    """Sync and query of a failed stream return the first cause, each time."""
    with RawDevice(target) as device:
        stream = _aborted(device)
        sync, query, ask = ("stream.sync", -1), ("stream.query",), ("stream.sync", 0)
        calls: dict[str, list[tuple[Any, ...]]] = {
            "sync": [sync], "query": [query], "sync_ask": [ask], "mixed": [query, sync, query],
        }  # fmt: skip
        for slot, *more in calls[variant.name] * 3:
            device.refuse(slot, "ABORTED", stream, *more)
            assert device.error.scope >= 1, "the scope is the stream, or wider"


def _enqueue(device: RawDevice, name: str, stream: Any) -> tuple[str, list[Any]]:
    memory = device.alloc(4096)
    if name == "copy":
        desc = device.new(
            "chipdock_copy_desc", source=device.place(host=device.block("char[]", 64)),
            target=device.place(memory), size=64, stream=stream,
        )  # fmt: skip
        return "memory.copy", [device.device, desc]
    if name == "fill":
        desc = device.new(
            "chipdock_fill_desc", pattern_size=1, target=device.place(memory), size=64,
            stream=stream,
        )  # fmt: skip
        return "memory.fill", [device.device, desc]
    if name == "record":
        return "event.record", [device.event(), stream]
    if name == "wait_event":
        return "stream.wait_event", [stream, device.event()]
    if name == "host_function":
        function = device.ffi.callback("void(void*, int32_t)", lambda _c, _s: None)
        device.kept.append(function)
        return "stream.host_function", [
            stream, device.new("chipdock_host_function_desc", function=function),
        ]  # fmt: skip
    if name == "value":
        return "stream.value", [stream, device.new("chipdock_value_desc", memory=memory)]
    if name == "begin_capture":
        return "graph.begin_capture", [stream, device.new("chipdock_capture_desc")]
    if name == "alloc_async":
        desc = device.new("chipdock_alloc_desc", size=64, stream=stream)
        return "memory.alloc_async", [device.device, desc, device.block("chipdock_memory**")]
    bench = KernelBench(device)
    instance = bench.create()
    return "kernel.launch", [instance, bench.with_workspace(instance, bench.launch(stream=stream))]


_ENQUEUES = {
    "copy": "memory.copy", "fill": "memory.fill", "record": "event.record",
    "wait_event": "stream.wait_event", "host_function": "stream.host_function",
    "value": "stream.value", "begin_capture": "graph.begin_capture",
    "alloc_async": "memory.alloc_async", "launch": "kernel.launch",
}  # fmt: skip


@case(
    "L1.failed.enqueue",
    duties=("STR-3", "BASE-8"),
    needs=_ABORT,
    variants=[
        Variant(name=name, needs=f"slot:{slot}", entry_points=(slot,))
        for name, slot in _ENQUEUES.items()
    ],
)
def test_enqueues_are_refused(target: Target, variant: Variant) -> None:
    """Every enqueue on a failed stream is FAILED_PRECONDITION."""
    with RawDevice(target) as device:
        stream = _aborted(device)
        slot, arguments = _enqueue(device, variant.name, stream)
        device.refuse(slot, "FAILED_PRECONDITION", *arguments)
        if variant.name == "launch":
            device.ok("kernel.destroy", arguments[0])
        device.refuse("stream.sync", "ABORTED", stream, -1)


@case(
    "L1.failed.queued",
    duties=("STR-3", "STR-7"),
    entry_points=("stream.abort",),
    needs=_ABORT + " and slot:stream.host_function",
    variants=named("copy_does_not_run host_functions_run_with_the_cause"),
)
def test_queued_work(target: Target, variant: Variant) -> None:
    """Work queued behind what is aborted does not run; host functions run once, with ABORTED."""
    with RawDevice(target) as device:
        stream, memory = device.stream(), device.alloc(64)
        device.write(memory, b"o" * 64)
        calls = [HostCall() for _ in range(3)]
        gate = Gate(device, stream)
        device.write(memory, b"n" * 64, stream=stream)
        for call in calls:
            queue_call(device, stream, call)
        held = gate.held
        device.ok("stream.abort", stream)
        gate.open()
        device.refuse("stream.sync", "ABORTED", stream, -1)
        if held and variant.name == "copy_does_not_run":
            assert device.read(memory, 64) == b"o" * 64, "work behind an abort ran"
        elif held:
            assert [call.states for call in calls] == [[_ABORTED]] * 3


@case(
    "L1.failed.event",
    duties=("EVT-4", "STR-4"),
    entry_points=("stream.abort", "event.query"),
    needs=_ABORT + " and slot:stream.host_function",
    variants=named("query sync waiter waiter_of_the_waiter waiter_enqueue late_waiter"),
)
def test_events_carry_the_cause(target: Target, variant: Variant) -> None:
    """Events of a failed stream are reached with its cause, and fail those who wait for them."""
    with RawDevice(target) as device:
        first, second, third = (device.stream() for _ in range(3))
        event, next_event = device.event(), device.event()
        gate = Gate(device, first)
        device.ok("event.record", event, first)
        device.ok("stream.wait_event", second, event)
        device.ok("event.record", next_event, second)
        device.ok("stream.wait_event", third, next_event)
        held = gate.held
        device.ok("stream.abort", first)
        gate.open()
        if not held:  # The work had ended before it could fail.
            return
        device.refuse("stream.sync", "ABORTED", first, -1)
        if variant.name == "query":
            device.refuse("event.sync", "ABORTED", event, -1)
            device.refuse("event.query", "ABORTED", event)
        elif variant.name == "sync":
            device.refuse("event.sync", "ABORTED", event, -1)
            device.refuse("event.sync", "ABORTED", event, 0)
        elif variant.name == "waiter":
            device.refuse("stream.sync", "ABORTED", second, -1)
        elif variant.name == "late_waiter":
            # The wait itself may say so already; the stream has to.
            late = device.stream()
            status = status_name(device.call("stream.wait_event", late, event))
            assert status in {"OK", "ABORTED"}, status
            device.refuse("stream.sync", "ABORTED", late, -1)
        elif variant.name == "waiter_of_the_waiter":
            device.refuse("stream.sync", "ABORTED", third, -1)
        else:
            device.refuse("stream.sync", "ABORTED", second, -1)
            slot, arguments = _enqueue(device, "copy", second)
            device.refuse(slot, "FAILED_PRECONDITION", *arguments)


@case(
    "L1.failed.others",
    duties=("STR-3", "DEV-4"),
    needs=_ABORT,
    entry_points=("stream.abort",),
    tolerance="E",
    variants=named("other_stream new_stream inline other_opening"),
)
def test_others_go_on(target: Target, variant: Variant) -> None:
    """A failed stream takes nobody else with it."""
    with RawDevice(target) as device:
        other = device.stream()
        failed = _aborted(device)
        data = pattern(4097)
        if variant.name == "other_opening":
            peer = device.open()
            memory = device.alloc(4097, device=peer)
            place = device.new("chipdock_place", memory=memory)
            for source, destination in (
                (device.place(host=device.block("char[]", data)), place),
                (place, device.place(host=device.block("char[]", 4097))),
            ):
                desc = device.new(
                    "chipdock_copy_desc", source=source, target=destination, size=4097
                )
                device.ok("memory.copy", peer, desc)
            return
        stream = {"other_stream": other, "inline": None}.get(variant.name)
        if variant.name == "new_stream":
            device.destroy(failed)
            stream = device.stream()
        memory = device.alloc(4097)
        device.write(memory, data, stream=stream)
        if stream is not None:
            device.sync(stream)
        assert device.read(memory, 4097) == data


@case(
    "L1.failed.abort",
    duties=("STR-6", "STR-5"),
    needs=_ABORT,
    entry_points=("stream.abort",),
    variants=named("twice idle destroy_after value_wait event_wait"),
)
def test_abort(target: Target, variant: Variant) -> None:
    """Abort ends waits of the stream, may be called twice, and leaves destroy to do."""
    if variant.name == "value_wait":
        target.require("slot:stream.value")
    if variant.name == "event_wait":
        target.require("slot:stream.host_function")
    with RawDevice(target) as device:
        stream, other = device.stream(), device.stream()
        gate = None
        if variant.name == "value_wait":
            memory = device.alloc(64)
            device.write(memory, bytes(64))
            desc = device.new("chipdock_value_desc", operation=1, memory=memory, value=1)
            device.ok("stream.value", stream, desc)
        elif variant.name == "event_wait":
            gate, event = Gate(device, other), device.event()
            device.ok("event.record", event, other)
            device.ok("stream.wait_event", stream, event)
        device.ok("stream.abort", stream)
        if variant.name == "twice":
            device.ok("stream.abort", stream)
        device.refuse("stream.sync", "ABORTED", stream, 5_000_000_000)
        if gate is not None:
            gate.open()
            device.sync(other)
        device.destroy(stream)


@case(
    "L1.failed.device_sync",
    duties=("DEV-7",),
    needs=_ABORT + " and slot:device.sync",
    entry_points=("device.sync",),
)
def test_device_sync_after_abort(target: Target, variant: object) -> None:
    """device.sync still waits for the streams that work, and ends with no more than one error."""
    with RawDevice(target) as device:
        _aborted(device)
        stream, memory = device.stream(), device.alloc(4097)
        device.write(memory, pattern(4097), stream=stream)
        # An abort that was asked for is an asynchronous error or not; twice it is none.
        device.call("device.sync", device.device, -1)
        assert status_name(device.call("device.sync", device.device, -1)) == "OK"
        assert device.read(memory, 4097) == pattern(4097)

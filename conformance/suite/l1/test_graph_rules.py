# SPDX-License-Identifier: Apache-2.0
"""Rules of a capture: who takes part, what dooms it, what is refused."""

from __future__ import annotations

from typing import Any

from chipdock.conformance.case import Variant, case
from chipdock.conformance.suite.canary import check_bytes
from chipdock.conformance.suite.capture import GraphDevice
from chipdock.conformance.suite.device import pattern
from chipdock.conformance.suite.variants import named
from chipdock.conformance.target import Target

_GRAPH = "slot:graph.begin_capture"
_SLOTS = ("graph.begin_capture", "graph.end_capture", "graph.instantiate", "graph.launch")
_SIZE = 3001


@case(
    "L1.graph.fork",
    duties=("GRA-2",),
    needs=_GRAPH,
    entry_points=_SLOTS,
    tolerance="E",
    variants=named("fork_join two_forks nested"),
)
def test_fork_and_join(target: Target, variant: Variant) -> None:
    """Streams forked into a capture by events are captured too, and joined the same way."""
    with GraphDevice(target) as device:
        a, b, c = (device.stream() for _ in range(3))
        start, left, right, end = (device.alloc(_SIZE) for _ in range(4))
        data = pattern(_SIZE, seed=41)
        device.begin(a)
        device.write(start, data, stream=a)
        device.join(a, b)
        device.move(start, left, _SIZE, stream=b)
        if variant.name == "two_forks":
            device.join(a, c)
            device.move(start, right, _SIZE, stream=c)
        elif variant.name == "nested":
            device.join(b, c)
            device.move(left, right, _SIZE, stream=c)
            device.join(c, b)
        else:
            device.move(start, right, _SIZE, stream=a)
        device.join(b, a)
        if variant.name == "two_forks":
            device.join(c, a)
        device.move(left, end, _SIZE, stream=a)
        exec_ = device.finish(a)
        for _ in range(2):
            for memory in (start, left, right, end):
                device.write(memory, bytes(_SIZE))
            device.launch(exec_, a)
            device.sync(a)
            for name, memory in (("left", left), ("right", right), ("end", end)):
                check_bytes(device.read(memory, _SIZE), data, name)


@case(
    "L1.graph.refused",
    duties=("GRA-2", "GRA-3", "BASE-8"),
    needs=_GRAPH,
    entry_points=_SLOTS,
    variants=named("begin_twice end_without_begin end_twice not_joined end_on_the_fork"),
)
def test_refused(target: Target, variant: Variant) -> None:
    """Captures that are begun, ended or joined wrongly are FAILED_PRECONDITION."""
    with GraphDevice(target) as device:
        stream, other, memory = device.stream(), device.stream(), device.alloc(64)
        name = variant.name
        if name == "end_without_begin":
            device.refuse_end(stream)
            return
        device.begin(stream)
        device.write(memory, b"1" * 64, stream=stream)
        if name == "begin_twice":
            desc = device.new("chipdock_capture_desc")
            device.refuse("graph.begin_capture", "FAILED_PRECONDITION", stream, desc)
            with_end = device.block("chipdock_graph**")
            device.call("graph.end_capture", stream, with_end)
            if with_end[0] != device.null:
                device.ok("graph.destroy_graph", with_end[0])
        elif name == "end_twice":
            device.end(stream)
            device.refuse_end(stream)
        else:
            device.join(stream, other)
            device.write(memory, b"2" * 64, stream=other)
            device.refuse_end(other if name == "end_on_the_fork" else stream)
        # The capture is over also on failure: both streams work again.
        for again in (stream, other) if name != "end_on_the_fork" else ():
            device.write(memory, b"3" * 64, stream=again)
            device.sync(again)
            assert device.read(memory, 64) == b"3" * 64


_DOOMS = {
    "stream_sync": "", "stream_query": "", "event_query": "", "event_sync": "",
    "foreign_wait": "slot:stream.host_function", "alloc_async": "slot:memory.alloc_async",
    "free_async": "slot:memory.free_async",
}  # fmt: skip


@case(
    "L1.graph.doomed",
    duties=("GRA-3",),
    needs=_GRAPH,
    entry_points=_SLOTS,
    variants=[Variant(name=name, needs=needs) for name, needs in _DOOMS.items()],
)
def test_doomed(target: Target, variant: Variant) -> None:
    """A forbidden call is FAILED_PRECONDITION; the capture gives no graph, the stream goes on."""
    with GraphDevice(target) as device:
        stream, other, memory = device.stream(), device.stream(), device.alloc(64)
        event, outside = device.event(), device.event()
        device.ok("event.record", outside, other)
        device.sync(other)
        device.begin(stream)
        device.write(memory, b"1" * 64, stream=stream)
        device.ok("event.record", event, stream)
        spare = device.alloc(64)
        calls: dict[str, tuple[Any, ...]] = {
            "stream_sync": ("stream.sync", stream, 0),
            "stream_query": ("stream.query", stream),
            "event_query": ("event.query", event),
            "event_sync": ("event.sync", event, 0),
            "foreign_wait": ("stream.wait_event", stream, outside),
            "free_async": ("memory.free_async", device.device, spare, stream),
        }
        if variant.name == "alloc_async":
            desc = device.new("chipdock_alloc_desc", size=64, stream=stream)
            out = device.block("chipdock_memory**")
            device.refuse("memory.alloc_async", "FAILED_PRECONDITION", device.device, desc, out)
        else:
            slot, *arguments = calls[variant.name]
            device.refuse(slot, "FAILED_PRECONDITION", *arguments)
        first = device.message
        device.refuse_end(stream)
        assert first, "no text"
        device.write(memory, b"3" * 64, stream=stream)
        device.sync(stream)
        assert device.read(memory, 64) == b"3" * 64

# SPDX-License-Identifier: Apache-2.0
"""The plugin's own events: order between streams, asking, waiting, time, and their end."""

from __future__ import annotations

import time

from chipdock.conformance.case import Variant, case
from chipdock.conformance.suite.canary import check_bytes
from chipdock.conformance.suite.device import RawDevice, pattern
from chipdock.conformance.suite.gate import Gate, need_concurrency, queue_call
from chipdock.conformance.suite.raw import status_name
from chipdock.conformance.suite.variants import named, sizes
from chipdock.conformance.target import Target

_EVENT = "slot:event.create"
_HOST = "slot:event.create and slot:stream.host_function"
_TIMED = "slot:event.elapsed"
_TIMING = 1
_MOMENT = 20_000_000  # nanoseconds
_ORDER = ("event.record", "stream.wait_event")


@case(
    "L1.event.state",
    duties=("EVT-2", "EVT-1"),
    needs=_EVENT,
    mustpass=True,
    entry_points=("event.query", "event.sync"),
    variants=[
        Variant(name=f"{made}_{ask}", made=made, ask=ask)
        for made in ("fresh", "recorded_now", "recorded_behind_work", "timing")
        for ask in ("query", "sync", "sync_ask")
    ],
)
def test_state(target: Target, variant: Variant) -> None:
    """An event that was never recorded, or whose work has ended, is reached."""
    with RawDevice(target) as device:
        stream = device.stream()
        event = device.event(_TIMING if variant.made == "timing" else 0)
        if variant.made == "recorded_now":
            device.ok("event.record", event, device.null)
        elif variant.made == "recorded_behind_work":
            device.write(device.alloc(4096), bytes(4096), stream=stream)
            device.ok("event.record", event, stream)
            device.sync(stream)
        if variant.ask == "query":
            device.ok("event.query", event)
        else:
            device.ok("event.sync", event, 0 if variant.ask == "sync_ask" else -1)


@case(
    "L1.event.held",
    duties=("EVT-1", "EVT-6", "DEV-8"),
    needs=_HOST,
    entry_points=("event.query", "event.sync"),
    variants=named("query ask short"),
)
def test_held(target: Target, variant: Variant) -> None:
    """An event behind held work is NOT_READY to query and a TIMEOUT to a limited sync."""
    with RawDevice(target) as device:
        stream, event = device.stream(), device.event()
        with Gate(device, stream) as gate:
            device.ok("event.record", event, stream)
            held = gate.held  # Asked first: a call that waits outlasts the gate.
            if variant.name == "query":
                status, due = device.call("event.query", event), "NOT_READY"
            else:
                limit = 0 if variant.name == "ask" else 1_000_000
                status, due = device.call("event.sync", event, limit), "TIMEOUT"
            assert status_name(status) == due or not held, status_name(status)
        device.ok("event.sync", event, -1)
        device.ok("event.query", event)


@case(
    "L1.event.order",
    duties=("STR-1", "EVT-1"),
    needs=_HOST,
    entry_points=_ORDER,
    tolerance="E",
    mustpass=True,
    variants=sizes(1, 4097, 65537),
)
def test_order_between_streams(target: Target, variant: Variant) -> None:
    """What waits for an event of another, held stream reads what that stream wrote."""
    with RawDevice(target) as device:
        first, second, event = device.stream(), device.stream(), device.event()
        size, data = variant.size, pattern(variant.size, seed=30)
        middle, last = device.alloc(size), device.alloc(size)
        device.write(middle, bytes(size))
        with Gate(device, first) as gate:
            device.write(middle, data, stream=first)
            device.ok("event.record", event, first)
            device.ok("stream.wait_event", second, event)
            device.move(middle, last, size, stream=second)
            held = gate.held
            # A stream that did not wait has all the time it needs to show it.
            status = status_name(device.call("stream.sync", second, _MOMENT))
            assert status == "TIMEOUT" or not held, f"the waiting stream's work ended: {status}"
        device.sync(second)
        check_bytes(device.read(last, size), data, "what the second stream read")


# Steps as "stream number", and edges as "from>to", in the order in which they are queued.
_SHAPES = {
    "chain": "a0 a>b b1 b>c c2 c>d d3",
    "fan_out": "a0 a>b b1 a>c c2 a>d d3",
    "fan_in": "a0 b1 c2 a>d b>d c>d d9",
    "diamond": "a0 a>b b1 a>c c2 b>d c>d d9",
    "ping_pong": "a0 a>b b1 b>a a2 a>b b3 b>a a4 a>b b5",
}


@case(
    "L1.event.shape",
    duties=("STR-1", "EVT-1"),
    needs=_HOST,
    entry_points=_ORDER,
    variants=[Variant(name=name, work=work) for name, work in _SHAPES.items()],
)
def test_shapes(target: Target, variant: Variant) -> None:
    """Chains, forks and joins of streams by events keep their order."""
    with RawDevice(target) as device:
        streams = {name: device.stream() for name in "abcd"}
        seen: list[int] = []
        steps = 0
        with Gate(device, streams["a"]):
            for word in variant.work.split():
                if ">" in word:
                    event = device.event()
                    device.ok("event.record", event, streams[word[0]])
                    device.ok("stream.wait_event", streams[word[2]], event)
                    continue
                steps += 1
                number = int(word[1])
                queue_call(device, streams[word[0]], lambda _, n=number: seen.append(n))
        for stream in streams.values():
            device.sync(stream)
        assert len(seen) == steps
        if variant.name in {"chain", "ping_pong"}:
            assert seen == sorted(seen)
        if variant.name in {"fan_out", "diamond"}:
            assert seen[0] == 0
        if variant.name in {"fan_in", "diamond"}:
            assert seen[-1] == 9


@case(
    "L1.event.again",
    duties=("EVT-1",),
    needs=_HOST,
    entry_points=_ORDER,
    variants=named("wait_keeps_the_earlier record_moves record_many"),
)
def test_recorded_again(target: Target, variant: Variant) -> None:
    """A second record moves the event; a wait queued before keeps the earlier point."""
    with RawDevice(target) as device:
        need_concurrency(device)
        first, second, event = device.stream(), device.stream(), device.event()
        device.ok("event.record", event, first)
        if variant.name == "wait_keeps_the_earlier":
            device.ok("stream.wait_event", second, event)
        with Gate(device, first) as gate:
            for _ in range(10 if variant.name == "record_many" else 1):
                device.ok("event.record", event, first)
            if variant.name == "wait_keeps_the_earlier":
                status = status_name(device.call("stream.sync", second, 500_000_000))
                assert status == "OK", "the wait followed the event to its second point"
            else:
                status = status_name(device.call("event.query", event))
                assert status == "NOT_READY" or not gate.held, "the second record was lost"
        device.ok("event.sync", event, -1)


@case(
    "L1.event.unrecorded",
    duties=("EVT-2",),
    needs=_EVENT,
    entry_points=("stream.wait_event",),
    tolerance="E",
)
def test_wait_for_an_unrecorded_event(target: Target, variant: object) -> None:
    """A wait for an event that was never recorded does not wait."""
    with RawDevice(target) as device:
        stream, memory = device.stream(), device.alloc(64)
        device.ok("stream.wait_event", stream, device.event())
        device.write(memory, b"u" * 64, stream=stream)
        device.sync(stream)
        assert device.read(memory, 64) == b"u" * 64


@case(
    "L1.event.destroy",
    duties=("EVT-3",),
    needs=_HOST,
    entry_points=("event.destroy",),
    variants=named("pending waited_for after_record own_stream"),
)
def test_destroy(target: Target, variant: Variant) -> None:
    """Destroy of an event that is not reached neither blocks nor disturbs who waits on it."""
    with RawDevice(target) as device:
        first, second, event = device.stream(), device.stream(), device.event()
        seen: list[str] = []
        with Gate(device, first) as gate:
            queue_call(device, first, lambda _: seen.append("first"))
            device.ok("event.record", event, first)
            if variant.name == "waited_for":
                device.ok("stream.wait_event", second, event)
            if variant.name == "own_stream":
                device.ok("stream.wait_event", first, event)
            held = gate.held
            device.destroy(event)
            assert gate.held or not held, "destroy waited for the event"
            queue_call(device, second, lambda _: seen.append("second"))
        device.sync(first)
        device.sync(second)
        assert sorted(seen) == ["first", "second"]
        assert variant.name != "waited_for" or seen == ["first", "second"]


@case(
    "L1.event.elapsed",
    duties=("EVT-5",),
    needs=_TIMED,
    entry_points=("event.elapsed",),
    variants=named("same forward backward two_streams"),
)
def test_elapsed(target: Target, variant: Variant) -> None:
    """Elapsed is zero from an event to itself, not negative forward, and changes its sign."""
    with RawDevice(target) as device:
        stream = device.stream()
        start, end = device.event(_TIMING), device.event(_TIMING)
        device.ok("event.record", start, stream)
        device.sync(stream)
        device.write(device.alloc(100_000), bytes(100_000), stream=stream)
        late = device.stream() if variant.name == "two_streams" else stream
        device.sync(stream)
        device.ok("event.record", end, late)
        device.sync(late)
        out, back = device.block("int64_t*", -77), device.block("int64_t*", -77)
        if variant.name == "same":
            device.ok("event.elapsed", start, start, out)
            assert out[0] == 0
            return
        device.ok("event.elapsed", start, end, out)
        assert out[0] >= 0
        device.ok("event.elapsed", end, start, back)
        assert back[0] == -out[0]


@case(
    "L1.event.clock",
    duties=("EVT-5",),
    needs=_TIMED + " and slot:stream.host_function",
    entry_points=("event.elapsed",),
)
def test_elapsed_is_in_nanoseconds(target: Target, variant: object) -> None:
    """The time around work that took a known least time is at least that and not absurd."""
    with RawDevice(target) as device:
        stream = device.stream()
        start, end = device.event(_TIMING), device.event(_TIMING)
        before = time.monotonic_ns()
        device.ok("event.record", start, stream)
        device.sync(stream)
        begin = time.monotonic_ns()

        def work(_state: int) -> None:
            while time.monotonic_ns() < begin + 10_000_000:
                pass

        queue_call(device, stream, work)
        device.ok("event.record", end, stream)
        device.sync(stream)
        whole = time.monotonic_ns() - before
        out = device.block("int64_t*")
        device.ok("event.elapsed", start, end, out)
        # A tenth for clocks that run at another rate, a millisecond for their steps.
        assert 9_000_000 <= out[0] <= whole * 1.1 + 1_000_000, (
            f"{out[0]} ns for work of 10 ms inside {whole} ns"
        )


@case(
    "L1.event.elapsed_refused",
    duties=("EVT-5", "BASE-8"),
    needs=_TIMED,
    entry_points=("event.elapsed",),
    variants=named("no_timing never_recorded not_reached"),
)
def test_elapsed_refused(target: Target, variant: Variant) -> None:
    """Elapsed of events without timing or record is INVALID_ARGUMENT, of pending ones NOT_READY."""
    with RawDevice(target) as device:
        stream = device.stream()
        flags = 0 if variant.name == "no_timing" else _TIMING
        start, end = device.event(flags), device.event(flags)
        out = device.block("int64_t*", -77)
        if variant.name == "not_reached":
            target.require("slot:stream.host_function")
            device.ok("event.record", start, device.null)
            with Gate(device, stream) as gate:
                device.ok("event.record", end, stream)
                status = status_name(device.call("event.elapsed", start, end, out))
                assert status == "NOT_READY" or not gate.held, status
            device.sync(stream)
            return
        if variant.name == "no_timing":
            for event in (start, end):
                device.ok("event.record", event, device.null)
        device.refuse("event.elapsed", "INVALID_ARGUMENT", start, end, out)
        assert out[0] == -77, "the failed call wrote its output"


@case(
    "L1.event.many",
    duties=("EVT-3",),
    needs=_EVENT,
    tolerance="E",
    entry_points=("event.create", "event.destroy"),
    variants=sizes(10, 500),
)
def test_many_events(target: Target, variant: Variant) -> None:
    """Hundreds of events live at once, each with its own point."""
    with RawDevice(target) as device:
        stream = device.stream()
        events = [device.event() for _ in range(variant.size)]
        for event in events:
            device.ok("event.record", event, stream)
        device.sync(stream)
        for event in events:
            device.ok("event.query", event)


@case(
    "L1.event.native", duties=("BASE-8",), needs="slot:event.native", entry_points=("event.native",)
)
def test_native(target: Target, variant: object) -> None:
    """The native event is the same each time."""
    with RawDevice(target) as device:
        event, out = device.event(), device.block("void**")
        device.ok("event.native", event, out)
        first = out[0]
        device.ok("event.native", event, out)
        assert out[0] == first


@case(
    "L1.event.ipc",
    duties=("BASE-8",),
    needs="slot:event.export_ipc",
    entry_points=("event.export_ipc",),
    variants=named("round_trip small no_flag"),
)
def test_ipc(target: Target, variant: Variant) -> None:
    """An IPC event gives a blob of the size it says; without the flag it is INVALID_ARGUMENT."""
    with RawDevice(target) as device:
        event = device.event(0 if variant.name == "no_flag" else 2)
        size = device.block("uint64_t*")
        if variant.name == "no_flag":
            device.refuse("event.export_ipc", "INVALID_ARGUMENT", event, device.null, 0, size)
            return
        device.ok("event.export_ipc", event, device.null, 0, size)
        need = int(size[0])
        blob = device.block("char[]", need)
        if variant.name == "small":
            device.refuse("event.export_ipc", "INVALID_ARGUMENT", event, blob, need - 1, size)
            assert size[0] == need
            return
        device.ok("event.export_ipc", event, blob, need, size)
        desc = device.new("chipdock_event_desc", flags=2, ipc_blob=blob, ipc_blob_size=need)
        out = device.block("chipdock_event**")
        # Some drivers open such an event in another process only.
        status = status_name(device.call("event.create", device.device, desc, out))
        assert status in {"OK", "UNSUPPORTED", "INVALID_ARGUMENT"}, status
        if status == "OK":
            device.ok("event.destroy", out[0])

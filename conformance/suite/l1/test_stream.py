# SPDX-License-Identifier: Apache-2.0
"""The plugin's own streams: order, waiting, asking, ending, host functions."""

from __future__ import annotations

import itertools
from typing import Any

from chipdock.conformance.case import Variant, case
from chipdock.conformance.suite.canary import check_bytes
from chipdock.conformance.suite.device import RawDevice, pattern
from chipdock.conformance.suite.gate import Gate, HostCall, queue_call
from chipdock.conformance.suite.node import KernelBench
from chipdock.conformance.suite.raw import status_name
from chipdock.conformance.suite.variants import named, sizes
from chipdock.conformance.target import Target

_STREAM = "slot:stream.create"
_HOST = "slot:stream.create and slot:stream.host_function"
_COPY = ("memory.copy", "stream.sync")


@case(
    "L1.stream.copy",
    duties=("MEM-5", "STR-1"),
    needs=_STREAM,
    entry_points=_COPY,
    tolerance="E",
    mustpass=True,
    variants=[
        Variant(name=f"{way}_n{size}", way=way, size=size)
        for way in ("h2d", "d2h", "d2d")
        for size in (1, 63, 4097, 65537, 1048577)
    ],
)
def test_copy(target: Target, variant: Variant) -> None:
    """A copy queued on a stream is complete once the stream was waited for."""
    with RawDevice(target) as device:
        stream, size = device.stream(), variant.size
        data = pattern(size, seed=20)
        memory, other = device.alloc(size), device.alloc(size)
        device.write(memory, data, stream=stream if variant.way == "h2d" else None)
        if variant.way == "d2h":
            host = device.read_later(memory, size, stream)
            device.sync(stream)
            check_bytes(bytes(device.ffi.buffer(host, size)), data, "host memory")
            return
        if variant.way == "d2d":
            device.move(memory, other, size, stream=stream)
            memory = other
        device.sync(stream)
        check_bytes(device.read(memory, size), data, "the copy")


@case(
    "L1.stream.order",
    duties=("STR-1", "MEM-5"),
    needs=_STREAM,
    entry_points=_COPY,
    tolerance="E",
    mustpass=True,
    variants=[
        Variant(name=f"{kind}_n{count}", kind=kind, count=count)
        for kind in ("overwrite", "chain", "sizes")
        for count in (2, 10, 100)
    ],
)
def test_order(target: Target, variant: Variant) -> None:
    """Work queued on one stream takes effect in the order of the calls."""
    with RawDevice(target) as device:
        stream, size = device.stream(), 5003
        last = pattern(size, seed=variant.count - 1)
        if variant.kind == "chain":
            memories = [device.alloc(size) for _ in range(variant.count + 1)]
            device.write(memories[0], last, stream=stream)
            for source, destination in itertools.pairwise(memories):
                device.move(source, destination, size, stream=stream)
            result = memories[-1]
        else:
            result = device.alloc(size)
            for i in range(variant.count):
                # Short copies behind long ones would overtake them if anything could.
                part = size if variant.kind == "overwrite" else max(1, size // (i + 1))
                device.write(result, pattern(size, seed=i)[:part], stream=stream)
            if variant.kind == "sizes":
                device.write(result, last, stream=stream)
        device.sync(stream)
        check_bytes(device.read(result, size), last, "the last of them")


@case(
    "L1.stream.mixed",
    duties=("STR-1", "KRN-6"),
    needs=_STREAM,
    tolerance="E",
    entry_points=("memory.copy", "memory.fill", "kernel.launch", "stream.sync"),
    variants=[
        Variant(name="fill", needs="slot:memory.fill"),
        Variant(name="kernel", needs="slot:kernel.launch"),
        Variant(name="host_function", needs="slot:stream.host_function"),
    ],
)
def test_mixed_order(target: Target, variant: Variant) -> None:
    """Copies keep their place among fills, launches and host functions of the same stream."""
    with RawDevice(target) as device:
        stream = device.stream()
        if variant.name == "fill":
            memory = device.alloc(4096)
            for i in range(20):
                device.write(memory, pattern(4096, seed=i), stream=stream)
                assert device.fill(memory, bytes([i]), 4096, stream=stream) == 0
            hosts = [device.read_later(memory, 4096, stream)]
            device.sync(stream)
            check_bytes(bytes(device.ffi.buffer(hosts[0], 4096)), bytes([19]) * 4096, "the fill")
        elif variant.name == "kernel":
            bench = KernelBench(device)
            instance = bench.create()
            output = device.alloc(4 * bench.length)
            launch = bench.with_workspace(instance, bench.launch(output, stream))
            for i in range(20):
                device.write(output, pattern(4 * bench.length, seed=i), stream=stream)
                device.ok("kernel.launch", instance, launch)
            device.sync(stream)
            check_bytes(device.read(output, 4 * bench.length), bench.expected(), "the launch")
            device.ok("kernel.destroy", instance)
        else:
            memory, seen = device.alloc(64), []
            for i in range(20):
                device.write(memory, bytes([i]) * 64, stream=stream)
                host = device.read_later(memory, 64, stream)
                queue_call(
                    device, stream, lambda _, h=host: seen.append(bytes(device.ffi.buffer(h, 1)))
                )
            device.sync(stream)
            assert seen == [bytes([i]) for i in range(20)]


@case(
    "L1.stream.held",
    duties=("STR-1", "STR-6", "DEV-8"),
    needs=_HOST,
    entry_points=("stream.sync", "stream.query"),
    variants=named("query ask short device_sync"),
)
def test_waiting_for_held_work(target: Target, variant: Variant) -> None:
    """While work is held, query is NOT_READY and a limited sync TIMEOUT; afterwards both are OK."""
    if variant.name == "device_sync":
        target.require("slot:device.sync")
    with RawDevice(target) as device:
        stream = device.stream()
        with Gate(device, stream) as gate:
            held = gate.held  # Asked first: a call that waits outlasts the gate.
            if variant.name == "query":
                status = status_name(device.call("stream.query", stream))
                late = "NOT_READY"
            elif variant.name == "device_sync":
                status = status_name(device.call("device.sync", device.device, 1_000_000))
                late = "TIMEOUT"
            else:
                limit = 0 if variant.name == "ask" else 1_000_000
                status, late = status_name(device.call("stream.sync", stream, limit)), "TIMEOUT"
            assert status == late or not held, f"{status} while work is held"
        device.sync(stream)
        assert status_name(device.call("stream.query", stream)) == "OK"
        assert status_name(device.call("stream.sync", stream, 0)) == "OK"


@case(
    "L1.stream.effect",
    duties=("STR-1", "MEM-5"),
    needs=_HOST,
    entry_points=_COPY,
    tolerance="E",
    variants=named("behind_a_gate desc_gone"),
)
def test_copy_behind_a_gate(target: Target, variant: Variant) -> None:
    """A copy behind held work waits for its turn, and its desc may be gone by then."""
    with RawDevice(target) as device:
        stream, size = device.stream(), 3001
        old, new = pattern(size, seed=1), pattern(size, seed=2)
        memory = device.alloc(size)
        device.write(memory, old)
        host = device.block("char[]", new)
        places = device.place(host=host), device.place(memory)
        desc = device.new(
            "chipdock_copy_desc", source=places[0], target=places[1], size=size, stream=stream
        )
        with Gate(device, stream) as gate:
            device.ok("memory.copy", device.device, desc)
            if variant.name == "desc_gone":
                for gone in (desc, *places):
                    kind = device.ffi.typeof(gone).item
                    device.ffi.memmove(
                        gone, b"\xa5" * device.ffi.sizeof(kind), device.ffi.sizeof(kind)
                    )
            elif gate.held:
                check_bytes(device.read(memory, size), old, "before the gate opened")
        device.sync(stream)
        check_bytes(device.read(memory, size), new, "after the gate opened")


@case(
    "L1.stream.sync",
    duties=("DEV-8", "BASE-8"),
    needs=_STREAM,
    entry_points=("stream.sync", "stream.query"),
    mustpass=True,
    variants=[
        Variant(name="fresh_for_ever", limit=-1),
        Variant(name="fresh_ask", limit=0),
        Variant(name="fresh_long", limit=2**63 - 1),
        Variant(name="fresh_query", limit=None),
    ],
)
def test_idle(target: Target, variant: Variant) -> None:
    """A stream without work is ready at once, whatever the time limit."""
    with RawDevice(target) as device:
        stream = device.stream()
        if variant.limit is None:
            device.ok("stream.query", stream)
        else:
            device.ok("stream.sync", stream, variant.limit)


@case(
    "L1.stream.device_sync",
    duties=("DEV-7", "DEV-8"),
    entry_points=("device.sync",),
    needs="slot:device.sync and slot:stream.create",
    tolerance="E",
    variants=sizes(1, 2, 8),
)
def test_device_sync(target: Target, variant: Variant) -> None:
    """device.sync waits for the work of every stream."""
    with RawDevice(target) as device:
        size = 200_003
        hosts = []
        for i in range(variant.size):
            stream, memory = device.stream(), device.alloc(size)
            device.write(memory, pattern(size, seed=i), stream=stream)
            hosts.append(device.read_later(memory, size, stream))
        device.ok("device.sync", device.device, -1)
        for i, host in enumerate(hosts):
            check_bytes(bytes(device.ffi.buffer(host, size)), pattern(size, seed=i), f"stream {i}")


@case(
    "L1.stream.create",
    duties=("BASE-8",),
    needs=_STREAM,
    mustpass=True,
    entry_points=("stream.create", "stream.destroy"),
    variants=[
        Variant(name=f"priority_{name}", priority=value)
        for name, value in (
            ("normal", 0),
            ("urgent", -1),
            ("lazy", 1),
            ("least", -(2**31)),
            ("most", 2**31 - 1),
        )
    ],
)
def test_priority(target: Target, variant: Variant) -> None:
    """Every priority is taken, and clamped to what there is."""
    with RawDevice(target) as device:
        stream, memory = device.stream(priority=variant.priority), device.alloc(64)
        device.write(memory, b"p" * 64, stream=stream)
        device.sync(stream)
        assert device.read(memory, 64) == b"p" * 64


@case(
    "L1.stream.many",
    duties=("STR-1",),
    needs=_STREAM,
    tolerance="E",
    entry_points=("stream.create", "stream.destroy"),
    variants=sizes(2, 16, 64),
)
def test_many_streams(target: Target, variant: Variant) -> None:
    """Many streams at once, each with work of its own, all come out right."""
    with RawDevice(target) as device:
        work: list[tuple[Any, Any]] = []
        for i in range(variant.size):
            stream, memory = device.stream(), device.alloc(1001)
            device.write(memory, pattern(1001, seed=i), stream=stream)
            work.append((stream, memory))
        for i, (stream, memory) in enumerate(work):
            device.sync(stream)
            check_bytes(device.read(memory, 1001), pattern(1001, seed=i), f"stream {i}")


@case(
    "L1.stream.destroy",
    duties=("STR-5",),
    needs=_HOST,
    entry_points=("stream.destroy",),
    variants=named("idle copies host_functions"),
)
def test_destroy_in_flight(target: Target, variant: Variant) -> None:
    """Destroy of a stream with work queued lets the work end."""
    with RawDevice(target) as device:
        stream, memory = device.stream(), device.alloc(100_003)
        event, done = device.event(), [HostCall() for _ in range(30)]
        for i in range(0 if variant.name == "idle" else 30):
            if variant.name == "copies":
                device.write(memory, pattern(100_003, seed=i), stream=stream)
            else:
                queue_call(device, stream, done[i])
        device.ok("event.record", event, stream)
        device.destroy(stream)
        device.ok("event.sync", event, -1)
        if variant.name == "copies":
            check_bytes(device.read(memory, 100_003), pattern(100_003, seed=29), "the last copy")
        elif variant.name == "host_functions":
            assert [call.states for call in done] == [[0]] * 30


@case(
    "L1.stream.native",
    duties=("BASE-8",),
    needs="slot:stream.native",
    entry_points=("stream.native", "stream.create"),
    variants=named("same import"),
)
def test_native(target: Target, variant: Variant) -> None:
    """The native stream is the same each time, and importing it gives a stream that works."""
    with RawDevice(target) as device:
        stream, out = device.stream(), device.block("void**")
        device.ok("stream.native", stream, out)
        first = out[0]
        device.ok("stream.native", stream, out)
        assert out[0] == first
        if variant.name == "import":
            twin, memory = device.stream(native=first, flags=1), device.alloc(64)
            device.write(memory, b"n" * 64, stream=twin)
            device.sync(twin)
            device.destroy(twin)
            device.sync(stream)
            assert device.read(memory, 64) == b"n" * 64


@case("L1.stream.import", duties=("BASE-8",), needs=_STREAM, entry_points=("stream.create",))
def test_import_is_declared(target: Target, variant: object) -> None:
    """A plugin that cannot import native streams says UNSUPPORTED, and gives none."""
    with RawDevice(target) as device:
        out = device.block("chipdock_stream**")
        desc = device.new("chipdock_stream_desc", native_kind=0xFFFF, flags=1)
        device.refuse(
            "stream.create", ("UNSUPPORTED", "INVALID_ARGUMENT"), device.device, desc, out
        )
        assert out[0] == device.null

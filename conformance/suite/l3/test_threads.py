# SPDX-License-Identifier: Apache-2.0
"""Eight threads at once: every pair of entry points on objects of their own, then shared ones."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

from chipdock.conformance.case import Variant, case
from chipdock.conformance.suite.canary import check_bytes
from chipdock.conformance.suite.device import RawDevice, pattern
from chipdock.conformance.suite.gate import HostCall, queue_call
from chipdock.conformance.suite.l3.work import WORK, needs_of
from chipdock.conformance.suite.node import KernelBench
from chipdock.conformance.suite.raw import STATUS, status_name
from chipdock.conformance.suite.threads import run_together
from chipdock.conformance.suite.variants import named
from chipdock.conformance.target import Target

_THREADS = 8
_ROUNDS = 8
# All pairs of these; each of the others with itself and with one that allocates and copies.
_MAIN = ("alloc", "write", "stream_copy", "event", "wait_event", "kernel", "graph", "fill")
_PAIRS = [
    *itertools.combinations_with_replacement(_MAIN, 2),
    *((name, name) for name in WORK if name not in _MAIN),
    *((name, "write") for name in WORK if name not in _MAIN),
]


def _repeat(device: RawDevice, name: str) -> None:
    work = WORK[name][0]
    for _ in range(_ROUNDS):
        lane = device.lane()
        try:
            work(lane)
        finally:
            lane.close(check=False)


@case(
    "L3.threads.pair",
    duties=("MEM-8", "PLG-8"),
    budget_ms=500,
    variants=[Variant(name=f"{a}_{b}", needs=needs_of(a, b), pair=(a, b)) for a, b in _PAIRS],
)
def test_pair(target: Target, variant: Variant) -> None:
    """Four threads do one thing and four another, each on objects of its own."""
    with RawDevice(target) as device:
        first, second = variant.pair
        lanes = [first, second] * (_THREADS // 2)
        run_together([functools.partial(_repeat, device, name) for name in lanes])


@case("L3.threads.all", duties=("MEM-8",), budget_ms=500, mustpass=True)
def test_everything_at_once(target: Target, variant: object) -> None:
    """Whatever the plugin offers, all at once."""
    with RawDevice(target) as device:
        names = [name for name in WORK if target.has(WORK[name][1])]
        run_together([functools.partial(_repeat, device, name) for name in names])


@case(
    "L3.threads.instances",
    duties=("PLG-6", "MEM-8"),
    budget_ms=500,
    variants=[
        Variant(name=name, needs=needs_of(name), work=name)
        for name in ("write", "stream_copy", "kernel")
    ],
)
def test_instances(target: Target, variant: Variant) -> None:
    """Each thread has an instance of the plugin of its own, started and ended by it."""

    def work() -> None:
        for _ in range(3):
            with RawDevice(target) as device:
                WORK[variant.work][0](device)

    run_together([work] * 4)


@case(
    "L3.shared.enqueue",
    duties=("STR-6", "STR-1"),
    needs="slot:stream.create",
    budget_ms=500,
    entry_points=("stream.sync", "stream.query", "memory.copy"),
    variants=named("sync query sync_ask"),
)
def test_asking_beside_enqueues(target: Target, variant: Variant) -> None:
    """Threads ask a stream or wait for it while one enqueues."""
    with RawDevice(target) as device:
        stream, memory = device.stream(), device.alloc(4099)

        def enqueue() -> None:
            lane = device.lane()
            for i in range(200):
                lane.write(memory, pattern(4099, seed=i), stream=stream)
            lane.sync(stream)

        def ask() -> None:
            lane = device.lane()
            for _ in range(100):
                if variant.name == "query":
                    status = lane.call("stream.query", stream)
                else:
                    status = lane.call("stream.sync", stream, -1 if variant.name == "sync" else 0)
                allowed = {STATUS["OK"], STATUS["NOT_READY"], STATUS["TIMEOUT"]}
                assert status in allowed, status_name(status)

        run_together([enqueue, *[ask] * 7])
        check_bytes(device.read(memory, 4099), pattern(4099, seed=199), "the last copy")


@case(
    "L3.shared.event",
    duties=("EVT-6", "EVT-3"),
    needs="slot:event.create",
    budget_ms=500,
    entry_points=("event.query", "event.sync", "event.destroy"),
    variants=named("query sync destroy"),
)
def test_events_beside_enqueues(target: Target, variant: Variant) -> None:
    """Threads ask, wait for and destroy events while one records and waits on streams."""
    with RawDevice(target) as device:
        stream, other = device.stream(), device.stream()
        events = [device.event() for _ in range(70)]

        def enqueue() -> None:
            lane = device.lane()
            for event in events[: 70 if variant.name != "destroy" else 35]:
                lane.ok("event.record", event, stream)
                lane.ok("stream.wait_event", other, event)
            lane.sync(other)

        def ask(number: int) -> None:
            lane = device.lane()
            for event in events[35 + 5 * number : 40 + 5 * number]:
                if variant.name == "destroy":
                    lane.ok("event.destroy", event)
                elif variant.name == "sync":
                    lane.ok("event.sync", event, -1)
                else:
                    status = lane.call("event.query", event)
                    assert status in {STATUS["OK"], STATUS["NOT_READY"]}, status_name(status)

        run_together([enqueue, *(functools.partial(ask, n) for n in range(7))])
        if variant.name == "destroy":
            for event in events[35:]:
                device._events.remove(event)


@case(
    "L3.shared.abort",
    duties=("STR-6", "STR-3"),
    needs="slot:stream.abort",
    budget_ms=500,
    entry_points=("stream.abort",),
    variants=named("enqueue sync both"),
)
def test_abort_beside_others(target: Target, variant: Variant) -> None:
    """Abort comes while other threads enqueue and wait: they see ABORTED or a failed stream."""
    with RawDevice(target) as device:
        for _ in range(20):
            stream, memory = device.stream(), device.alloc(4099)

            def enqueue(stream: Any = stream, memory: Any = memory) -> None:
                lane = device.lane()
                host = lane.block("char[]", 4099)
                for _ in range(20):
                    status = lane.copy(lane.place(host=host), lane.place(memory), 4099, stream)
                    assert status in {0, STATUS["FAILED_PRECONDITION"]}, status_name(status)

            def wait(stream: Any = stream) -> None:
                status = device.lane().call("stream.sync", stream, -1)
                assert status in {0, STATUS["ABORTED"]}, status_name(status)

            def abort(stream: Any = stream) -> None:
                device.lane().ok("stream.abort", stream)

            others: dict[str, list[Callable[[], None]]] = {
                "enqueue": [enqueue],
                "sync": [wait] * 3,
                "both": [enqueue, wait, wait],
            }
            run_together([abort, *others[variant.name]])
            device.refuse("stream.sync", "ABORTED", stream, -1)
            device.destroy(stream)


@case(
    "L3.shared.instance",
    duties=("KRN-3", "KRN-6"),
    needs="slot:kernel.launch",
    budget_ms=500,
    entry_points=("kernel.launch",),
    tolerance="E",
    variants=[
        Variant(name="inline", size=4099),
        Variant(name="short", size=515),  # small enough for a buffer that launches share
        Variant(name="streams", size=4099, needs="slot:stream.create"),
    ],
)
def test_one_instance(target: Target, variant: Variant) -> None:
    """Eight threads launch one instance at once, each on memory and numbers of its own."""
    with RawDevice(target) as device:
        size = variant.size
        instance = KernelBench(device, size).create()

        def launch(number: int) -> None:
            lane = device.lane()
            own = KernelBench(lane, size, number + 0.5)
            stream = lane.stream() if variant.name == "streams" else None
            output = lane.alloc(4 * size)
            desc = own.with_workspace(instance, own.launch(output, stream))
            for _ in range(10):
                lane.write(output, bytes(4 * size))
                lane.ok("kernel.launch", instance, desc)
                if stream is not None:
                    lane.sync(stream)
                check_bytes(lane.read(output, 4 * size), own.expected(), "the output")
            lane.close()

        run_together([functools.partial(launch, i) for i in range(_THREADS)])
        device.ok("kernel.destroy", instance)


@case(
    "L3.shared.memory",
    duties=("MEM-8", "MEM-1"),
    budget_ms=500,
    tolerance="E",
    entry_points=("memory.copy", "memory.alloc"),
    variants=named("read_one parts free_elsewhere"),
)
def test_shared_memory(target: Target, variant: Variant) -> None:
    """Threads read one allocation, write parts of it, and free what others allocated."""
    with RawDevice(target) as device:
        part = device.unit * (-(-2000 // device.unit))
        memory = device.alloc(part * _THREADS)
        data = pattern(part * _THREADS)
        device.write(memory, data)
        foreign = [device.alloc(part) for _ in range(_THREADS)]

        def work(number: int) -> None:
            lane = device.lane()
            for i in range(20):
                if variant.name == "read_one":
                    check_bytes(lane.read(memory, len(data)), data, "the allocation")
                elif variant.name == "parts":
                    mine = pattern(part, seed=number * 100 + i)
                    lane.write(memory, mine, offset=number * part)
                    check_bytes(lane.read(memory, part, offset=number * part), mine, "my part")
                elif i == 0:
                    lane.ok("memory.free", lane.device, foreign[number])

        run_together([functools.partial(work, n) for n in range(_THREADS)])
        if variant.name == "free_elsewhere":
            for freed in foreign:
                device.forget(freed)


@case(
    "L3.shared.streams",
    duties=("STR-1", "MEM-8"),
    needs="slot:stream.host_function",
    budget_ms=500,
    entry_points=("stream.host_function",),
)
def test_host_functions_of_many_streams(target: Target, variant: object) -> None:
    """Eight streams of eight threads run their host functions once each and in their own order."""
    with RawDevice(target) as device:

        def work() -> None:
            lane = device.lane()
            stream, seen, last = lane.stream(), [], HostCall()
            for i in range(50):
                queue_call(lane, stream, lambda _, i=i: seen.append(i))
            queue_call(lane, stream, last)
            lane.sync(stream)
            assert seen == list(range(50))
            assert last.states == [0]
            lane.close()

        run_together([work] * _THREADS)


@case(
    "L3.shared.profiler",
    duties=("PRF-4", "PRF-8"),
    needs="slot:profiler.start",
    budget_ms=500,
    entry_points=("profiler.start", "profiler.flush"),
)
def test_profiler_beside_work(target: Target, variant: object) -> None:
    """A session that flushes all the time disturbs no thread at work."""
    with RawDevice(target) as device:
        desc = device.new("chipdock_profiler_desc")
        sink = device.ffi.callback(device.ffi.typeof(desc.sink), lambda _c, _r, _n: None)
        desc.sink, out = sink, device.block("chipdock_profiler_session**")
        device.ok("profiler.start", device.device, desc, out)

        def flush() -> None:
            for _ in range(50):
                device.lane().ok("profiler.flush", out[0], -1)

        work = [name for name in ("write", "stream_copy", "kernel") if target.has(WORK[name][1])]
        run_together([flush, *(functools.partial(_repeat, device, name) for name in work * 2)])
        device.ok("profiler.stop", out[0])

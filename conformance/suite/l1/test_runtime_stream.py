# SPDX-License-Identifier: Apache-2.0
"""Streams through the host runtime: the plugin's own or emulated, the same duties."""

from __future__ import annotations

import functools
import gc
import itertools
from collections.abc import Callable

import numpy as np

import chipdock
from chipdock.conformance.case import Variant, case
from chipdock.conformance.suite.layered import fresh_device
from chipdock.conformance.suite.queues import HostGate, check, make
from chipdock.conformance.suite.variants import named, sizes
from chipdock.conformance.target import Target

_COPY = ("memory.copy", "stream.create", "stream.sync")


@case(
    "L1.queue.copy",
    duties=("STR-1", "MEM-5"),
    entry_points=_COPY,
    tolerance="E",
    mustpass=True,
    variants=sizes(1, 3, 1000, 4097, 100_003),
)
def test_copy(target: Target, variant: Variant) -> None:
    """A copy queued on a stream is complete once the stream was waited for."""
    stream = chipdock.Stream(target.device)
    source, destination = make(target, 7, variant.size), make(target, 0, variant.size)
    stream.copy(source, destination)
    stream.sync()
    assert stream.query()
    check(destination, 7)
    check(source, 7, "the source")


@case(
    "L1.queue.order",
    duties=("STR-1",),
    entry_points=_COPY,
    tolerance="E",
    mustpass=True,
    variants=sizes(2, 10, 200),
)
def test_order(target: Target, variant: Variant) -> None:
    """Copies on one stream take effect in the order of the calls."""
    stream, arrays = chipdock.Stream(target.device), [make(target, i) for i in range(10)]
    destination = make(target, -1)
    for i in range(variant.size):
        stream.copy(arrays[i % 10], destination)
    stream.sync()
    check(destination, (variant.size - 1) % 10)


@case("L1.queue.chain", duties=("STR-1",), entry_points=_COPY, tolerance="E", variants=sizes(3, 50))
def test_chain(target: Target, variant: Variant) -> None:
    """A copy reads what the copy before it wrote."""
    stream = chipdock.Stream(target.device)
    arrays = [make(target, 5), *(make(target, -i) for i in range(variant.size))]
    for source, destination in itertools.pairwise(arrays):
        stream.copy(source, destination)
    stream.sync()
    check(arrays[-1], 5)


@case("L1.queue.zero", duties=("MEM-7",), entry_points=_COPY)
def test_empty_copy(target: Target, variant: object) -> None:
    """A copy of no elements is queued like any other."""
    stream = chipdock.Stream(target.device)
    stream.copy(make(target, 1)[:0], make(target, 2)[:0])
    stream.sync()


@case(
    "L1.queue.host_function",
    duties=("STR-7", "STR-1"),
    mustpass=True,
    entry_points=("stream.host_function",),
    variants=sizes(1, 2, 100),
)
def test_host_functions(target: Target, variant: Variant) -> None:
    """Host functions run once each, in order, and are told OK."""
    stream, seen = chipdock.Stream(target.device), list[tuple[int, str]]()

    def note(number: int, state: str) -> None:
        seen.append((number, state))

    for i in range(variant.size):
        stream.host_function(functools.partial(note, i))
    stream.sync()
    assert seen == [(i, "OK") for i in range(variant.size)]


@case(
    "L1.queue.interleaved",
    duties=("STR-7", "STR-1"),
    tolerance="E",
    entry_points=("stream.host_function", "memory.copy"),
    variants=sizes(10),
)
def test_host_functions_between_copies(target: Target, variant: Variant) -> None:
    """A host function sees what was copied before it and nothing of what comes later."""
    stream, destination = chipdock.Stream(target.device), make(target, -1)
    arrays, seen = [make(target, i) for i in range(variant.size)], []
    for array in arrays:
        stream.copy(array, destination)
        stream.host_function(lambda _: seen.append(int(destination.copy_to_numpy()[-1])))
    stream.sync()
    assert seen == list(range(variant.size))


@case(
    "L1.queue.held",
    duties=("DEV-8", "STR-6"),
    entry_points=("stream.sync", "stream.query"),
    variants=named("query sync_ask sync_short event_query event_sync device_sync"),
)
def test_held(target: Target, variant: Variant) -> None:
    """While work is held, asking says no and limited waits end with TimeoutError."""
    device = target.device
    stream, event = chipdock.Stream(device), chipdock.Event(device)
    with HostGate(stream) as gate:
        event.record(stream)
        held = gate.held  # Asked first: a call that waits outlasts the gate.
        if variant.name == "query":
            late = not stream.query()
        elif variant.name == "event_query":
            late = not event.query()
        else:
            waits: dict[str, Callable[[], None]] = {
                "sync_ask": lambda: stream.sync(0), "sync_short": lambda: stream.sync(1_000_000),
                "event_sync": lambda: event.sync(1_000_000),
                "device_sync": lambda: device.sync(1_000_000),
            }  # fmt: skip
            try:
                waits[variant.name]()
                late = False
            except chipdock.errors.TimeoutError:
                late = True
        assert late or not held, "held work counts as done"
    stream.sync()
    event.sync()
    assert stream.query()
    assert event.query()


@case(
    "L1.queue.sync",
    duties=("DEV-8",),
    entry_points=("stream.sync",),
    mustpass=True,
    variants=[
        Variant(name="for_ever", limit=-1),
        Variant(name="ask", limit=0),
        Variant(name="long", limit=2**62),
    ],
)
def test_idle(target: Target, variant: Variant) -> None:
    """A stream and a device without work are ready at once, whatever the limit."""
    stream = chipdock.Stream(target.device)
    stream.sync(variant.limit)
    assert stream.query()


@case(
    "L1.queue.priority",
    duties=("BASE-8",),
    entry_points=("stream.create",),
    variants=[
        Variant(name=name, priority=value)
        for name, value in (("urgent", -5), ("lazy", 5), ("least", -(2**31)), ("most", 2**31 - 1))
    ],
)
def test_priority(target: Target, variant: Variant) -> None:
    """Every priority makes a stream that works."""
    stream, array = chipdock.Stream(target.device, variant.priority), make(target, 0)
    stream.copy(make(target, 3), array)
    stream.sync()
    check(array, 3)


@case(
    "L1.queue.many",
    duties=("STR-1", "DEV-7"),
    entry_points=_COPY,
    tolerance="E",
    variants=sizes(2, 16, 50),
)
def test_many_streams(target: Target, variant: Variant) -> None:
    """device.sync waits for the work of every stream."""
    with fresh_device(target) as device:
        pairs = []
        for i in range(variant.size):
            stream = chipdock.Stream(device)
            source = chipdock.array(np.full(20_011, i, np.int32), device)
            destination = chipdock.empty((20_011,), np.int32, device)
            stream.copy(source, destination)
            pairs.append((stream, destination))
        device.sync()
        for i, (_, destination) in enumerate(pairs):
            check(destination, i, f"stream {i}")


@case(
    "L1.queue.dropped",
    duties=("STR-5", "MEM-2"),
    entry_points=("stream.destroy",),
    tolerance="E",
    variants=named("stream source both"),
)
def test_dropped_in_flight(target: Target, variant: Variant) -> None:
    """Streams and arrays that nobody names any more end behind the work that uses them."""
    stream, event = chipdock.Stream(target.device), chipdock.Event(target.device)
    source, destination = make(target, 6, 65537), make(target, 0, 65537)
    gate = HostGate(stream)
    stream.copy(source, destination)
    event.record(stream)
    if variant.name in {"source", "both"}:
        del source
        gc.collect()
        others = [make(target, 9, 65537) for _ in range(4)]
    gate.open()
    if variant.name in {"stream", "both"}:
        del stream
        gc.collect()
    event.sync()
    check(destination, 6)
    if variant.name != "stream":
        check(others[0], 9)

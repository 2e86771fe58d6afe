# SPDX-License-Identifier: Apache-2.0
"""Streams, events and graphs through the host runtime: the plugin's own or emulated, one duty."""

from __future__ import annotations

import contextlib
import gc
import itertools
import threading

import numpy as np

import chipdock
from chipdock.conformance.case import Variant, case, fail
from chipdock.conformance.suite.layered import fresh_device
from chipdock.conformance.suite.variants import named, sizes
from chipdock.conformance.target import Target

_COPY = ("memory.copy", "stream.create", "stream.sync")
_EVENTS = ("event.create", "event.record", "stream.wait_event")
_GRAPHS = ("graph.begin_capture", "graph.end_capture", "graph.launch")
_LIMIT_S = 1.0


class Gate:
    """A host function that holds its stream up until `open`, or for a while at most [STR-2]."""

    def __init__(self, stream: chipdock.Stream) -> None:
        """Queues the gate."""
        self._open = threading.Event()
        self._done = threading.Event()
        stream.host_function(self._wait)

    def _wait(self, _state: str) -> None:
        self._open.wait(_LIMIT_S)
        self._done.set()

    @property
    def held(self) -> bool:
        """Whether the stream stands still."""
        return not self._done.is_set()

    def open(self) -> None:
        """Let the stream go on."""
        self._open.set()

    def __enter__(self) -> Gate:
        """Return the gate."""
        return self

    def __exit__(self, *_: object) -> None:
        """Open, whatever happened."""
        self.open()


def _array(target: Target, value: int, count: int = 1001) -> chipdock.Array:
    return chipdock.array(np.full(count, value, np.int32), target.device)


def _check(array: chipdock.Array, value: int, what: str = "the array") -> None:
    got = array.copy_to_numpy()
    wrong = np.flatnonzero(got != value)
    if wrong.size:
        fail(
            f"{what}: {wrong.size} of {got.size} elements are not {value}",
            index=int(wrong[0]),
            expected=value,
            got=int(got[wrong[0]]),
            metric="elements",
            value=int(wrong.size),
        )


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
    source, destination = _array(target, 7, variant.size), _array(target, 0, variant.size)
    stream.copy(source, destination)
    stream.sync()
    assert stream.query()
    _check(destination, 7)
    _check(source, 7, "the source")


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
    stream, arrays = chipdock.Stream(target.device), [_array(target, i) for i in range(10)]
    destination = _array(target, -1)
    for i in range(variant.size):
        stream.copy(arrays[i % 10], destination)
    stream.sync()
    _check(destination, (variant.size - 1) % 10)


@case("L1.queue.chain", duties=("STR-1",), entry_points=_COPY, tolerance="E", variants=sizes(3, 50))
def test_chain(target: Target, variant: Variant) -> None:
    """A copy reads what the copy before it wrote."""
    stream = chipdock.Stream(target.device)
    arrays = [_array(target, 5), *(_array(target, -i) for i in range(variant.size))]
    for source, destination in itertools.pairwise(arrays):
        stream.copy(source, destination)
    stream.sync()
    _check(arrays[-1], 5)


@case("L1.queue.zero", duties=("MEM-7",), entry_points=_COPY)
def test_empty_copy(target: Target, variant: object) -> None:
    """A copy of no elements is queued like any other."""
    stream = chipdock.Stream(target.device)
    stream.copy(_array(target, 1)[:0], _array(target, 2)[:0])
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
    stream, seen = chipdock.Stream(target.device), []
    for i in range(variant.size):
        stream.host_function(lambda state, i=i: seen.append((i, state)))
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
    stream, destination = chipdock.Stream(target.device), _array(target, -1)
    arrays, seen = [_array(target, i) for i in range(variant.size)], []
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
    with Gate(stream) as gate:
        event.record(stream)
        if variant.name == "query":
            late = not stream.query()
        elif variant.name == "event_query":
            late = not event.query()
        else:
            wait = {
                "sync_ask": lambda: stream.sync(0), "sync_short": lambda: stream.sync(1_000_000),
                "event_sync": lambda: event.sync(1_000_000),
                "device_sync": lambda: device.sync(1_000_000),
            }[variant.name]  # fmt: skip
            try:
                wait()
                late = False
            except chipdock.errors.TimeoutError:
                late = True
        assert late or not gate.held, "held work counts as done"
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
    stream, array = chipdock.Stream(target.device, variant.priority), _array(target, 0)
    stream.copy(_array(target, 3), array)
    stream.sync()
    _check(array, 3)


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
            _check(destination, i, f"stream {i}")


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
    source, destination = _array(target, 6, 65537), _array(target, 0, 65537)
    gate = Gate(stream)
    stream.copy(source, destination)
    event.record(stream)
    if variant.name in {"source", "both"}:
        del source
        gc.collect()
        others = [_array(target, 9, 65537) for _ in range(4)]
    gate.open()
    if variant.name in {"stream", "both"}:
        del stream
        gc.collect()
    event.sync()
    _check(destination, 6)
    if variant.name != "stream":
        _check(others[0], 9)


@case(
    "L1.signal.state",
    duties=("EVT-2", "EVT-1"),
    entry_points=("event.query", "event.sync"),
    mustpass=True,
    variants=named("fresh now behind_work timing"),
)
def test_event_state(target: Target, variant: Variant) -> None:
    """An event never recorded, or whose work has ended, is reached."""
    event, stream = (
        chipdock.Event(target.device, variant.name == "timing"),
        chipdock.Stream(target.device),
    )
    if variant.name == "now":
        event.record()
    elif variant.name == "behind_work":
        stream.copy(_array(target, 1), _array(target, 2))
        event.record(stream)
    event.sync()
    assert event.query()


@case(
    "L1.signal.order",
    duties=("STR-1", "EVT-1"),
    entry_points=_EVENTS,
    tolerance="E",
    mustpass=True,
    variants=named("pair chain fork_join back_and_forth"),
)
def test_event_order(target: Target, variant: Variant) -> None:
    """What waits for an event of another stream comes behind that stream's work."""
    device = target.device
    streams = [chipdock.Stream(device) for _ in range(3)]
    arrays = [_array(target, i) for i in range(5)]
    first, second, third = streams

    def edge(source: chipdock.Stream, sink: chipdock.Stream) -> None:
        event = chipdock.Event(device)
        event.record(source)
        sink.wait(event)

    with Gate(first):
        first.copy(arrays[4], arrays[0])
        edge(first, second)
        second.copy(arrays[0], arrays[1])
        if variant.name in {"chain", "fork_join"}:
            edge(second if variant.name == "chain" else first, third)
            third.copy(arrays[1] if variant.name == "chain" else arrays[0], arrays[2])
        if variant.name == "fork_join":
            edge(third, second)
            second.copy(arrays[2], arrays[3])
        if variant.name == "back_and_forth":
            edge(second, first)
            first.copy(arrays[1], arrays[3])
    for stream in streams:
        stream.sync()
    reached = {"pair": (0, 1), "chain": (0, 1, 2), "fork_join": (0, 1, 2, 3),
               "back_and_forth": (0, 1, 3)}[variant.name]  # fmt: skip
    for index in reached:
        _check(arrays[index], 4, f"array {index}")


@case(
    "L1.signal.again",
    duties=("EVT-1", "EVT-3"),
    entry_points=_EVENTS,
    variants=named("moves dropped_pending"),
)
def test_event_again(target: Target, variant: Variant) -> None:
    """A second record moves an event; one that is dropped disturbs nobody who waits."""
    device = target.device
    first, second = chipdock.Stream(device), chipdock.Stream(device)
    event, seen = chipdock.Event(device), []
    event.record(first)
    event.sync()
    with Gate(first) as gate:
        first.host_function(lambda _: seen.append("first"))
        event.record(first)
        if variant.name == "moves":
            assert not event.query() or not gate.held
        second.wait(event)
        second.host_function(lambda _: seen.append("second"))
        if variant.name == "dropped_pending":
            del event
            gc.collect()
    second.sync()
    first.sync()
    assert seen == ["first", "second"]


@case(
    "L1.signal.elapsed",
    duties=("EVT-5",),
    entry_points=("event.elapsed",),
    variants=named("forward backward no_timing never_recorded"),
)
def test_elapsed(target: Target, variant: Variant) -> None:
    """Time between two events runs forward; events without timing or record have none."""
    timing = variant.name != "no_timing"
    start, end = (chipdock.Event(target.device, timing) for _ in range(2))
    stream = chipdock.Stream(target.device)
    if variant.name != "never_recorded":
        start.record(stream)
        stream.copy(_array(target, 1, 50_000), _array(target, 2, 50_000))
        stream.sync()
        end.record(stream)
        end.sync()
    if variant.name in {"forward", "backward"}:
        forward = end.elapsed_since(start)
        assert forward >= 0
        assert variant.name == "forward" or start.elapsed_since(end) == -forward
        return
    try:
        end.elapsed_since(start)
    except chipdock.errors.InvalidArgumentError:
        return
    fail("elapsed of events that have no time", expected="INVALID_ARGUMENT")


@case(
    "L1.replay.launch",
    duties=("GRA-1", "GRA-5", "GRA-8"),
    entry_points=_GRAPHS,
    tolerance="E",
    variants=[
        Variant(name=f"{where}_n{count}", where=where, count=count)
        for where in ("inline", "stream", "other_stream")
        for count in (1, 5)
    ],
)
def test_capture_and_replay(target: Target, variant: Variant) -> None:
    """A captured copy runs at each launch, with the elements the source has by then."""
    stream, source, destination = (
        chipdock.Stream(target.device),
        _array(target, 1),
        _array(target, 0),
    )
    stream.begin_capture()
    stream.copy(source, destination)
    graph = stream.end_capture()
    _check(destination, 0, "before a launch")
    where = {"inline": None, "stream": stream}.get(variant.where, chipdock.Stream(target.device))
    for i in range(variant.count):
        source.copy_from(np.full(1001, 10 + i, np.int32))
        graph.launch(where)
        if where is not None:
            where.sync()
        _check(destination, 10 + i, f"launch {i}")


@case(
    "L1.replay.order",
    duties=("GRA-1", "GRA-4"),
    entry_points=_GRAPHS,
    tolerance="E",
    variants=named("overwrites host_function between"),
)
def test_order_in_a_graph(target: Target, variant: Variant) -> None:
    """Captured work keeps its order, host functions their place, launches theirs in the stream."""
    stream, destination, seen = chipdock.Stream(target.device), _array(target, -1), []
    arrays = [_array(target, i) for i in range(5)]
    stream.begin_capture()
    for array in arrays:
        stream.copy(array, destination)
        if variant.name == "host_function":
            stream.host_function(lambda _: seen.append(int(destination.copy_to_numpy()[0])))
    graph = stream.end_capture()
    assert graph.node_count >= 5
    later = _array(target, 77)
    stream.copy(later, destination)
    graph.launch(stream)
    if variant.name == "between":
        stream.copy(later, destination)
    stream.sync()
    _check(destination, 77 if variant.name == "between" else 4)
    assert seen == (list(range(5)) if variant.name == "host_function" else [])


@case(
    "L1.replay.fork",
    duties=("GRA-2",),
    entry_points=_GRAPHS,
    tolerance="E",
    variants=named("joined not_joined"),
)
def test_fork(target: Target, variant: Variant) -> None:
    """A stream that waits for a captured event is captured too, and has to be joined."""
    device = target.device
    first, second = chipdock.Stream(device), chipdock.Stream(device)
    arrays = [_array(target, i) for i in range(4)]
    fork, join = chipdock.Event(device), chipdock.Event(device)
    first.begin_capture()
    first.copy(arrays[3], arrays[0])
    fork.record(first)
    second.wait(fork)
    second.copy(arrays[0], arrays[1])
    if variant.name == "not_joined":
        try:
            first.end_capture()
        except chipdock.errors.FailedPreconditionError:
            first.copy(arrays[3], arrays[2])
            first.sync()
            _check(arrays[2], 3)
            return
        fail("a fork was not joined and end_capture gave a graph", expected="FAILED_PRECONDITION")
    join.record(second)
    first.wait(join)
    first.copy(arrays[1], arrays[2])
    graph = first.end_capture()
    _check(arrays[1], 1, "before the launch")
    graph.launch(first)
    first.sync()
    for index in (0, 1, 2):
        _check(arrays[index], 3, f"array {index}")


@case(
    "L1.replay.refused",
    duties=("GRA-3", "GRA-2"),
    entry_points=_GRAPHS,
    variants=named("end_without_begin begin_twice sync_inside query_inside"),
)
def test_refused(target: Target, variant: Variant) -> None:
    """Wrong calls around a capture are FAILED_PRECONDITION, and the stream works afterwards."""
    stream, array = chipdock.Stream(target.device), _array(target, 0)
    refused = False
    try:
        if variant.name == "end_without_begin":
            stream.end_capture()
        else:
            stream.begin_capture()
            stream.copy(_array(target, 1), array)
            {"begin_twice": stream.begin_capture, "sync_inside": stream.sync,
             "query_inside": stream.query}[variant.name]()  # fmt: skip
    except chipdock.errors.FailedPreconditionError:
        refused = True
    assert refused, "FAILED_PRECONDITION was due"
    with contextlib.suppress(chipdock.errors.FailedPreconditionError):
        stream.end_capture()
    stream.copy(_array(target, 2), array)
    stream.sync()
    _check(array, 2)


@case(
    "L1.replay.memory",
    duties=("GRA-6", "GRA-11"),
    entry_points=_GRAPHS,
    tolerance="E",
    variants=named("dropped_source dropped_stream"),
)
def test_graph_keeps_what_it_uses(target: Target, variant: Variant) -> None:
    """A graph keeps its memory, and outlives the stream that it was captured from."""
    stream, source, destination = (
        chipdock.Stream(target.device),
        _array(target, 8),
        _array(target, 0),
    )
    stream.begin_capture()
    stream.copy(source, destination)
    graph = stream.end_capture()
    if variant.name == "dropped_source":
        del source
    else:
        del stream
    gc.collect()
    others = [_array(target, 9) for _ in range(8)]
    graph.launch()
    _check(destination, 8)
    _check(others[3], 9)

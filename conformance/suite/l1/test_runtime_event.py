# SPDX-License-Identifier: Apache-2.0
"""Events through the host runtime: the plugin's own or emulated, the same duties."""

from __future__ import annotations

import gc

import chipdock
from chipdock.conformance.case import Variant, case, fail
from chipdock.conformance.suite.queues import HostGate, check, make
from chipdock.conformance.suite.variants import named
from chipdock.conformance.target import Target

_EVENTS = ("event.create", "event.record", "stream.wait_event")


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
        stream.copy(make(target, 1), make(target, 2))
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
    arrays = [make(target, i) for i in range(5)]
    first, second, third = streams

    def edge(source: chipdock.Stream, sink: chipdock.Stream) -> None:
        event = chipdock.Event(device)
        event.record(source)
        sink.wait(event)

    with HostGate(first):
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
        check(arrays[index], 4, f"array {index}")


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
    with HostGate(first) as gate:
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
        stream.copy(make(target, 1, 50_000), make(target, 2, 50_000))
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

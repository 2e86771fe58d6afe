# SPDX-License-Identifier: Apache-2.0
"""Captures and replays through the host runtime: the plugin's or the host's."""

from __future__ import annotations

import contextlib
import gc

import numpy as np

import chipdock
from chipdock.conformance.case import Variant, case, fail
from chipdock.conformance.suite.queues import check, make
from chipdock.conformance.suite.variants import named
from chipdock.conformance.target import Target

_GRAPHS = ("graph.begin_capture", "graph.end_capture", "graph.launch")


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
        make(target, 1),
        make(target, 0),
    )
    stream.begin_capture()
    stream.copy(source, destination)
    graph = stream.end_capture()
    check(destination, 0, "before a launch")
    where = {"inline": None, "stream": stream}.get(variant.where, chipdock.Stream(target.device))
    for i in range(variant.count):
        source.copy_from(np.full(1001, 10 + i, np.int32))
        graph.launch(where)
        if where is not None:
            where.sync()
        check(destination, 10 + i, f"launch {i}")


@case(
    "L1.replay.order",
    duties=("GRA-1", "GRA-4"),
    entry_points=_GRAPHS,
    tolerance="E",
    variants=named("overwrites host_function between"),
)
def test_order_in_a_graph(target: Target, variant: Variant) -> None:
    """Captured work keeps its order, host functions their place, launches theirs in the stream."""
    stream, destination, seen = chipdock.Stream(target.device), make(target, -1), []
    arrays = [make(target, i) for i in range(5)]
    stream.begin_capture()
    for array in arrays:
        stream.copy(array, destination)
        if variant.name == "host_function":
            stream.host_function(lambda _: seen.append(int(destination.copy_to_numpy()[0])))
    graph = stream.end_capture()
    assert graph.node_count >= 5
    later = make(target, 77)
    stream.copy(later, destination)
    graph.launch(stream)
    if variant.name == "between":
        stream.copy(later, destination)
    stream.sync()
    check(destination, 77 if variant.name == "between" else 4)
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
    arrays = [make(target, i) for i in range(4)]
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
            check(arrays[2], 3)
            return
        fail("a fork was not joined and end_capture gave a graph", expected="FAILED_PRECONDITION")
    join.record(second)
    first.wait(join)
    first.copy(arrays[1], arrays[2])
    graph = first.end_capture()
    check(arrays[1], 1, "before the launch")
    graph.launch(first)
    first.sync()
    for index in (0, 1, 2):
        check(arrays[index], 3, f"array {index}")


@case(
    "L1.replay.refused",
    duties=("GRA-3", "GRA-2"),
    entry_points=_GRAPHS,
    variants=named("end_without_begin begin_twice sync_inside query_inside"),
)
def test_refused(target: Target, variant: Variant) -> None:
    """Wrong calls around a capture are FAILED_PRECONDITION, and the stream works afterwards."""
    stream, array = chipdock.Stream(target.device), make(target, 0)
    refused = False
    try:
        if variant.name == "end_without_begin":
            stream.end_capture()
        else:
            stream.begin_capture()
            stream.copy(make(target, 1), array)
            {"begin_twice": stream.begin_capture, "sync_inside": stream.sync,
             "query_inside": stream.query}[variant.name]()  # fmt: skip
    except chipdock.errors.FailedPreconditionError:
        refused = True
    assert refused, "FAILED_PRECONDITION was due"
    with contextlib.suppress(chipdock.errors.FailedPreconditionError):
        stream.end_capture()
    stream.copy(make(target, 2), array)
    stream.sync()
    check(array, 2)


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
        make(target, 8),
        make(target, 0),
    )
    stream.begin_capture()
    stream.copy(source, destination)
    graph = stream.end_capture()
    if variant.name == "dropped_source":
        del source
    else:
        del stream
    gc.collect()
    others = [make(target, 9) for _ in range(8)]
    graph.launch()
    check(destination, 8)
    check(others[3], 9)

# SPDX-License-Identifier: Apache-2.0
"""The plugin's own graphs: what is captured runs at each launch, and only then."""

from __future__ import annotations

from chipdock.conformance.case import NotSupported, Variant, case
from chipdock.conformance.suite.canary import check_bytes
from chipdock.conformance.suite.capture import GraphDevice
from chipdock.conformance.suite.device import pattern
from chipdock.conformance.suite.gate import queue_call
from chipdock.conformance.suite.node import KernelBench
from chipdock.conformance.suite.variants import named, sizes
from chipdock.conformance.target import Target

_GRAPH = "slot:graph.begin_capture"
_SLOTS = ("graph.begin_capture", "graph.end_capture", "graph.instantiate", "graph.launch")
_SIZE = 3001


@case(
    "L1.graph.capture",
    duties=("GRA-1", "GRA-5"),
    needs=_GRAPH,
    entry_points=_SLOTS,
    tolerance="E",
    variants=[
        Variant(name="copy"),
        Variant(name="fill", needs="slot:memory.fill"),
        Variant(name="copy_2d", needs="slot:memory.copy_2d"),
        Variant(name="kernel", needs="slot:kernel.launch"),
        Variant(name="host_function", needs="slot:stream.host_function"),
    ],
)
def test_capture_does_no_work(target: Target, variant: Variant) -> None:
    """What is queued while a stream is captured runs at the launch, not before."""
    with GraphDevice(target) as device:
        stream, memory = device.stream(), device.alloc(4096)
        data, seen = pattern(4096, seed=40), list[int]()
        device.write(memory, bytes(4096))
        instance = None
        expected = data
        device.begin(stream)
        if variant.name == "copy":
            device.write(memory, data, stream=stream)
        elif variant.name == "fill":
            expected = b"\x5a" * 4096
            assert device.fill(memory, b"\x5a", 4096, stream=stream) == 0
        elif variant.name == "copy_2d":
            desc = device.new(
                "chipdock_copy_2d_desc", source=device.place(host=device.block("char[]", data)),
                target=device.place(memory), row_bytes=64, rows=64, source_pitch=64,
                target_pitch=64, stream=stream,
            )  # fmt: skip
            device.ok("memory.copy_2d", device.device, desc)
        elif variant.name == "kernel":
            bench = KernelBench(device)
            if not bench.kernel.flags & 1:
                raise NotSupported("a kernel that is CAPTURABLE")
            instance = bench.create()
            device.ok(
                "kernel.launch",
                instance,
                bench.with_workspace(instance, bench.launch(memory, stream)),
            )
            expected = bench.expected() + bytes(4096 - 4 * bench.length)
        else:
            expected = bytes(4096)
            queue_call(device, stream, seen.append)
        exec_ = device.finish(stream)
        check_bytes(device.read(memory, 4096), bytes(4096), "before the launch")
        assert not seen
        device.launch(exec_, stream)
        device.sync(stream)
        check_bytes(device.read(memory, 4096), expected, "after the launch")
        assert variant.name != "host_function" or seen == [0]
        if instance is not None:
            device.drop(exec_)
            device.ok("kernel.destroy", instance)


@case(
    "L1.graph.replay",
    duties=("GRA-5", "GRA-8"),
    needs=_GRAPH,
    entry_points=_SLOTS,
    tolerance="E",
    variants=[
        Variant(name=f"{where}_n{count}", where=where, count=count)
        for where in ("inline", "stream")
        for count in (1, 3, 20)
    ],
)
def test_replay(target: Target, variant: Variant) -> None:
    """Each launch does the work anew, and reads the host memory of a copy anew."""
    with GraphDevice(target) as device:
        stream, memory = device.stream(), device.alloc(_SIZE)
        host = device.block("char[]", _SIZE)
        device.begin(stream)
        assert device.copy(device.place(host=host), device.place(memory), _SIZE, stream, 5) == 0
        exec_ = device.finish(stream)
        for i in range(variant.count):
            data = pattern(_SIZE, seed=i)
            device.ffi.memmove(host, data, _SIZE)
            device.launch(exec_, stream if variant.where == "stream" else None)
            if variant.where == "stream":
                device.sync(stream)
            check_bytes(device.read(memory, _SIZE), data, f"launch {i}")


@case(
    "L1.graph.order",
    duties=("GRA-1", "GRA-8", "STR-1"),
    needs=_GRAPH,
    entry_points=_SLOTS,
    tolerance="E",
    variants=named("inside between_work"),
)
def test_order(target: Target, variant: Variant) -> None:
    """Captured work keeps its order, and a launch its place among the stream's other work."""
    with GraphDevice(target) as device:
        stream, memory, copy = device.stream(), device.alloc(_SIZE), device.alloc(_SIZE)
        device.begin(stream)
        for i in range(10):
            device.write(memory, pattern(_SIZE, seed=i), stream=stream)
        device.move(memory, copy, _SIZE, stream=stream)
        exec_ = device.finish(stream)
        if variant.name == "inside":
            device.launch(exec_, stream)
            device.sync(stream)
            check_bytes(device.read(copy, _SIZE), pattern(_SIZE, seed=9), "the last copy")
            return
        device.write(copy, pattern(_SIZE, seed=50), stream=stream)
        device.launch(exec_, stream)
        host = device.read_later(copy, _SIZE, stream)
        device.write(copy, pattern(_SIZE, seed=51), stream=stream)
        device.sync(stream)
        check_bytes(bytes(device.ffi.buffer(host, _SIZE)), pattern(_SIZE, seed=9), "behind it")
        check_bytes(device.read(copy, _SIZE), pattern(_SIZE, seed=51), "what came later")


@case(
    "L1.graph.state",
    duties=("GRA-3", "BASE-8"),
    needs="slot:graph.capture_state",
    entry_points=("graph.capture_state",),
    variants=named("none active ended doomed forked"),
)
def test_capture_state(target: Target, variant: Variant) -> None:
    """capture_state tells none, active and doomed, also of a forked stream."""
    with GraphDevice(target) as device:
        stream, other = device.stream(), device.stream()
        asked, due, doomed = stream, 0, False
        if variant.name != "none":
            device.begin(stream)
            due = 1
        if variant.name == "ended":
            device.end(stream)
            due = 0
        elif variant.name == "doomed":
            device.refuse("stream.sync", "FAILED_PRECONDITION", stream, 0)
            due, doomed = 2, True
        elif variant.name == "forked":
            device.join(stream, other)
            asked = other
        out = device.block("int32_t*", -7)
        device.ok("graph.capture_state", asked, out)
        assert out[0] == due
        if doomed:
            device.refuse_end(stream)
        elif due:
            if variant.name == "forked":
                device.join(other, stream)
            device.end(stream)


@case(
    "L1.graph.info",
    duties=("BASE-5", "GRA-2"),
    needs="slot:graph.info",
    entry_points=("graph.info",),
    variants=named("copies fork"),
)
def test_info(target: Target, variant: Variant) -> None:
    """Info counts captured enqueues and streams."""
    with GraphDevice(target) as device:
        stream, other, memory = device.stream(), device.stream(), device.alloc(64)
        device.begin(stream)
        for _ in range(3):
            device.write(memory, bytes(64), stream=stream)
        if variant.name == "fork":
            device.join(stream, other)
            device.write(memory, bytes(64), stream=other)
            device.join(other, stream)
        graph = device.end(stream)
        out = device.new("chipdock_graph_info")
        device.ok("graph.info", graph, out)
        if variant.name == "copies":
            assert (out.node_count, out.stream_count) == (3, 1)
        else:
            # Events between the streams may count as nodes or not.
            assert out.node_count >= 4
            assert out.stream_count == 2


@case(
    "L1.graph.host_function",
    duties=("GRA-4",),
    entry_points=_SLOTS,
    needs=_GRAPH + " and slot:stream.host_function",
    variants=sizes(1, 5),
)
def test_host_function(target: Target, variant: Variant) -> None:
    """A captured host function runs once per launch, in its place in the order."""
    with GraphDevice(target) as device:
        stream, memory, seen = device.stream(), device.alloc(64), []
        host = device.block("char[]", 64)
        device.begin(stream)
        device.write(memory, b"h" * 64, stream=stream)
        assert device.copy(device.place(memory), device.place(host=host), 64, stream) == 0
        queue_call(
            device, stream, lambda state: seen.append((state, bytes(device.ffi.buffer(host, 1))))
        )
        exec_ = device.finish(stream)
        for _ in range(variant.size):
            device.ffi.memmove(host, bytes(64), 64)
            device.launch(exec_, stream)
            device.sync(stream)
        assert seen == [(0, b"h")] * variant.size


@case(
    "L1.graph.lifetime",
    duties=("GRA-11", "GRA-6"),
    needs=_GRAPH,
    entry_points=_SLOTS,
    tolerance="E",
    variants=named("graph_first two_execs exec_first"),
)
def test_exec_stands_alone(target: Target, variant: Variant) -> None:
    """An exec works after its graph is gone, and beside other execs of it."""
    with GraphDevice(target) as device:
        stream, memory = device.stream(), device.alloc(_SIZE)
        device.begin(stream)
        device.write(memory, pattern(_SIZE, seed=42), stream=stream)
        graph = device.end(stream)
        first, second = device.ready(graph), device.ready(graph)
        if variant.name == "graph_first":
            device.drop(graph)
        elif variant.name == "exec_first":
            device.drop(first)
            first = second
        device.launch(first, stream)
        device.launch(second, stream)
        device.sync(stream)
        check_bytes(device.read(memory, _SIZE), pattern(_SIZE, seed=42), "the copy")


@case(
    "L1.graph.in_flight",
    duties=("GRA-6", "GRA-8"),
    entry_points=("graph.destroy_exec",),
    needs=_GRAPH + " and slot:stream.host_function",
    tolerance="E",
)
def test_destroy_in_flight(target: Target, variant: object) -> None:
    """destroy_exec lets a launch in flight end first."""
    with GraphDevice(target) as device:
        stream, memory = device.stream(), device.alloc(500_003)
        device.begin(stream)
        for i in range(20):
            device.write(memory, pattern(500_003, seed=i), stream=stream)
        exec_ = device.finish(stream)
        device.launch(exec_, stream)
        device.drop(exec_)
        device.sync(stream)
        check_bytes(device.read(memory, 500_003), pattern(500_003, seed=19), "the launch's work")


@case(
    "L1.graph.many",
    duties=("GRA-6",),
    needs=_GRAPH,
    entry_points=_SLOTS,
    tolerance="E",
    variants=sizes(20),
)
def test_many_graphs(target: Target, variant: Variant) -> None:
    """Many execs live at once, each with its own work."""
    with GraphDevice(target) as device:
        stream, memory = device.stream(), device.alloc(_SIZE)
        execs = []
        for i in range(variant.size):
            device.begin(stream)
            device.write(memory, pattern(_SIZE, seed=i), stream=stream)
            execs.append(device.finish(stream))
        for i in reversed(range(variant.size)):
            device.launch(execs[i], stream)
            device.sync(stream)
            check_bytes(device.read(memory, _SIZE), pattern(_SIZE, seed=i), f"graph {i}")

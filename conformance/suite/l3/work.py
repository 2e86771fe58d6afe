# SPDX-License-Identifier: Apache-2.0
"""Small pieces of work, one for each entry point or few, that check and end what they make.

Threads run them beside each other, and the leak cases run them many times.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chipdock.conformance.suite.canary import check_bytes
from chipdock.conformance.suite.device import RawDevice, pattern
from chipdock.conformance.suite.gate import HostCall, queue_call
from chipdock.conformance.suite.node import KernelBench

__all__ = ["WORK", "needs_of"]

_SIZE = 2053


def _alloc(device: RawDevice) -> None:
    device.free(device.alloc(_SIZE))


def _write(device: RawDevice) -> None:
    memory = device.alloc(_SIZE)
    device.write(memory, pattern(_SIZE, seed=3))
    check_bytes(device.read(memory, _SIZE), pattern(_SIZE, seed=3), "the copy")
    device.free(memory)


def _move(device: RawDevice) -> None:
    source, target = device.alloc(_SIZE), device.alloc(_SIZE)
    device.write(source, pattern(_SIZE, seed=4))
    device.move(source, target, _SIZE)
    check_bytes(device.read(target, _SIZE), pattern(_SIZE, seed=4), "the copy")
    device.free(source)
    device.free(target)


def _stream(device: RawDevice) -> None:
    device.destroy(device.stream())


def _stream_copy(device: RawDevice) -> None:
    stream, memory = device.stream(), device.alloc(_SIZE)
    device.write(memory, pattern(_SIZE, seed=5), stream=stream)
    host = device.read_later(memory, _SIZE, stream)
    device.sync(stream)
    check_bytes(bytes(device.ffi.buffer(host, _SIZE)), pattern(_SIZE, seed=5), "the copy")
    device.destroy(stream)
    device.free(memory)


def _event(device: RawDevice) -> None:
    stream, event = device.stream(), device.event()
    device.ok("event.query", event)
    device.ok("event.record", event, stream)
    device.ok("event.sync", event, -1)
    device.destroy(event)
    device.destroy(stream)


def _wait_event(device: RawDevice) -> None:
    first, second, event = device.stream(), device.stream(), device.event()
    memory = device.alloc(_SIZE)
    device.write(memory, pattern(_SIZE, seed=6), stream=first)
    device.ok("event.record", event, first)
    device.ok("stream.wait_event", second, event)
    device.destroy(event)
    host = device.read_later(memory, _SIZE, second)
    device.sync(second)
    check_bytes(bytes(device.ffi.buffer(host, _SIZE)), pattern(_SIZE, seed=6), "the copy")
    device.destroy(first)
    device.destroy(second)
    device.free(memory)


def _host_function(device: RawDevice) -> None:
    stream, call = device.stream(), HostCall()
    queue_call(device, stream, call)
    device.sync(stream)
    assert call.states == [0]
    device.destroy(stream)


def _fill(device: RawDevice) -> None:
    memory = device.alloc(_SIZE)
    assert device.fill(memory, b"\x3c", _SIZE) == 0, device.message
    check_bytes(device.read(memory, _SIZE), b"\x3c" * _SIZE, "the fill")
    device.free(memory)


def _copy_2d(device: RawDevice) -> None:
    memory = device.alloc(1024)
    desc = device.new(
        "chipdock_copy_2d_desc", source=device.place(host=device.block("char[]", pattern(1024))),
        target=device.place(memory), row_bytes=32, rows=32, source_pitch=32, target_pitch=32,
    )  # fmt: skip
    device.ok("memory.copy_2d", device.device, desc)
    check_bytes(device.read(memory, 1024), pattern(1024), "the rectangle")
    device.free(memory)


def _pinned(device: RawDevice) -> None:
    out = device.block("void**")
    device.ok("memory.host_alloc", device.device, _SIZE, out)
    device.ffi.buffer(out[0], _SIZE)[:] = pattern(_SIZE, seed=7)
    device.ok("memory.host_free", device.device, out[0])


def _async(device: RawDevice) -> None:
    stream, out = device.stream(), device.block("chipdock_memory**")
    desc = device.new("chipdock_alloc_desc", size=_SIZE, stream=stream)
    device.ok("memory.alloc_async", device.device, desc, out)
    device.write(out[0], pattern(_SIZE, seed=8), stream=stream)
    host = device.read_later(out[0], _SIZE, stream)
    device.ok("memory.free_async", device.device, out[0], stream)
    device.sync(stream)
    check_bytes(bytes(device.ffi.buffer(host, _SIZE)), pattern(_SIZE, seed=8), "the copy")
    device.destroy(stream)


def _answer(slot: str, struct: str) -> Callable[[RawDevice], None]:
    def ask(device: RawDevice) -> None:
        device.ok(slot, device.device, device.new(struct))

    return ask


def _info(device: RawDevice) -> None:
    assert device.info().heap_count >= 1


def _open(device: RawDevice) -> None:
    out = device.block("chipdock_device**")
    device.ok(
        "device.open",
        device.handle,
        device.new("chipdock_device_open_desc", index=device.index),
        out,
    )
    device.ok("device.close", out[0])


def _kernel(device: RawDevice) -> None:
    bench = KernelBench(device, 100)
    instance, output = bench.create(), device.alloc(400)
    launch = bench.with_workspace(instance, bench.launch(output))
    device.ok("kernel.launch", instance, launch)
    check_bytes(device.read(output, 400), bench.expected(), "the output")
    device.ok("kernel.destroy", instance)


def _graph(device: RawDevice) -> None:
    stream, memory = device.stream(), device.alloc(_SIZE)
    graph, exec_ = device.block("chipdock_graph**"), device.block("chipdock_graph_exec**")
    device.ok("graph.begin_capture", stream, device.new("chipdock_capture_desc"))
    device.write(memory, pattern(_SIZE, seed=9), stream=stream)
    device.ok("graph.end_capture", stream, graph)
    desc = device.new("chipdock_instantiate_desc")
    device.ok("graph.instantiate", graph[0], desc, exec_)
    device.ok("graph.destroy_graph", graph[0])
    launch = device.new("chipdock_graph_launch_desc", stream=stream)
    device.ok("graph.launch", exec_[0], launch)
    device.sync(stream)
    check_bytes(device.read(memory, _SIZE), pattern(_SIZE, seed=9), "the launch")
    device.ok("graph.destroy_exec", exec_[0])
    device.destroy(stream)


def _abort(device: RawDevice) -> None:
    stream = device.stream()
    device.ok("stream.abort", stream)
    device.refuse("stream.sync", "ABORTED", stream, -1)
    device.destroy(stream)


def _refused(device: RawDevice) -> None:
    out = device.block("chipdock_memory**")
    for size, status in ((0, "INVALID_ARGUMENT"), (2**62, "OUT_OF_MEMORY")):
        desc = device.new("chipdock_alloc_desc", size=size)
        device.refuse("memory.alloc", status, device.device, desc, out)


def _trim(device: RawDevice) -> None:
    device.ok("memory.trim", device.device)


def _address(device: RawDevice) -> None:
    memory, out = device.alloc(64), device.block("void**")
    device.ok("memory.address", device.device, memory, out)
    device.free(memory)


WORK: dict[str, tuple[Callable[[RawDevice], Any], str]] = {
    "alloc": (_alloc, ""),
    "write": (_write, ""),
    "move": (_move, ""),
    "info": (_info, ""),
    "open": (_open, ""),
    "refused": (_refused, ""),
    "stream": (_stream, "slot:stream.create"),
    "stream_copy": (_stream_copy, "slot:stream.create"),
    "event": (_event, "slot:event.create"),
    "wait_event": (_wait_event, "slot:event.create"),
    "host_function": (_host_function, "slot:stream.host_function"),
    "abort": (_abort, "slot:stream.abort"),
    "fill": (_fill, "slot:memory.fill"),
    "copy_2d": (_copy_2d, "slot:memory.copy_2d"),
    "pinned": (_pinned, "slot:memory.host_alloc"),
    "async": (_async, "slot:memory.alloc_async"),
    "trim": (_trim, "slot:memory.trim"),
    "address": (_address, "slot:memory.address and flag:ADDRESSABLE"),
    "memory_info": (_answer("memory.info", "chipdock_memory_info"), "slot:memory.info"),
    "stats": (_answer("device.stats", "chipdock_device_stats"), "slot:device.stats"),
    "clock": (_answer("profiler.clock", "chipdock_clock_sample"), "slot:profiler.clock"),
    "kernel": (_kernel, "slot:kernel.launch"),
    "graph": (_graph, "slot:graph.begin_capture"),
}
"""Work by name, and what it needs."""


def needs_of(*names: str) -> str:
    """Return what all of these pieces of work need."""
    terms = [part for name in names for part in WORK[name][1].split(" and ") if part]
    return " and ".join(dict.fromkeys(terms))

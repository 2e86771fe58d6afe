# SPDX-License-Identifier: Apache-2.0
"""Devices that are lost, by the fault layer or by the plugin's hooks, and cancelled work."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

import chipdock
from chipdock._cabi import RawError
from chipdock.conformance.case import NotSupported, Variant, case
from chipdock.conformance.suite.canary import check_bytes
from chipdock.conformance.suite.device import RawDevice, pattern
from chipdock.conformance.suite.gate import Gate, HostCall, queue_call
from chipdock.conformance.suite.layered import fresh_device
from chipdock.conformance.suite.models import chain
from chipdock.conformance.suite.raw import STATUS, status_name
from chipdock.conformance.suite.threads import run_together
from chipdock.conformance.suite.variants import named, sizes
from chipdock.conformance.target import Target

_HOOKS = b"ai.chipdock.faults"


def _copy(device: chipdock.Device) -> None:
    source = chipdock.array(np.arange(100), device)
    target, stream = chipdock.array(np.zeros(100, np.int64), device), chipdock.Stream(device)
    event = chipdock.Event(device)
    stream.copy(source, target)
    event.record(stream)
    event.sync()
    stream.sync()


def _launch(device: chipdock.Device) -> None:
    chipdock.load(chain(2), device)(np.ones(10, np.float32))


_LOSSES = (
    ("memory_alloc", "memory.alloc", ""), ("memory_copy", "memory.copy", ""),
    ("stream_create", "stream.create", "slot:stream.create"),
    ("stream_sync", "stream.sync", "slot:stream.sync"),
    ("event_record", "event.record", "slot:event.record"),
    ("event_sync", "event.sync", "slot:event.sync"),
    ("kernel_launch", "kernel.launch", "op:Neg:f32"),
    ("kernel_create", "kernel.create", "op:Neg:f32"),
)  # fmt: skip


@case(
    "L3.lost.slot",
    duties=("DEV-5", "DEV-7"),
    budget_ms=500,
    mustpass=True,
    variants=[
        Variant(name=name, slot=slot, needs=needs, entry_points=(slot, "device.close"))
        for name, slot, needs in _LOSSES
    ],
)
def test_lost_in_a_slot(target: Target, variant: Variant) -> None:
    """A device lost in a slot stays lost, closes, and opens anew; other openings go on."""
    work: Callable[[chipdock.Device], None] = (
        _launch if variant.slot.startswith("kernel") else _copy
    )
    with fresh_device(target, f"fault={variant.slot}:1:DEVICE_LOST") as device:
        codes = []
        for _ in range(3):
            try:
                work(device)
            except chipdock.ChipdockError as error:
                codes.append(error.code)
            else:
                codes.append("OK")
        assert codes == ["DEVICE_LOST"] * 3
        again = chipdock.Device.open(device.plugin, device.index)
        work(again)
        del again
    with fresh_device(target) as device:
        work(device)


def _hook(device: RawDevice, name: str, *arguments: Any) -> None:
    """Call a function of the vendor's table of faults.

    The table "ai.chipdock.faults" 0.1 is optional: chipdock_table_header, then
    inject_device_lost(device, error) and inject_oom_after(device, count, error).

    Raises:
        NotSupported: The plugin has no such table or no such function.
    """
    ffi, out = device.ffi, device.block("void const**")
    error = device.new("chipdock_error")
    label = device.block("char[]", _HOOKS)
    status = device.handle.get_table(device.handle, label, 1, out, error)
    if status != 0 or out[0] == ffi.NULL:
        raise NotSupported(f"table:{_HOOKS.decode()}")
    header = ffi.cast("chipdock_table_header*", out[0])
    index = ("inject_device_lost", "inject_oom_after").index(name)
    offset = ffi.sizeof("chipdock_table_header") + 8 * index
    if header.struct_size < offset + 8:
        raise NotSupported(name)
    address = ffi.cast("void**", ffi.cast("char*", out[0]) + offset)[0]
    if address == ffi.NULL:
        raise NotSupported(name)
    kinds = ("chipdock_device*, chipdock_error*", "chipdock_device*, uint64_t, chipdock_error*")
    function = ffi.cast(f"int32_t(*)({kinds[index]})", address)
    status = function(device.device, *arguments, error)
    if status != 0:
        raise RawError(name, status, device.text(error.text))


@case(
    "L3.lost.hook",
    duties=("DEV-5", "DEV-7", "STR-3"),
    budget_ms=500,
    entry_points=("device.close",),
    variants=named("alloc copy stream health close"),
)
def test_lost_by_the_plugins_hook(target: Target, variant: Variant) -> None:
    """After a real loss every call is DEVICE_LOST, handles end, and close works."""
    with RawDevice(target) as device:
        memory = device.alloc(4096)
        stream = device.stream() if device.has("stream.create") else None
        _hook(device, "inject_device_lost")
        if variant.name == "alloc":
            desc = device.new("chipdock_alloc_desc", size=64)
            out = device.block("chipdock_memory**")
            device.refuse("memory.alloc", "DEVICE_LOST", device.device, desc, out)
        elif variant.name == "copy":
            place = device.place(host=device.block("char[]", 64))
            assert status_name(device.copy(place, device.place(memory), 64)) == "DEVICE_LOST"
        elif variant.name == "stream" and stream is not None:
            device.refuse("stream.sync", "DEVICE_LOST", stream, -1)
        elif variant.name == "health" and device.has("device.health"):
            out = device.new("chipdock_health")
            device.ok("device.health", device.device, out)
            assert out.state == 2


@case(
    "L3.lost.oom_hook",
    duties=("MEM-9",),
    budget_ms=500,
    entry_points=("memory.alloc",),
    tolerance="E",
    variants=sizes(0, 1, 3),
)
def test_out_of_memory_by_the_plugins_hook(target: Target, variant: Variant) -> None:
    """A real exhaustion after n allocations is OUT_OF_MEMORY and leaves what is live as it was."""
    with RawDevice(target) as device:
        _hook(device, "inject_oom_after", variant.size)
        made = []
        for i in range(variant.size):
            made.append(device.alloc(1001))
            device.write(made[-1], pattern(1001, seed=i))
        desc, out = device.new("chipdock_alloc_desc", size=64), device.block("chipdock_memory**")
        device.refuse("memory.alloc", "OUT_OF_MEMORY", device.device, desc, out)
        for i, memory in enumerate(made):
            check_bytes(device.read(memory, 1001), pattern(1001, seed=i), f"allocation {i}")


_CANCEL = "slot:stream.abort and slot:stream.host_function"


@case(
    "L3.cancel.queue",
    duties=("STR-3", "STR-7"),
    needs=_CANCEL,
    budget_ms=500,
    entry_points=("stream.abort",),
    variants=sizes(1, 10, 300),
)
def test_cancel_a_long_queue(target: Target, variant: Variant) -> None:
    """Abort ends a queue of any length: each host function runs once and is told ABORTED."""
    with RawDevice(target) as device:
        stream, calls = device.stream(), [HostCall() for _ in range(variant.size)]
        gate = Gate(device, stream)
        for call in calls:
            queue_call(device, stream, call)
        held = gate.held
        device.ok("stream.abort", stream)
        gate.open()
        device.refuse("stream.sync", "ABORTED", stream, -1)
        assert [len(call.states) for call in calls] == [1] * variant.size
        if held:
            assert {call.states[0] for call in calls} == {STATUS["ABORTED"]}


@case(
    "L3.cancel.waiters",
    duties=("STR-6", "STR-3"),
    needs=_CANCEL,
    budget_ms=500,
    entry_points=("stream.abort",),
    variants=sizes(1, 6),
)
def test_cancel_wakes_waiters(target: Target, variant: Variant) -> None:
    """Abort wakes every thread that waits for the stream."""
    with RawDevice(target) as device:
        stream, woken = device.stream(), []
        gate = Gate(device, stream)

        def wait() -> None:
            woken.append(device.lane().call("stream.sync", stream, -1))

        def abort() -> None:
            device.lane().ok("stream.abort", stream)
            gate.open()

        run_together([*[wait] * variant.size, abort])
        assert len(woken) == variant.size
        assert set(woken) <= {STATUS["ABORTED"], STATUS["OK"]}


@case(
    "L3.cancel.from_elsewhere",
    duties=("STR-6", "STR-7"),
    needs=_CANCEL,
    budget_ms=500,
    entry_points=("stream.abort",),
    variants=named("other_stream own_function capture"),
)
def test_cancel_from_elsewhere(target: Target, variant: Variant) -> None:
    """Abort is called from host functions of other streams, of its own, and in a capture."""
    if variant.name == "capture":
        target.require("slot:graph.begin_capture")
    with RawDevice(target) as device:
        stream, other = device.stream(), device.stream()
        if variant.name == "capture":
            device.ok("graph.begin_capture", stream, device.new("chipdock_capture_desc"))
            device.ok("stream.abort", stream)
        else:
            caller = other if variant.name == "other_stream" else stream
            queue_call(device, caller, lambda _: device.lane().call("stream.abort", stream))
            device.call("stream.sync", caller, -1)
            device.refuse("stream.sync", "ABORTED", stream, -1)
        memory = device.alloc(64)
        device.write(memory, b"w" * 64, stream=other)
        device.sync(other)
        assert device.read(memory, 64) == b"w" * 64


@case(
    "L3.cancel.many",
    duties=("STR-3", "STR-5"),
    needs=_CANCEL,
    budget_ms=500,
    entry_points=("stream.abort", "stream.destroy"),
    variants=sizes(8, 32),
)
def test_cancel_many(target: Target, variant: Variant) -> None:
    """Streams that are aborted and destroyed in turn leave the others at work."""
    with RawDevice(target) as device:
        streams = [device.stream() for _ in range(variant.size)]
        memories = [device.alloc(4099) for _ in streams]
        for i, (stream, memory) in enumerate(zip(streams, memories, strict=True)):
            device.write(memory, pattern(4099, seed=i), stream=stream)
        for stream in streams[::2]:
            device.ok("stream.abort", stream)
            device.destroy(stream)
        for i, stream in list(enumerate(streams))[1::2]:
            device.sync(stream)
            check_bytes(device.read(memories[i], 4099), pattern(4099, seed=i), f"stream {i}")


@case(
    "L3.cancel.model",
    duties=("STR-3", "KRN-3"),
    needs="op:Neg:f32",
    budget_ms=1000,
    entry_points=("kernel.launch",),
    variants=named("stream_aborted other_thread"),
)
def test_cancel_beside_a_model(target: Target, variant: Variant) -> None:
    """A stream aborted beside runs of a model harms no run on another stream."""
    with fresh_device(target) as device:
        model, x, wrong = chipdock.load(chain(8), device), np.arange(5000, dtype=np.float32), []
        stop = threading.Event()

        def run() -> None:
            stream = chipdock.Stream(device)
            for _ in range(20):
                got = model.run({"x": x}, stream=stream)["y"].copy_to_numpy()
                if not np.array_equal(got, x):
                    wrong.append("a run came out wrong")
            stop.set()

        def abort() -> None:
            while not stop.is_set():
                stream = chipdock.Stream(device)
                try:
                    stream.abort()
                except chipdock.errors.UnsupportedError:
                    return

        run_together([run, abort] if variant.name == "stream_aborted" else [run, run, abort])
        assert not wrong

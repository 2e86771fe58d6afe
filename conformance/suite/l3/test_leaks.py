# SPDX-License-Identifier: Apache-2.0
"""Nothing stays behind: handles, device bytes, host memory, open files, threads."""

from __future__ import annotations

import gc
from collections.abc import Callable

import numpy as np

import chipdock
from chipdock.conformance.case import Variant, case
from chipdock.conformance.suite.device import RawDevice
from chipdock.conformance.suite.footprint import Footprint, check_no_growth
from chipdock.conformance.suite.l3.work import WORK
from chipdock.conformance.suite.layered import fresh_device
from chipdock.conformance.suite.models import chain, mlp
from chipdock.conformance.suite.source import BROKEN, SourceDevice
from chipdock.conformance.suite.variants import named
from chipdock.conformance.target import Target

# Work that makes nothing can leave nothing.
_MAKES = [name for name in WORK if name not in {"info", "memory_info", "stats", "clock"}]
_DUTIES = {"stream": "STR-5", "event": "EVT-3", "kernel": "KRN-5", "graph": "GRA-11"}


def _live(device: RawDevice) -> Callable[[], object]:
    """What the device counts as live, if it counts."""

    def count() -> object:
        if not device.has("device.stats"):
            return None
        out = device.plugin.new("chipdock_device_stats")
        device.ok("device.stats", device.device, out)
        return out.allocation_count, out.allocated_bytes

    return count


@case(
    "L3.leaks.slot",
    duties=("MEM-2", "BASE-8"),
    budget_ms=1000,
    variants=[
        Variant(
            name=name, needs=WORK[name][1], duties=("MEM-2", "BASE-8", _DUTIES.get(name, "MEM-1"))
        )
        for name in _MAKES
    ],
)
def test_work_leaves_nothing(target: Target, variant: Variant) -> None:
    """What is made and ended 250 times leaves no handle, byte, file or thread."""
    with RawDevice(target) as device:

        def work() -> None:
            lane = device.lane()
            WORK[variant.name][0](lane)
            lane.close()

        check_no_growth(work, _live(device))


@case(
    "L3.leaks.instance",
    duties=("PLG-6", "DEV-5"),
    budget_ms=2000,
    entry_points=("device.open", "device.close"),
    variants=named("query open stream write kernel"),
)
def test_instances_leave_nothing(target: Target, variant: Variant) -> None:
    """Instances that are started, used and shut down leave no thread, file or memory."""
    name = variant.name
    if name in WORK:
        target.require(WORK[name][1])

    plugin = target.raw(start=False)

    def work() -> None:
        plugin.start()
        if name != "query":
            with RawDevice(target, plugin) as device:
                if name in WORK:
                    WORK[name][0](device)
        plugin.shutdown()

    check_no_growth(work, measured=50)


@case(
    "L3.leaks.compile",
    duties=("CMP-3", "CMP-5"),
    needs="slot:compile.compile_source",
    budget_ms=15000,
    tier="nightly",
    entry_points=("compile.compile_source",),
    variants=named("module broken"),
)
def test_compiling_leaves_nothing(target: Target, variant: Variant) -> None:
    """Modules that are compiled and ended, and text that does not compile, leave nothing."""
    with SourceDevice(target) as device:
        text = device.text_of_a_dialect()

        def work() -> None:
            if variant.name == "module":
                device.ok("compile.destroy_module", device.compile(text))
            else:
                desc = device.source(text, body=BROKEN)
                out = device.block("chipdock_module**")
                device.refuse(
                    "compile.compile_source", "INVALID_ARGUMENT", device.device, desc, out
                )
            device.kept.clear()

        check_no_growth(work, _live(device), measured=8)


def _runtime_counts(device: chipdock.Device) -> Callable[[], object]:
    def count() -> object:
        gc.collect()
        stats = device.memory_stats()
        return stats["used_bytes"], stats["pending_bytes"], stats["reserved_bytes"]

    return count


def _array(device: chipdock.Device) -> None:
    chipdock.array(np.arange(1000, dtype=np.int32), device).copy_to_numpy()


def _view(device: chipdock.Device) -> None:
    array = chipdock.array(np.arange(1000, dtype=np.int32), device)
    array[10:20].contiguous()


def _stream(device: chipdock.Device) -> None:
    stream = chipdock.Stream(device)
    source = chipdock.array(np.arange(1000, dtype=np.int32), device)
    stream.copy(source, chipdock.empty((1000,), np.int32, device))
    stream.host_function(lambda _: None)
    stream.sync()


def _event(device: chipdock.Device) -> None:
    stream, event = chipdock.Stream(device), chipdock.Event(device, timing=True)
    event.record(stream)
    event.sync()
    stream.wait(event)
    stream.sync()


def _graph(device: chipdock.Device) -> None:
    stream = chipdock.Stream(device)
    source = chipdock.array(np.arange(1000, dtype=np.int32), device)
    target = chipdock.empty((1000,), np.int32, device)
    stream.begin_capture()
    stream.copy(source, target)
    graph = stream.end_capture()
    graph.launch(stream)
    stream.sync()


def _out_of_memory(device: chipdock.Device) -> None:
    try:
        chipdock.empty((min(2 * device.memory_info()[1], 2**58),), np.uint8, device)
    except chipdock.errors.OutOfMemoryError:
        return
    raise AssertionError("twice the memory of the device was allocated")


def _run_op(device: chipdock.Device) -> None:
    x = chipdock.array(np.ones(100, np.float32), device)
    chipdock.run_op("Add", x, x, device=device).copy_to_numpy()


def _load(device: chipdock.Device) -> None:
    chipdock.load(mlp(), device)(np.ones((2, 8), np.float32))


_RUNTIME: dict[str, tuple[Callable[[chipdock.Device], None], str]] = {
    "array": (_array, ""), "view": (_view, ""), "stream": (_stream, ""), "event": (_event, ""),
    "graph": (_graph, ""), "out_of_memory": (_out_of_memory, ""),
    "run_op": (_run_op, "op:Add:f32"),
    "load": (_load, "op:MatMul:f32 and op:Add:f32 and op:Relu:f32 and op:Softmax:f32"),
}  # fmt: skip


@case(
    "L3.leaks.runtime",
    duties=("MEM-2",),
    budget_ms=2000,
    variants=[Variant(name=name, needs=needs) for name, (_, needs) in _RUNTIME.items()],
)
def test_runtime_leaves_nothing(target: Target, variant: Variant) -> None:
    """The same through the host runtime: what is dropped is given back."""
    with fresh_device(target) as device:
        work = _RUNTIME[variant.name][0]
        measured = 50 if variant.name == "load" else 200
        check_no_growth(lambda: work(device), _runtime_counts(device), measured=measured)


@case(
    "L3.leaks.model",
    duties=("MEM-2", "KRN-5"),
    budget_ms=1000,
    needs="op:Neg:f32",
    entry_points=("kernel.launch",),
    variants=named("same_shape many_shapes"),
)
def test_runs_leave_nothing(target: Target, variant: Variant) -> None:
    """Runs of one loaded model leave nothing, also when each has a shape of its own."""
    with fresh_device(target) as device:
        model, count = chipdock.load(chain(4), device), iter(range(10**9))

        def work() -> None:
            length = 100 if variant.name == "same_shape" else 100 + next(count) % 60
            model(np.ones(length, np.float32))

        def used() -> object:
            gc.collect()
            return device.memory_stats()["used_bytes"] if variant.name == "same_shape" else None

        check_no_growth(work, used)


@case(
    "L3.leaks.device",
    duties=("DEV-5", "MEM-2"),
    budget_ms=2000,
    entry_points=("device.open", "device.close"),
)
def test_devices_leave_nothing(target: Target, variant: object) -> None:
    """Devices that are opened and closed through the runtime leave nothing."""
    with fresh_device(target) as opened:
        plugin, index = opened.plugin, opened.index
        check_no_growth(lambda: _array(chipdock.Device.open(plugin, index)), measured=50)


@case("L3.leaks.after_all", duties=("PLG-6",), budget_ms=1000, entry_points=("device.close",))
def test_threads_and_files_end_with_the_instance(target: Target, variant: object) -> None:
    """After shutdown, threads and open files are as many as before the instance was started."""
    for _ in range(3):  # What a library starts once a process is started by now.
        before = Footprint.now()
        plugin = target.raw()
        with RawDevice(target, plugin) as device:
            for name, (work, needs) in WORK.items():
                if name != "open" and target.has(needs):
                    lane = device.lane()
                    work(lane)
                    lane.close()
        plugin.shutdown()
        after = Footprint.now()
    assert after.threads <= before.threads, f"{after.threads} threads, {before.threads} before"
    assert after.files <= before.files, f"{after.files} open files, {before.files} before"

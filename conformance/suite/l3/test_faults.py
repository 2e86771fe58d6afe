# SPDX-License-Identifier: Apache-2.0
"""The n-th call of a service or slot fails, for n = 1, 2, … until none is left to fail.

The error is a defined one, nothing leaks, and the same work succeeds right afterwards.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np

import chipdock
from chipdock._cabi import RawError
from chipdock.conformance.case import NotSupported, Variant, case, fail
from chipdock.conformance.suite.device import RawDevice
from chipdock.conformance.suite.l3.work import WORK
from chipdock.conformance.suite.layered import fresh_device, run_layers
from chipdock.conformance.suite.models import chain
from chipdock.conformance.suite.raw import STATUS
from chipdock.conformance.target import Target

_MOST = 60


def _array(device: chipdock.Device) -> None:
    values = np.arange(100, dtype=np.int32)
    got = chipdock.array(values, device).to(device).copy_to_numpy()
    assert np.array_equal(got, values), "the array came back wrong"


def _stream(device: chipdock.Device) -> None:
    source = chipdock.array(np.full(100, 3, np.int32), device)
    target = chipdock.array(np.zeros(100, np.int32), device)
    stream, seen = chipdock.Stream(device), list[str]()
    stream.copy(source, target)
    stream.host_function(seen.append)
    stream.sync()
    assert seen == ["OK"], f"the host function was told {seen}"
    assert (target.copy_to_numpy() == 3).all(), "the copy is wrong"


def _event(device: chipdock.Device) -> None:
    first, second = chipdock.Stream(device), chipdock.Stream(device)
    event = chipdock.Event(device)
    event.record(first)
    second.wait(event)
    second.sync()
    assert event.query()


def _graph(device: chipdock.Device) -> None:
    source = chipdock.array(np.full(100, 4, np.int32), device)
    target = chipdock.array(np.zeros(100, np.int32), device)
    stream = chipdock.Stream(device)
    stream.begin_capture()
    stream.copy(source, target)
    graph = stream.end_capture()
    graph.launch(stream)
    stream.sync()
    assert (target.copy_to_numpy() == 4).all(), "the launch is wrong"


def _model(device: chipdock.Device) -> None:
    got = chipdock.load(chain(3), device).run({"x": np.ones(10, np.float32)})["y"].copy_to_numpy()
    assert (got == -1).all(), "the model is wrong"


_SCENARIOS: dict[str, tuple[Callable[[chipdock.Device], None], str]] = {
    "array": (_array, ""), "stream": (_stream, ""), "event": (_event, ""), "graph": (_graph, ""),
    "model": (_model, "op:Neg:f32"),
}  # fmt: skip


def _used(device: chipdock.Device) -> int:
    gc.collect()
    return device.memory_stats()["used_bytes"]


def _round(target: Target, work: Callable[[chipdock.Device], None], layer: str, code: str) -> bool:
    """Do the work once with a fault; return whether it failed."""
    with fresh_device(target, layer) as device:
        failed = ""
        try:
            work(device)
        except chipdock.ChipdockError as error:
            failed = error.code
        # A queue that has failed may be seen before its cause.
        if failed not in {"", code, "FAILED_PRECONDITION"}:
            fail(f"{layer}: {failed} came of it", expected=code, got=failed)
        if failed:
            work(device)
        if _used(device) != 0:
            fail(f"{layer}: {_used(device)} bytes stay in use", metric="bytes", limit=0)
    return bool(failed)


_SLOTS = {
    "array": ("memory.alloc", "memory.copy", "memory.free", "memory.address"),
    "stream": ("memory.alloc", "memory.copy", "stream.create", "stream.sync",
               "stream.host_function", "stream.destroy"),
    "event": ("event.create", "event.record", "event.query", "event.sync", "event.destroy",
              "stream.wait_event"),
    "graph": ("graph.begin_capture", "graph.end_capture", "graph.instantiate", "graph.launch",
              "graph.destroy_graph", "graph.destroy_exec"),
    "model": ("memory.alloc", "memory.copy", "kernel.supports", "kernel.score", "kernel.create",
              "kernel.workspace_size", "kernel.launch", "kernel.prepack_size", "kernel.destroy"),
}  # fmt: skip


@case(
    "L3.faults.slot",
    duties=("BASE-8", "MEM-9"),
    budget_ms=1000,
    variants=[
        Variant(
            name=f"{scenario}_{slot.replace('.', '_')}_{code.lower()}",
            scenario=scenario,
            slot=slot,
            code=code,
            entry_points=(slot,),
            needs=" and ".join(part for part in (f"slot:{slot}", _SCENARIOS[scenario][1]) if part),
        )
        for scenario, slots in _SLOTS.items()
        for slot in slots
        for code in (
            ("OUT_OF_MEMORY", "INTERNAL")
            if slot in {"memory.alloc", "memory.copy"}
            else ("INTERNAL",)
        )
    ],
)
def test_slot_fails_once(target: Target, variant: Variant) -> None:
    """A slot fails at its n-th call: the caller hears of it or not, and all works right after."""
    quiet = 0
    for n in range(1, _MOST):
        layer = f"fault={variant.slot}:{n}:{variant.code}"
        failed = _round(target, _SCENARIOS[variant.scenario][0], layer, variant.code)
        # What ends a handle has done so, and an answer may be had elsewhere: no error comes of it.
        quiet = 0 if failed else quiet + 1
        if quiet == 3:
            break


@case(
    "L3.faults.open",
    duties=("BASE-8", "DEV-5"),
    budget_ms=500,
    mustpass=True,
    variants=[
        Variant(
            name=f"{slot}_{code}".lower(),
            slot=f"device.{slot}",
            code=code,
            entry_points=(f"device.{slot}",),
        )
        for slot in ("info", "open")
        for code in ("UNAVAILABLE", "BUSY", "OUT_OF_MEMORY")
    ],
)
def test_open_fails_once(target: Target, variant: Variant) -> None:
    """An open that fails leaves nothing open, and the next one works."""
    layers = run_layers(f"fault={variant.slot}:1:{variant.code}")
    plugin = chipdock.open_plugin(target.plugin_path, layers=layers)
    index = int(target.name.rpartition(":")[2])
    try:
        chipdock.Device.open(plugin, index)
    except chipdock.ChipdockError as error:
        code = error.code
    else:
        code = "OK"
    assert code == variant.code
    _array(chipdock.Device.open(plugin, index))
    plugin.shutdown()


@case(
    "L3.faults.host_allocate",
    duties=("PLG-8", "BASE-8", "MEM-9"),
    budget_ms=1000,
    variants=[
        Variant(name=name, scenario=name, needs=needs) for name, (_, needs) in _SCENARIOS.items()
    ],
)
def test_host_allocate_fails(target: Target, variant: Variant) -> None:
    """The host's allocate gives NULL at its n-th call: OUT_OF_MEMORY, and all works right after."""
    for n in range(1, _MOST):
        layer = f"fault=host.allocate:{n}"
        if not _round(target, _SCENARIOS[variant.scenario][0], layer, "OUT_OF_MEMORY"):
            break


class _Host:
    """allocate and release for a raw instance; the n-th allocate gives NULL."""

    def __init__(self, plugin: Any, nth: int) -> None:
        """Puts both services into the plugin's host struct, before query."""
        self.ffi, self.nth, self.calls = plugin.ffi, nth, 0
        self.live: dict[int, tuple[Any, int]] = {}
        self.wrong: list[str] = []
        host = plugin.host
        for name, function in (("allocate", self._allocate), ("release", self._release)):
            slot = self.ffi.callback(self.ffi.typeof(getattr(host, name)), function)
            setattr(self, f"_{name}_slot", slot)
            setattr(host, name, slot)

    def _allocate(self, _context: Any, size: int, alignment: int) -> Any:
        self.calls += 1
        if alignment & (alignment - 1) or not 1 <= alignment <= 4096 or size == 0:
            self.wrong.append(f"allocate of {size} bytes at {alignment}")
        if self.calls == self.nth:
            return self.ffi.NULL
        block = self.ffi.new("char[]", size + alignment)
        address = int(self.ffi.cast("uintptr_t", block))
        aligned = -(-address // alignment) * alignment
        self.live[aligned] = (block, size)
        return self.ffi.cast("void*", aligned)

    def _release(self, _context: Any, memory: Any, size: int) -> None:
        if memory == self.ffi.NULL:
            return
        found = self.live.pop(int(self.ffi.cast("uintptr_t", memory)), None)
        if found is None or found[1] != size:
            self.wrong.append(f"release of {size} bytes that were not allocated so")


def _twice(device: RawDevice, name: str) -> None:
    """Do work that may run out of memory, and again what then must succeed."""
    first, again = device.lane(), device.lane()
    try:
        WORK[name][0](first)
    except AssertionError as error:
        if "OUT_OF_MEMORY" not in str(error):
            raise
    first.close(check=False)
    WORK[name][0](again)
    again.close()


@case(
    "L3.faults.service",
    duties=("PLG-8", "BASE-8"),
    budget_ms=1000,
    variants=[
        Variant(name=name, work=name, needs=WORK[name][1])
        for name in ("alloc", "write", "open", "stream_copy", "event", "kernel", "graph", "pinned")
    ],
)
def test_service_fails(target: Target, variant: Variant) -> None:
    """The same on raw tables: a defined status, nothing of the host's left, and work goes on."""
    for n in range(1, _MOST):
        plugin = target.raw(start=False)
        host = _Host(plugin, n)
        try:
            plugin.start()
            with RawDevice(target, plugin) as device:
                _twice(device, variant.work)
        except AssertionError as error:
            # Query or open may be what failed.
            if host.calls < n or "OUT_OF_MEMORY" not in str(error):
                raise
        except RawError as error:
            if error.status != STATUS["OUT_OF_MEMORY"]:
                raise
        plugin.shutdown()
        assert not host.wrong, host.wrong
        assert not host.live, f"{len(host.live)} blocks of the host's were not released"
        if host.calls < n:
            return


@case(
    "L3.faults.no_service",
    duties=("PLG-8",),
    budget_ms=500,
    variants=[
        Variant(name=name, work=name, needs=WORK[name][1])
        for name in ("write", "stream_copy", "kernel", "graph", "abort")
    ],
)
def test_host_without_services(target: Target, variant: Variant) -> None:
    """A host that offers no service at all is served like any other."""
    plugin = target.raw(start=False)
    for name in ("log", "report"):
        setattr(plugin.host, name, plugin.ffi.NULL)
    plugin.start()
    with RawDevice(target, plugin) as device:
        WORK[variant.work][0](device)
    plugin.shutdown()


@case(
    "L3.faults.report",
    duties=("STR-3", "PLG-8"),
    budget_ms=500,
    needs="slot:stream.abort and slot:stream.host_function",
    entry_points=("stream.abort",),
)
def test_reports_name_live_things(target: Target, variant: object) -> None:
    """What the plugin reports by itself has a known code and names this device."""
    with RawDevice(target) as device:
        WORK["abort"][0](device)
        for where, _, code, text in device.plugin.reports:
            assert where in {device.device, device.null}
            assert code in STATUS.values()
            assert text


@case(
    "L3.faults.capacity",
    duties=("MEM-9", "MEM-1"),
    budget_ms=2000,
    tolerance="E",
    entry_points=("memory.alloc",),
)
def test_memory_pressure(target: Target, variant: object) -> None:
    """With a device nearly full by its own limit, work is right or OUT_OF_MEMORY, never wrong."""
    if not target.has("op:Neg:f32"):
        raise NotSupported("op:Neg:f32")
    with fresh_device(target) as device:
        model, x = chipdock.load(chain(4), device), np.arange(50_000, dtype=np.float32)
        wrong = 0
        for limit in (1, 100_000, 250_000, 400_000, 700_000, 2_000_000, 0):
            device.trim()
            device.set_memory_limit(limit)
            try:
                wrong += not np.array_equal(model.run({"x": x})["y"].copy_to_numpy(), x)
            except chipdock.errors.OutOfMemoryError:
                assert limit, "OUT_OF_MEMORY without a limit"
        assert not wrong

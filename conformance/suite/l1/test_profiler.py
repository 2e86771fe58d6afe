# SPDX-License-Identifier: Apache-2.0
"""The plugin's own profiler: records of what ran, with the device's time and the caller's ids."""

from __future__ import annotations

import itertools
import threading
from typing import Any

from chipdock.conformance.case import Variant, case
from chipdock.conformance.suite.canary import check_bytes
from chipdock.conformance.suite.capture import GraphDevice
from chipdock.conformance.suite.device import RawDevice, pattern
from chipdock.conformance.suite.gate import Gate
from chipdock.conformance.suite.node import KernelBench
from chipdock.conformance.suite.raw import STATUS, status_name
from chipdock.conformance.suite.variants import named, sizes
from chipdock.conformance.target import Target

_PROFILER = "slot:profiler.start"
_SLOTS = ("profiler.start", "profiler.flush", "profiler.stop")
_KERNEL, _COPY, _FILL, _EXECUTE, _GRAPH = 1, 2, 3, 4, 5
_DROPPED = 8


class Session:
    """A profiler session that keeps its records as plain data.

    Attributes:
        records: Dicts of the fields.
        overlaps: How often the sink ran twice at once.
    """

    def __init__(self, device: RawDevice, *, kinds: int = 0, buffer_bytes: int = 0) -> None:
        """Starts recording."""
        self.device = device
        self.records: list[dict[str, Any]] = []
        self.calls = 0
        self.overlaps = 0
        self._busy = threading.Lock()
        self.desc = device.new("chipdock_profiler_desc", kinds=kinds, buffer_bytes=buffer_bytes)
        sink = device.ffi.callback(device.ffi.typeof(self.desc.sink), self._sink)
        device.kept.append(sink)
        self.desc.sink = sink
        out = device.block("chipdock_profiler_session**")
        device.ok("profiler.start", device.device, self.desc, out)
        assert out[0] != device.null, "start returned OK and no session [BASE-8]"
        self.handle = out[0]

    def _sink(self, _context: Any, records: Any, count: int) -> None:
        if not self._busy.acquire(blocking=False):
            self.overlaps += 1
            return
        try:
            self.calls += 1
            for i in range(count):
                record = records[i]
                row = {
                    name: getattr(record, name)
                    for name in (
                        "kind",
                        "correlation_id",
                        "parent_id",
                        "start_ns",
                        "end_ns",
                        "bytes",
                    )
                }
                row["name"] = self.device.text(record.name)
                row["stream"] = int(self.device.ffi.cast("uintptr_t", record.stream))
                row["device"] = int(self.device.ffi.cast("uintptr_t", record.device))
                row["struct_size"] = record.struct_size
                self.records.append(row)
        finally:
            self._busy.release()

    def flush(self) -> list[dict[str, Any]]:
        """Deliver what there is, and return all records so far."""
        self.device.ok("profiler.flush", self.handle, -1)
        return self.records

    def stop(self) -> list[dict[str, Any]]:
        """End the session, and return all records."""
        self.device.ok("profiler.stop", self.handle)
        return self.records

    def of(self, tag: int) -> dict[str, Any]:
        """Return the record with a correlation id."""
        found = [row for row in self.records if row["correlation_id"] == tag]
        assert len(found) == 1, f"{len(found)} records carry the id {tag} [PRF-3]"
        return found[0]


def _copy(device: RawDevice, size: int, tag: int, stream: Any = None) -> None:
    device.write(device.alloc(size), pattern(size), stream=stream, tag=tag)


@case(
    "L1.profiler.record",
    duties=("PRF-1", "PRF-3", "PRF-7"),
    needs=_PROFILER,
    entry_points=_SLOTS,
    variants=[
        Variant(name=f"{what}_{where}", what=what, where=where, needs=needs)
        for what, needs in (
            ("copy", ""),
            ("fill", "slot:memory.fill"),
            ("kernel", "slot:kernel.launch"),
        )
        for where in ("inline", "stream")
    ],
)
def test_record(target: Target, variant: Variant) -> None:
    """Work leaves a record with its kind, its id, its stream and a time that runs forward."""
    if variant.where == "stream":
        target.require("slot:stream.create")
    with RawDevice(target) as device:
        stream = device.stream() if variant.where == "stream" else None
        memory, instance = device.alloc(4096), None
        bench = KernelBench(device) if variant.what == "kernel" else None
        session = Session(device)
        if variant.what == "copy":
            _copy(device, 4096, 901, stream)
        elif variant.what == "fill":
            desc = device.new(
                "chipdock_fill_desc", pattern_size=1, target=device.place(memory), size=4096,
                stream=stream or device.null, correlation_id=901,
            )  # fmt: skip
            device.ok("memory.fill", device.device, desc)
        elif bench is not None:
            instance = bench.create()
            launch = bench.launch(stream=stream, correlation_id=901)
            device.ok("kernel.launch", instance, bench.with_workspace(instance, launch))
        if stream is not None:
            device.sync(stream)
        session.flush()
        row = session.of(901)
        session.stop()
        assert row["kind"] == {"copy": _COPY, "fill": _FILL, "kernel": _KERNEL}[variant.what]
        assert row["start_ns"] <= row["end_ns"], "it ends before it starts"
        assert row["start_ns"] > 0, "a record without a time is not delivered"
        assert row["bytes"] in ({4096} if variant.what != "kernel" else {0, row["bytes"]})
        assert row["device"] == int(device.ffi.cast("uintptr_t", device.device))
        handle = 0 if stream is None else int(device.ffi.cast("uintptr_t", stream))
        assert row["stream"] == handle
        assert row["struct_size"] >= device.ffi.sizeof("chipdock_profiler_record")
        if instance is not None:
            device.ok("kernel.destroy", instance)


@case(
    "L1.profiler.order",
    duties=("PRF-2", "PRF-3"),
    needs=_PROFILER,
    entry_points=_SLOTS,
    variants=sizes(2, 50),
)
def test_order(target: Target, variant: Variant) -> None:
    """Records of work done one after another do not step back in time."""
    with RawDevice(target) as device:
        session = Session(device)
        for i in range(variant.size):
            _copy(device, 1000, 100 + i)
        session.flush()
        rows = [session.of(100 + i) for i in range(variant.size)]
        session.stop()
        for earlier, later in itertools.pairwise(rows):
            assert earlier["end_ns"] <= later["start_ns"], "work done later started earlier"


@case(
    "L1.profiler.kinds",
    duties=("BASE-10", "PRF-6"),
    needs=_PROFILER + " and slot:memory.fill",
    entry_points=_SLOTS,
    variants=named("copies fills none_wanted all"),
)
def test_kinds(target: Target, variant: Variant) -> None:
    """Only the kinds that were asked for are delivered."""
    with RawDevice(target) as device:
        wanted = {
            "copies": 1 << _COPY, "fills": 1 << _FILL, "none_wanted": 1 << _EXECUTE, "all": 0,
        }[variant.name]  # fmt: skip
        session = Session(device, kinds=wanted)
        memory = device.alloc(4096)
        device.write(memory, bytes(4096))
        assert device.fill(memory, b"\1", 4096) == 0
        kinds = {row["kind"] for row in session.stop()} - {_DROPPED}
        allowed = {k for k in range(1, 9) if wanted == 0 or wanted >> k & 1}
        assert kinds <= allowed, f"kinds {sorted(kinds - allowed)} were not asked for"
        if variant.name in {"copies", "all"}:
            assert _COPY in kinds


@case(
    "L1.profiler.flush",
    duties=("PRF-7", "DEV-8"),
    needs=_PROFILER,
    entry_points=_SLOTS,
    variants=named("flush stop flush_twice flush_ask nothing_after_stop before_start"),
)
def test_flush(target: Target, variant: Variant) -> None:
    """Flush and stop deliver the records of all work that has ended, once each, and no more."""
    with RawDevice(target) as device:
        if variant.name == "before_start":
            _copy(device, 1000, 71)
        session = Session(device)
        _copy(device, 1000, 72)
        if variant.name.startswith("flush"):
            limit = 0 if variant.name == "flush_ask" else -1
            for _ in range(2 if variant.name == "flush_twice" else 1):
                status = device.call("profiler.flush", session.handle, limit)
                assert status_name(status) == "OK" or limit == 0
            assert limit == 0 or session.of(72)
        session.stop()
        assert session.of(72)
        assert not [row for row in session.records if row["correlation_id"] == 71]
        count = len(session.records)
        _copy(device, 1000, 73)
        assert len(session.records) == count, "the sink was called after stop [PRF-7]"


@case("L1.profiler.dropped", duties=("PRF-6",), needs=_PROFILER, entry_points=_SLOTS)
def test_dropped(target: Target, variant: object) -> None:
    """What does not fit a small buffer is told by a record of kind DROPPED."""
    with RawDevice(target) as device:
        session = Session(device, buffer_bytes=1)
        memory = device.alloc(64)
        for i in range(2000):
            device.write(memory, bytes(64), tag=10_000 + i)
        rows = session.stop()
        lost = sum(row["bytes"] for row in rows if row["kind"] == _DROPPED)
        seen = sum(1 for row in rows if 10_000 <= row["correlation_id"] < 12_000)
        assert seen + lost == 2000, f"{seen} records and {lost} told as dropped, of 2000"


@case(
    "L1.profiler.sessions",
    duties=("PRF-8", "BASE-8"),
    needs=_PROFILER,
    entry_points=_SLOTS,
    variants=named("second again hundred"),
)
def test_sessions(target: Target, variant: Variant) -> None:
    """A second session works or is BUSY; after stop the next one starts."""
    with RawDevice(target) as device:
        session = Session(device)
        if variant.name == "second":
            out = device.block("chipdock_profiler_session**")
            status = device.call("profiler.start", device.device, session.desc, out)
            assert status in {STATUS["OK"], STATUS["BUSY"]}, status_name(status)
            if status == 0:
                device.ok("profiler.stop", out[0])
            else:
                assert out[0] == device.null
        session.stop()
        for _ in range({"second": 0, "again": 1, "hundred": 100}[variant.name]):
            again = Session(device)
            _copy(device, 100, 55)
            again.stop()
            assert again.of(55)


@case(
    "L1.profiler.results",
    duties=("PRF-8",),
    needs=_PROFILER + " and slot:stream.create",
    entry_points=_SLOTS,
    tolerance="E",
)
def test_no_change_of_results(target: Target, variant: object) -> None:
    """A session changes no result and no order of work."""
    with RawDevice(target) as device:
        stream, memory = device.stream(), device.alloc(5003)
        session = Session(device)
        for i in range(100):
            device.write(memory, pattern(5003, seed=i), stream=stream)
        device.sync(stream)
        session.stop()
        check_bytes(device.read(memory, 5003), pattern(5003, seed=99), "the last copy")


@case("L1.profiler.sink", duties=("PRF-4", "PRF-5"), needs=_PROFILER, entry_points=_SLOTS)
def test_sink_is_not_entered_twice(target: Target, variant: object) -> None:
    """Flushes from several threads never enter the sink twice at once."""
    with RawDevice(target) as device:
        session = Session(device)
        memory = device.alloc(64)

        def flush() -> None:
            for _ in range(30):
                device.write(memory, bytes(64))
                device.ok("profiler.flush", session.handle, -1)

        threads = [threading.Thread(target=flush) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        session.stop()
        assert session.overlaps == 0
        assert sum(row["kind"] == _COPY for row in session.records) >= 120


@case(
    "L1.profiler.held",
    duties=("PRF-7", "PRF-1"),
    entry_points=_SLOTS,
    needs=_PROFILER + " and slot:stream.host_function",
)
def test_work_in_flight_is_not_delivered(target: Target, variant: object) -> None:
    """Flush does not wait for work in flight, and its record comes once it has ended."""
    with RawDevice(target) as device:
        stream = device.stream()
        session = Session(device)
        with Gate(device, stream) as gate:
            _copy(device, 1000, 81, stream)
            early = [row for row in session.flush() if row["correlation_id"] == 81]
            assert not early or not gate.held, "a record of work that has not run"
        device.sync(stream)
        session.stop()
        assert session.of(81)


@case(
    "L1.profiler.graph",
    duties=("PRF-3", "GRA-7"),
    entry_points=_SLOTS,
    needs=_PROFILER + " and slot:graph.launch",
)
def test_graph(target: Target, variant: object) -> None:
    """Work of a graph launch has its captured id and, as parent, the id of the launch."""
    with GraphDevice(target) as device:
        stream, memory = device.stream(), device.alloc(4096)
        device.begin(stream)
        device.write(memory, bytes(4096), stream=stream, tag=31)
        exec_ = device.finish(stream)
        session = Session(device)
        device.launch(exec_, stream, tag=32)
        device.sync(stream)
        rows = session.stop()
        inner = [row for row in rows if row["correlation_id"] == 31]
        whole = [row for row in rows if row["kind"] == _GRAPH]
        assert inner or whole, "a graph launch left no record at all"
        assert all(row["parent_id"] == 32 for row in inner)
        assert all(row["correlation_id"] == 32 for row in whole)


@case(
    "L1.profiler.clock",
    duties=("PRF-2", "BASE-5"),
    needs=_PROFILER,
    entry_points=("profiler.clock",),
    variants=named("bracket forward record"),
)
def test_clock(target: Target, variant: Variant) -> None:
    """The clock reads device time between two host times, never steps back, and is the records'."""
    with RawDevice(target) as device:

        def sample() -> Any:
            made = device.new("chipdock_clock_sample")
            device.ok("profiler.clock", device.device, made)
            assert 0 < made.host_before_ns <= made.host_after_ns
            assert made.flags == 0
            return made

        first = sample()
        if variant.name == "forward":
            times = [sample().device_ns for _ in range(50)]
            assert times == sorted(times)
        elif variant.name == "record":
            session = Session(device)
            _copy(device, 1000, 91)
            session.stop()
            last, row = sample(), session.of(91)
            # The ends of the copy lie between the two samples on the device's clock.
            assert first.device_ns <= row["start_ns"] <= row["end_ns"] <= last.device_ns

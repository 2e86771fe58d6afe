# SPDX-License-Identifier: Apache-2.0
"""Which slots are there, which come together, and which a heap's flags oblige."""

from __future__ import annotations

from chipdock._cabi import RawError
from chipdock.conformance.case import Variant, case
from chipdock.conformance.suite.raw import STATUS, Raw
from chipdock.conformance.suite.variants import named
from chipdock.conformance.target import Target

_REQUIRED = (
    "device.count", "device.info", "device.open", "device.close",
    "memory.alloc", "memory.free", "memory.copy",
)  # fmt: skip
_STREAMS = (
    "stream.create stream.destroy stream.sync stream.query stream.wait_event "
    "event.create event.destroy event.record event.query event.sync"
)
_SOURCE = (
    "compile.compile_source compile.get_function compile.function_info compile.launch_function "
    "compile.destroy_module"
)
_GRAPH_DOOR = (
    "compile.claim compile.compile compile.io_info compile.workspace_size compile.execute "
    "compile.destroy"
)
# Name, duty, slots that oblige, slots that have to be there then.
_RULES = (
    ("streams_and_events", "STR-8", _STREAMS, _STREAMS),
    ("more_of_streams", "STR-8",
     "stream.host_function stream.value stream.native stream.abort", "stream.create"),
    ("more_of_events", "STR-8", "event.elapsed event.native event.export_ipc", "event.create"),
    ("alloc_async", "MEM-10",
     "memory.alloc_async memory.free_async",
     "memory.alloc_async memory.free_async stream.create"),
    ("host_alloc", "BASE-8", "memory.host_alloc memory.host_free",
     "memory.host_alloc memory.host_free"),
    ("flush", "BASE-8", "memory.flush memory.invalidate",
     "memory.flush memory.invalidate memory.address"),
    ("kernels", "KRN-3", "kernel.list kernel.supports kernel.create kernel.destroy kernel.launch",
     "kernel.list kernel.supports kernel.create kernel.destroy kernel.launch"),
    ("more_of_kernels", "KRN-12",
     "kernel.score kernel.prepack_size kernel.workspace_size kernel.layout_size", "kernel.launch"),
    ("prepack", "KRN-12", "kernel.prepack_size kernel.prepack",
     "kernel.prepack_size kernel.prepack"),
    ("capture", "GRA-12",
     "graph.begin_capture graph.end_capture graph.instantiate graph.launch graph.destroy_graph "
     "graph.destroy_exec",
     "graph.begin_capture graph.end_capture graph.instantiate graph.launch graph.destroy_graph "
     "graph.destroy_exec stream.create"),
    ("more_of_graphs", "GRA-12", "graph.capture_state graph.info graph.update",
     "graph.begin_capture"),
    ("source_door", "CMP-13", _SOURCE, _SOURCE + " compile.caps"),
    ("graph_door", "CMP-13", _GRAPH_DOOR + " compile.cancel", _GRAPH_DOOR + " compile.caps"),
    ("blobs", "CMP-13", "compile.serialize compile.load compile.check_compat",
     "compile.serialize compile.load compile.check_compat compile.compile"),
    ("collectives", "CCL-12",
     "ccl.query ccl.unique_id ccl.init ccl.enqueue ccl.error ccl.abort ccl.destroy ccl.poll "
     "ccl.split ccl.shrink",
     "ccl.query ccl.unique_id ccl.init ccl.enqueue ccl.error ccl.abort ccl.destroy"),
    ("registrations", "CCL-12", "ccl.register_memory ccl.deregister_memory",
     "ccl.register_memory ccl.deregister_memory ccl.init"),
    ("profiler", "PRF-9", "profiler.start profiler.stop profiler.flush profiler.clock",
     "profiler.start profiler.stop profiler.flush profiler.clock"),
)  # fmt: skip


def _there(raw: Raw, name: str) -> bool:
    """Whether the plugin itself has a slot; a mask of the run does not count here."""
    table, _, slot = name.partition(".")
    try:
        return raw.plugin.slot(raw.plugin.table(table), slot) is not None
    except RawError as error:
        if error.status != STATUS["UNSUPPORTED"]:
            raise
        return False


@case(
    "L0.slots.required",
    duties=("BASE-8",),
    mustpass=True,
    variants=[
        Variant(name=slot.replace(".", "_"), slot=slot, entry_points=(slot,)) for slot in _REQUIRED
    ],
)
def test_required(target: Target, variant: Variant) -> None:
    """The seven required slots are there."""
    assert _there(Raw(target), variant.slot)


@case(
    "L0.slots.together",
    variants=[
        Variant(name=name, duties=(duty,), some=some, all=all_) for name, duty, some, all_ in _RULES
    ],
)
def test_together(target: Target, variant: Variant) -> None:
    """If one slot of a group is there, so are those that it needs."""
    raw = Raw(target)
    if any(_there(raw, slot) for slot in variant.some.split()):
        absent = [slot for slot in variant.all.split() if not _there(raw, slot)]
        assert not absent, f"missing beside the rest of their group: {', '.join(absent)}"


@case("L0.slots.heap_flags", duties=("DEV-6", "BASE-11"), variants=named("address flush"))
def test_heap_flags(target: Target, variant: Variant) -> None:
    """Flags of a heap oblige the slots that make them usable."""
    raw = Raw(target)
    info = raw.info()
    for i in range(info.heap_count):
        flags = info.heaps[i].flags
        if variant.name == "address" and flags & 5:
            assert _there(raw, "memory.address"), f"heap {i} has flags {flags:#x}"
        if variant.name == "flush" and flags & 3 == 1:
            assert _there(raw, "memory.flush"), f"heap {i} is visible and not coherent"

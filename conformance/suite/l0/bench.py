# SPDX-License-Identifier: Apache-2.0
"""Valid arguments for every slot, so that a case can spoil exactly one thing of a call.

A recipe gives the arguments in the header's order without the error record. OUT stands for an
output or answer of the right type. `undo` ends what a successful call has made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chipdock.conformance.suite.device import RawDevice
from chipdock.conformance.suite.l0.signatures import Argument, signature
from chipdock.conformance.suite.node import KernelBench

__all__ = ["OUT", "RECIPES", "Bench"]

OUT = object()


class Bench(RawDevice):
    """An opened device that can make the arguments of any slot."""

    def arguments(self, slot: str) -> list[Any]:
        """Return valid arguments of a slot, outputs included.

        Raises:
            NotSupported: The device offers nothing that the call could be made with.
        """
        given = RECIPES[slot](self)
        return [
            self.output(argument) if value is OUT else value
            for argument, value in zip(signature(slot), given, strict=True)
        ]

    def output(self, argument: Argument) -> Any:
        """Return an output of zeros, or an answer struct with its size set."""
        if argument.role == "answer":
            return self.new(argument.struct)
        return self.block(argument.kind)

    def undo(self, slot: str, arguments: list[Any]) -> None:
        """End what a successful call of `slot` has made."""
        if slot in _UNDO:
            _UNDO[slot](self, arguments)

    @property
    def memory(self) -> Any:
        """An allocation of 4096 bytes."""
        return self.alloc(4096)

    @property
    def host(self) -> Any:
        """4096 bytes of host memory."""
        return self.block("char[]", 4096)

    def graph(self) -> Any:
        """A graph with one copy in it."""
        stream = self.stream()
        self.ok("graph.begin_capture", stream, self.new("chipdock_capture_desc"))
        self.write(self.memory, bytes(64), stream=stream, tag=11)
        out = self.block("chipdock_graph**")
        self.ok("graph.end_capture", stream, out)
        self._ends.append(("graph.destroy_graph", out[0]))
        return out[0]

    def exec(self) -> Any:
        """An instantiated graph with one copy in it."""
        out = self.block("chipdock_graph_exec**")
        self.ok("graph.instantiate", self.graph(), self.new("chipdock_instantiate_desc"), out)
        self._ends.append(("graph.destroy_exec", out[0]))
        return out[0]

    def captured(self) -> Any:
        """A stream that is being captured."""
        stream = self.stream()
        self.ok("graph.begin_capture", stream, self.new("chipdock_capture_desc"))
        return stream

    @property
    def _ends(self) -> list[tuple[str, Any]]:
        if not hasattr(self, "_end_list"):
            self._end_list: list[tuple[str, Any]] = []
        return self._end_list

    def close(self, check: bool = True) -> None:
        """End graphs and kernels, then as RawDevice."""
        for slot, handle in reversed(self._ends):
            self.call(slot, handle)
        self._ends.clear()
        super().close(check)

    @property
    def kernels(self) -> KernelBench:
        """A kernel of the plugin with everything that its slots take."""
        if not hasattr(self, "_kernels"):
            self._kernels = KernelBench(self)
        return self._kernels

    def instance(self) -> Any:
        """An instance of that kernel."""
        made = self.kernels.create()
        self._ends.append(("kernel.destroy", made))
        return made

    def host_function(self) -> Any:
        """A desc whose function does nothing."""
        function = self.ffi.callback("void(void*, int32_t)", lambda _context, _state: None)
        self.kept.append(function)
        return self.new("chipdock_host_function_desc", function=function)

    def sink(self) -> Any:
        """A profiler desc whose sink does nothing."""
        desc = self.new("chipdock_profiler_desc")
        sink = self.ffi.callback(self.ffi.typeof(desc.sink), lambda _c, _records, _n: None)
        self.kept.append(sink)
        desc.sink = sink
        return desc

    def source(self) -> Any:
        """A source desc in a dialect that no compiler knows: it reaches the checks, not more."""
        return self.new(
            "chipdock_source_desc",
            dialect=self.block("char[]", b"com.example.none"),
            text=self.block("char[]", b"none"),
            text_size=4,
        )

    def c_text(self, text: str) -> Any:
        """A C string."""
        return self.block("char[]", text.encode())

    def copy_desc(self) -> Any:
        """A copy of 64 bytes to the device."""
        return self.new(
            "chipdock_copy_desc",
            source=self.place(host=self.host),
            target=self.place(self.memory),
            size=64,
        )


def _copy_2d(b: Bench) -> list[Any]:
    desc = b.new(
        "chipdock_copy_2d_desc",
        source=b.place(host=b.host),
        target=b.place(b.memory),
        row_bytes=16,
        rows=3,
        source_pitch=16,
        target_pitch=64,
    )
    return [b.device, desc]


def _elapsed(b: Bench) -> list[Any]:
    events = [b.event(1), b.event(1)]
    for event in events:
        b.ok("event.record", event, b.null)
    return [*events, OUT]


RECIPES: dict[str, Callable[[Bench], list[Any]]] = {
    "device.count": lambda b: [b.handle, OUT],
    "device.info": lambda b: [b.handle, b.index, OUT],
    "device.open": lambda b: [b.handle, b.new("chipdock_device_open_desc", index=b.index), OUT],
    "device.stats": lambda b: [b.device, OUT],
    "device.link": lambda b: [b.device, b.open(), OUT],
    "device.health": lambda b: [b.device, OUT],
    "device.query": lambda b: [b.device, b.c_text("keys"), b.null, 0, OUT],
    "memory.alloc": lambda b: [b.device, b.new("chipdock_alloc_desc", size=256), OUT],
    "memory.copy": lambda b: [b.device, b.copy_desc()],
    "memory.alloc_async": lambda b: [
        b.device, b.new("chipdock_alloc_desc", size=256, stream=b.stream()), OUT,
    ],
    "memory.copy_2d": _copy_2d,
    "memory.fill": lambda b: [
        b.device,
        b.new("chipdock_fill_desc", pattern_size=4, target=b.place(b.memory), size=64),
    ],
    "memory.info": lambda b: [b.device, OUT],
    "memory.host_alloc": lambda b: [b.device, 4096, OUT],
    "memory.address": lambda b: [b.device, b.memory, OUT],
    "memory.export_memory": lambda b: [
        b.device, b.alloc(4096, usage=8), b.new("chipdock_external", kind=3),
    ],
    "memory.import_memory": lambda b: [
        b.device, b.new("chipdock_external", kind=2, pointer=b.host, size=4096), OUT,
    ],
    "stream.create": lambda b: [b.device, b.new("chipdock_stream_desc"), OUT],
    "stream.host_function": lambda b: [b.stream(), b.host_function()],
    "stream.value": lambda b: [
        b.stream(), b.new("chipdock_value_desc", memory=b.memory, value=1),
    ],
    "stream.native": lambda b: [b.stream(), OUT],
    "event.create": lambda b: [b.device, b.new("chipdock_event_desc"), OUT],
    "event.elapsed": _elapsed,
    "event.native": lambda b: [b.event(), OUT],
    "event.export_ipc": lambda b: [b.event(2), b.null, 0, OUT],
    "kernel.list": lambda b: [b.device, OUT, OUT],
    "kernel.supports": lambda b: [b.device, b.kernels.kernel, b.kernels.node(), OUT],
    "kernel.score": lambda b: [b.device, b.kernels.kernel, b.kernels.node(), OUT],
    "kernel.create": lambda b: [b.device, b.kernels.kernel, b.kernels.node(), OUT],
    "kernel.prepack_size": lambda b: [b.instance(), 0, b.kernels.value(), OUT],
    "kernel.workspace_size": lambda b: [b.instance(), b.kernels.launch(), OUT],
    "kernel.launch": lambda b: [b.instance(), b.kernels.launch()],
    "kernel.layout_size": lambda b: [b.device, b.kernels.value(), OUT],
    "graph.begin_capture": lambda b: [b.stream(), b.new("chipdock_capture_desc")],
    "graph.end_capture": lambda b: [b.captured(), OUT],
    "graph.capture_state": lambda b: [b.stream(), OUT],
    "graph.info": lambda b: [b.graph(), OUT],
    "graph.instantiate": lambda b: [b.graph(), b.new("chipdock_instantiate_desc"), OUT],
    "graph.update": lambda b: [b.exec(), b.new("chipdock_graph_update_desc")],
    "graph.launch": lambda b: [b.exec(), b.new("chipdock_graph_launch_desc")],
    "compile.caps": lambda b: [b.device, OUT],
    "compile.compile_source": lambda b: [b.device, b.source(), OUT],
    "compile.claim": lambda b: [b.device, b.new("chipdock_model"), OUT],
    "compile.compile": lambda b: [
        b.device, b.new("chipdock_compile_desc", model=b.new("chipdock_model")), OUT,
    ],
    "compile.load": lambda b: [b.device, b.host, 64, OUT],
    "ccl.query": lambda b: [b.device, OUT],
    "ccl.unique_id": lambda b: [b.device, b.null, 0, OUT],
    "ccl.init": lambda b: [b.device, b.new("chipdock_ccl_comm_desc", rank_count=1), OUT],
    "profiler.start": lambda b: [b.device, b.sink(), OUT],
    "profiler.clock": lambda b: [b.device, OUT],
}  # fmt: skip
"""The slots that fill something or read a struct; the rest take handles only."""


def _end_capture(b: Bench, arguments: list[Any]) -> None:
    out = b.block("chipdock_graph**")
    b.ok("graph.end_capture", arguments[0], out)
    b.ok("graph.destroy_graph", out[0])


_UNDO: dict[str, Callable[[Bench, list[Any]], None]] = {
    "device.open": lambda b, a: b.ok("device.close", a[2][0]),
    "memory.alloc": lambda b, a: b.ok("memory.free", b.device, a[2][0]),
    "memory.alloc_async": lambda b, a: b.ok("memory.free", b.device, a[2][0]),
    "memory.host_alloc": lambda b, a: b.ok("memory.host_free", b.device, a[2][0]),
    "memory.import_memory": lambda b, a: b.ok("memory.free", b.device, a[2][0]),
    "stream.create": lambda b, a: b.ok("stream.destroy", a[2][0]),
    "event.create": lambda b, a: b.ok("event.destroy", a[2][0]),
    "kernel.create": lambda b, a: b.ok("kernel.destroy", a[3][0]),
    "graph.begin_capture": _end_capture,
    "graph.end_capture": lambda b, a: b.ok("graph.destroy_graph", a[1][0]),
    "graph.instantiate": lambda b, a: b.ok("graph.destroy_exec", a[2][0]),
    "profiler.start": lambda b, a: b.ok("profiler.stop", a[2][0]),
}

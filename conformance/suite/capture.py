# SPDX-License-Identifier: Apache-2.0
"""Captures on raw tables: begin, end, make ready, launch, update."""

from __future__ import annotations

from typing import Any

from chipdock.conformance.suite.device import RawDevice

__all__ = ["GraphDevice"]


class GraphDevice(RawDevice):
    """An opened device whose graphs and execs are ended with it."""

    def begin(self, stream: Any) -> None:
        """Start a capture."""
        self.ok("graph.begin_capture", stream, self.new("chipdock_capture_desc"))

    def end(self, stream: Any) -> Any:
        """End a capture that must be good, and return the graph."""
        out = self.block("chipdock_graph**")
        self.ok("graph.end_capture", stream, out)
        assert out[0] != self.null, "end_capture returned OK and no graph [BASE-8]"
        self._graphs.append(("graph.destroy_graph", out[0]))
        return out[0]

    def refuse_end(self, stream: Any, status: str = "FAILED_PRECONDITION") -> None:
        """End a capture that must fail, and see that no graph came of it."""
        out = self.block("chipdock_graph**")
        self.refuse("graph.end_capture", status, stream, out)
        assert out[0] == self.null, "a failed end_capture wrote its output [BASE-8]"

    def ready(self, graph: Any) -> Any:
        """Instantiate a graph."""
        out = self.block("chipdock_graph_exec**")
        self.ok("graph.instantiate", graph, self.new("chipdock_instantiate_desc"), out)
        assert out[0] != self.null, "instantiate returned OK and no exec [BASE-8]"
        self._graphs.append(("graph.destroy_exec", out[0]))
        return out[0]

    def finish(self, stream: Any) -> Any:
        """End a capture and make its graph ready."""
        return self.ready(self.end(stream))

    def launch(self, exec_: Any, stream: Any = None, tag: int = 0) -> None:
        """Launch; without a stream it has ended on return."""
        desc = self.new(
            "chipdock_graph_launch_desc",
            stream=self.null if stream is None else stream,
            correlation_id=tag,
        )
        self.ok("graph.launch", exec_, desc)

    def change(self, target: int, argument: int, memory: Any, offset: int = 0) -> Any:
        """A change of a captured enqueue's memory."""
        return self.new(
            "chipdock_graph_change", kind=1, target=target, argument=argument, memory=memory,
            offset=offset,
        )  # fmt: skip

    def update(self, exec_: Any, *changes: Any) -> int:
        """Make changes together; return the status."""
        array = self.block("const chipdock_graph_change*[]", list(changes) or [self.null])
        desc = self.new("chipdock_graph_update_desc", change_count=len(changes), changes=array)
        return self.call("graph.update", exec_, desc)

    def drop(self, handle: Any) -> None:
        """End a graph or an exec before the device does."""
        entry = next(pair for pair in self._graphs if pair[1] == handle)
        self._graphs.remove(entry)
        self.ok(*entry)

    def join(self, source: Any, sink: Any) -> Any:
        """Let `sink` wait for what `source` has queued, by an event of its own."""
        event = self.event()
        self.ok("event.record", event, source)
        self.ok("stream.wait_event", sink, event)
        return event

    @property
    def _graphs(self) -> list[tuple[str, Any]]:
        if not hasattr(self, "_graph_list"):
            self._graph_list: list[tuple[str, Any]] = []
        return self._graph_list

    def close(self, check: bool = True) -> None:
        """End graphs and execs, then as RawDevice."""
        for slot, handle in reversed(self._graphs):
            self.call(slot, handle)
        self._graphs.clear()
        super().close(check)

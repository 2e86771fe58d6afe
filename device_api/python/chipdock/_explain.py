# SPDX-License-Identifier: Apache-2.0
"""What Model.explain() tells: where every node runs, and what is captured."""

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["CapturedSegment", "Explanation", "NodePlacement"]


@dataclass(frozen=True)
class NodePlacement:
    """Where one node runs.

    Attributes:
        name: Node name in the model; may be "".
        op: Operator, with its domain unless it is ONNX's own.
        since_version: Version of the operator's definition.
        placement: "device"; "fallback" (no kernel on the device); "shape" (computes shapes, on the
            host); "view" (no work); "folded" (computed at load); "control" (If, Loop, Scan);
            "host" (strings, sequences, optionals: computed by the host).
        device: Device name; "" for views.
        kernel: Kernel name; "" if none runs.
        reason: Why this kernel: one line for each that was looked at.
        layout: Private layout of the device that the node works in, or that a Reorder brings a
            value into or out of; 0 for none.
    """

    name: str
    op: str
    since_version: int
    placement: str
    device: str
    kernel: str
    reason: str
    layout: int = 0


@dataclass(frozen=True)
class CapturedSegment:
    """Nodes that the device replays as one graph.

    Attributes:
        shapes: Shape of each input, by name, that it serves.
        nodes: Operator and name of each node, in order.
    """

    shapes: Mapping[str, tuple[int, ...]]
    nodes: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Explanation:
    """What `Model.explain()` returns; `str()` is a readable table.

    Attributes:
        nodes: One entry per node of the model and per Reorder between two of them, in order of
            execution.
        segments: What has been captured by the runs so far (see CHIPDOCK_CAPTURE).
        counts: Nodes by placement.
    """

    nodes: tuple[NodePlacement, ...]
    segments: tuple[CapturedSegment, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """Nodes by placement."""
        out: dict[str, int] = {}
        for node in self.nodes:
            out[node.placement] = out.get(node.placement, 0) + 1
        return out

    def __str__(self) -> str:
        """Summary line and one line per node that does work."""
        head = ", ".join(f"{count} {placement}" for placement, count in sorted(self.counts.items()))
        lines = [f"{len(self.nodes)} nodes: {head}"]
        lines += [
            f"  {n.op}-{n.since_version:<4} {n.placement:<9} {n.device:<10} {n.kernel:<28} {n.name}"
            + (f" (layout {n.layout})" if n.layout else "")
            for n in self.nodes
            if n.placement not in {"view", "folded"}
        ]
        for segment in self.segments:
            shapes = ", ".join(f"{name}{list(shape)}" for name, shape in segment.shapes.items())
            (first, _), (last, _) = segment.nodes[0], segment.nodes[-1]
            lines.append(f"  captured: {len(segment.nodes)} nodes, {first} to {last}, for {shapes}")
        return "\n".join(lines)

# SPDX-License-Identifier: Apache-2.0
"""Identity nodes taken out: some exporters put one behind every node, and no pattern matches."""

import onnx

from chipdock._fusion.copies import renamed
from chipdock._onnx_graph import captures

__all__ = ["without_identities"]


def without_identities(nodes: list[onnx.NodeProto], outputs: set[str]) -> list[onnx.NodeProto]:
    """Nodes that read what an Identity reads, in place of the Identity.

    One whose result is an output, or read by a body, stays.
    """
    same: dict[str, str] = {}
    by_bodies = {name for node in nodes for name in captures(node)}
    kept = []
    for node in nodes:
        reader = node
        if any(name in same for name in node.input):
            reader = renamed(node, same)
        name = node.output[0] if node.output else ""
        alias = node.op_type == "Identity" and node.domain in {"", "ai.onnx"}
        if alias and len(node.input) == 1 and name not in outputs | by_bodies:
            same[name] = reader.input[0]
        else:
            kept.append(reader)
    return kept

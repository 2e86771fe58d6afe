# SPDX-License-Identifier: Apache-2.0
"""One DequantizeLinear for each reader while rules are applied, and one for all again afterwards.

Rules take away nodes that nothing else reads. What a quantized value is read by as floats is
cheap to compute again and often not computed at all in the end.
"""

from collections import Counter
from collections.abc import Sequence

import onnx

from chipdock._onnx_graph import captures

__all__ = ["renamed", "split"]

_OP = "DequantizeLinear"


def split(
    nodes: Sequence[onnx.NodeProto], graph: onnx.GraphProto
) -> tuple[list[onnx.NodeProto], dict[str, str]]:
    """Give every reader but the first a DequantizeLinear of its own.

    Args:
        nodes: Of the graph, in execution order; none is changed.
        graph: Whose outputs are readers too.

    Returns:
        The nodes, and the outputs of copies with what they are copies of.
    """
    copied = {
        n.output[0]: n
        for n in nodes
        if n.op_type == _OP and n.domain in {"", "ai.onnx"} and n.output
    }
    if not copied:
        return list(nodes), {}
    seen = Counter(v.name for v in graph.output)
    out: list[onnx.NodeProto] = []
    copies: dict[str, str] = {}
    for node in nodes:
        names = dict.fromkeys(node.input)
        new = {}
        for name in names:
            if name not in copied:
                continue
            seen[name] += 1
            if seen[name] > 1:
                new[name] = f"{name}/copy{seen[name]}"
                copies[new[name]] = name
                out.append(_copy(copied[name], new[name]))
        for name in set(captures(node)):
            seen[name] += 1  # by a body, which keeps the first
        out.append(renamed(node, new) if new else node)
    return out, copies


def _copy(node: onnx.NodeProto, output: str) -> onnx.NodeProto:
    out = onnx.NodeProto()
    out.CopyFrom(node)
    out.output[0] = output
    return out


def renamed(node: onnx.NodeProto, names: dict[str, str]) -> onnx.NodeProto:
    """Return a copy of a node with other names for some of its inputs."""
    out = onnx.NodeProto()
    out.CopyFrom(node)
    out.input[:] = [names.get(name, name) for name in node.input]
    return out

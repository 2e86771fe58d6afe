# SPDX-License-Identifier: Apache-2.0
"""Rewrites graphs into fewer and larger nodes, by rules that are data, before they are lowered.

What each rule makes is computed by the device as one kernel, and is only made if the device lists
that kernel. docs/fused-operators.md describes the operators of ai.chipdock.
"""

from collections.abc import Callable

from chipdock._fusion.graph import OPSET, Constant, FusedGraph, Node, schema_of
from chipdock._fusion.rewrite import rewrite
from chipdock._fusion.rules_activation import AFTER, WHOLE
from chipdock._fusion.rules_attention import RULES as ATTENTION
from chipdock._fusion.rules_conv import RULES as CONV
from chipdock._fusion.rules_matmul import RESIDUAL
from chipdock._fusion.rules_matmul import RULES as MATMUL
from chipdock._fusion.rules_norm import LAYER, RMS
from chipdock._fusion.rules_quantized import RULES as QUANTIZED

__all__ = ["OPSET", "Constant", "FusedGraph", "Node", "fuse", "schema_of"]

# Each is applied until nothing is left for it to do before the next.
_PASSES = ((*ATTENTION, *LAYER), (*CONV, *RMS, *WHOLE, *MATMUL, *RESIDUAL, *AFTER))


def fuse(graph: FusedGraph, runs: Callable[[str, str, int], bool]) -> list[Node]:
    """Apply all rules that a device has kernels for.

    Args:
        graph: Is used up.
        runs: Says whether the device has a kernel for domain, operator and since-version.

    Returns:
        The nodes that are left, in execution order.
    """
    rewrite(graph, QUANTIZED, runs)
    graph.join_copies()
    for rules in _PASSES:
        rewrite(graph, rules, runs)
    return [node for node in graph.nodes if node is not None]

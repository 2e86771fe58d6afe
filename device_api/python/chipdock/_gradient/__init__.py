# SPDX-License-Identifier: Apache-2.0
"""ONNX's Gradient operator as a transformation of the graph: no device sees a Gradient node.

A rule for each operator says the gradients of its inputs from those of its outputs, in ordinary
nodes; docs/training.md lists them.
"""

from chipdock._gradient.rewrite import check_places, differentiated

__all__ = ["check_places", "differentiated"]

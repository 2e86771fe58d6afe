# SPDX-License-Identifier: Apache-2.0
"""The node cases of the onnx package."""

from chipdock.conformance.case import Variant
from chipdock.conformance.opcases import onnx_nodes
from chipdock.conformance.opcases.publish import family
from chipdock.conformance.opcases.run_node import run_node
from chipdock.conformance.target import Target


@family(onnx_nodes.cases, area="onnx")
def test_onnx_nodes(target: Target, variant: Variant) -> None:
    """A case that onnx ships gives the exact result within the class of its operator."""
    run_node(target, variant)

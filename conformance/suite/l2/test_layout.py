# SPDX-License-Identifier: Apache-2.0
"""Operators whose tensors stay in private layouts of the device, alone and in nets."""

from chipdock.conformance.case import Variant, case
from chipdock.conformance.opcases import layout
from chipdock.conformance.opcases.publish import family
from chipdock.conformance.suite.layout_op import run_in_layouts
from chipdock.conformance.target import Target

_NETS = ("residual_full", "residual_ragged", "joined", "gated", "pyramid")


@family(layout.cases, area="layout", duties=("KRN-4",))
def test_operator(target: Target, variant: Variant) -> None:
    """What a kernel computes in a layout is what the operator's definition gives."""
    run_in_layouts(target, variant)


@case("L2.layout.net", duties=("KRN-4", "KRN-8"), tolerance="M", budget_ms=500,
      entry_points=("kernel.supports", "kernel.layout_size", "kernel.create", "kernel.launch"),
      needs="slot:kernel.launch and slot:kernel.layout_size",
      variants=[Variant(dtype, name) for name in _NETS
                for dtype in ("f32", "f16")])  # fmt: skip
def test_net(target: Target, variant: Variant) -> None:
    """A net gives in layouts what it gives without them, and what fp64 gives."""
    from chipdock.conformance.models.layout_nets import (  # noqa: PLC0415  loads onnx
        run_with_and_without,
    )

    run_with_and_without(target, variant)

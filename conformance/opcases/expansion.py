# SPDX-License-Identifier: Apache-2.0
"""Operators that ONNX defines as functions, on a plugin without a kernel of their own.

The host puts the body in their place, and if the plugin has kernels for that, a user gets a result
from the device. So such a case runs and is judged, by the roundings of its steps: each is rounded
to the tensor's own type, as the definition says.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from chipdock.conformance.numerics.bounds import accumulate_unit
from chipdock.conformance.numerics.dtypes import float_format
from chipdock.conformance.numerics.judge import Judge
from chipdock.conformance.opcases.spec import FLOATS

if TYPE_CHECKING:
    import onnx

    import chipdock
    from chipdock.conformance.target import Target

__all__ = ["EXPANDED", "note", "stepwise"]

EXPANDED = "expanded"
"""Key of the evidence: the operators that were put in the place of the case's own."""

_COMPUTED = ("device", "fallback", "control")


def note(target: Target, model: onnx.ModelProto, loaded: chipdock.Model) -> None:
    """Keep in the evidence what the case's operator was expanded into, if it was.

    Args:
        target: Of the case.
        model: As the case has it.
        loaded: As the device runs it.
    """
    # An operator that is left out or folded says nothing; one with other nodes in its place does.
    there = {node.op for node in loaded.explain().nodes}
    wanted = {f"{n.domain}::{n.op_type}" if n.domain else n.op_type for n in model.graph.node}
    steps = [node.op for node in loaded.explain().nodes if node.placement in _COMPUTED]
    if target.case.op in wanted - there and steps:
        target.record(**{EXPANDED: steps})


def stepwise(judge: Judge, target: Target, dtype: str) -> Judge:
    """Return the judge of an operator that was expanded, the given one if it was not.

    Args:
        judge: Of the case.
        target: Of the case.
        dtype: Short name of the case's type.
    """
    steps = target.evidence.get(EXPANDED, ())
    if not steps or judge.tolerance not in "UR" or dtype not in FLOATS:
        return judge
    # A step is rounded, and so is the constant that it may take.
    factor = max(judge.factor, 2.0 * len(steps))
    # A sum that is kept in another type by definition, as stash_type does, is cast in the body.
    coarser = float_format(dtype).unit > accumulate_unit(dtype, judge.features)
    return dataclasses.replace(
        judge, tolerance="R", factor=factor, own_unit=coarser, steps=len(steps)
    )

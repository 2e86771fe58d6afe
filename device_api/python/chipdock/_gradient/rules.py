# SPDX-License-Identifier: Apache-2.0
"""All rules by operator, and which inputs of a node a small change of is felt by its outputs."""

from collections.abc import Iterable

import onnx

from chipdock._gradient import (
    broadcast,
    elementwise,
    matrix,
    movement,
    norm,
    reduction,
    resize,
    windows,
)
from chipdock._gradient.step import Rules
from chipdock._onnx_graph import reads

__all__ = ["RULES", "SEVERAL", "felt"]

RULES: Rules = {
    **elementwise.RULES,
    **broadcast.RULES,
    **movement.RULES,
    **reduction.RULES,
    **matrix.RULES,
    **norm.RULES,
    **resize.RULES,
    **windows.RULES,
}

# Operators whose rules take gradients of more outputs than the first.
SEVERAL = {"Split"}

# Steps, draws, and what looks at extents or order alone; integers and booleans end a way as well.
_FLAT = {
    "And", "ArgMax", "ArgMin", "Bernoulli", "Ceil", "ConstantOfShape", "Equal", "EyeLike", "Floor",
    "Greater", "GreaterOrEqual", "Hardmax", "IsInf", "IsNaN", "Less", "LessOrEqual", "Multinomial",
    "NonZero", "Not", "Or", "RandomNormalLike", "RandomUniformLike", "Round", "Shape", "Sign",
    "Size", "Xor",
}  # fmt: skip


def felt(node: onnx.NodeProto) -> Iterable[str]:
    """Names that a node reads and that its outputs have a derivative by, which may be 0."""
    if node.domain in {"", "ai.onnx"}:
        if node.op_type in _FLAT:
            return ()
        if node.op_type == "CastLike":  # of the second only the dtype counts
            return (node.input[0],)
        if node.op_type == "OneHot":  # indices may be floats, but go in steps
            return (node.input[2],)
    return reads(node)

# SPDX-License-Identifier: Apache-2.0
"""All rules by operator, and the operators whose derivative is zero wherever there is one."""

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

__all__ = ["FLAT", "RULES", "SEVERAL"]

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
FLAT = {
    "And", "ArgMax", "ArgMin", "Bernoulli", "Ceil", "ConstantOfShape", "Equal", "EyeLike", "Floor",
    "Greater", "GreaterOrEqual", "IsInf", "IsNaN", "Less", "LessOrEqual", "Multinomial", "NonZero",
    "Not", "Or", "RandomNormalLike", "RandomUniformLike", "Round", "Shape", "Sign", "Size", "Xor",
}  # fmt: skip

# SPDX-License-Identifier: Apache-2.0
"""Rules that find normalizations over the last axis where exporters wrote them out."""

from collections.abc import Callable

import numpy as np

from chipdock._fusion.graph import Node
from chipdock._fusion.rewrite import Given, Match, Rule

__all__ = ["LAYER", "RMS"]


def _over_last_axis(node: Node, match: Match, rank: int) -> bool:
    """True for a reduction of the last axis alone that keeps it."""
    axes = node.attribute("axes")
    if len(node.proto.input) > 1 and node.proto.input[1]:
        axes = match.graph.array(node.proto.input[1])
    if axes is None or not node.attribute("keepdims"):
        return False
    return [int(a) % rank for a in np.asarray(axes).ravel()] == [rank - 1]


def _rows(*reductions: str, affine: str) -> Callable[[Match], Given | None]:
    """Reductions of rows of x, which are as long as the vectors that scale and shift them."""

    def where(match: Match) -> Given | None:
        shape, epsilon = match.shape("x"), match.number("EPS")
        if not shape or not isinstance(shape[-1], int) or epsilon is None:
            return None
        if any(match.shape(name) != (shape[-1],) for name in affine):
            return None
        if not all(_over_last_axis(match.node(n), match, len(shape)) for n in reductions):
            return None
        return {"epsilon": epsilon}

    return where


_CENTRED = "(d := Sub(x, (mean := ReduceMean(x, *axes))))"
_LAYER = "LayerNormalization(x, S, O, axis=-1, epsilon=epsilon)"
_RMS_NORM = "RMSNormalization(x, S, axis=-1, epsilon=epsilon)"


def _roots(square: str) -> str:
    return f"Sqrt(Add((var := ReduceMean({square}, *others)), EPS))"


# Comes first: what is inside of it is a RMSNormalization of what was centred.
LAYER = tuple(
    Rule(f"Add(Mul({normal}, S), O)", _LAYER, _rows("mean", "var", affine="SO"))
    for square in ("Pow(d, 2.0)", "Mul(d, d)")
    for normal in (
        f"Div({_CENTRED}, {_roots(square)})",
        f"Mul({_CENTRED}, Reciprocal({_roots(square)}))",
    )
)

RMS = tuple(
    Rule(f"Mul({normal}, S)", _RMS_NORM, _rows("var", affine="S"))
    for square in ("Pow(x, 2.0)", "Mul(x, x)")
    for normal in (
        f"Div(x, {_roots(square)})",
        f"Mul(x, Reciprocal({_roots(square)}))",
        f"Mul(x, Div(1.0, {_roots(square)}))",
    )
)

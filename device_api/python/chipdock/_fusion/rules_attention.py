# SPDX-License-Identifier: Apache-2.0
"""Rules that find attention where exporters wrote it out: a product, a softmax, a product."""

from collections.abc import Iterator, Mapping

import numpy as np

from chipdock._fusion.rewrite import Match, Rule

__all__ = ["RULES"]


def _attention(match: Match) -> Mapping[str, object] | None:
    """Softmax along the last axis, all of one rank; `scale` is what scores are multiplied by."""
    ranks = {len(match.shape(name) or ()) for name in "qkv"}
    rank = ranks.pop()
    if ranks or rank < 2:
        return None
    # Its default has changed; who means the last axis says so.
    axis = next((a.i for a in match.node("soft").attributes() if a.name == "axis"), None)
    if axis not in {-1, rank - 1}:
        return None
    if "m" in match.binding.values:
        mask = match.shape("m")
        if mask is None or len(mask) > rank:
            return None
    return {"scale": _scale(match)} if _scale(match) is not None else None


def _scale(match: Match) -> float | None:
    if "S" not in match.binding.values:
        return 1.0
    array = match.array("S")
    if array is None or array.size != 1 or array.ndim > 2:
        return None
    value = float(array.astype(np.float64).reshape(()))
    if match.node("scaled").proto.op_type == "Mul":
        return value
    return 1 / value if value else None


def _rules() -> Iterator[Rule]:
    scores = (
        "MatMul(q, k)",
        "(scaled := Div(MatMul(q, k), S))",
        "(scaled := Mul(MatMul(q, k), S))",
    )
    for score in scores:
        for masked, mask in ((score, "0"), (f"Add({score}, m)", "m")):
            yield Rule(
                f"MatMul((soft := Softmax({masked})), v)",
                f"chipdock.FusedAttention(q, k, v, {mask}, scale=scale)",
                _attention,
            )


RULES = tuple(_rules())

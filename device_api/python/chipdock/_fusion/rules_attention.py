# SPDX-License-Identifier: Apache-2.0
"""Rules that find attention where exporters wrote it out: a product, a softmax, a product."""

from collections.abc import Iterator

from chipdock._fusion.rewrite import Given, Match, Rule

__all__ = ["RULES"]


def _attention(match: Match) -> Given | None:
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
    scale = _scale(match)
    return None if scale is None else {"scale": scale}


def _scale(match: Match) -> float | None:
    if "S" not in match.binding.values:
        return 1.0
    value = match.number("S")
    if value is None or len(match.shape("S") or ()) > 2:
        return None
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

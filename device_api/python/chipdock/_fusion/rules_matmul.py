# SPDX-License-Identifier: Apache-2.0
"""Rules around matrix products: bias, scale, residual, and what a Gemm with an activation is."""

import numpy as np

from chipdock._fusion.rewrite import Given, Match, Rule

__all__ = ["RESIDUAL", "RULES", "plain_gemm"]


def _row(match: Match) -> Given | None:
    """C has one element for each column of the product, and nothing else widens the result."""
    weights, bias, left = match.shape("b"), match.shape("C"), match.shape("a")
    if weights is None or bias is None or len(weights) < 2 or not bias:
        return None
    columns = weights[-1]
    # A vector on the left loses an axis.
    rank = max(len(weights), len(left)) if left is not None and len(left) > 1 else 1
    if not isinstance(columns, int) or bias[-1] != columns or len(bias) > rank:
        return None
    if any(d != 1 for d in bias[:-1]):
        return None
    return {"all": np.array([-1])}


def _one(match: Match) -> Given | None:
    """S is one number; `scale` is what to multiply by, its inverse if a product is divided."""
    array, value = match.array("S"), match.number("S")
    if array is None or value is None:
        return None
    if any(len(match.shape(name) or ()) < max(2, array.ndim) for name in "ab"):
        return None
    divided = match.binding.nodes[0].proto.op_type == "Div"
    if divided and value == 0:
        return None
    return {"scale": 1 / value if divided else value}


def plain_gemm(match: Match) -> Given | None:
    """A Gemm that neither scales nor transposes its input, with a bias for each column."""
    gemm, bias = match.node("gemm"), match.shape("c")
    if gemm.attribute("transA") or gemm.attribute("alpha") != 1 or gemm.attribute("beta") != 1:
        return None
    weights = match.shape("b")
    if bias is None or weights is None or len(weights) != 2:
        return None
    transposed = int(bool(gemm.attribute("transB")))
    if not isinstance(bias[-1] if bias else None, int) or len(bias) != 1:
        return None
    if bias[0] != weights[0 if transposed else 1]:
        return None
    return {"transposed": transposed}


def _residual(match: Match) -> Given | None:
    """What is added has exactly the shape of the result, and there is no activation yet."""
    if match.node("inner").attribute("activation"):
        return None
    shape = match.shape("inner")
    if shape is None or match.shape("z") != shape:
        return None
    return {}


def _unfinished(match: Match) -> Given | None:
    """As _row, of a product that has nothing but a scale yet."""
    return None if match.node("fused").attribute("activation") else _row(match)


RULES = (
    Rule("Mul(MatMul(a, b), S)", "chipdock.FusedMatMul(a, b, scale=scale)", _one),
    Rule("Div(MatMul(a, b), S)", "chipdock.FusedMatMul(a, b, scale=scale)", _one),
    Rule("Add(MatMul(a, b), C)", "chipdock.FusedMatMul(a, b, Reshape(C, all))", _row),
    Rule("Add((fused := chipdock.FusedMatMul(a, b)), C)",
         "chipdock.FusedMatMul(a, b, Reshape(C, all), **fused)", _unfinished),
)  # fmt: skip

RESIDUAL = (
    Rule("Add((inner := Conv(x, w)), z)", "chipdock.FusedConv(x, w, 0, z, **inner)", _residual),
    Rule("Add((inner := Conv(x, w, b)), z)", "chipdock.FusedConv(x, w, b, z, **inner)", _residual),
    Rule("Add((inner := MatMul(a, b)), z)", "chipdock.FusedMatMul(a, b, 0, z)", _residual),
    Rule("Add((inner := chipdock.FusedMatMul(a, b)), z)",
         "chipdock.FusedMatMul(a, b, 0, z, **inner)", _residual),
    Rule("Add((inner := chipdock.FusedMatMul(a, b, c)), z)",
         "chipdock.FusedMatMul(a, b, c, z, **inner)", _residual),
)  # fmt: skip

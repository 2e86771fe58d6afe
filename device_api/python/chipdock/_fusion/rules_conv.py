# SPDX-License-Identifier: Apache-2.0
"""Rules around convolutions: what follows one by channel becomes part of its filters and bias.

Filters and biases that follow from constants are computed once, at load.
"""

import numpy as np
from onnx import TensorProto

from chipdock._fusion.rewrite import Given, Match, Rule

__all__ = ["RULES"]

# What is folded into filters is rounded once more; half types have no digits to spare.
_WIDE = {TensorProto.FLOAT, TensorProto.DOUBLE}


def _filters(match: Match) -> tuple[int, int] | None:
    """Number of filters, and rank, of the convolution's weights."""
    shape = match.shape("W")
    if shape is None or len(shape) < 3 or not isinstance(shape[0], int):
        return None
    return shape[0], len(shape)


def _by_channel(match: Match) -> Given | None:
    """C has one element for each filter, on the axis of channels; it is a vector `all` then."""
    filters, shape = _filters(match), match.shape("C")
    if filters is None or shape is None:
        return None
    count, rank = filters
    full = (1,) * (rank - len(shape)) + tuple(shape)
    if len(full) != rank or full != (1, count, *(1,) * (rank - 2)):
        return None
    return {"all": np.array([-1])}


def _scaled(match: Match) -> Given | None:
    """As _by_channel; `filters` is the shape in which C meets the weights."""
    given = _by_channel(match)
    if given is None or match.dtype("W") not in _WIDE:
        return None
    return {**given, "filters": _first_axis(match)}


def _first_axis(match: Match) -> np.ndarray:
    shape = match.shape("W")
    assert shape is not None
    return np.array([-1, *[1] * (len(shape) - 1)])


def _normalized(match: Match) -> Given | None:
    """A BatchNormalization for inference, in one dtype; `eps` is its epsilon."""
    norm = match.node("norm")
    types = {match.dtype(name) for name in ("W", "S", "O", "MEAN", "VAR")}
    if _filters(match) is None or len(types) != 1 or not types <= _WIDE:
        return None
    if norm.attribute("training_mode"):
        return None
    wide = np.float64 if types == {TensorProto.DOUBLE} else np.float32
    return {
        "eps": np.array(norm.attribute("epsilon"), wide),
        "filters": _first_axis(match),
    }


def _padded(match: Match) -> Given | None:
    """Zeros around the pixels, by constants; `pads` are those of the convolution too."""
    conv, pad = match.node("conv"), match.node("pad")
    rank = len(match.shape("w") or match.shape("x") or ())
    given = pad.attribute("pads")
    added = match.array("PADS") if "PADS" in match.binding.values else given
    if not rank or added is None or pad.attribute("mode") != "constant" or pad.attribute("value"):
        return None
    if conv.attribute("auto_pad") not in {None, "NOTSET", "VALID"}:
        return None
    amounts = np.asarray(added).ravel()
    if amounts.size != 2 * rank or (amounts < 0).any():
        return None
    begin, end = amounts[:rank], amounts[rank:]
    if begin[:2].any() or end[:2].any():
        return None
    own = np.asarray(conv.attribute("pads") or [0] * (2 * rank - 4))
    if own.size != 2 * rank - 4 or (own < 0).any():
        return None
    total = own + np.concatenate([begin[2:], end[2:]])
    return {"pads": [int(p) for p in total]}


_SCALE = "k := Div(S, Sqrt(Add(VAR, eps)))"

_FOLDED = "Conv(x, w, *b, **conv, auto_pad='NOTSET', pads=pads)"

RULES = (
    Rule("(conv := Conv((pad := Pad(x)), w, *b))", _FOLDED, _padded),
    Rule("(conv := Conv((pad := Pad(x, PADS)), w, *b))", _FOLDED, _padded),
    Rule("(conv := Conv((pad := Pad(x, PADS, 0.0)), w, *b))", _FOLDED, _padded),
    Rule("Add((conv := Conv(x, W)), C)",
         "Conv(x, W, Reshape(C, all), **conv)", _by_channel),
    Rule("Add((conv := Conv(x, W, B)), C)",
         "Conv(x, W, Add(B, Reshape(C, all)), **conv)", _by_channel),
    Rule("Mul((conv := Conv(x, W)), C)",
         "Conv(x, Mul(W, Reshape(C, filters)), **conv)", _scaled),
    Rule("Mul((conv := Conv(x, W, B)), C)",
         "Conv(x, Mul(W, Reshape(C, filters)), Mul(B, Reshape(C, all)), **conv)", _scaled),
    Rule("(norm := BatchNormalization((conv := Conv(x, W)), S, O, MEAN, VAR))",
         f"Conv(x, Mul(W, Reshape(({_SCALE}), filters)), Sub(O, Mul(MEAN, k)), **conv)",
         _normalized),
    Rule("(norm := BatchNormalization((conv := Conv(x, W, B)), S, O, MEAN, VAR))",
         f"Conv(x, Mul(W, Reshape(({_SCALE}), filters)), Add(O, Mul(Sub(B, MEAN), k)), **conv)",
         _normalized),
)  # fmt: skip

# SPDX-License-Identifier: Apache-2.0
"""References by onnx.reference: in float64 for sums, on the bits for operators that only move."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipdock.conformance.numerics.dtypes import bits, short_name, wide

__all__ = ["MOVES", "NATIVE", "evaluate"]

MOVES = frozenset(
    {
        "Reshape", "Transpose", "Concat", "Split", "Slice", "Squeeze", "Unsqueeze", "Flatten",
        "Identity", "Expand", "Tile", "Gather", "GatherND", "DepthToSpace",
        "SpaceToDepth", "ReverseSequence", "Compress", "Trilu", "ScatterElements", "ScatterND",
        "TensorScatter",
    }
)  # fmt: skip
"""Operators that move elements without a look at their values."""

NATIVE = frozenset(
    {
        "Cast", "CastLike", "BitCast", "Constant",
    }
)  # fmt: skip
"""Operators whose definition depends on the types, so they are evaluated in these."""


def evaluate(model: Any, inputs: dict[str, NDArray[Any]], how: str) -> list[NDArray[Any]]:
    """Evaluate a model by onnx.reference.

    Args:
        model: A ModelProto; the types that it declares are not looked at.
        inputs: By name.
        how: "double" turns floats into float64, "bits" turns everything but indices into unsigned
            integers and back, "native" changes nothing.

    Returns:
        The outputs in order.
    """
    from onnx.reference import ReferenceEvaluator  # noqa: PLC0415  takes 0.3 s

    fed = dict(inputs)
    origin: dict[np.dtype[Any], np.dtype[Any]] = {}
    if how == "double":
        fed = {name: _double(value) for name, value in inputs.items()}
    elif how == "bits":
        for name, value in inputs.items():
            if value.dtype.kind not in "biucOUST" or short_name(value.dtype) in _SUB_BYTE:
                fed[name] = bits(value)
                origin[fed[name].dtype] = value.dtype
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        outputs = ReferenceEvaluator(model).run(None, fed)
    return [_back(np.asarray(value), origin) for value in outputs]


_SUB_BYTE = frozenset({"i4", "u4", "i2", "u2"})


def _double(value: NDArray[Any]) -> NDArray[Any]:
    kept = wide(value)
    return kept.astype(np.float64) if kept.dtype == np.longdouble else kept


def _back(value: NDArray[Any], origin: dict[np.dtype[Any], np.dtype[Any]]) -> NDArray[Any]:
    if value.dtype not in origin:
        return value
    dense = np.ascontiguousarray(value).reshape(value.shape)
    viewed: NDArray[Any] = dense.view(origin[value.dtype])
    return viewed

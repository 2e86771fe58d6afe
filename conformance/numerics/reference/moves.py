# SPDX-License-Identifier: Apache-2.0
"""Moves that onnx.reference lacks or does for a part of the definition only."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["OWN_MOVES"]

_Array = NDArray[Any]


def _gather_elements(inputs: list[Any], attributes: dict[str, Any]) -> _Array:
    data, index = inputs
    axis = int(attributes.get("axis", 0)) % data.ndim
    cut = tuple(
        slice(None) if i == axis else slice(0, extent) for i, extent in enumerate(index.shape)
    )
    return np.asarray(np.take_along_axis(data[cut], index % data.shape[axis], axis))


def _scatter(inputs: list[Any], attributes: dict[str, Any]) -> _Array:
    data, index, updates = inputs
    axis = int(attributes.get("axis", 0)) % data.ndim
    y = data.copy()
    for place in np.ndindex(index.shape):
        at = list(place)
        at[axis] = int(index[place]) % data.shape[axis]
        y[tuple(at)] = updates[place]
    return np.asarray(y)


def _pad(inputs: list[Any], attributes: dict[str, Any]) -> _Array:
    data, pads, value, axes = [*inputs, None, None, None][:4]
    pads = np.asarray(attributes["pads"] if pads is None else pads)
    value = attributes.get("value", 0) if value is None else value.reshape(-1)[0]
    chosen = list(range(data.ndim)) if axes is None else [int(a) % data.ndim for a in axes]
    around = [(0, 0)] * data.ndim
    for i, axis in enumerate(chosen):
        around[axis] = (int(pads[i]), int(pads[len(chosen) + i]))
    cut = tuple(
        slice(max(-before, 0), extent - max(-after, 0))
        for (before, after), extent in zip(around, data.shape, strict=True)
    )
    added = [(max(before, 0), max(after, 0)) for before, after in around]
    mode = attributes.get("mode", "constant")
    if mode != "constant":
        return np.asarray(np.pad(data[cut], added, mode))
    y = np.full([e + sum(a) for e, a in zip(data[cut].shape, added, strict=True)], value,
                data.dtype)  # fmt: skip
    y[tuple(slice(b, b + e) for (b, _), e in zip(added, data[cut].shape, strict=True))] = data[cut]
    return np.asarray(y)


def _one_hot(inputs: list[Any], attributes: dict[str, Any]) -> _Array:
    index, depth, values = inputs
    count = int(np.asarray(depth).reshape(-1)[0])
    axis = int(attributes.get("axis", -1)) % (index.ndim + 1)
    wanted = np.expand_dims(np.where(index < 0, index + count, index), axis)
    places = np.arange(count).reshape([-1 if i == axis else 1 for i in range(index.ndim + 1)])
    return np.asarray(np.where(wanted == places, values[1], values[0]))


def _hardmax(inputs: list[Any], attributes: dict[str, Any], opset: int) -> _Array:
    x = inputs[0]
    axis = int(attributes.get("axis", 1 if opset < 13 else -1))
    shape = x.shape
    if opset < 13:
        axis %= x.ndim
        x, axis = x.reshape(math.prod(shape[:axis]), math.prod(shape[axis:])), 1
    if not x.size:
        return np.asarray(x.reshape(shape))
    first = np.expand_dims(x.argmax(axis=axis), axis)
    y = np.zeros_like(x)
    np.put_along_axis(y, first, 1, axis)
    return np.asarray(y.reshape(shape))


OWN_MOVES: dict[str, Any] = {
    "GatherElements": lambda i, a, v: _gather_elements(i, a),
    "Scatter": lambda i, a, v: _scatter(i, a),
    "Pad": lambda i, a, v: _pad(i, a),
    "OneHot": lambda i, a, v: _one_hot(i, a),
    "Hardmax": _hardmax,
}
"""Operator to function of (inputs in their own types, attributes, opset)."""

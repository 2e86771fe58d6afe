# SPDX-License-Identifier: Apache-2.0
"""Values of inputs: which kind a case wants, drawn from the case's own random numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipdock.conformance.numerics.dtypes import float_format, numpy_dtype
from chipdock.conformance.opcases.spec import In

__all__ = ["make_array"]

_Array = NDArray[Any]


def make_array(wanted: In, rng: np.random.Generator) -> _Array:
    """Make the values of an input.

    Args:
        wanted: What the case says.
        rng: Of the case.

    Returns:
        A dense array of the input's shape and type.

    Raises:
        KeyError: An unknown fill.
    """
    dtype = numpy_dtype(wanted.dtype)
    if wanted.fill == "values":
        listed = np.array(wanted.values, dtype=object)
        if wanted.dtype == "bool" or dtype.kind in "iu":
            flat = np.array([int(v) for v in listed], np.int64 if dtype.kind != "u" else np.uint64)
        else:
            flat = listed.astype(np.float64)
        if len(flat) == 1 and math.prod(wanted.shape) != 1:
            flat = np.broadcast_to(flat, wanted.shape)
        return np.array(flat).reshape(wanted.shape).astype(dtype)
    kind, *numbers = wanted.fill.split(":")
    if kind in {"ints", "distinct", "exact"}:
        values = _whole(kind, [int(n) for n in numbers], wanted.shape, rng)
        with np.errstate(all="ignore"):
            return values.astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, wanted.shape).astype(bool)
    if dtype.kind in "iu" or wanted.dtype in {"i4", "u4", "i2", "u2"}:
        return _integers(kind, wanted, dtype, rng)
    if dtype.kind == "c":
        pair = [_floats(kind, numbers, wanted.shape, "f32", rng) for _ in range(2)]
        with np.errstate(all="ignore"):
            return (pair[0] + 1j * pair[1]).astype(dtype)
    with np.errstate(all="ignore"):
        values = _floats(kind, numbers, wanted.shape, wanted.dtype, rng)
        return np.asarray(values).astype(dtype)


def _whole(
    kind: str, numbers: list[int], shape: tuple[int, ...], rng: np.random.Generator
) -> _Array:
    if kind == "distinct":
        count = math.prod(shape)
        return (rng.permutation(count) - count // 2).reshape(shape)
    low, high = numbers or (-4, 5)
    return rng.integers(low, high, shape)


def _integers(kind: str, wanted: In, dtype: np.dtype[Any], rng: np.random.Generator) -> _Array:
    width = {"i4": 4, "u4": 4, "i2": 2, "u2": 2}.get(wanted.dtype, dtype.itemsize * 8)
    signed = wanted.dtype[0] == "i"
    low, high = (-(2 ** (width - 1)), 2 ** (width - 1) - 1) if signed else (0, 2**width - 1)
    if kind in {"full", "special"}:
        values = rng.integers(low, high, wanted.shape, dtype=np.int64 if signed else np.uint64,
                              endpoint=True)  # fmt: skip
        edges = np.array([low, high, 0, 1, low + 1, high - 1], values.dtype)
        flat = values.reshape(-1)
        count = min(len(flat), len(edges))
        flat[:count] = edges[:count]
        return values.astype(dtype)
    if kind in {"positive", "nonzero"}:
        return rng.integers(1, min(high, 50), wanted.shape, endpoint=True).astype(dtype)
    return rng.integers(max(low, -50), min(high, 50), wanted.shape, endpoint=True).astype(dtype)


def _floats(
    kind: str, numbers: list[str], shape: tuple[int, ...], name: str, rng: np.random.Generator
) -> _Array:
    normal = rng.standard_normal(shape)
    if kind == "normal":
        return normal * float(numbers[0]) if numbers else normal
    if kind == "positive":
        return np.abs(normal) + 0.1
    if kind == "nonzero":
        return np.copysign(np.abs(normal) + 0.1, normal)
    if kind == "above1":
        return 1.0 + np.abs(normal)
    if kind == "uniform":
        low, high = (float(n) for n in numbers)
        return rng.uniform(low, high, shape)
    if kind == "unit":
        # Close to the ends too, where inverse functions are steep.
        return np.tanh(2 * normal)
    if kind == "offset":
        return normal + 1000.0
    if kind == "zero":
        return np.zeros(shape)
    if kind == "holes":
        # Infinities and NaN among usual numbers: no sum leaves the range on its way.
        flat = normal.reshape(-1)
        holes = [math.inf, 1.0, math.nan, -0.0, -math.inf, 0.0]
        flat[: len(holes)] = holes[: len(flat)]
        return flat.reshape(shape)
    if kind in {"wide", "halves", "special", "finite", "ordered", "denormal", "positive_special"}:
        return _edges(kind, normal, name, rng)
    raise KeyError(f"no fill is named '{kind}'")


def _edges(kind: str, normal: _Array, name: str, rng: np.random.Generator) -> _Array:
    """Values near the limits of a format, first the edges themselves and then random ones."""
    form = float_format(name)
    least, tiny = 2.0**form.least_exponent, 2.0 ** (form.least_exponent - form.mantissa)
    if kind == "wide":
        reach = min(-form.least_exponent, 60) / 2
        return np.copysign(np.exp2(rng.uniform(-reach, reach, normal.shape)), normal)
    if kind == "halves":
        return np.asarray(np.round(normal * 8) / 2)  # ties of rounding
    if kind == "denormal":
        return np.asarray(
            np.copysign(rng.integers(0, 2**form.mantissa, normal.shape) * tiny, normal)
        )
    edges = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -2.5, tiny, -tiny, least - tiny, least,
             form.largest, -form.largest]  # fmt: skip
    if kind in {"special", "ordered"}:
        edges += [math.inf, -math.inf]
    if kind == "special":
        edges += [math.nan]
    if kind == "positive_special":
        edges = [abs(e) for e in edges] + [math.inf]
        normal = np.abs(normal)
    flat = normal.reshape(-1)
    count = min(len(flat), len(edges))
    flat[:count] = edges[:count]
    return np.asarray(flat.reshape(normal.shape))

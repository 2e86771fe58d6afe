# SPDX-License-Identifier: Apache-2.0
"""The figures that every report shows: max ULP, relative L2, cosine, and the worst element."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipdock.conformance.numerics.dtypes import is_exact, short_name, wide
from chipdock.conformance.numerics.ulp import ulp_error

__all__ = ["cosine", "describe", "plain", "rel_l2", "worst_evidence"]


def rel_l2(got: NDArray[Any], exact: NDArray[Any]) -> float:
    """Return |got - exact| / |exact| over elements where both are finite; 0 for none."""
    a, b = _finite_pair(got, exact)
    scale = float(np.abs(b).max(initial=0.0)) or 1.0
    norm = float(np.linalg.norm(b / scale))
    error = float(np.linalg.norm((a - b) / scale))
    return error / norm if norm > 0 else error


def cosine(got: NDArray[Any], exact: NDArray[Any]) -> float:
    """Return the cosine of the angle between the two; 1 if both are zero or empty, 0 if one is."""
    a, b = _finite_pair(got, exact)
    a, b = a / (np.abs(a).max(initial=0.0) or 1.0), b / (np.abs(b).max(initial=0.0) or 1.0)
    norms = float(np.linalg.norm(a)) * float(np.linalg.norm(b))
    if norms == 0.0:
        return 1.0 if not a.any() and not b.any() else 0.0
    return float(np.real(np.vdot(a, b))) / norms


def _finite_pair(got: NDArray[Any], exact: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    kind = np.complex128 if "c" in (got.dtype.kind, exact.dtype.kind) else np.float64
    with np.errstate(all="ignore"):
        a = np.asarray(wide(got)).astype(kind).reshape(-1)
        b = np.asarray(wide(exact)).astype(kind).reshape(-1)
    usable = np.isfinite(a) & np.isfinite(b)
    return a[usable], b[usable]


def describe(got: NDArray[Any], exact: NDArray[Any]) -> dict[str, Any]:
    """Return max_ulp, rel_l2 and cosine of a result, as evidence of passes and failures alike.

    Args:
        got: What the device computed, any shape and type.
        exact: The reference, the same shape, of any type.

    Returns:
        Plain floats; max_ulp is None for types without a last place.
    """
    name = short_name(got.dtype)
    found: float | None = None
    if not is_exact(got.dtype) and got.dtype.kind != "c":
        high = np.longdouble if name == "f64" else np.float64
        errors = ulp_error(wide(got).astype(high), np.asarray(exact).astype(high), name)
        found = float(errors.max(initial=0.0))
    elif name not in {"str", "any", "bool"} and got.dtype.kind != "c":
        # Integers: the last place is 1.
        a, b = _finite_pair(got, exact)
        found = float(np.abs(a - b).max(initial=0.0))
    if name == "str":
        return {"max_ulp": None, "rel_l2": None, "cosine": None}
    return {"max_ulp": found, "rel_l2": rel_l2(got, exact), "cosine": cosine(got, exact)}


def plain(value: Any) -> Any:
    """Turn a numpy scalar into what JSON holds; floats that JSON lacks become texts."""
    if isinstance(value, np.generic) and short_name(value.dtype) in {"i4", "u4", "i2", "u2"}:
        return int(value.astype(np.int8))
    if isinstance(value, np.bool_ | bool):
        return bool(value)
    if isinstance(value, np.integer | int):
        return int(value)
    try:
        number = float(value)
    except (TypeError, ValueError):
        return str(value)
    return number if np.isfinite(number) else str(number)


def worst_evidence(badness: NDArray[Any], got: NDArray[Any], exact: NDArray[Any]) -> dict[str, Any]:
    """Return index, expected and got of the element that is worst.

    Args:
        badness: How bad each element is, larger is worse; not empty.
        got: The same shape.
        exact: The same shape.
    """
    flat = int(np.argmax(np.where(np.isnan(badness), np.inf, badness)))
    index = tuple(int(i) for i in np.unravel_index(flat, badness.shape))
    return {
        "index": list(index),
        "expected": plain(exact[index]),
        "got": plain(got[index]),
        "wrong": int(np.count_nonzero(badness > 0)),
        "of": int(badness.size),
    }

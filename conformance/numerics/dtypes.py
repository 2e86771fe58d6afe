# SPDX-License-Identifier: Apache-2.0
"""Short names of element types, and what the judges must know of each type's format."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

__all__ = [
    "ONNX_TYPES",
    "SHORT_NAMES",
    "SUB_BYTE",
    "FloatFormat",
    "bits",
    "float_format",
    "is_exact",
    "numpy_dtype",
    "short_name",
    "wide",
]

_TYPES: dict[str, tuple[Any, int]] = {
    "f32": (np.float32, 1), "u8": (np.uint8, 2), "i8": (np.int8, 3), "u16": (np.uint16, 4),
    "i16": (np.int16, 5), "i32": (np.int32, 6), "i64": (np.int64, 7), "bool": (np.bool_, 9),
    "f16": (np.float16, 10), "f64": (np.float64, 11), "u32": (np.uint32, 12),
    "u64": (np.uint64, 13), "c64": (np.complex64, 14), "c128": (np.complex128, 15),
    "bf16": (ml_dtypes.bfloat16, 16), "f8e4m3fn": (ml_dtypes.float8_e4m3fn, 17),
    "f8e4m3fnuz": (ml_dtypes.float8_e4m3fnuz, 18), "f8e5m2": (ml_dtypes.float8_e5m2, 19),
    "f8e5m2fnuz": (ml_dtypes.float8_e5m2fnuz, 20), "u4": (ml_dtypes.uint4, 21),
    "i4": (ml_dtypes.int4, 22), "f4e2m1": (ml_dtypes.float4_e2m1fn, 23),
    "f8e8m0": (ml_dtypes.float8_e8m0fnu, 24), "u2": (ml_dtypes.uint2, 25),
    "i2": (ml_dtypes.int2, 26), "f6e2m3": (ml_dtypes.float6_e2m3fn, 27),
    "f6e3m2": (ml_dtypes.float6_e3m2fn, 28),
}  # fmt: skip

ONNX_TYPES: dict[str, int] = {name: number for name, (_, number) in _TYPES.items()}
"""Number of each type in ONNX's TensorProto.DataType."""

SHORT_NAMES: dict[np.dtype[Any], str] = {np.dtype(t): name for name, (t, _) in _TYPES.items()}

SUB_BYTE = {"i4": 4, "u4": 4, "f4e2m1": 4, "f6e2m3": 6, "f6e3m2": 6, "i2": 2, "u2": 2}
"""Bits of an element, of the types that numpy keeps in a byte each."""
_FLOATS = frozenset(name for name in _TYPES if name[0] == "f" or name == "bf16")


@dataclass(frozen=True)
class FloatFormat:
    """One binary floating-point format.

    Attributes:
        mantissa: Stored bits of the significand.
        least_exponent: Exponent of the smallest normal number.
        largest: Its largest finite value.
        unit: Unit roundoff u = 2**-(mantissa + 1).
    """

    mantissa: int
    least_exponent: int
    largest: float
    unit: float


def numpy_dtype(name: str) -> np.dtype[Any]:
    """Return the numpy or ml_dtypes type of a short name such as "bf16"."""
    found: np.dtype[Any] = np.dtype(_TYPES[name][0])
    return found


def short_name(dtype: Any) -> str:
    """Return the short name of a numpy dtype; "str" for texts and "any" for what has none."""
    found = np.dtype(dtype)
    return SHORT_NAMES.get(found, "str" if found.kind in "OUST" else "any")


def is_exact(dtype: Any) -> bool:
    """Say whether values of the type are compared bit by bit: integers, bools and texts."""
    name = short_name(dtype)
    return name not in _FLOATS and name not in {"c64", "c128"}


@cache
def float_format(name: str) -> FloatFormat:
    """Describe the float type of a short name.

    Raises:
        KeyError: It is no float type.
    """
    if name not in _FLOATS:
        raise KeyError(name)
    info: Any = ml_dtypes.finfo(numpy_dtype(name))  # type: ignore[no-untyped-call]
    mantissa = int(info.nmant)
    return FloatFormat(mantissa, int(info.minexp), float(info.max), 2.0 ** -(mantissa + 1))


def wide(array: NDArray[Any]) -> NDArray[Any]:
    """Return the values in a type that holds all of them and has digits to spare.

    Args:
        array: Any shape and type.

    Returns:
        longdouble for f64, float64 for every narrower float, complex128 for complex, int64 for
        sub-byte integers, the array itself for other integers and bools.
    """
    name = short_name(array.dtype)
    if name == "f64":
        return array.astype(np.longdouble)
    if name in _FLOATS:
        return array.astype(np.float64)
    if name in {"c64", "c128"}:
        return array.astype(np.complex128)
    if name in {"i4", "u4", "i2", "u2"}:
        return array.astype(np.int8).astype(np.int64)
    return array


def bits(array: NDArray[Any]) -> NDArray[Any]:
    """View the elements as unsigned integers of their size in numpy: one element a byte at least.

    Complex elements become two integers along a new last axis.
    """
    dense = np.ascontiguousarray(array).reshape(array.shape)  # ascontiguousarray lifts rank 0 to 1
    if dense.dtype.kind == "c":
        half = np.uint32 if dense.dtype.itemsize == 8 else np.uint64
        flat: NDArray[Any] = dense.reshape(-1).view(half)
        return flat.reshape(*array.shape, 2)
    if dense.dtype.kind == "b":
        return dense.view(np.uint8)  # A cast would make 1 of any byte but 0.
    as_int = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[dense.dtype.itemsize]
    viewed: NDArray[Any] = dense.view(as_int)
    # ml_dtypes keeps a sub-byte element in a byte whose upper bits mean nothing.
    width = SUB_BYTE.get(short_name(array.dtype))
    return viewed & np.uint8(2**width - 1) if width else viewed

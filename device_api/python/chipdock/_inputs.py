# SPDX-License-Identifier: Apache-2.0
"""What a caller gives as a model's input, checked against what the model declares."""

import numpy as np

from chipdock import _core
from chipdock._onnx_types import ValueInfo, inner_type, is_tensor
from chipdock._registry import host_device
from chipdock.errors import InvalidArgumentError

__all__ = ["as_input", "check_strings"]


def as_input(value: object, info: ValueInfo) -> object:
    """Check a value for an input; numbers, lists and str become arrays.

    Raises:
        InvalidArgumentError: It does not fit; the input is named.
    """
    if not is_tensor(info.type):
        return _as_host_value(value, info)
    if info.dtype.kind == "O":
        return _as_strings(value, info)
    if isinstance(value, _core.Array):
        if value.dtype != info.dtype:
            raise _dtype_error(info, value.dtype)
        return value
    if isinstance(value, np.generic):
        value = np.asarray(value)
    if not isinstance(value, np.ndarray):
        if hasattr(value, "__dlpack__"):
            value = _core.from_dlpack(value, host_device())
            return as_input(value, info)
        # Python numbers and lists have no dtype of their own: they take the model's if nothing is
        # lost.
        try:
            plain = np.asarray(value)
        except ValueError as error:
            raise InvalidArgumentError(
                f"INVALID_ARGUMENT: input {info.name!r} is not an array: {error}"
            ) from error
        if plain.dtype.kind not in "biuf" or (plain.dtype.kind == "f" and info.dtype.kind in "biu"):
            raise _dtype_error(info, plain.dtype, value)
        value = plain.astype(info.dtype)
        if info.dtype.kind in "biu" and not np.array_equal(value.astype(plain.dtype), plain):
            text = f"INVALID_ARGUMENT: input {info.name!r} has values that {info.dtype} cannot hold"
            raise InvalidArgumentError(text)
    if value.dtype != info.dtype:
        raise _dtype_error(info, value.dtype, value)
    return value


def _as_strings(value: object, info: ValueInfo) -> np.ndarray:
    """An array whose elements are str or bytes."""
    array = np.asarray(value, object) if isinstance(value, str | list | tuple) else value
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "OUST":
        kind = array.dtype if isinstance(array, np.ndarray | _core.Array) else type(value).__name__
        raise InvalidArgumentError(
            f"INVALID_ARGUMENT: input {info.name!r} is {kind}, the model wants strings: an array "
            "of str"
        )
    check_strings(array, f"input {info.name!r}")
    return array


def check_strings(array: np.ndarray, what: str) -> None:
    """Refuse text that no bytes stand for; surrogate escapes stand for bytes that are not UTF-8.

    Args:
        array: Any shape; elements that are no str are left to others.
        what: It, for the message.

    Raises:
        InvalidArgumentError: A str with a lone surrogate.
    """
    for text in array.flat:
        try:
            _ = text.encode(errors="surrogateescape") if isinstance(text, str) else b""
        except UnicodeEncodeError as error:
            raise InvalidArgumentError(
                f"INVALID_ARGUMENT: {what} holds {text!r}, which is not text: a lone surrogate at "
                f"{error.start}"
            ) from error


def _as_host_value(value: object, info: ValueInfo) -> object:
    """A list for a sequence; None, or what it holds, for an optional."""
    inner = ValueInfo(info.name, info.dtype, None, inner_type(info.type))
    if info.type.startswith("optional("):
        return None if value is None else as_input(value, inner)
    if not isinstance(value, list | tuple):
        raise InvalidArgumentError(
            f"INVALID_ARGUMENT: input {info.name!r} is {type(value).__name__}, the model wants "
            f"{info.type}: a list"
        )
    return [as_input(item, inner) for item in value]


def _dtype_error(info: ValueInfo, dtype: object, value: object = None) -> InvalidArgumentError:
    """For a `value` that became an array of `dtype`; texts and objects no .astype can mend."""
    wants = f"the model wants {info.dtype}; convert it with .astype first"
    what = str(dtype)
    if isinstance(dtype, np.dtype) and dtype.kind in "OUST":
        wants = f"the model wants an array of {info.dtype}"
        what = f"an array of {dtype}" if isinstance(value, np.ndarray) else type(value).__name__
    return InvalidArgumentError(f"INVALID_ARGUMENT: input {info.name!r} is {what}, {wants}")

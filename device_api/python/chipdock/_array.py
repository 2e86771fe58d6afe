# SPDX-License-Identifier: Apache-2.0
"""Making Arrays."""

from collections.abc import Sequence

import numpy as np

from chipdock import _core
from chipdock._registry import device as find_device
from chipdock._registry import host_device

__all__ = ["array", "empty", "from_dlpack"]


def array(values: object, device: "str | _core.Device" = "cpu:0") -> "_core.Array":
    """Copy values to a device.

    Args:
        values: numpy array, numbers, or nested lists of them, any shape; dtype as numpy sees it,
            with ml_dtypes for bfloat16, fp8 and 4-bit types.
        device: Where to.

    Returns:
        A new Array of the same shape and dtype.

    Raises:
        InvalidArgumentError: A dtype that no device can hold.
        OutOfMemoryError: It does not fit.
    """
    if isinstance(values, _core.Array):
        return values.to(find_device(device))
    return _core.array_from_numpy(np.asarray(values), find_device(device))


def empty(
    shape: Sequence[int], dtype: object = np.float32, device: "str | _core.Device" = "cpu:0"
) -> "_core.Array":
    """Make an Array whose elements are undefined.

    Args:
        shape: Extents, each 0 or more.
        dtype: numpy or ml_dtypes type.
        device: Where.

    Raises:
        InvalidArgumentError: A negative extent, or a dtype that no device can hold.
        OutOfMemoryError: It does not fit.
    """
    return _core.empty(list(shape), np.dtype(dtype), find_device(device))  # type: ignore[call-overload]


def from_dlpack(source: object) -> "_core.Array":
    """Take a tensor of another library without a copy.

    Args:
        source: Anything with __dlpack__ in host memory, any shape, strides and dtype of DLPack.

    Returns:
        An Array that shares the memory and keeps `source` alive. Devices that read host memory use
        it as it is; others copy it when a model runs.

    Raises:
        BufferError: The memory is not the host's.

    Source:
        DLPack 1.1, Python specification.
    """
    return _core.from_dlpack(source, host_device())

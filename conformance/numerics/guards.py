# SPDX-License-Identifier: Apache-2.0
"""Outputs inside a fence: memory filled with 0xCB, of which a kernel may write the middle only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import chipdock
from chipdock.conformance.case import fail
from chipdock.conformance.numerics.dtypes import SUB_BYTE, bits, short_name

__all__ = ["FILL", "Fence", "fenced", "mostly_zero", "unwritten"]

FILL = 0xCB
"""A byte that makes no small integer, no usual float and no true bool."""

_FENCE_BYTES = 256


class Fence:
    """An output array with canaries before and behind it.

    Attributes:
        array: What to bind.
    """

    def __init__(self, shape: Sequence[int], dtype: np.dtype[Any], device: chipdock.Device) -> None:
        """Allocates and fills it.

        Args:
            shape: Of the output, no extent 0.
            dtype: Of the output, at least a byte an element.
            device: Where.
        """
        # Only the first axis of an Array can be cut to dense parts, so the fence is made of rows.
        rows = tuple(shape) if shape else ()
        row_bytes = math.prod(rows[1:]) * dtype.itemsize
        # Whole multiples of 256 bytes keep the alignment that the plugin's allocation has.
        self._rows = _FENCE_BYTES // math.gcd(_FENCE_BYTES, row_bytes)
        first = rows[0] if rows else 1
        whole = (first + 2 * self._rows, *rows[1:])
        image = np.full(math.prod(whole) * dtype.itemsize, FILL, np.uint8)
        self._whole = chipdock.empty(whole, dtype, device)
        self._whole.copy_from(image.view(dtype).reshape(whole))
        middle = self._whole[self._rows : self._rows + first]
        self.array = middle if rows else middle[0]
        self._count = first

    def check(self, name: str) -> None:
        """Check that nothing was written outside of the output.

        Raises:
            CheckError: A canary died.
        """
        image = np.ascontiguousarray(self._whole.numpy())
        rows = image.view(np.uint8).reshape(image.shape[0], -1)
        for side, part in (
            ("before", rows[: self._rows]),
            ("behind", rows[self._rows + self._count :]),
        ):
            dead = np.flatnonzero(part.reshape(-1) != FILL)
            if dead.size:
                at = int(dead[-1]) - part.size if side == "before" else int(dead[0])
                fail(
                    f"{dead.size} bytes {side} {name} were overwritten, the nearest {abs(at)} "
                    f"bytes away",
                    metric="out_of_bounds_bytes", value=int(dead.size), limit=0, index=at,
                )  # fmt: skip


def fenced(shape: Sequence[int], dtype: np.dtype[Any], device: chipdock.Device) -> Fence | None:
    """Make a fenced output, or None where there can be none: no elements, or sub-byte elements."""
    sub_byte = short_name(dtype) in SUB_BYTE
    if not math.prod(shape) or sub_byte or dtype.kind not in "biufcV":
        return None
    return Fence(shape, dtype, device)


def unwritten(got: NDArray[Any]) -> bool:
    """Say whether an output of several elements still holds nothing but the fill."""
    if got.size < 4 or got.dtype.kind in "bOUST":
        return False
    whole = int.from_bytes(bytes([FILL]) * min(got.dtype.itemsize, 8), "little")
    return bool((bits(got) == whole).all())


def mostly_zero(got: NDArray[Any], exact: NDArray[Any]) -> bool:
    """Say whether an output is so full of zeros that agreement means little.

    Source:
        benchdnn calls such a result MISTRUSTED and draws the line at the same kind of share.
    """
    if got.size < 16 or got.dtype.kind in "bOUST":
        return False
    zeros = int(np.count_nonzero(np.asarray(exact) == 0))
    return zeros * 10 > got.size * 9

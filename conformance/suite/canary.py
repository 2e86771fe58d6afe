# SPDX-License-Identifier: Apache-2.0
"""Device memory with marked bytes around the part that a call may write."""

from __future__ import annotations

from typing import Any

from chipdock.conformance.case import fail
from chipdock.conformance.suite.device import RawDevice

__all__ = ["Fenced", "check_bytes"]

_MARK = 0xCB


def check_bytes(got: bytes, expected: bytes, what: str) -> None:
    """Fail at the first byte that differs."""
    if got == expected:
        return
    index = next(
        (i for i, (a, b) in enumerate(zip(got, expected, strict=False)) if a != b),
        min(len(got), len(expected)),
    )
    wrong = sum(a != b for a, b in zip(got, expected, strict=False))
    fail(
        f"{what}: {wrong} of {len(expected)} bytes are wrong, the first at {index}",
        metric="bytes",
        index=index,
        expected=expected[index : index + 8].hex(),
        got=got[index : index + 8].hex(),
        value=wrong,
        limit=0,
    )


class Fenced:
    """An allocation full of marks; `check` wants one range changed and no other byte.

    Attributes:
        memory: `chipdock_memory*`.
        size: Bytes of it.
    """

    def __init__(self, device: RawDevice, size: int) -> None:
        """Allocates `size` bytes and marks them all."""
        self.device, self.size = device, size
        self.memory: Any = device.alloc(size)
        device.write(self.memory, bytes([_MARK]) * size)

    def check(self, offset: int, expected: bytes, what: str = "target") -> None:
        """Read all and compare: `expected` at `offset`, marks elsewhere."""
        whole = bytearray([_MARK]) * self.size
        whole[offset : offset + len(expected)] = expected
        check_bytes(self.device.read(self.memory, self.size), bytes(whole), what)

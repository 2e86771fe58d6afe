# SPDX-License-Identifier: Apache-2.0
"""Arrays and a gate for the cases of streams that go through the host runtime."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np

import chipdock
from chipdock.conformance.case import fail

if TYPE_CHECKING:
    from chipdock.conformance.target import Target

__all__ = ["HostGate", "check", "make"]

_LIMIT_S = 1.0


class HostGate:
    """A host function that holds its stream up until `open`, or for a while at most [STR-2]."""

    def __init__(self, stream: chipdock.Stream) -> None:
        """Queues the gate."""
        self._open = threading.Event()
        self._done = threading.Event()
        stream.host_function(self._wait)

    def _wait(self, _state: str) -> None:
        self._open.wait(_LIMIT_S)
        self._done.set()

    @property
    def held(self) -> bool:
        """Whether the stream stands still."""
        return not self._done.is_set()

    def open(self) -> None:
        """Let the stream go on."""
        self._open.set()

    def __enter__(self) -> HostGate:
        """Return the gate."""
        return self

    def __exit__(self, *_: object) -> None:
        """Open, whatever happened."""
        self.open()


def make(target: Target, value: int, count: int = 1001) -> chipdock.Array:
    """Return an int32 array [count] on the device, each element `value`."""
    return chipdock.array(np.full(count, value, np.int32), target.device)


def check(array: chipdock.Array, value: int, what: str = "the array") -> None:
    """Fail unless each element is `value`."""
    got = array.copy_to_numpy()
    wrong = np.flatnonzero(got != value)
    if wrong.size:
        fail(
            f"{what}: {wrong.size} of {got.size} elements are not {value}",
            index=int(wrong[0]),
            expected=value,
            got=int(got[wrong[0]]),
            metric="elements",
            value=int(wrong.size),
        )

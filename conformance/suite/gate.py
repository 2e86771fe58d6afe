# SPDX-License-Identifier: Apache-2.0
"""Holding a stream up for as long as a case wants, so that order shows without sleeping.

A plugin may run work inside the enqueue [STR-2]. A gate is therefore never closed for ever: it
opens by itself after a while, and `held` tells whether the stream really stands still.
"""

from __future__ import annotations

import threading
from typing import Any

from chipdock.conformance.case import NotSupported
from chipdock.conformance.suite.device import RawDevice
from chipdock.conformance.suite.raw import STATUS

__all__ = ["Gate", "HostCall", "need_concurrency", "queue_call"]

_LIMIT_S = 1.0
_LONG_NS = 500_000_000


class HostCall:
    """A function of the host, queued once.

    Attributes:
        states: Status of the stream at each time it ran.
        done: Set after it ran.
    """

    def __init__(self) -> None:
        """Has not run yet."""
        self.states: list[int] = []
        self.done = threading.Event()

    def __call__(self, state: int) -> None:
        """Note the state of the stream."""
        self.states.append(state)
        self.done.set()


class Gate(HostCall):
    """A host function that waits until `open` is called."""

    def __init__(self, device: RawDevice, stream: Any) -> None:
        """Queues the gate on a stream."""
        super().__init__()
        self._open = threading.Event()
        queue_call(device, stream, self)

    def __call__(self, state: int) -> None:
        """Wait, then note the state."""
        self._open.wait(_LIMIT_S)
        super().__call__(state)

    @property
    def held(self) -> bool:
        """Whether the stream stands still at the gate or before it."""
        return not self.done.is_set()

    def open(self) -> None:
        """Let the stream go on."""
        self._open.set()

    def __enter__(self) -> Gate:
        """Return the gate."""
        return self

    def __exit__(self, *_: object) -> None:
        """Open, whatever happened."""
        self.open()


def queue_call(device: RawDevice, stream: Any, function: Any, tag: int = 0) -> None:
    """Queue a Python function of the stream's state; it is kept until the case ends."""

    def call(_context: Any, state: int) -> None:
        function(state)

    made = device.ffi.callback("void(void*, int32_t)", call)
    device.kept.append(made)
    desc = device.new("chipdock_host_function_desc", function=made, correlation_id=tag)
    device.ok("stream.host_function", stream, desc)


def need_concurrency(device: RawDevice) -> None:
    """Go on only if a stream runs on while another one is held up.

    Raises:
        NotSupported: It does not; nothing promises it.
    """
    first, second = device.stream(), device.stream()
    memory = device.alloc(64)
    with Gate(device, first) as gate:
        device.write(memory, bytes(64), stream=second)
        status = device.call("stream.sync", second, _LONG_NS)
        beside = status == STATUS["OK"] and gate.held
        gate.open()
    device.sync(first)
    device.sync(second)
    if not beside:
        raise NotSupported("streams that run beside each other")

# SPDX-License-Identifier: Apache-2.0
"""The pieces of work that level P measures; each runs in a process of its own, see side.py.

A function takes the device and one number, prepares, and returns what does the work and waits for
its end. Work is repeated until the clock and the pipe between the processes do not matter.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import chipdock
from chipdock.conformance.suite.models import chain, mlp

__all__ = ["copy_d2d", "copy_d2h", "copy_h2d", "elementwise", "gemm", "launch", "step", "sync"]

_BYTES = 1 << 22
"""About so much is copied in one piece of work."""

Work = Callable[[], None]


def _times(size: int) -> int:
    return max(1, min(64, _BYTES // size))


def launch(device: chipdock.Device, times: str) -> Work:
    """Launch a kernel on one element, `times` times, and wait once."""
    x = chipdock.array(np.ones(1, np.float32), device)

    def work() -> None:
        for _ in range(int(times)):
            chipdock.run_op("Add", x, x)
        device.sync()

    return work


def sync(device: chipdock.Device, times: str) -> Work:
    """Wait for a stream on which nothing is left to do."""
    stream = chipdock.Stream(device)

    def work() -> None:
        for _ in range(int(times)):
            stream.sync()

    return work


def copy_h2d(device: chipdock.Device, size: str) -> Work:
    """Copy bytes from the host into an array that is there."""
    source = np.ones(int(size), np.uint8)
    target = chipdock.array(source, device)

    def work() -> None:
        for _ in range(_times(source.nbytes)):
            target.copy_from(source)

    return work


def copy_d2h(device: chipdock.Device, size: str) -> Work:
    """Copy bytes to the host."""
    source = chipdock.array(np.ones(int(size), np.uint8), device)

    def work() -> None:
        for _ in range(_times(source.nbytes)):
            source.copy_to_numpy()

    return work


def copy_d2d(device: chipdock.Device, size: str) -> Work:
    """Copy bytes from one array of the device to another."""
    source, target = (chipdock.array(np.ones(int(size), np.uint8), device) for _ in range(2))
    stream = chipdock.Stream(device)

    def work() -> None:
        for _ in range(_times(source.nbytes)):
            stream.copy(source, target)
        stream.sync()

    return work


def gemm(device: chipdock.Device, size: str) -> Work:
    """Multiply two square matrices of float32."""
    n = int(size)
    a, b = (chipdock.array(np.ones((n, n), np.float32), device) for _ in range(2))
    times = max(1, min(64, 256**3 // n**3))

    def work() -> None:
        for _ in range(times):
            chipdock.run_op("MatMul", a, b)
        device.sync()

    return work


def elementwise(device: chipdock.Device, size: str) -> Work:
    """Run Add, Mul, Relu and Softmax on float32 [N]."""
    x = chipdock.array(np.ones(int(size), np.float32), device)

    def work() -> None:
        for _ in range(8):
            chipdock.run_op("Add", x, x)
            chipdock.run_op("Mul", x, x)
            chipdock.run_op("Relu", x)
            chipdock.run_op("Softmax", x)
        device.sync()

    return work


def step(device: chipdock.Device, name: str) -> Work:
    """Run a model: "mlp" on 32 rows, or a chain of so many Neg on 1024 numbers."""
    made = mlp() if name == "mlp" else chain(int(name))
    shape = (32, 8) if name == "mlp" else (1024,)
    model = chipdock.load(made, device, fallback="error")
    x = np.ones(shape, np.float32)

    def work() -> None:
        for _ in range(8):
            model.run({"x": x})

    return work

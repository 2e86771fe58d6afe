# SPDX-License-Identifier: Apache-2.0
"""What a device claims of its speed, against what copies on it reach.

A copy reads and writes, so it moves its bytes twice. It can be slower than the memory for many
reasons, a busy machine among them; it cannot be faster. So only a claim that is too low fails.
"""

from __future__ import annotations

import time

import numpy as np

import chipdock
from chipdock.conformance.case import NotSupported, fail
from chipdock.conformance.target import Target

__all__ = ["bandwidth", "block_of", "judge_bandwidth"]

_LEAST, _MOST = 64 << 20, 512 << 20
_CACHES = 4
_COPIES, _SAMPLES = 8, 5
_TOO_FAST, _SLOW = 1.1, 0.5


def block_of(l2_bytes: int, heap_bytes: int) -> int:
    """Return the size of a block that no cache holds, and of which the heap holds several.

    Raises:
        NotSupported: There is none.
    """
    size = max(_LEAST, _CACHES * l2_bytes)
    if size > _MOST or (heap_bytes and 4 * size > heap_bytes):
        raise NotSupported(
            f"memory for blocks of {size >> 20} MiB, more than the cache of {l2_bytes} bytes holds"
        )
    return size


def judge_bandwidth(target: Target, rate: float, claim: int) -> None:
    """Record a rate and hold the claim against it.

    Args:
        target: Of the case.
        rate: Bytes per second, read and written.
        claim: `memory_bandwidth` of the device.

    Raises:
        CheckError: The device is faster than it says it can be.
    """
    share = rate / claim
    target.record(metric="bandwidth", value=rate, limit=claim, share=share)
    text = f"copies move {rate:.3e} bytes per second, the device claims {claim:.3e}"
    if share > _TOO_FAST:
        fail(f"{text}: that is {share:.2f} of what it says it can do; is the unit bytes per second")
    if share < _SLOW:
        target.warn(f"{text}: {100 * share:.0f} % of it, or the machine is busy")


def bandwidth(target: Target) -> None:
    """Copy large blocks on the device and judge its claim.

    Raises:
        NotSupported: It claims nothing, or its memory is too small to tell.
        CheckError: See `judge_bandwidth`.
    """
    info = target.plugin.device_info(target.index)
    claim = int(info["memory_bandwidth"])
    if claim == 0:
        raise NotSupported("memory_bandwidth in device_info: 0 is unknown")
    size = block_of(int(info["l2_bytes"]), int(info["heaps"][0]["bytes"]))
    device = target.device
    source, copied = (chipdock.array(np.ones(size, np.uint8), device) for _ in range(2))
    stream = chipdock.Stream(device)

    def work() -> float:
        begin = time.perf_counter()
        for _ in range(_COPIES):
            stream.copy(source, copied)
        stream.sync()
        return time.perf_counter() - begin

    work()
    judge_bandwidth(target, 2 * size * _COPIES / min(work() for _ in range(_SAMPLES)), claim)

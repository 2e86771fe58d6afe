# SPDX-License-Identifier: Apache-2.0
"""What a process holds, and the rule by which work that is done again and again must not hold more.

50 iterations to warm up, then 200 measured: what the plugin counts is equal, the resident set grows
by less than 4 KiB an iteration, open files and threads are as many as before.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from chipdock.conformance.case import NotSupported, fail

__all__ = ["Footprint", "check_no_growth"]

_WARM_UP, _MEASURED = 50, 200
_SLOPE = 4096
_PROC = Path("/proc/self")


@dataclass(frozen=True)
class Footprint:
    """What this process holds now.

    Attributes:
        resident: Bytes of the resident set.
        files: Open file descriptors.
        threads: Threads.
    """

    resident: int
    files: int
    threads: int

    @staticmethod
    def now() -> Footprint:
        """Read it.

        Raises:
            NotSupported: The system has no /proc.
        """
        gc.collect()
        if not (_PROC / "statm").exists():
            raise NotSupported("/proc of Linux")
        pages = int((_PROC / "statm").read_text(encoding="ascii").split()[1])
        return Footprint(
            resident=pages * os.sysconf("SC_PAGE_SIZE"),
            files=len(list((_PROC / "fd").iterdir())),
            threads=len(list((_PROC / "task").iterdir())),
        )


def check_no_growth(
    work: Callable[[], object],
    counters: Callable[[], object] = lambda: None,
    *,
    measured: int = _MEASURED,
) -> None:
    """Do the work again and again, and fail if anything stays behind.

    Args:
        work: Ends what it makes.
        counters: What the plugin or the runtime counts as live, compared for equality.
        measured: Iterations behind the warm-up.

    Raises:
        CheckError: Something stayed behind.
    """
    for _ in range(min(_WARM_UP, measured)):
        work()
    live, first = counters(), Footprint.now()
    growth = 0.0
    # An allocator grows in steps: a true leak shows in each of three windows.
    for _ in range(3):
        start = Footprint.now()
        for _ in range(measured):
            work()
        growth = (Footprint.now().resident - start.resident) / measured
        if growth < _SLOPE:
            break
    else:
        fail(
            f"the process grows by {growth:.0f} bytes an iteration, allowed are {_SLOPE}",
            metric="bytes_per_iteration",
            value=growth,
            limit=_SLOPE,
        )
    last = Footprint.now()
    if counters() != live:
        fail("live handles or bytes differ", metric="live", expected=str(live), got=str(counters()))
    if last.files > first.files:
        fail("file descriptors stay open", metric="files", value=last.files, limit=first.files)
    if last.threads > first.threads:
        fail("threads stay behind", metric="threads", value=last.threads, limit=first.threads)

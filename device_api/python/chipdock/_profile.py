# SPDX-License-Identifier: Apache-2.0
"""Profiling: what ran when, as Chrome trace JSON."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from chipdock import _core

__all__ = ["Profile", "active_profiler", "profile"]

_active: "ContextVar[_core.Profiler | None]" = ContextVar("chipdock_profiler", default=None)


def active_profiler() -> "_core.Profiler | None":
    """Profiler of the innermost profile() around the caller, None outside of one."""
    return _active.get()


class Profile:
    """Records of one profile() block."""

    def __init__(self, profiler: "_core.Profiler") -> None:
        """Use profile()."""
        self._profiler = profiler

    @property
    def records(self) -> list[dict[str, Any]]:
        """One dict per node or copy: name, category, start_ns, duration_ns, device, args."""
        return self._profiler.records()

    def total_by_name(self) -> dict[str, tuple[int, int]]:
        """Operator to (number of calls, nanoseconds), longest first."""
        totals: dict[str, tuple[int, int]] = {}
        for record in self.records:
            calls, spent = totals.get(record["name"], (0, 0))
            totals[record["name"]] = (calls + 1, spent + record["duration_ns"])
        return dict(sorted(totals.items(), key=lambda item: -item[1][1]))


@contextmanager
def profile(path: "str | os.PathLike[str] | None" = None) -> Iterator[Profile]:
    """Profile the model runs of this thread (and of tasks started in it) inside the block.

    Args:
        path: Where to write Chrome trace JSON at the end (chrome://tracing, Perfetto); None:
            nowhere.

    Yields:
        The Profile, whose records grow while the block runs.

    Raises:
        UnavailableError: `path` cannot be written.
    """
    profiler = _core.Profiler()
    token = _active.set(profiler)
    try:
        yield Profile(profiler)
    finally:
        _active.reset(token)
    if path is not None:
        profiler.write(os.fspath(path))

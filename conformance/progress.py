# SPDX-License-Identifier: Apache-2.0
"""Signs of life of a run on stderr: a bar on a terminal, else a line every few seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

__all__ = ["HEARTBEAT_S", "Display"]

HEARTBEAT_S = 10.0
"""Time between two lines where stderr is not a terminal, in seconds."""


class Display:
    """Shows how far a run is; to be used in a with statement."""

    def __init__(self, total: int) -> None:
        """Makes a display for a run of `total` cases."""
        self._total = total
        self._start = self._last = time.monotonic()
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Display:
        """Start it."""
        if sys.stderr.isatty():
            from rich.console import Console  # noqa: PLC0415  drawn on terminals only
            from rich.progress import (  # noqa: PLC0415
                BarColumn,
                MofNCompleteColumn,
                Progress,
                TextColumn,
                TimeElapsedColumn,
            )

            columns = ("{task.description}", "{task.fields[counts]}")
            self._bar = Progress(
                BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn(),
                *(TextColumn(text, markup=False) for text in columns[::-1]),
                console=Console(stderr=True, highlight=False), transient=True,
            )  # fmt: skip
            self._bar.start()
            self._task = self._bar.add_task("", total=self._total, counts="")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End it; nothing is left on the terminal."""
        if self._bar is not None:
            self._bar.stop()

    def update(
        self, done: int, counts: Mapping[str, int], current: Sequence[str], repeating: int = 0
    ) -> None:
        """Show the state of the run.

        Args:
            done: Cases that have a record.
            counts: By outcome.
            current: Ids that run now.
            repeating: Failures that are repeated alone, behind all other cases.
        """
        words = ", ".join(f"{count} {name}" for name, count in counts.items())
        now = current[0] if current else "no case" if done < self._total else "the end"
        if repeating:
            now = f"repeating {repeating} {'failure' if repeating == 1 else 'failures'} alone"
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done, counts=words, description=now)
        elif time.monotonic() - self._last >= HEARTBEAT_S:
            self._last = time.monotonic()
            seconds = self._last - self._start
            sys.stderr.write(f"{done}/{self._total} after {seconds:.0f} s: {words}; now {now}\n")
            sys.stderr.flush()

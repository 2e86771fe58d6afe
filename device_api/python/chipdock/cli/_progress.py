# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: PLC0415  rich is imported where something is drawn
"""Signs of life on stderr: a spinner on a terminal, else a line every few seconds."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import click

__all__ = ["HEARTBEAT_S", "working"]

HEARTBEAT_S = 10.0
"""Time between two lines where stderr is not a terminal, in seconds."""


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show that `what` is being done for as long as the block runs; nothing is left behind.

    Args:
        what: Such as "loading magika". Short work shows nothing when stderr is not a terminal.
    """
    if sys.stderr.isatty():
        from rich.console import Console

        with Console(stderr=True, highlight=False).status(f"{what} …"):
            yield
        return
    done = threading.Event()
    start = time.monotonic()

    def beat() -> None:
        while not done.wait(HEARTBEAT_S):
            click.echo(f"{what}: still at it after {time.monotonic() - start:.0f} s", err=True)

    thread = threading.Thread(target=beat, name="chipdock-heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()

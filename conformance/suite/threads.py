# SPDX-License-Identifier: Apache-2.0
"""Running functions in threads that start together; the first exception is the caller's."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

__all__ = ["run_together"]


def run_together(functions: Sequence[Callable[[], object]]) -> None:
    """Run each function in a thread of its own and wait for all.

    Raises:
        Exception: The first that any of them raised.
    """
    barrier = threading.Barrier(len(functions))
    failures: list[BaseException] = []

    def run(function: Callable[[], object]) -> None:
        barrier.wait()
        try:
            function()
        except BaseException as error:  # it is raised again below, in the caller's thread
            failures.append(error)

    threads = [threading.Thread(target=run, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]

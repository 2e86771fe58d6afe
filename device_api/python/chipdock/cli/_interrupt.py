# SPDX-License-Identifier: Apache-2.0
"""Makes Ctrl-C end the process soon even where Python cannot see it.

Python raises KeyboardInterrupt between bytecodes of the main thread. A plugin that hangs keeps the
main thread in C, so a second thread watches, and ends the process when the first did not.
Libraries may turn a KeyboardInterrupt into another error, so that one came is kept too.
"""

import os
import signal
import threading
import time
from types import FrameType

from chipdock.cli.exit_codes import ExitCode

__all__ = ["GRACE_S", "guard_interrupts", "was_interrupted"]

GRACE_S = 1.0
"""Time that the orderly way out may take, in seconds. A second Ctrl-C does not wait for it."""


def _end_after_grace(reader: int) -> None:
    while os.read(reader, 1)[0] != signal.SIGINT:
        pass
    deadline = time.monotonic() + GRACE_S
    os.set_blocking(reader, False)
    while time.monotonic() < deadline:
        time.sleep(0.02)
        try:
            if signal.SIGINT in os.read(reader, 16):
                break
        except BlockingIOError:
            continue
    os.write(2, b"interrupted\n")
    os._exit(ExitCode.INTERRUPTED)


_seen = threading.Event()


def _on_interrupt(_number: int, _frame: FrameType | None) -> None:
    _seen.set()
    raise KeyboardInterrupt


def was_interrupted() -> bool:
    """Return whether Ctrl-C came, whatever became of the exception."""
    return _seen.is_set()


def guard_interrupts() -> None:
    """Start the watcher; call once, from the main thread of a process that is ours."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, _on_interrupt)
    threading.Thread(
        target=_end_after_grace, args=(reader,), name="chipdock-interrupt", daemon=True
    ).start()

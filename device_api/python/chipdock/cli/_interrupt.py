# SPDX-License-Identifier: Apache-2.0
"""Makes Ctrl-C end the process soon even where Python cannot see it.

Python raises KeyboardInterrupt between bytecodes of the main thread. A plugin that hangs keeps the
main thread in C, so a second thread watches, and ends the process when the first did not.
"""

import os
import signal
import threading
import time

from chipdock.cli.exit_codes import ExitCode

__all__ = ["GRACE_S", "guard_interrupts"]

GRACE_S = 2.0
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


def guard_interrupts() -> None:
    """Start the watcher; call once, from the main thread of a process that is ours."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    threading.Thread(
        target=_end_after_grace, args=(reader,), name="chipdock-interrupt", daemon=True
    ).start()

# SPDX-License-Identifier: Apache-2.0
"""Runs a command that ends when its owner does: `python -m chipdock.conformance.leash CMD …`.

A worker of a cluster can be killed in a way that lets it end nothing. The run it had started would
go on with a device that the next worker opens. So this process stands between: its standard input
is a pipe of the owner, and when that ends, the command is asked to end, and then made to.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Sequence

__all__ = ["command", "main"]

_GRACE_S = 20


def command(words: Sequence[str]) -> list[str]:
    """Return the command that runs `words` on a leash; its standard input has to be a pipe."""
    return [sys.executable, "-m", "chipdock.conformance.leash", *words]


def _hold(run: subprocess.Popen[bytes]) -> None:
    while os.read(0, 4096):  # not sys.stdin, whose lock would be held when Python ends
        pass
    run.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        run.wait(_GRACE_S)
    run.kill()


def main() -> int:
    """Run the command of the arguments; returns its exit code, 128 + N if signal N ended it."""
    run = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
    threading.Thread(target=_hold, args=(run,), daemon=True).start()
    code = run.wait()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())

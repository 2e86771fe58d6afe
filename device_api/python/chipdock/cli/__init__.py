# SPDX-License-Identifier: Apache-2.0
"""The command line, `chipdock`.

Nothing slow is imported before a command needs it, so that help and completion answer at once.
"""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line of this process and exit with its code (exit_codes.py)."""
    try:
        from chipdock.cli._app import cli  # noqa: PLC0415  a Ctrl-C may come this early
        from chipdock.cli._interrupt import guard_interrupts  # noqa: PLC0415

        guard_interrupts()
        cli.main(prog_name="chipdock")
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)

# SPDX-License-Identifier: Apache-2.0
"""The one table of exit codes, in order of priority, and which error gives which.

Every command of chipdock uses it. When several things happened in one run, the first of the table
that holds is the exit code.
"""

from collections.abc import Iterable
from enum import IntEnum

__all__ = ["PRIORITY", "ExitCode", "for_error", "worst"]


class ExitCode(IntEnum):
    """Exit codes of all chipdock commands."""

    GOOD = 0
    FAILURES = 1
    USAGE = 2
    NOT_RUN = 3
    NOT_STARTED = 4
    INFRASTRUCTURE = 5
    WAIVERS = 6
    REGRESSION = 7
    REFUSED = 8
    INTERRUPTED = 130
    PIPE_CLOSED = 141


PRIORITY: tuple[tuple[ExitCode, str], ...] = (
    (ExitCode.USAGE, "usage, an unknown name, or input that cannot be used"),
    (ExitCode.INTERRUPTED, "interrupted"),
    (ExitCode.NOT_STARTED, "a plugin could not be loaded or a device not started"),
    (ExitCode.INFRASTRUCTURE, "a device was lost, or the infrastructure failed"),
    (ExitCode.NOT_RUN, "nothing ran, or something that was asked for could not be had"),
    (ExitCode.FAILURES, "failures"),
    (ExitCode.WAIVERS, "only failures that are waived"),
    (ExitCode.REGRESSION, "slower or larger than the record it is compared with"),
    (ExitCode.REFUSED, "a bundle was refused"),
    (ExitCode.GOOD, "all good"),
)
"""Codes with their meaning, the most important first. PIPE_CLOSED stands outside: the reader of the
output left, as with any program that SIGPIPE ends."""

_BY_STATUS = {
    "INVALID_ARGUMENT": ExitCode.USAGE,
    "UNSUPPORTED": ExitCode.NOT_RUN,
    "UNAVAILABLE": ExitCode.NOT_STARTED,
    "VERSION_MISMATCH": ExitCode.NOT_STARTED,
    "DEVICE_LOST": ExitCode.INFRASTRUCTURE,
    "RESET_REQUIRED": ExitCode.INFRASTRUCTURE,
    "PEER_FAILED": ExitCode.INFRASTRUCTURE,
    "TIMEOUT": ExitCode.INFRASTRUCTURE,
    "BUSY": ExitCode.INFRASTRUCTURE,
    "SHUTDOWN": ExitCode.INFRASTRUCTURE,
}


def for_error(status: str) -> ExitCode:
    """Return the exit code of an error by its status name, such as "DEVICE_LOST"."""
    return _BY_STATUS.get(status, ExitCode.FAILURES)


def worst(codes: Iterable[ExitCode]) -> ExitCode:
    """Return the code that comes first in PRIORITY; GOOD when there is none."""
    rank = {code: index for index, (code, _) in enumerate(PRIORITY)}
    return min(codes, key=lambda code: rank.get(code, -1), default=ExitCode.GOOD)

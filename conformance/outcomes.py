# SPDX-License-Identifier: Apache-2.0
"""What can become of a case, and which exit code a run of many gets."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from chipdock.cli.exit_codes import ExitCode, worst

__all__ = ["FAILED", "Outcome", "exit_code"]


class Outcome(StrEnum):
    """The result of one case. Outcomes are counted side by side and never added together."""

    PASS = "PASS"
    QUALITY_WARN = "QUALITY_WARN"
    """Passed, with a remark about the evidence, such as an output that is nearly all zero."""
    FAIL = "FAIL"
    CRASH = "CRASH"
    """The process died in it."""
    TIMEOUT = "TIMEOUT"
    UNSUPPORTED = "UNSUPPORTED"
    """The plugin declares that it lacks what the case needs."""
    CLAIMED_UNSUPPORTED = "CLAIMED_UNSUPPORTED"
    """The plugin declares it and then answered UNSUPPORTED."""
    FLAKY = "FLAKY"
    """Failed in its batch, passed alone, and the same prefix did not fail again."""
    ORDER_DEPENDENT = "ORDER_DEPENDENT"
    """Fails behind certain other cases only; the evidence names them."""
    WAIVED = "WAIVED"
    XPASS = "XPASS"
    """Waived, and passed: the waiver has to go."""
    NOT_RUN = "NOT_RUN"
    """Selected and never started; the evidence says why."""
    MISSING = "MISSING"
    """In the manifest's selection and in no result."""


FAILED = frozenset(
    {
        Outcome.FAIL,
        Outcome.CRASH,
        Outcome.TIMEOUT,
        Outcome.CLAIMED_UNSUPPORTED,
        Outcome.FLAKY,
        Outcome.ORDER_DEPENDENT,
    }
)
"""Outcomes that fail a run unless a waiver covers them."""


def exit_code(outcomes: Iterable[Outcome], *, quarantined: bool = False) -> ExitCode:
    """Return the exit code of a run.

    Args:
        outcomes: One for each selected case. None at all is NOT_RUN.
        quarantined: The device was given up in the middle of the run.
    """
    seen = set(outcomes)
    codes = []
    if quarantined:
        codes.append(ExitCode.INFRASTRUCTURE)
    ran = seen - {Outcome.NOT_RUN, Outcome.MISSING, Outcome.UNSUPPORTED}
    if not ran or seen & {Outcome.NOT_RUN, Outcome.MISSING}:
        codes.append(ExitCode.NOT_RUN)
    if seen & FAILED:
        codes.append(ExitCode.FAILURES)
    if Outcome.XPASS in seen:
        codes.append(ExitCode.WAIVERS)
    return worst(codes)

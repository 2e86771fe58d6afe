# SPDX-License-Identifier: Apache-2.0
"""The health of the device in a run: doubted, probed, reset by the vendor's command, given up."""

from __future__ import annotations

import subprocess
from typing import Final

from chipdock.conformance.journal import Journal

__all__ = ["Health"]

_RESET_S: Final = 300
_MOST_RESETS: Final = 5


class Health:
    """What is known of the device's health.

    Attributes:
        suspect: A worker ended abnormally and no probe has answered since.
        quarantined: Why the device was given up, "" as long as it was not.
        opened: The device could be opened at least once.
        probes: Whether probes tell anything: not if the first one failed before any case ran.
    """

    def __init__(self, journal: Journal, reset_command: str = "") -> None:
        """Starts with a device in good health.

        Args:
            journal: Where events go.
            reset_command: Shell command that brings an ill device back, "" for none.
        """
        self._journal = journal
        self._command = reset_command
        self._resets = 0
        self._just_reset = False
        self.suspect = False
        self.quarantined = ""
        self.opened = False
        self.probes = True

    def doubt(self) -> None:
        """Let the next worker ask the device first."""
        self.suspect = self.probes

    def good(self, text: str) -> None:
        """Take a probe's answer."""
        self._journal.event("probe_ok", text)
        self.opened = True
        self.suspect = self._just_reset = False

    def failed(self, cause: str) -> None:
        """Take a probe that failed; no worker is left. Resets the device or gives it up."""
        self._journal.event("probe_failed", cause)
        if not self._command:
            self.give_up(f"{cause}; there is no --reset-cmd")
        elif self._just_reset or self._resets >= _MOST_RESETS:
            self.give_up(f"{cause}, after resets: {self._resets}")
        else:
            self._reset()

    def _reset(self) -> None:
        self._resets += 1
        self._just_reset = self.suspect = True
        try:
            done = subprocess.run(
                self._command, shell=True, timeout=_RESET_S, capture_output=True, check=False
            )
        except subprocess.TimeoutExpired:
            self.give_up(f"the reset command took longer than {_RESET_S} s")
            return
        words = (done.stdout + done.stderr).decode("utf-8", "replace").strip()[-500:]
        self._journal.event(
            "reset", f"exit code {done.returncode}: {self._command}\n{words}".strip()
        )

    def give_up(self, cause: str) -> None:
        """Run nothing more on the device."""
        self.quarantined = cause
        self._journal.event("quarantined", cause)

# SPDX-License-Identifier: Apache-2.0
"""Records of cases: from what a worker says of one, and from how a worker died in one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chipdock.conformance.case import Case
from chipdock.conformance.journal import CaseRecord
from chipdock.conformance.outcomes import Outcome
from chipdock.conformance.pool import Death, Worker

__all__ = ["record_of_case", "record_of_death", "tail"]

_MOST_CALLS = 32
_MOST_OUTPUT = 4096
_CORE_PATTERN = Path("/proc/sys/kernel/core_pattern")


def tail(path: Path, start: int, most: int = _MOST_OUTPUT) -> str:
    """Return the end of what a file holds from byte `start` on, at most `most` bytes."""
    with path.open("rb") as file:
        end = file.seek(0, 2)
        file.seek(max(start, end - most))
        return file.read().decode("utf-8", "replace")


def record_of_case(facts: Case, worker: int, said: Mapping[str, Any]) -> CaseRecord:
    """Return the record of a case that ended by itself."""
    keys = ("reason", "evidence", "ms", "digest", "stdout", "stderr", "fallback")
    return CaseRecord(
        id=facts.id,
        outcome=Outcome(said["outcome"]),
        revision=facts.revision,
        worker=worker,
        duties=facts.duties,
        calls=tuple((slot, status) for slot, status in said.get("calls", ())),
        **{key: said[key] for key in keys if key in said},
    )


def record_of_death(
    facts: Case,
    worker: Worker,
    death: Death,
    started: Mapping[str, int],
    *,
    ended: bool,
    statuses: tuple[str, ...],
) -> CaseRecord:
    """Return the record of the case in which, or right after which, a worker died.

    Args:
        facts: Of the case.
        worker: That died.
        death: How.
        started: What the worker said of its files when the case started.
        ended: The case had ended already, and nothing else had started.
        statuses: Names of the status codes.
    """
    calls: list[list[str]] = []
    if worker.recorder is not None:
        calls = worker.recorder.calls(started.get("calls", 0), _MOST_CALLS, statuses)
    running = [slot for slot, status in calls if status == "RUNNING"]
    where = f" in {running[-1]}" if running else " outside of calls to the plugin" if calls else ""
    if death.overrun and not ended:
        outcome, reason = Outcome.TIMEOUT, f"took longer than {death.limit:.1f} s{where}"
    elif death.memory:
        size = f"{death.memory / 2**20:.0f} MiB"
        outcome, reason = Outcome.CRASH, f"ended for using {size} of memory{where}"
    else:
        how = death.signal or f"exit code {death.code}"
        outcome, reason = Outcome.CRASH, f"the process died of {how}{where}"
    if ended:
        reason += ", after the case had ended"
    evidence: dict[str, Any] = {}
    core = _core(worker)
    if core:
        evidence["core"] = core
    return CaseRecord(
        id=facts.id,
        outcome=outcome,
        revision=facts.revision,
        worker=worker.number,
        reason=reason,
        evidence=evidence,
        duties=facts.duties,
        calls=tuple((slot, status) for slot, status in calls),
        signal=death.signal,
        stdout=tail(worker.files["stdout"], started.get("out", 0)),
        stderr=tail(worker.files["stderr"], started.get("err", 0)),
    )


def _core(worker: Worker) -> str:
    """Where the core is, or which program got it; "" if there is none to be found."""
    try:
        pattern = _CORE_PATTERN.read_text(encoding="ascii").strip()
    except OSError:
        return ""
    if pattern.startswith("|"):
        handler = pattern[1:].split()[0]
        return f"given to {handler}, process {worker.process.pid}" if "coredump" in handler else ""
    folder = worker.files["stdout"].parent
    found = [*folder.glob(f"core*{worker.process.pid}*"), *folder.glob("core")]
    return str(found[0]) if found else ""

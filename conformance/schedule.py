# SPDX-License-Identifier: Apache-2.0
"""The scheduler: gives batches to workers, turns messages and deaths into records, goes on.

Failures are looked into when the batches are done (suspects.py). What processes are and how they
are watched is in pool.py, the health of the device in health.py.
"""

from __future__ import annotations

import dataclasses
import signal
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chipdock.conformance._attribute import record_of_case, record_of_death, tail
from chipdock.conformance.case import Case
from chipdock.conformance.health import Health
from chipdock.conformance.isolate import BAD
from chipdock.conformance.journal import CaseRecord, Journal
from chipdock.conformance.manifest import Manifest
from chipdock.conformance.outcomes import Outcome
from chipdock.conformance.plan import group_of
from chipdock.conformance.pool import Death, Pool, Worker
from chipdock.conformance.suspects import Suspects, Trial

__all__ = ["Limits", "Scheduler"]

_MOST_STARTS = 3


@dataclass(frozen=True, slots=True)
class Limits:
    """How long things may take, in seconds.

    Attributes:
        scale: --timeout-scale.
    """

    scale: float = 1.0

    def start(self) -> float:
        """Python, pytest and the files of a batch."""
        return 60 + 60 * self.scale

    def device(self) -> float:
        """Opening the device, or asking it something."""
        return 60 * self.scale

    def case(self, budget_ms: int, warm_up: bool) -> float:
        """One case; the first of an operator in a worker may have to compile."""
        return (max(2.0, 20 * budget_ms / 1e3) + (20.0 if warm_up else 0.0)) * self.scale


@dataclass
class _Role:
    """What a worker is there for, and where it stands."""

    trial: Trial | None = None
    probing: bool = False
    ready: bool = False
    left: deque[str] = field(default_factory=deque)
    current: str = ""
    last: str = ""
    started: Mapping[str, Any] = field(default_factory=dict)
    warm: set[str] = field(default_factory=set)
    before_batch: int = 0


class Scheduler:
    """Runs batches.

    Attributes:
        health: Of the device.
    """

    def __init__(
        self,
        manifest: Manifest,
        pool: Pool,
        journal: Journal,
        health: Health,
        *,
        jobs: int,
        limits: Limits,
        settled: Callable[[CaseRecord], None],
        look_into: bool = True,
    ) -> None:
        """Makes a scheduler with nothing to do.

        Args:
            manifest: Of the suite.
            pool: Where workers come from.
            journal: Where events go.
            health: Of the device.
            jobs: How many workers at a time.
            limits: In time.
            settled: Takes each record, the first of a case and the final one.
            look_into: Re-run what failed to tell its own failures from flaky ones.
        """
        self._manifest = manifest
        self._pool = pool
        self._journal = journal
        self._jobs = jobs
        self._limits = limits
        self._settled = settled
        self._look_into = look_into
        self._batches: deque[list[str]] = deque()
        self._suspects = Suspects(settled)
        self._roles: dict[int, _Role] = {}
        self._early_deaths: Counter[str] = Counter()
        self._gave_up = False
        self.health = health

    @property
    def current(self) -> list[str]:
        """Ids of the cases that run now."""
        return [role.current for role in self._roles.values() if role.current]

    @property
    def repeating(self) -> int:
        """Number of failures that are repeated alone or wait for it, once the batches are done."""
        roles = self._roles.values()
        busy = self._batches or any(r.trial is None and (r.left or r.current) for r in roles)
        return 0 if busy else len(self._suspects) + sum(r.trial is not None for r in roles)

    def adopt(self, worker: Worker) -> None:
        """Take over a worker that is ready and has run nothing."""
        self._roles[worker.number] = _Role(ready=True)

    def run(self, batches: Sequence[list[str]], tick: Callable[[], None]) -> None:
        """Run all batches and look into what failed.

        Args:
            batches: Lists of ids.
            tick: Called at least once a second.
        """
        self._suspects = Suspects(self._settled)
        self._batches.extend(batches)
        self._gave_up = False
        for worker in list(self._pool.workers.values()):
            self._assign(worker)
        while self._batches or self._suspects or self._pool.workers:
            if self.health.quarantined and not self._gave_up:
                self._give_up()
            self._start_workers()
            for worker, message in self._pool.events(1.0):
                if isinstance(message, Death):
                    self._died(worker, message)
                else:
                    self._heard(worker, message)
            tick()

    def stop(self) -> None:
        """Run no more than what workers already have."""
        self._batches.clear()

    def _start_workers(self) -> None:
        while len(self._pool.workers) < self._jobs:
            if self.health.suspect and any(role.probing for role in self._roles.values()):
                return  # one asks, the others wait for the answer
            trial = None
            mains = [role for role in self._roles.values() if role.trial is None]
            free = [role for role in mains if not (role.left or role.current or role.last)]
            if self._batches and len(free) >= len(self._batches):
                return  # those that are starting will take them
            if not self._batches:
                if any(role.left or role.current for role in mains):
                    return  # it may fail yet, or leave work behind
                trial = self._suspects.next()
                if trial is None:
                    return
                trial.started += 1
            worker = self._pool.start()
            worker.expect("start", self._limits.start())
            self._roles[worker.number] = _Role(trial=trial, probing=self.health.suspect)

    def _assign(self, worker: Worker) -> None:
        """Give a worker that waits its next batch, or let it go."""
        role = self._roles[worker.number]
        if worker.retired:
            return
        if role.trial is not None and not worker.history:
            cases = list(role.trial.cases)
        elif role.trial is None and self._batches and not self.health.suspect:
            cases = self._batches.popleft()
        else:
            self._pool.retire(worker)
            return
        role.left = deque(cases)
        role.before_batch = len(worker.history)
        rows = [self._manifest.rows[case_id] for case_id in cases]
        opens = any(row.case.level != "L0" for row in rows)
        worker.expect("open", self._limits.start() + self._limits.device())
        worker.tell(cmd="run", open=opens, cases=[[row.case.id, row.file] for row in rows])

    # What a worker says.

    def _heard(self, worker: Worker, message: Mapping[str, Any]) -> None:
        role = self._roles.get(worker.number)
        if role is None:
            return  # it was ended while it said this
        kind = message["type"]
        if kind == "ready":
            role.ready = True
            if role.probing:
                worker.expect("probe", self._limits.device())
                worker.tell(cmd="probe")
            else:
                self._assign(worker)
        elif kind == "probed":
            role.probing = False
            self.health.good(message["text"])
            self._assign(worker)
        elif kind == "error":  # of a probe, or of opening the device for a batch
            if message["code"] == "BUSY" and len(self._pool.workers) > 1:
                self._share_less(worker, role, message["text"])
            else:
                self._ill(message["text"])
        elif kind == "opened":
            self.health.opened = self.health.opened or bool(message["device"])
        elif kind == "idle":
            self._assign(worker)
        else:
            tell = {"start": self._started, "case": self._ended, "skipped": self._skipped}[kind]
            tell(worker, role, message)

    def _started(self, worker: Worker, role: _Role, message: Mapping[str, Any]) -> None:
        facts = self._facts(message["id"])
        role.left.popleft()
        role.current, role.started = facts.id, message
        warm_up = bool(facts.op) and facts.op not in role.warm
        role.warm.add(facts.op)
        worker.history.append(facts.id)
        worker.expect(facts.id, self._limits.case(facts.budget_ms, warm_up))
        if role.trial is None:
            row = {"type": "start", "id": facts.id, "worker": worker.number, "attempt": 1}
            self._journal.write(row)

    def _ended(self, worker: Worker, role: _Role, message: Mapping[str, Any]) -> None:
        facts = self._facts(role.current)
        role.last, role.current = role.current, ""
        worker.expect("between cases", self._limits.device())
        self._finish(worker, role, record_of_case(facts, worker.number, message))
        if message["lost"]:
            self._journal.event("device_lost", facts.id)
            self.health.doubt()
            self._drop(worker)

    def _skipped(self, _worker: Worker, role: _Role, _message: Mapping[str, Any]) -> None:
        case_id = role.left.popleft()
        reason = self._suspects.stopped[group_of(case_id)]
        self._settled(self._blank(case_id, Outcome.NOT_RUN, reason))

    def _drop(self, worker: Worker) -> None:
        """End a worker whose device is of no use; what it says from here on counts no more."""
        role = self._roles.pop(worker.number)
        if role.trial is not None:
            # Another case of a trial lost the device: what was asked did not come again.
            self._suspects.answer(
                role.trial, dataclasses.replace(role.trial.first, outcome=Outcome.NOT_RUN)
            )
        self._requeue(role)
        worker.signal_group(signal.SIGKILL)

    def _finish(self, worker: Worker, role: _Role, record: CaseRecord) -> None:
        """Take the record of a case that ended in some way."""
        if role.trial is not None:
            if not role.left:
                trial, role.trial = role.trial, None
                role.current = role.last = ""
                self._suspects.answer(trial, record)
                self._pool.retire(worker)
            return
        self._settled(record)
        if record.outcome in BAD and self._look_into:
            before = worker.history[:-1]
            if self._suspects.add(record, before, len(before) - role.before_batch):
                self._stop_group(group_of(record.id))

    # What a worker dies of.

    def _died(self, worker: Worker, death: Death) -> None:
        role = self._roles.pop(worker.number, None)
        if role is None:
            return  # it was dropped
        how = death.signal or (f"exit code {death.code}" if death.code else "")
        if death.overrun:
            how = f"{how}, {death.overrun} took longer than {death.limit:.1f} s"
        if role.probing:
            self._ill(f"the probe's worker ended: {how}\n{tail(worker.files['stderr'], 0, 1000)}")
        elif role.current or (role.last and how and role.left):
            self._died_in_case(worker, role, death)
        elif role.left or role.trial is not None or not role.ready:
            self._died_early(worker, role, how)
        elif how:
            self._journal.event("worker_died", f"worker {worker.number}, idle or at its end: {how}")

    def _died_in_case(self, worker: Worker, role: _Role, death: Death) -> None:
        facts = self._facts(role.current or role.last)
        record = record_of_death(
            facts, worker, death, role.started, ended=not role.current,
            statuses=self._pool.statuses,
        )  # fmt: skip
        self._journal.event("worker_died", f"worker {worker.number}: {facts.id}: {record.reason}")
        self.health.doubt()
        if role.trial is not None and role.left:
            # Another case of a trial killed the worker: what was asked did not come again.
            record = dataclasses.replace(role.trial.first, outcome=Outcome.NOT_RUN)
            role.left.clear()
        self._finish(worker, role, record)
        self._requeue(role)

    def _died_early(self, worker: Worker, role: _Role, how: str) -> None:
        """A worker died before the first case of its batch started."""
        why = f"worker {worker.number}, {worker.doing or 'start'}: {how or 'it left'}"
        self._journal.event(
            "worker_died", f"{why}\n{tail(worker.files['stderr'], 0, 1000)}".strip()
        )
        self.health.doubt()
        key = role.left[0] if role.left else "start"
        self._early_deaths[key] += 1
        if role.trial is not None:
            if role.trial.started < _MOST_STARTS:
                self._suspects.again(role.trial)
        elif self._early_deaths[key] < _MOST_STARTS:
            self._requeue(role)
        elif not role.left:
            self.health.give_up(f"workers do not start: {why}")
        else:
            for case_id in role.left:
                reason = f"workers die before it can start: {why}"
                self._settled(self._blank(case_id, Outcome.FAIL, reason))

    def _requeue(self, role: _Role) -> None:
        if role.trial is None and role.left:
            self._batches.appendleft(list(role.left))
        role.left.clear()

    def _ill(self, cause: str) -> None:
        """The device does not answer: end all workers, then reset it or give it up."""
        for role in self._roles.values():
            if role.trial is not None:
                self._suspects.again(role.trial)
            elif role.current:
                role.left.appendleft(role.current)
            self._requeue(role)
        self._roles.clear()
        self._pool.kill_all()
        self.health.failed(cause)

    # What is not run.

    def _share_less(self, worker: Worker, role: _Role, cause: str) -> None:
        """The device takes no more processes at a time: go on with those that it has taken."""
        self._jobs = max(1, self._jobs - 1)
        self._journal.event("busy", f"{self._jobs} workers from here on: {cause}")
        if role.trial is not None:
            self._suspects.again(role.trial)
            role.trial = None
        self._requeue(role)
        self._pool.retire(worker)

    def _stop_group(self, group: str) -> None:
        for number, role in self._roles.items():
            late = [case_id for case_id in role.left if group_of(case_id) == group]
            if late and role.trial is None:
                self._pool.workers[number].tell(cmd="skip", ids=late)
        for batch in self._batches:
            for case_id in [case_id for case_id in batch if group_of(case_id) == group]:
                batch.remove(case_id)
                reason = self._suspects.stopped[group]
                self._settled(self._blank(case_id, Outcome.NOT_RUN, reason))
        self._batches = deque(batch for batch in self._batches if batch)

    def _give_up(self) -> None:
        """Run nothing more that needs the device; level 0 still judges one that never opened."""
        self._gave_up = True
        self._pool.kill_all()
        for role in self._roles.values():
            self._requeue(role)
        self._roles.clear()
        self._suspects.forget()
        left, self._batches = self._batches, deque()
        for batch in left:
            if not self.health.opened and self._facts(batch[0]).level == "L0":
                self._batches.append(batch)
                continue
            reason = f"the device was given up: {self.health.quarantined}"
            for case_id in batch:
                self._settled(self._blank(case_id, Outcome.NOT_RUN, reason))
        self.health.suspect = self.health.probes = False

    def _blank(self, case_id: str, outcome: Outcome, reason: str) -> CaseRecord:
        facts = self._facts(case_id)
        return CaseRecord(case_id, outcome, facts.revision, reason=reason, duties=facts.duties)

    def _facts(self, case_id: str) -> Case:
        return self._manifest.rows[case_id].case

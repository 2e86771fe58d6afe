# SPDX-License-Identifier: Apache-2.0
"""The suite's test of itself: every fault of a mutant plugin has to turn a case red.

A fault that no case of its duty sees has survived, and the suite is weaker than it looks. First the
plugin is run without a fault: what fails then says nothing of any fault. What else a fault turns
red has to be allowed in its table, with a reason: else the fault, or a case, is not what it says.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chipdock.conformance.health import Health
from chipdock.conformance.ids import match
from chipdock.conformance.journal import FILE, CaseRecord, Journal, read
from chipdock.conformance.manifest import Manifest
from chipdock.conformance.mutants import MOST_JUDGES, Mutant, Table, bystanders, judges
from chipdock.conformance.outcomes import FAILED
from chipdock.conformance.plan import batches
from chipdock.conformance.pool import Death, Pool, WorkerConfig
from chipdock.conformance.recorder import slot_names
from chipdock.conformance.schedule import Limits, Scheduler

__all__ = ["NONE", "Report", "Trial", "Verdict", "run"]

_OF = "of.json"
NONE = "none"
"""Value of the switch for no fault."""

_FIRST_LOOK = 8
"""Cases of a batch while one red case is enough."""


@dataclass(frozen=True)
class Verdict:
    """What became of one fault.

    Attributes:
        mutant: The fault.
        state: "caught"; "survived"; "no_case": nothing that should see it could run.
        ran: How many cases should see it and ran.
        red: Ids of those that failed, with outcome and reason.
        collateral: Ids of others that failed and are not allowed to.
        allowed: Ids of others that failed and are.
        given_up: Why the device was given up in the middle, "" if it was not.
        seconds: Wall time.
    """

    mutant: Mutant
    state: str
    ran: int
    red: tuple[tuple[str, str], ...]
    collateral: tuple[tuple[str, str], ...] = ()
    allowed: tuple[str, ...] = ()
    given_up: str = ""
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "name": self.mutant.name,
            "duty": self.mutant.duty,
            "breaks": self.mutant.breaks,
            "state": self.state,
            "ran": self.ran,
            "red": [list(row) for row in self.red],
            "collateral": [list(row) for row in self.collateral],
            "allowed": list(self.allowed),
            "given_up": self.given_up,
            "seconds": round(self.seconds, 3),
        }


@dataclass
class Report:
    """What became of all faults.

    Attributes:
        suite_root: Identity of the suite.
        faultless: Ids of cases that fail on the plugin without a fault, with their reasons.
        verdicts: In the order in which they were asked for.
        seconds: Wall time.
    """

    suite_root: str
    faultless: dict[str, str] = field(default_factory=dict)
    verdicts: list[Verdict] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def caught(self) -> int:
        """How many faults some case saw."""
        return sum(verdict.state == "caught" for verdict in self.verdicts)

    @property
    def clean(self) -> bool:
        """Whether every fault was caught, and nothing failed that has nothing to do with one."""
        return self.caught == len(self.verdicts) and not self.faultless and not self.wide

    @property
    def wide(self) -> int:
        """How many faults made cases fail that their tables do not allow."""
        return sum(bool(verdict.collateral) for verdict in self.verdicts)

    def to_json(self) -> dict[str, Any]:
        """Return plain data, schema 1."""
        total = len(self.verdicts)
        return {
            "schema": 1,
            "suite_root": self.suite_root,
            "caught": self.caught,
            "total": total,
            "wide": self.wide,
            "score": round(self.caught / total, 4) if total else 0.0,
            "seconds": round(self.seconds, 1),
            "faultless": self.faultless,
            "mutants": [verdict.to_json() for verdict in self.verdicts],
        }


def run(
    table: Table,
    names: Sequence[str],
    manifest: Manifest,
    folder: Path,
    *,
    jobs: int = 1,
    collateral: bool = True,
    most: int = MOST_JUDGES,
    resume: bool = False,
    told: Callable[[Verdict], None] = lambda verdict: None,
) -> Report:
    """Run the cases of each fault with the fault switched on.

    Args:
        table: The mutant plugin.
        names: Faults to try, each in the table.
        manifest: Of the suite.
        folder: For journals; made if absent.
        jobs: Faults at a time.
        collateral: Run every case that should see a fault, and bystanders; False stops at the
            first red case.
        most: Cases of one fault at most.
        resume: Go on in a folder with what an earlier run, of this suite and plugin, had done;
            only cases that it did not come to are run, and all is judged anew.
        told: Gets each verdict when it is known, from any thread, one at a time.

    Returns:
        All verdicts, also in folder/selftest.json.

    Raises:
        RuntimeError: The plugin does not start without a fault, or the folder is of another suite
            or plugin.
    """
    start = time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    _claim(folder, table, manifest, resume=resume)
    wanted = {name: judges(table.mutants[name], manifest, most) for name in names}
    beside = bystanders(manifest) if collateral else []
    known = folder / "capabilities.json"
    all_ids = {i for ids in wanted.values() for i in ids} | set(beside)
    ids = [i for i in manifest.rows if i in all_ids]
    first = Trial(table, NONE, manifest, folder, known, resume=resume)
    first.run(ids, jobs=jobs)
    if first.given_up:
        raise RuntimeError(f"{table.device} does not run without a fault: {first.given_up}")
    report = Report(manifest.root, {i: why for i, (_, why) in first.red(ids).items()})
    unusable = {i for i in ids if i in report.faultless or not first.told_something(i)}
    lock = threading.Lock()

    def judge(name: str) -> Verdict:
        own = [i for i in wanted[name] if i not in unusable]
        others = [i for i in beside if i not in unusable and i not in set(own)]
        trial = Trial(table, name, manifest, folder, known, resume=resume)
        verdict = _judge(trial, own, others, collateral)
        with lock:
            told(verdict)
        return verdict

    with ThreadPoolExecutor(jobs) as threads:
        running = {threads.submit(judge, name): name for name in names}
        done = {running[future]: future.result() for future in as_completed(running)}
    report.verdicts = [done[name] for name in names]
    report.seconds = time.monotonic() - start
    text = json.dumps(report.to_json(), indent=1, ensure_ascii=False)
    (folder / "selftest.json").write_text(text + "\n", encoding="utf-8")
    return report


def _claim(folder: Path, table: Table, manifest: Manifest, *, resume: bool) -> None:
    """Say in a folder of what it holds results; see that it is the same if a run goes on."""
    path = folder / _OF
    library = hashlib.sha256(table.library.read_bytes()).hexdigest()
    now = {"suite_root": manifest.root, "plugin": library}
    if not resume:
        path.write_text(json.dumps(now) + "\n", encoding="utf-8")
    elif not path.is_file():
        raise RuntimeError(f"{folder} holds no self-test to go on with; start one without --resume")
    elif json.loads(path.read_text(encoding="utf-8")) != now:
        raise RuntimeError(
            f"the self-test in {folder} is one of another suite or plugin; start a new one"
        )


def _judge(trial: Trial, own: list[str], others: list[str], collateral: bool) -> Verdict:
    start = time.monotonic()
    mutant = trial.mutant
    if own:
        trial.run([*own, *others], first=not collateral)
    red = trial.red(own)
    failed = trial.red(others)
    # Those of the duty are right to see it, also where the table asks fewer of them.
    allowed = set(match((*mutant.allowed, *mutant.cases), list(failed)))
    allowed |= {i for i in failed if mutant.duty in trial.duties_of(i)}
    beside = {i: row for i, row in failed.items() if i not in allowed}
    ran = sum(i in trial.records for i in own)
    state = "caught" if red or trial.given_up else "survived" if own else "no_case"
    return Verdict(
        mutant=mutant,
        state=state,
        ran=ran,
        red=tuple((i, f"{outcome}: {why}") for i, (outcome, why) in red.items()),
        collateral=tuple((i, f"{outcome}: {why}") for i, (outcome, why) in beside.items()),
        allowed=tuple(i for i in failed if i in allowed),
        given_up=trial.given_up,
        seconds=time.monotonic() - start,
    )


class Trial:
    """Cases on the plugin with one value of the switch, each run once.

    Attributes:
        mutant: The fault; one without a duty for no fault.
        records: What became of the cases.
        given_up: Why the device was given up, "" if it was not.
    """

    def __init__(
        self,
        table: Table,
        name: str,
        manifest: Manifest,
        folder: Path,
        capabilities: Path,
        *,
        resume: bool = False,
    ) -> None:
        """Makes a trial in which nothing was run yet.

        Args:
            table: The plugin.
            name: Value of the switch.
            manifest: Of the suite.
            folder: Holds a folder for each trial.
            capabilities: File with what the plugin declares; made if absent.
            resume: Take over what the trial's journal holds already.
        """
        self.mutant = table.mutants.get(name, Mutant(name, "", ""))
        self.records: dict[str, CaseRecord] = {}
        self.given_up = ""
        self._manifest = manifest
        self._capabilities = capabilities
        self._out = folder / name
        scratch = self._out / "workers"
        scratch.mkdir(parents=True, exist_ok=True)
        if (self._out / FILE).is_file():
            if resume:
                known = read(self._out)
                self.records = dict(known.cases)
                ill = [e["detail"] for e in known.events if e["what"] == "quarantined"]
                self.given_up = ill[-1] if ill else ""
            else:
                (self._out / FILE).unlink()
        self._config = WorkerConfig(
            device=table.device,
            plugin=str(table.library),
            suite=manifest.folder,
            seed=0,
            scratch=scratch,
            slots=slot_names(),
            environment={**table.environment, table.switch: name},
        )

    def run(self, ids: Sequence[str], *, jobs: int = 1, first: bool = False) -> None:
        """Run cases, each once; those that are known already are not run again.

        Args:
            ids: In this order.
            jobs: Workers.
            first: Stop when one has failed.
        """
        if first and any(record.outcome in FAILED for record in self.records.values()):
            return
        ids = [case_id for case_id in ids if case_id not in self.records]
        if not ids or self.given_up:
            return
        journal = Journal(self._out)

        def settle(record: CaseRecord) -> None:
            self.records[record.id] = record
            journal.write(record.to_json())

        pool = Pool(self._config)
        health = Health(journal)
        scheduler = Scheduler(
            self._manifest, pool, journal, health, jobs=jobs, limits=Limits(),
            settled=settle, look_into=False,
        )  # fmt: skip

        def tick() -> None:
            if first and any(record.outcome in FAILED for record in self.records.values()):
                scheduler.stop()

        plan = batches(ids, self._manifest)
        if first:
            plan = [b[i : i + _FIRST_LOOK] for b in plan for i in range(0, len(b), _FIRST_LOOK)]
        try:
            self._know(pool)
            if not self.given_up:
                scheduler.run(plan, tick)
                self.given_up = health.quarantined
        finally:
            pool.kill_all()
            journal.close()

    def _know(self, pool: Pool) -> None:
        """What the plugin declares is asked of the faultless one, and once."""
        if not self._capabilities.is_file():
            worker = pool.start()
            worker.expect("start", Limits().start())
            worker.tell(cmd="describe")
            said: Any = None
            while said is None:
                for _, message in pool.events(1.0):
                    if isinstance(message, Death) or message["type"] != "ready":
                        said = message
            pool.kill_all()
            if isinstance(said, Death) or "capabilities" not in said:
                self.given_up = str(said)
                return
            self._capabilities.write_text(json.dumps(said["capabilities"]), encoding="utf-8")
        pool.capabilities = self._capabilities

    def red(self, ids: Sequence[str]) -> dict[str, tuple[str, str]]:
        """Return outcome and reason of those that failed."""
        found = {i: self.records[i] for i in ids if i in self.records}
        return {
            i: (str(record.outcome), record.reason.splitlines()[0] if record.reason else "")
            for i, record in found.items()
            if record.outcome in FAILED
        }

    def duties_of(self, case_id: str) -> tuple[str, ...]:
        """Return the duties that a case judges."""
        return self._manifest.rows[case_id].case.duties

    def told_something(self, case_id: str) -> bool:
        """Whether a case ran to a verdict, and so may tell one plugin from another."""
        record = self.records.get(case_id)
        return record is not None and record.outcome in {*FAILED, "PASS", "QUALITY_WARN"}

# SPDX-License-Identifier: Apache-2.0
"""One run from its options to its exit code: journal, workers, scheduler, the end line."""

from __future__ import annotations

import dataclasses
import json
import shutil
import signal
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from types import FrameType
from typing import Any

from chipdock.cli.exit_codes import ExitCode, for_error, worst
from chipdock.conformance._attribute import tail
from chipdock.conformance._host import environment, memory_share
from chipdock.conformance.health import Health
from chipdock.conformance.isolate import BAD
from chipdock.conformance.journal import FILE, CaseRecord, Journal, RunRecord
from chipdock.conformance.manifest import Manifest
from chipdock.conformance.outcomes import FAILED, Outcome, exit_code
from chipdock.conformance.plan import batches
from chipdock.conformance.pool import Death, Pool, Worker, WorkerConfig
from chipdock.conformance.progress import Display
from chipdock.conformance.recorder import slot_names
from chipdock.conformance.schedule import Limits, Scheduler

__all__ = ["NotStarted", "Options", "describe", "execute", "unsettled"]

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_ROUNDS = 50
"""Repetitions that are planned at a time when there is no end to them."""


class NotStarted(Exception):  # noqa: N818  an outcome with an exit code
    """The device cannot be used, so no case was run."""

    def __init__(self, text: str, code: ExitCode) -> None:
        """Keeps the text, "CODE: what …", and the exit code."""
        super().__init__(text)
        self.code = code


@dataclass(frozen=True)
class Options:
    """How cases are run.

    Attributes:
        device: "acme:0".
        plugin: Library or plugin.toml; "" finds it by name.
        out: Folder of the results.
        jobs: Workers at a time.
        seed: Of the suite.
        mask: "none", "required" or "seed:N".
        timeout_scale: Of all limits.
        repeat: How often each case is run.
        until_fail: Repeat until something fails, at most `repeat` times if that is above 1.
        reset_command: Brings an ill device back; "" for none.
        memory: Most bytes of a worker; 0 for a share of what there is.
        selection: What was asked for, for the journal.
        last: Cases that run behind all others, each in a batch of its own.
    """

    device: str
    out: Path
    plugin: str = ""
    jobs: int = 1
    seed: int = 0
    mask: str = "none"
    timeout_scale: float = 1.0
    repeat: int = 1
    until_fail: bool = False
    reset_command: str = ""
    memory: int = 0
    selection: Mapping[str, Any] = field(default_factory=dict)
    last: Sequence[str] = ()


def execute(manifest: Manifest, ids: Sequence[str], options: Options) -> tuple[RunRecord, ExitCode]:
    """Run cases and keep the journal.

    Args:
        manifest: Of the suite.
        ids: In the order in which they are run; those that the journal in `options.out` has settled
            are not run again.
        options: How.

    Returns:
        The journal, complete in any case, and the exit code.

    Raises:
        NotStarted: The plugin cannot be loaded, or the device not opened.
    """
    return _Run(manifest, ids, options).execute()


def unsettled(record: RunRecord, case_id: str) -> bool:
    """Whether a run that goes on has to run a case: it has no record, or none to rely on.

    A failure of an interrupted run may not have been looked into yet.
    """
    found = record.cases.get(case_id)
    if found is None or found.outcome in (Outcome.NOT_RUN, Outcome.MISSING):
        return True
    cut = record.end is None or record.end["exit_code"] == ExitCode.INTERRUPTED
    return cut and found.outcome in BAD and found.attempt == 1


def describe(pool: Pool, worker: Worker, limits: Limits) -> dict[str, Any]:
    """Ask a new worker what there is to be tested.

    Returns:
        plugin, device_info and capabilities, as `Session.describe` has them.

    Raises:
        NotStarted: The plugin cannot be loaded, or there is no such device.
    """
    said = pool.ask(worker, "describe", limits.start() + limits.device())
    if isinstance(said, Death):
        how = said.signal or f"exit code {said.code}"
        what = f"{said.overrun} took too long" if said.overrun else f"its process died of {how}"
        text = tail(worker.files["stderr"], 0, 2000)
        raise NotStarted(
            f"UNAVAILABLE: {pool.config.device} cannot be tested, {what}: {text}",
            ExitCode.NOT_STARTED,
        )
    if said["type"] == "error":
        code = for_error(said["code"])
        raise NotStarted(said["text"], code if code == ExitCode.USAGE else ExitCode.NOT_STARTED)
    return said


class _Run:
    def __init__(self, manifest: Manifest, ids: Sequence[str], options: Options) -> None:
        options.out.mkdir(parents=True, exist_ok=True)
        self._manifest = manifest
        self._ids = list(ids)
        self._options = options
        self._journal = Journal(options.out)
        for left in options.out.glob("workers-????????/capabilities.json"):  # of a killed run
            if not [*left.parent.glob("core*")]:
                shutil.rmtree(left.parent, ignore_errors=True)
        self._scratch = Path(tempfile.mkdtemp(prefix="workers-", dir=options.out.absolute()))
        config = WorkerConfig(
            device=options.device,
            plugin=options.plugin,
            suite=manifest.folder,
            seed=options.seed,
            scratch=self._scratch,
            mask=options.mask,
            slots=slot_names(),
            memory=options.memory or memory_share(options.jobs),
        )
        self._pool = Pool(config)
        self._limits = Limits(options.timeout_scale)
        self._passes: dict[str, list[CaseRecord]] = defaultdict(list)
        self._health = Health(self._journal, options.reset_command)
        self._start = time.monotonic()

    def execute(self) -> tuple[RunRecord, ExitCode]:
        before = {number: signal.signal(number, _interrupt) for number in _ENDING}
        code = ExitCode.INFRASTRUCTURE
        try:
            code = self._execute()
        except KeyboardInterrupt:
            if not self._journal.record.run:
                raise
            code = ExitCode.INTERRUPTED
            # What follows is short, and has to be whole.
            for number in _ENDING:
                signal.signal(number, signal.SIG_IGN)
            self._pool.kill_all()
            self._journal.event("interrupted", "")
            for case_id in [i for i in self._ids if i not in self._journal.record.cases]:
                self._blank(case_id, Outcome.NOT_RUN, "the run was interrupted")
        finally:
            self._pool.kill_all()
            if self._journal.record.run:
                self._finish(code)
            self._journal.close()
            if not self._journal.record.run:  # nothing to go on with, so the folder stays free
                (self._options.out / FILE).unlink()
            if not [*self._scratch.glob("core*")]:
                shutil.rmtree(self._scratch, ignore_errors=True)
            for number, handler in before.items():
                signal.signal(number, handler)
        return self._journal.record, code

    def _execute(self) -> ExitCode:
        worker = self._describe()
        repeats = self._options.repeat > 1 or self._options.until_fail
        scheduler = Scheduler(
            self._manifest, self._pool, self._journal, self._health,
            jobs=self._options.jobs, limits=self._limits, settled=self._settle,
            look_into=not repeats,
        )  # fmt: skip
        if worker is not None:
            scheduler.adopt(worker)
        with Display(len(self._ids)) as display:

            def tick() -> None:
                record = self._journal.record
                display.update(
                    len(record.cases), record.counts, scheduler.current, scheduler.repeating
                )
                if self._options.until_fail and self._has_failed():
                    scheduler.stop()

            if repeats:
                self._repeat(scheduler, tick)
            else:
                scheduler.run(batches(self._todo(), self._manifest, self._options.last), tick)
        for case_id in self._ids:
            if case_id not in self._journal.record.cases:
                self._blank(case_id, Outcome.MISSING, "no worker said what became of it")
        found = [self._journal.record.cases[case_id].outcome for case_id in self._ids]
        code = exit_code(found, quarantined=bool(self._health.quarantined))
        if self._health.quarantined and not self._health.opened:
            return worst([code, ExitCode.NOT_STARTED])
        return code

    def _repeat(self, scheduler: Scheduler, tick: Callable[[], None]) -> None:
        """Run every case several times; what failed only sometimes is FLAKY."""
        rounds = self._options.repeat
        endless = self._options.until_fail and rounds == 1
        plan = batches(self._ids, self._manifest)
        while True:
            scheduler.run(plan * (_ROUNDS if endless else rounds), tick)
            if not endless or self._has_failed() or self._health.quarantined:
                break
        for records in self._passes.values():
            bad = [record for record in records if record.outcome in FAILED]
            if not bad:
                continue
            flaky = len(bad) < len(records)
            outcome = Outcome.FLAKY if flaky else bad[0].outcome
            reason = f"failed {len(bad)} of {len(records)} times; the first: {bad[0].reason}"
            evidence = {**bad[0].evidence, "failed": len(bad), "repeated": len(records)}
            self._journal.write(
                dataclasses.replace(
                    bad[0], outcome=outcome, reason=reason, evidence=evidence, attempt=len(records)
                ).to_json()
            )

    def _has_failed(self) -> bool:
        records = (record for passes in self._passes.values() for record in passes)
        return any(record.outcome in FAILED for record in records)

    # The device before the first case.

    def _describe(self) -> Worker | None:
        """Ask a worker what there is to be tested, and probe it; returns it if it still lives."""
        from chipdock._core import STATUS_NAMES  # noqa: PLC0415  native, ours

        self._pool.statuses = tuple(STATUS_NAMES)
        worker = self._pool.start()
        said = describe(self._pool, worker, self._limits)
        self._write_run(said)
        probed = self._pool.ask(worker, "probe", self._limits.device())
        if not isinstance(probed, Death) and probed["type"] == "probed":
            return worker
        self._health.probes = False
        why = probed.signal or "it died" if isinstance(probed, Death) else probed["text"]
        self._journal.event("probe_failed", f"before any case, so later probes say nothing: {why}")
        self._pool.kill_all()
        return None

    def _write_run(self, said: Mapping[str, Any]) -> None:
        path = self._scratch / "capabilities.json"
        path.write_text(json.dumps(said["capabilities"]), encoding="utf-8")
        self._pool.capabilities = path
        if self._journal.record.run:
            self._resume(said)
            return
        options = dataclasses.asdict(self._options)
        self._journal.write(
            {
                "type": "run",
                "schema": 1,
                "suite_root": self._manifest.root,
                "suite_version": version("chipdock"),
                "device": said["device"],
                "plugin": said["plugin"],
                "device_info": said["device_info"],
                "capabilities": said["capabilities"],
                "seed": self._options.seed,
                "options": options | {"out": str(self._options.out)},
                "env": environment(),
                "mask": self._options.mask,
                "selected": self._ids,
                "started": datetime.now(UTC).isoformat(timespec="seconds"),
            }
        )

    def _resume(self, said: Mapping[str, Any]) -> None:
        """Go on only with the plugin and device of the journal."""
        known = self._journal.record.run
        for what, old, new in (
            ("plugin", known["plugin"]["sha256"], said["plugin"]["sha256"]),
            ("driver", known["device_info"]["driver"], said["device_info"]["driver"]),
            ("product", known["device_info"]["product"], said["device_info"]["product"]),
        ):
            if old != new:
                raise NotStarted(
                    f"INVALID_ARGUMENT: the {what} is another one than in {self._options.out}: "
                    f"{new}, it was {old}; results of both are no single run, start a new one",
                    ExitCode.USAGE,
                )
        self._journal.event("resumed", f"{len(self._todo())} cases left")

    # Records.

    def _todo(self) -> list[str]:
        return [i for i in self._ids if unsettled(self._journal.record, i)]

    def _settle(self, record: CaseRecord) -> None:
        self._passes[record.id].append(record)
        self._journal.write(record.to_json())

    def _blank(self, case_id: str, outcome: Outcome, reason: str) -> None:
        facts = self._manifest.rows[case_id].case
        record = CaseRecord(
            case_id, outcome, revision=facts.revision, reason=reason, duties=facts.duties
        )
        self._journal.write(record.to_json())

    def _finish(self, code: ExitCode) -> None:
        self._journal.write(
            {
                "type": "end",
                "counts": self._journal.record.counts,
                "exit_code": int(code),
                "seconds": round(time.monotonic() - self._start, 3),
                "coverage": self._pool.coverage,
            }
        )


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt

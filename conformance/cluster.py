# SPDX-License-Identifier: Apache-2.0
"""Shards through a Dask cluster whose workers own devices, and what happens when one is lost.

Dask carries the calls and notices the loss of a worker. Which shard goes where is decided here:
one at a time to each worker that has the resource, so that each attempt and its end is known and
three losses are three, whatever the scheduler of the lab allows. What a worker does is board.py.
Journals of running shards are fetched as they grow: the next worker, or the next owner, goes on
from there.
"""

from __future__ import annotations

import dataclasses
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chipdock.cli.exit_codes import ExitCode
from chipdock.conformance.board import Done, Shard, describe_board, peek, run_shard, stop_shards
from chipdock.conformance.fleet import FleetError
from chipdock.conformance.journal import FILE, RunRecord
from chipdock.conformance.manifest import Manifest
from chipdock.conformance.merge import MergeError, identity, merge_runs
from chipdock.conformance.parts import Parts, finished, journal_of
from chipdock.conformance.plan import shard_of
from chipdock.conformance.shard_journal import add_events, complete, run_line

__all__ = ["MOST_LOSSES", "RESOURCE", "Job", "run_cluster"]

RESOURCE = "chipdock"
"""What a worker offers to be given shards: `dask worker ADDRESS --resources chipdock=1`."""

MOST_LOSSES = 3
_TICK_S = 0.2
_FETCH_S = 60
_PEEK_S = 2.0
_LEASE_S = 60.0


@dataclass
class Job:
    """What is to be run, and how.

    Attributes:
        manifest: Of the suite here.
        ids: Of the whole.
        parts: How the shards are run, and on which cluster; its count 0 is two for each worker.
        out: Folder of the whole; those of the shards are in it. Journals that are there already are
            gone on with.
        patience: Seconds to wait for a worker when there is none.
        say: Is told what happens.
    """

    manifest: Manifest
    ids: Sequence[str]
    parts: Parts
    out: Path
    patience: float = 60.0
    say: Callable[[str], None] = lambda _text: None


def run_cluster(job: Job) -> tuple[RunRecord, ExitCode]:
    """Run all shards on the workers of a cluster and merge their journals.

    Args:
        job: What is to be run.

    Returns:
        The journal of the whole and its exit code.

    Raises:
        FleetError: There is no such cluster, none of its workers can be used, or they differ.
    """
    import distributed  # noqa: PLC0415  optional

    make: Any = distributed.Client
    address = job.parts.address
    place = {"scheduler_file": address} if Path(address).is_file() else {"address": address}
    try:
        client = make(**place, timeout=10)
    except (OSError, ValueError) as error:
        text = f"UNAVAILABLE: no scheduler answers at {address!r}: {error}; is it running there"
        raise FleetError(text, ExitCode.NOT_STARTED) from error
    with client:
        return _Cluster(client, job).execute()


@dataclass
class _Work:
    number: int
    losses: int = 0
    peeked: float = 0.0
    events: list[tuple[str, str]] = field(default_factory=list)
    done: bool = False


class _Cluster:
    def __init__(self, client: Any, job: Job) -> None:
        self._client = client
        self._job = job
        self._parts = job.parts
        self._boards: dict[str, dict[str, Any]] = {}
        """Usable workers by address."""
        self._unusable: dict[str, str] = {}
        self._there: set[str] = set()
        """Workers with the resource when the scheduler answered last."""
        self._asked: dict[str, Any] = {}
        self._running: dict[str, tuple[Any, _Work]] = {}
        self._work: list[_Work] = []
        self._todo: deque[_Work] = deque()
        self._first: dict[str, Any] = {}
        self._alone = time.monotonic()

    def execute(self) -> tuple[RunRecord, ExitCode]:
        interrupted = False
        parts = self._job.parts
        self._take_over()
        self._gather()
        count = min(parts.count or 2 * len(self._boards), len(self._job.ids))
        self._parts = dataclasses.replace(parts, count=count)
        self._parts.write(self._job.out)
        self._work = [_Work(number) for number in range(1, count + 1)]
        for work in self._work:
            work.done = finished(self._folder(work))
        self._todo.extend(work for work in self._work if not work.done)
        try:
            self._drive()
        except KeyboardInterrupt:
            interrupted = True
            self._stop()
        for work in self._work:
            self._keep(work, interrupted)
        folders = [self._folder(work) for work in self._work]
        (self._job.out / FILE).unlink(missing_ok=True)  # of the whole, cut short
        try:
            record, code = merge_runs(folders, self._job.out, mixed=parts.mixed)
        except MergeError as error:
            raise FleetError(f"INVALID_ARGUMENT: {error}", ExitCode.USAGE) from error
        return record, ExitCode.INTERRUPTED if interrupted else code

    def _folder(self, work: _Work) -> Path:
        return self._job.out / f"shard-{work.number}"

    def _take_over(self) -> None:
        """End what an owner that was killed has left running, and see what its run was of."""
        for number in range(1, self._job.parts.count + 1):
            known = journal_of(self._job.out / f"shard-{number}")
            if known is not None:
                keys = ("suite_root", "env", "device", "plugin", "device_info", "capabilities")
                self._first = {key: known.run[key] for key in keys}
                break
        if there := [*self._addresses()]:
            self._client.run(stop_shards, self._job.parts.run, workers=there, on_error="ignore")

    # Workers.

    def _addresses(self) -> set[str]:
        # Not scheduler_info(): what it returns is overwritten now and then, without the workers, by
        # the client's own refresh, and all of them would seem lost.
        try:
            workers = self._client.sync(self._client.scheduler.identity, n_workers=-1)["workers"]
        except OSError:  # the scheduler does not answer now; whether it is gone will be seen
            return self._there
        self._there = {
            name for name, row in workers.items() if row["resources"].get(RESOURCE, 0) >= 1
        }
        return self._there

    def _gather(self) -> None:
        """Wait until the workers that are there have said what they are."""
        while True:
            self._look()
            if self._boards and not self._asked:
                return
            if not self._asked and (self._unusable or self._patience_ended()):
                why = "; ".join(f"{name}: {text}" for name, text in self._unusable.items())
                raise FleetError(
                    f"UNAVAILABLE: no worker of the cluster can be used: {why or 'there is none'}; "
                    f"start them by dask worker ADDRESS --nthreads 1 --resources {RESOURCE}=1",
                    ExitCode.NOT_STARTED,
                )
            self._wait([*self._asked.values()])

    def _patience_ended(self) -> bool:
        return time.monotonic() - self._alone > self._job.patience

    def _look(self) -> None:
        """Ask new workers what they are, hear answers, and forget workers that are gone."""
        there = self._addresses()
        for address in there - {*self._boards, *self._unusable, *self._asked}:
            self._asked[address] = self._send(
                address, describe_board, self._parts.device, self._parts.plugin
            )
        for address in [name for name in self._boards if name not in there]:
            del self._boards[address]
        for address, future in [*self._asked.items()]:
            if address not in there:
                future.cancel()
                del self._asked[address]
            elif future.done():
                del self._asked[address]
                self._judge(address, future)
        if self._boards:
            self._alone = time.monotonic()

    def _judge(self, address: str, future: Any) -> None:
        said: dict[str, Any] = {"error": str(future.status)}
        if future.status == "finished":
            said = future.result()
            future.release()
        if "error" in said:
            self._unusable[address] = said["error"]
            self._job.say(f"{address} cannot be used: {said['error']}")
            return
        self._first = self._first or said
        differ = [
            f"the {what} is {identity(said)[what]!r} on {address} and {value!r} on the first"
            for what, value in identity(self._first).items()
            if identity(said)[what] != value
        ]
        if differ and not self._parts.mixed:
            if not self._work:
                text = f"INVALID_ARGUMENT: the workers differ: {differ[0]}; --mixed allows it"
                raise FleetError(text, ExitCode.USAGE)
            self._unusable[address] = differ[0]
            self._job.say(f"{address} came later and is left out: {differ[0]}")
            return
        self._boards[address] = said
        self._job.say(f"{address} has {said['device']}, {said['device_info']['product']}")

    def _send(self, address: str, function: Callable[..., Any], *arguments: Any) -> Any:
        return self._client.submit(
            function, *arguments, pure=False, workers=[address], allow_other_workers=False,
            resources={RESOURCE: 1}, retries=0,
        )  # fmt: skip

    def _wait(self, futures: Sequence[Any]) -> None:
        """Until one is done or a moment has passed: a loss is no end of a future."""
        import distributed  # noqa: PLC0415  optional

        wait: Any = distributed.wait
        if not futures:
            time.sleep(_TICK_S)
            return
        try:
            wait(futures, timeout=_TICK_S, return_when="FIRST_COMPLETED")
        except TimeoutError:
            return

    # Shards.

    def _drive(self) -> None:
        plan = "".join(f"{case_id}\n" for case_id in self._job.ids)
        while self._todo or self._running:
            self._look()
            for address, (future, work) in [*self._running.items()]:
                if future.status == "finished":
                    del self._running[address]
                    self._fetch(address, work, future)
                elif address not in self._boards or future.done():
                    del self._running[address]
                    future.cancel()
                    self._lost(address, work, f"the worker {address} was lost")
                else:
                    self._peek(address, work)
            for address in [name for name in self._boards if name not in self._running]:
                if self._todo:
                    work = self._todo.popleft()
                    shard = self._shard(work, plan, address)
                    self._running[address] = (self._send(address, run_shard, shard), work)
            if not self._boards and not self._asked and self._patience_ended():
                for work in self._todo:
                    work.events.append(("worker_lost", "no worker is left"))
                return
            self._wait([future for future, _ in self._running.values()])

    def _shard(self, work: _Work, plan: str, address: str) -> Shard:
        """What a worker is to do of a shard: what no other has done, if it was of the same kind."""
        known = journal_of(self._folder(work))
        same = known is not None and identity(known.run) == identity(self._boards[address])
        file = self._folder(work) / FILE
        if not same:
            file.unlink(missing_ok=True)
        return Shard(
            work.number, len(self._work), self._parts.device, plan, self._parts.arguments,
            run=self._parts.run, journal=file.read_bytes() if same else b"", lease=_LEASE_S,
        )  # fmt: skip

    def _peek(self, address: str, work: _Work) -> None:
        """Fetch what the journal of a running shard has grown by."""
        if time.monotonic() - work.peeked < _PEEK_S:
            return
        work.peeked = time.monotonic()
        file = self._folder(work) / FILE
        known = file.stat().st_size if file.is_file() else 0
        try:
            said = self._client.run(
                peek, self._parts.run, work.number, known, workers=[address], on_error="ignore"
            )
        except (OSError, TimeoutError, ValueError, KeyError):
            return  # it was lost meanwhile, and that will be seen
        if more := said.get(address):
            file.parent.mkdir(exist_ok=True)
            with file.open("ab") as journal:
                journal.write(more)

    def _fetch(self, address: str, work: _Work, future: Any) -> None:
        try:
            done: Done = future.result(timeout=_FETCH_S)
        except TimeoutError:  # the worker was lost with it, and the task cannot run elsewhere
            self._lost(address, work, f"the worker {address} was lost with its journal")
        else:
            self._hear(address, work, done)
        finally:
            future.release()  # Dask would run it again if the worker were lost by now

    def _hear(self, address: str, work: _Work, done: Done) -> None:
        device = self._boards[address]["device"] if address in self._boards else "its device"
        name = f"shard {work.number}/{len(self._work)}"
        if not done.journal:
            self._retire(address, done.said)
            self._lost(address, work, f"{address} did not start {device}: {done.said}")
            return
        folder = self._folder(work)
        folder.mkdir(exist_ok=True)
        draft = folder / f"{FILE}.new"
        draft.write_bytes(done.journal)
        draft.replace(folder / FILE)
        work.done = True
        work.events.append(("shard", f"{name} on {address}, {device}, attempt {work.losses + 1}"))
        self._tell(work)
        self._job.say(f"{name} came back from {address}, exit code {done.code}")
        if done.code == ExitCode.INFRASTRUCTURE:
            self._retire(address, f"{device} was given up in {name}")

    def _retire(self, address: str, why: str) -> None:
        self._boards.pop(address, None)
        self._unusable[address] = why

    def _lost(self, address: str, work: _Work, why: str) -> None:
        work.losses += 1
        text = f"shard {work.number}/{len(self._work)}, attempt {work.losses}: {why}"
        work.events.append(("worker_lost", text))
        self._job.say(text)
        if work.losses < MOST_LOSSES:
            self._todo.append(work)

    def _stop(self) -> None:
        """End the runs on the workers; their journals are whole and come back."""
        there = [address for address in self._running if address in self._addresses()]
        if there:
            self._client.run(stop_shards, self._parts.run, workers=there)
        end = time.monotonic() + 30
        for address, (future, work) in self._running.items():
            while address in there and not future.done() and time.monotonic() < end:
                self._wait([future])
            if future.status == "finished":
                self._fetch(address, work, future)

    # Journals.

    def _tell(self, work: _Work) -> None:
        add_events(self._folder(work), work.events)
        work.events.clear()

    def _keep(self, work: _Work, interrupted: bool) -> None:
        """Complete the journal of a shard that came to no end anywhere."""
        if work.done:
            return
        why = work.events[-1][1] if work.events else "it was not begun"
        reason = f"its shard ran to no end, with {work.losses} losses: {why}"
        complete(
            self._folder(work), self._run_line(work), work.events, self._job.manifest,
            reason="the run was interrupted" if interrupted else reason,
            code=ExitCode.INTERRUPTED if interrupted else ExitCode.INFRASTRUCTURE,
        )  # fmt: skip

    def _run_line(self, work: _Work) -> dict[str, Any]:
        """The run line of a shard that no worker began."""
        place = (work.number, len(self._work))
        ids = shard_of(self._job.ids, self._job.manifest, *place)
        options = dict(self._parts.options)
        return run_line(self._first, options, self._job.ids, ids, place)

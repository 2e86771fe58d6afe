# SPDX-License-Identifier: Apache-2.0
"""Worker processes seen from their owner: started, told, listened to, watched, ended.

What a message or a death means for the run is the scheduler's matter, in run.py.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chipdock.conformance import recorder

__all__ = ["Death", "Pool", "Worker", "WorkerConfig"]

_ABORT_GRACE_S = 2.0
_EXIT_S = 10.0
_LOOK_S = 0.2
_PLUGIN_PATH = "CHIPDOCK_PLUGIN_PATH"


@dataclass(frozen=True)
class WorkerConfig:
    """What all workers of a run share.

    Attributes:
        device: "acme:0".
        plugin: Library or plugin.toml; "" finds it by name.
        suite: Folder of the cases.
        seed: Of the suite.
        scratch: Folder for files of the workers.
        mask: "none", "required" or "seed:N".
        slots: Names of the slots in the record file's order; empty without a record layer.
        memory: Most bytes that a worker may have in memory; 0 is no limit.
        environment: Variables that workers get besides those of this process.
    """

    device: str
    plugin: str
    suite: Path
    seed: int
    scratch: Path
    mask: str = "none"
    slots: tuple[str, ...] = ()
    memory: int = 0
    environment: Mapping[str, str] = field(default_factory=dict)

    def layers(self, record: Path) -> str:
        """Return CHIPDOCK_LAYERS of a worker; the recorder is outermost."""
        parts = [f"record={record}"] if self.slots else []
        parts.append("validate")
        if self.mask != "none":
            parts.append(f"mask={self.mask}")
        return ",".join(parts)


@dataclass
class Death:
    """How a worker ended.

    Attributes:
        code: Exit code, negative for a signal.
        overrun: What took too long, "" if nothing did.
        limit: How long it might have taken, in seconds.
        memory: Bytes it had when it was ended for that, 0 if it was not.
    """

    code: int
    overrun: str = ""
    limit: float = 0.0
    memory: int = 0

    @property
    def signal(self) -> str:
        """Name of the signal that ended it, "" if none did."""
        if self.code >= 0:
            return ""
        try:
            return signal.Signals(-self.code).name
        except ValueError:
            return f"SIG{-self.code}"


@dataclass
class Worker:
    """One worker process.

    Attributes:
        number: Of the worker, from 0, never used twice in a run.
        process: It.
        reply: File descriptor that its answers come from.
        pidfd: Readable when the process has ended.
        files: Record file, stdout and stderr.
        history: Ids of the cases that it started, in order.
        deadline: When what it does has to be over, by time.monotonic(); None for an idle one.
        doing: What it does, in words, for messages.
    """

    number: int
    process: subprocess.Popen[bytes]
    reply: int
    pidfd: int
    files: Mapping[str, Path]
    history: list[str] = field(default_factory=list)
    deadline: float | None = None
    doing: str = ""
    limit: float = 0.0
    overrun: str = ""
    memory: int = 0
    retired: bool = False
    buffer: bytearray = field(default_factory=bytearray)
    recorder: recorder.Recorder | None = None

    def expect(self, doing: str, seconds: float | None) -> None:
        """Watch that what it does now takes no longer than `seconds`; None stops watching."""
        self.doing, self.limit = doing, seconds or 0.0
        self.deadline = None if seconds is None else time.monotonic() + seconds

    def tell(self, **command: Any) -> None:
        """Send a command; a worker that is gone takes it too, its death is on the way."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(command).encode() + b"\n")
            self.process.stdin.flush()

    def signal_group(self, number: signal.Signals) -> None:
        """Signal the worker and all that it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)


class Pool:
    """All workers of a run."""

    def __init__(self, config: WorkerConfig) -> None:
        """Starts with no worker."""
        self.config = config
        self.workers: dict[int, Worker] = {}
        self.capabilities: Path | None = None
        self.coverage: dict[str, dict[str, int]] = {}
        self.statuses: tuple[str, ...] = ()
        self._count = 0
        self._looked = 0.0

    def start(self) -> Worker:
        """Start a worker."""
        number = self._count
        self._count += 1
        folder = self.config.scratch
        files = {k: folder / f"worker{number}.{k}" for k in ("record", "stdout", "stderr")}
        if self.config.slots:
            recorder.create(files["record"], len(self.config.slots))
        reply, given = os.pipe()
        text = json.dumps(
            {
                "reply_fd": given,
                "suite": str(self.config.suite),
                "device": self.config.device,
                "plugin": self.config.plugin,
                "seed": self.config.seed,
                "record": str(files["record"]) if self.config.slots else "",
                "stdout": str(files["stdout"]),
                "stderr": str(files["stderr"]),
                "capabilities": str(self.capabilities) if self.capabilities else "",
            }
        )
        environment = (
            os.environ
            | self.config.environment
            | {
                "CHIPDOCK_LAYERS": self.config.layers(files["record"]),
                "CHIPDOCK_FALLBACK": "error",
                "PYTHONUNBUFFERED": "1",
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            }
        )
        for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS"):
            environment.pop(name, None)
        # Workers run in a folder of their own, where relative paths would mean something else.
        plugins = [self.config.plugin, *environment.get(_PLUGIN_PATH, "").split(os.pathsep)]
        environment[_PLUGIN_PATH] = os.pathsep.join(str(Path(p).absolute()) for p in plugins if p)
        with files["stdout"].open("ab") as out, files["stderr"].open("ab") as err:
            process = subprocess.Popen(
                [sys.executable, "-m", "chipdock.conformance.worker", text],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=err,
                pass_fds=(given,),
                cwd=folder,
                env=environment,
                start_new_session=True,
            )
        os.close(given)
        os.set_blocking(reply, False)
        made = Worker(number, process, reply, os.pidfd_open(process.pid), files)
        if self.config.slots:
            made.recorder = recorder.Recorder(files["record"], self.config.slots)
        self.workers[number] = made
        return made

    def events(self, longest: float) -> Iterator[tuple[Worker, dict[str, Any] | Death]]:
        """Wait for messages and deaths for at most `longest` seconds, and yield them.

        Workers that overran their time or memory are ended meanwhile; that comes as their death.
        """
        now = time.monotonic()
        times = [w.deadline for w in self.workers.values() if w.deadline is not None]
        wait = max(0.0, min([longest, _LOOK_S, *(deadline - now for deadline in times)]))
        readers = {w.reply: w for w in self.workers.values()}
        readers |= {w.pidfd: w for w in self.workers.values()}
        ready, _, _ = select.select(list(readers), [], [], wait)
        for number in {readers[fd].number for fd in ready}:
            worker = self.workers.get(number)
            if worker is None:
                continue  # it was ended because of what another said
            yield from ((worker, message) for message in self._read(worker))
            if number in self.workers and worker.pidfd in ready:
                yield from ((worker, message) for message in self._read(worker))
                yield worker, self._bury(worker)
        self._watch()

    def _read(self, worker: Worker) -> list[dict[str, Any]]:
        with contextlib.suppress(BlockingIOError):
            while chunk := os.read(worker.reply, 1 << 16):
                worker.buffer += chunk
        *lines, rest = bytes(worker.buffer).split(b"\n")
        worker.buffer = bytearray(rest)
        return [json.loads(line) for line in lines]

    def _watch(self) -> None:
        now = time.monotonic()
        for worker in self.workers.values():
            if worker.deadline is not None and now >= worker.deadline:
                self._end_overrun(worker)
        if self.config.memory and now - self._looked >= _LOOK_S:
            self._looked = now
            for worker in self.workers.values():
                used = _resident(worker.process.pid)
                if used > self.config.memory and not worker.overrun:
                    worker.memory = used
                    worker.signal_group(signal.SIGKILL)

    def _end_overrun(self, worker: Worker) -> None:
        if not worker.overrun:
            # faulthandler writes the stacks of all threads, then the process ends with a core.
            worker.overrun = worker.doing
            worker.deadline = time.monotonic() + _ABORT_GRACE_S
            with contextlib.suppress(ProcessLookupError):
                worker.process.send_signal(signal.SIGABRT)
        else:
            worker.deadline = None
            worker.signal_group(signal.SIGKILL)

    def _bury(self, worker: Worker) -> Death:
        code = worker.process.wait()
        worker.signal_group(signal.SIGKILL)
        del self.workers[worker.number]
        for fd in (worker.reply, worker.pidfd):
            os.close(fd)
        if worker.process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                worker.process.stdin.close()
        if worker.recorder is not None:
            for slot, row in worker.recorder.coverage(self.statuses).items():
                known = self.coverage.setdefault(slot, {})
                for status, count in row.items():
                    known[status] = known.get(status, 0) + count
        return Death(code, worker.overrun, worker.limit, worker.memory)

    def ask(self, worker: Worker, question: str, seconds: float) -> dict[str, Any] | Death:
        """Ask the only worker something and wait for the answer, or for its death."""
        worker.tell(cmd=question)
        worker.expect(question, seconds)
        while True:
            for _, message in self.events(1.0):
                if isinstance(message, Death) or message["type"] != "ready":
                    return message

    def retire(self, worker: Worker) -> None:
        """Let a worker end in its own way; it is ended if it takes too long."""
        assert worker.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            worker.process.stdin.close()
        worker.retired = True
        worker.expect("exit", _EXIT_S)

    def kill_all(self) -> None:
        """End all workers at once."""
        for worker in list(self.workers.values()):
            worker.signal_group(signal.SIGKILL)
            self._bury(worker)


def _resident(pid: int) -> int:
    try:
        with Path(f"/proc/{pid}/statm").open(encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0

# SPDX-License-Identifier: Apache-2.0
"""A worker process: one pytest session that runs the cases it is told, until its input ends.

Commands are JSON lines on standard input, answers JSON lines on a pipe of their own. Everything
that can go wrong in here is the owner's to notice: it may die at any point.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import json
import os
import select
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from chipdock.conformance import _pytest as engine
from chipdock.conformance._attribute import tail
from chipdock.conformance._collect import arguments
from chipdock.conformance.capabilities import Capabilities
from chipdock.conformance.journal import plain
from chipdock.conformance.outcomes import Outcome
from chipdock.conformance.probe import probe
from chipdock.conformance.recorder import Recorder, slot_names
from chipdock.conformance.target import Session

__all__ = ["main"]

_PR_SET_PDEATHSIG = 1
_MOST_CALLS = 32


class _Commands:
    """The owner's commands, which may also come while cases run."""

    def __init__(self, source: int) -> None:
        self._source = source
        self._buffer = b""
        self._later: list[dict[str, Any]] = []
        self.skipped: set[str] = set()

    def next(self) -> dict[str, Any] | None:
        """Wait for a command; None if no more will come."""
        while not self._later:
            if not self._read():
                return None
        return self._later.pop(0)

    def poll(self) -> None:
        """Take what has come, for `skipped`."""
        while select.select([self._source], [], [], 0)[0] and self._read():
            pass

    def _read(self) -> bool:
        chunk = os.read(self._source, 1 << 16)
        *lines, self._buffer = (self._buffer + chunk).split(b"\n")
        for command in map(json.loads, lines):
            if command["cmd"] == "skip":
                self.skipped.update(command["ids"])
            else:
                self._later.append(command)
        return bool(chunk)


class _Loop:
    """The pytest plugin that takes commands in place of pytest's own loop."""

    def __init__(self, config: Mapping[str, Any], commands: int) -> None:
        self._config = config
        self._commands = _Commands(commands)
        self._reply = int(config["reply_fd"])
        self._items: dict[str, pytest.Item] = {}
        self._collected: dict[str, str] = {}
        self._trouble: list[str] = []
        self._libc = ctypes.CDLL(None)
        names = slot_names()
        self._recorder = Recorder(Path(config["record"]), names) if config["record"] else None
        known = config["capabilities"]
        found = (
            Capabilities.from_json(json.loads(Path(known).read_text("utf-8"))) if known else None
        )
        self.session = Session(
            config["device"],
            plugin=config["plugin"],
            seed=config["seed"],
            recorder=self._recorder,
            capabilities=found,
        )

    def send(self, kind: str, **values: Any) -> None:
        line = json.dumps(plain({"type": kind, **values}), separators=(",", ":"))
        left = f"{line}\n".encode()
        while left:
            left = left[os.write(self._reply, left) :]

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> bool:
        """Collect nothing: files are collected when a batch needs them."""
        return True

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._trouble.append(report.longreprtext)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.send("ready", pid=os.getpid())
        while (command := self._commands.next()) is not None:
            name = command["cmd"]
            if name == "run":
                self._run(session, command["cases"], command["open"])
                self.send("idle")
            else:
                self._ask(name)
        return True

    def _ask(self, name: str) -> None:
        """Describe or probe the device; an error is an answer."""
        try:
            if name == "describe":
                self.send("described", **self.session.describe())
            else:
                self.send("probed", text=probe(self.session))
        except Exception as error:  # whatever the plugin made of it
            text = f"{type(error).__name__}: {error}" if not hasattr(error, "code") else str(error)
            self.send("error", code=getattr(error, "code", "INTERNAL"), text=text)

    def _run(self, session: pytest.Session, cases: list[list[str]], opens: bool) -> None:
        todo = [(case_id, self._find(session, case_id, file)) for case_id, file in cases]
        if opens:
            try:
                self.session.device  # noqa: B018  outside of every case's time
            except Exception as error:
                self.send("error", code=getattr(error, "code", "INTERNAL"), text=str(error))
                return
        self.send("opened", device=opens)
        for (case_id, item), following in zip(
            todo, [*(item for _, item in todo[1:]), None], strict=True
        ):
            self._commands.poll()
            if case_id in self._commands.skipped:
                self.send("skipped", id=case_id)
                continue
            self.send("start", id=case_id, **self._offsets())
            if item is None:
                reason = self._collected.get(dict(cases)[case_id]) or "the manifest is out of date"
                reason = f"the case is not in its file: {reason}"
                self.send("case", id=case_id, outcome=Outcome.FAIL, reason=reason, lost=False)
            else:
                found = self._one(item, following)
                self.send("case", id=case_id, **found)
                if found["lost"]:
                    return  # nothing that runs on it now would tell anything

    def _offsets(self) -> dict[str, int]:
        calls = self._recorder.total if self._recorder is not None else 0
        return {"calls": calls, "out": os.fstat(1).st_size, "err": os.fstat(2).st_size}

    def _find(self, session: pytest.Session, case_id: str, file: str) -> pytest.Item | None:
        if file not in self._collected:
            self._trouble.clear()
            path = str(Path(self._config["suite"]) / file)
            for item in session.perform_collect([path]) if Path(path).is_file() else ():
                facts = engine.case_of(item)
                if facts is not None:
                    self._items[facts.id] = item
            self._collected[file] = "\n".join(self._trouble)
        return self._items.get(case_id)

    def _one(self, item: pytest.Item, following: pytest.Item | None) -> dict[str, Any]:
        before = self._offsets()
        begin = time.perf_counter()
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        spent = (time.perf_counter() - begin) * 1e3
        found = engine.judge(item)
        for key in (engine.trouble_key, engine.target_key):  # they hold the frames of a failure
            _forget(item, key)
        for name in ("last_exc", "last_type", "last_value", "last_traceback"):
            sys.__dict__.pop(name, None)
        if found["outcome"] not in (Outcome.PASS, Outcome.UNSUPPORTED):
            sys.stdout.flush()
            sys.stderr.flush()
            self._libc.fflush(None)
            found["stdout"] = tail(Path(self._config["stdout"]), before["out"])
            found["stderr"] = tail(Path(self._config["stderr"]), before["err"])
            found["calls"] = self._calls(before["calls"])
        facts = engine.case_of(item)
        return {"ms": spent, "revision": facts.revision if facts is not None else 0, **found}

    def _calls(self, since: int) -> list[list[str]]:
        if self._recorder is None:
            return []
        from chipdock import _core  # noqa: PLC0415  loaded by then

        return self._recorder.calls(since, _MOST_CALLS, _core.STATUS_NAMES)


def _forget(item: pytest.Item, key: pytest.StashKey[Any]) -> None:
    if key in item.stash:
        del item.stash[key]


def _prepare() -> int:
    """Make this process fit for code that may crash or hang; returns where commands come from."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    faulthandler.enable(file=2, all_threads=True)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # When memory runs out it is this process that has to go, not the owner.
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("700", encoding="ascii")
    commands = os.dup(0)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    return commands


def main() -> int:
    """Run a worker; the only argument is its configuration as JSON."""
    config = json.loads(sys.argv[1])
    os.set_inheritable(config["reply_fd"], False)
    loop = _Loop(config, _prepare())

    class _Early:
        """Sets the session before the engine would make its own."""

        @staticmethod
        @pytest.hookimpl(tryfirst=True)
        def pytest_configure(config: pytest.Config) -> None:
            config.stash[engine.session_key] = loop.session

    folder = Path(config["suite"])
    code = pytest.main(arguments(folder), plugins=[_Early(), loop, engine])
    # That cases failed, or that there were none, has been said.
    return code if code in (pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR) else 0


if __name__ == "__main__":
    sys.exit(main())

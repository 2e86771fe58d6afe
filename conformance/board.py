# SPDX-License-Identifier: Apache-2.0
"""What a worker of a Dask cluster does: says which device it owns, and runs one shard on it.

These functions are sent by name, so a worker needs the same chipdock installed. The plugin is never
loaded into the worker: the run is a process of its own, which a crash of the device cannot take the
worker with, and which ends when the worker does (leash.py), or when nobody asks after it any more.
What the run has written so far can be fetched while it goes on, so that the loss of a worker or of
the owner loses only the last moments of it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chipdock.conformance import leash
from chipdock.conformance.journal import FILE, plain

__all__ = [
    "DEVICE",
    "Done",
    "Shard",
    "describe_board",
    "main",
    "peek",
    "run_shard",
    "stop_shards",
]

DEVICE = "CHIPDOCK_DEVICE"
"""Variable of a worker's environment that names its device, "acme:1"."""

_TICK_S = 0.2


@dataclass
class _Held:
    """A shard that runs: its process, whose run it is of, its journal, when it was asked after."""

    process: subprocess.Popen[bytes]
    run: str = ""
    number: int = 0
    journal: Path | None = None
    asked: float = 0.0


_running: dict[int, _Held] = {}
_lock = threading.Lock()


@dataclass(frozen=True)
class Shard:
    """What a worker is to do.

    Attributes:
        number: From 1.
        count: Of shards.
        device: Where the worker's environment names none.
        plan: Ids of the whole, one a line.
        arguments: Options of `run` but for device, plan, shard and out.
        run: Identity of the whole.
        journal: What another worker had done of it, to go on from; empty to begin.
        lease: Seconds after which it is ended if nobody asks after it; 0 is never.
    """

    number: int
    count: int
    device: str
    plan: str
    arguments: tuple[str, ...]
    run: str = ""
    journal: bytes = b""
    lease: float = 0.0


@dataclass(frozen=True)
class Done:
    """What came of a shard.

    Attributes:
        code: Exit code of its run.
        journal: The bytes of results.jsonl, empty if the run never started a device.
        said: The end of what the run printed.
    """

    code: int
    journal: bytes
    said: str


def describe_board(device: str, plugin: str) -> dict[str, Any]:
    """Say what a worker's device is.

    Args:
        device: Where the environment names none.
        plugin: Library or plugin.toml on the worker; "" finds it by name.

    Returns:
        suite_root, env, device, plugin, device_info and capabilities; or only "error", a text.
    """
    words = [sys.executable, "-m", "chipdock.conformance.board", _device(device), plugin]
    asked = subprocess.Popen(
        leash.command(words), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    said, complained = _ended(asked)
    if asked.returncode != 0:
        return {"error": complained.decode("utf-8", "replace").strip()[-2000:]}
    found: dict[str, Any] = json.loads(said)
    return found


def _device(otherwise: str) -> str:
    return os.environ.get(DEVICE) or otherwise


def _ended(run: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """Wait for a run on a leash, which `stop_shards` can cut, and return what it printed."""
    with _lock:
        _running[run.pid] = _Held(run)
    try:
        said = run.stdout.read() if run.stdout is not None else b""
        complained = run.stderr.read() if run.stderr is not None else b""
        run.wait()
    finally:
        _forget(run)
    return said, complained


def _forget(run: subprocess.Popen[bytes]) -> None:
    with _lock:
        del _running[run.pid]
        for pipe in (run.stdin, run.stdout, run.stderr):
            if pipe is not None:
                pipe.close()


def run_shard(shard: Shard) -> Done:
    """Run a shard on the worker's device and return its journal."""
    with tempfile.TemporaryDirectory(prefix="conformance-") as scratch:
        plan, out, log = (Path(scratch, name) for name in ("plan.txt", "out", "log"))
        plan.write_text(shard.plan, encoding="utf-8")
        device = _device(shard.device)
        words = ["--plan", plan, "--shard", f"{shard.number}/{shard.count}", "--out", out]
        if shard.journal:
            out.mkdir()
            (out / FILE).write_bytes(shard.journal)
            words = ["--resume", out]
        else:
            words = [*shard.arguments, *words]
        command = [sys.executable, "-m", "chipdock.conformance.cli", "run", "--device", device]
        with log.open("wb") as file:
            run = subprocess.Popen(
                leash.command([*command, *map(str, words)]),
                stdin=subprocess.PIPE, stdout=file, stderr=subprocess.STDOUT,
            )  # fmt: skip
        _watch(_Held(run, shard.run, shard.number, out / FILE, time.monotonic()), shard.lease)
        journal = out / FILE
        return Done(
            run.returncode,
            journal.read_bytes() if journal.is_file() else b"",
            log.read_text("utf-8", "replace").strip()[-2000:],
        )


def _watch(held: _Held, lease: float) -> None:
    """Wait for the end of a shard, and bring it about when its owner is gone."""
    with _lock:
        _running[held.process.pid] = held
    try:
        while True:
            try:
                held.process.wait(_TICK_S if lease else None)
            except subprocess.TimeoutExpired:
                if time.monotonic() - held.asked > lease:
                    _let_go(held)
            else:
                return
    finally:
        _forget(held.process)


def peek(run: str, number: int, offset: int) -> bytes:
    """Return what the journal of a running shard has from a byte on, and keep the shard running.

    Args:
        run: Identity of the whole.
        number: Of the shard.
        offset: What is known already.
    """
    with _lock:
        held = next((h for h in _running.values() if (h.run, h.number) == (run, number)), None)
        if held is None or held.journal is None:
            return b""
        held.asked = time.monotonic()
        if not held.journal.is_file():
            return b""
        with held.journal.open("rb") as file:
            file.seek(offset)
            return file.read()


def stop_shards(run: str = "") -> None:
    """End what runs on this worker, so that its journals are whole and come back.

    Args:
        run: Only shards of this whole; "" is everything.
    """
    with _lock:
        for held in _running.values():
            if run in ("", held.run):
                _let_go(held)


def _let_go(held: _Held) -> None:
    if held.process.stdin is not None and not held.process.stdin.closed:
        held.process.stdin.close()


def main() -> int:
    """Print what a device is: the process behind `describe_board`."""
    from chipdock.conformance._host import environment  # noqa: PLC0415  only in this process
    from chipdock.conformance.manifest import read_manifest, suite_folder  # noqa: PLC0415
    from chipdock.conformance.pool import Pool, WorkerConfig  # noqa: PLC0415
    from chipdock.conformance.run import NotStarted, describe  # noqa: PLC0415
    from chipdock.conformance.schedule import Limits  # noqa: PLC0415

    device, plugin = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="conformance-") as scratch:
        pool = Pool(WorkerConfig(device, plugin, suite_folder(), 0, Path(scratch)))
        try:
            said = describe(pool, pool.start(), Limits())
        except NotStarted as error:
            sys.stderr.write(f"{error}\n")
            return int(error.code)
        finally:
            pool.kill_all()
    kept = {key: said[key] for key in ("device", "plugin", "device_info", "capabilities")}
    kept |= {"suite_root": read_manifest().root, "env": environment()}
    sys.stdout.write(json.dumps(plain(kept)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

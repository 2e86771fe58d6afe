# SPDX-License-Identifier: Apache-2.0
"""All devices of a plugin at once: each runs a shard in a run of its own, then these are merged.

So one board that falls ill costs its own shard only, and everything that holds for shards on
several machines holds here. The runs end when their owner does (leash.py), and what they had done
by then stands in their journals, from which the whole goes on.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from chipdock.cli.exit_codes import ExitCode
from chipdock.conformance import leash
from chipdock.conformance.journal import FILE, RunRecord
from chipdock.conformance.manifest import suite_folder
from chipdock.conformance.merge import MergeError, merge_runs
from chipdock.conformance.parts import finished, free, journal_of
from chipdock.conformance.pool import Pool, WorkerConfig
from chipdock.conformance.run import describe
from chipdock.conformance.schedule import Limits

__all__ = ["FleetError", "count_devices", "run_fleet"]

_GRACE_S = 30


class FleetError(Exception):
    """A device of the fleet left nothing to be merged; the text is what its run said."""

    def __init__(self, text: str, code: ExitCode) -> None:
        """Keeps the text and the exit code of that run."""
        super().__init__(text)
        self.code = code


def count_devices(name: str, plugin: str) -> int:
    """Ask a worker how many devices a plugin has.

    Args:
        name: Of the devices, "acme".
        plugin: Library or plugin.toml; "" finds it by name.

    Raises:
        NotStarted: The plugin cannot be loaded, or has no device.
    """
    with tempfile.TemporaryDirectory(prefix="conformance-") as scratch:
        config = WorkerConfig(f"{name}:0", plugin, suite_folder(), 0, Path(scratch))
        pool = Pool(config)
        try:
            said = describe(pool, pool.start(), Limits())
        finally:
            pool.kill_all()
    return int(said["capabilities"]["devices"])


def run_fleet(
    name: str, count: int, arguments: Sequence[str], out: Path
) -> tuple[RunRecord, ExitCode]:
    """Run shard k of `count` on device `name`:k-1, all at the same time, and merge them.

    Shards whose journals are in `out` go on where these end; the journal of the whole is anew.

    Args:
        name: Of the devices, "acme" for acme:0, acme:1, ….
        count: How many there are.
        arguments: Options of `run` for all of them, without device, shard and out.
        out: Folder of the whole; those of the shards are in it.

    Returns:
        The journal of the whole and its exit code.

    Raises:
        FleetError: A run could not start, or the runs do not fit together.
    """
    out.mkdir(parents=True, exist_ok=True)
    folders = [out / f"{name}-{index}" for index in range(count)]
    runs: dict[int, subprocess.Popen[bytes]] = {}
    for index, folder in enumerate(folders):
        words = _command(name, index, count, arguments, folder)
        if words:
            with (out / f"{name}-{index}.log").open("wb") as log:
                runs[index] = subprocess.Popen(
                    leash.command(words), stdin=subprocess.PIPE, stdout=log,
                    stderr=subprocess.STDOUT, start_new_session=True,
                )  # fmt: skip
    interrupted = _wait([*runs.values()])
    for index, run in runs.items():
        if journal_of(folders[index]) is None:
            said = (out / f"{name}-{index}.log").read_text("utf-8", "replace").strip()[-2000:]
            raise FleetError(f"{name}:{index}: {said}", _code(run.returncode))
    (out / FILE).unlink(missing_ok=True)  # of the whole, cut short; all of it is in the shards
    try:
        record, code = merge_runs(folders, out)
    except MergeError as error:
        raise FleetError(f"INVALID_ARGUMENT: {error}", ExitCode.USAGE) from error
    return record, ExitCode.INTERRUPTED if interrupted else code


def _command(
    name: str, index: int, count: int, arguments: Sequence[str], folder: Path
) -> list[str]:
    """Return the command that begins a shard or goes on with it; [] if it is done."""
    if not free(folder):
        raise FleetError(
            f"INVALID_ARGUMENT: another run writes {folder / FILE} now; wait for its end",
            ExitCode.USAGE,
        )
    run = [sys.executable, "-m", "chipdock.conformance.cli", "run"]
    if journal_of(folder) is not None:
        return [] if finished(folder) else [*run, "--resume", str(folder)]
    (folder / FILE).unlink(missing_ok=True)
    place = ["--device", f"{name}:{index}", "--shard", f"{index + 1}/{count}"]
    return [*run, *arguments, *place, "--out", str(folder)]


def _wait(runs: Sequence[subprocess.Popen[bytes]]) -> bool:
    """Wait for all runs; returns whether Ctrl-C came, which ends them."""
    interrupted = False
    try:
        for run in runs:
            run.wait()
    except KeyboardInterrupt:
        interrupted = True
        for run in runs:
            _let_go(run)
        for run in runs:
            try:
                run.wait(_GRACE_S)
            except subprocess.TimeoutExpired:
                run.kill()
                run.wait()
    for run in runs:
        _let_go(run)
    return interrupted


def _let_go(run: subprocess.Popen[bytes]) -> None:
    if run.stdin is not None:
        with contextlib.suppress(BrokenPipeError):
            run.stdin.close()


def _code(number: int) -> ExitCode:
    try:
        return ExitCode(number)
    except ValueError:
        return ExitCode.INFRASTRUCTURE

# SPDX-License-Identifier: Apache-2.0
"""One side of a comparison: a process with one plugin that does a piece of work when it is asked.

Two plugins of one name cannot be loaded into one process, and two builds would disturb each other.
So each side is a process, and the owner lets them work by turns (paired.py). This file is both the
owner's handle and, run as a module, the process.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

__all__ = ["AGAINST", "Side", "SideError", "main"]

AGAINST = "CHIPDOCK_CONFORMANCE_AGAINST"
"""What `--against` of a run was given, for its workers."""

_BYTES = ("copy_bytes", "plugin_allocation_count")
"""Of `Device.memory_stats`: what the record of calls does not tell."""

_READY = "ready"

_LEAST = 0.002
"""Seconds of a sample: the clock, and caches that are cold after the wait, are little of it."""


class SideError(Exception):
    """The process of a side died, or its work raised; the text says which and why."""


class Side:
    """A process that works on demand; a context manager that ends it.

    Attributes:
        name: For messages.
    """

    def __init__(
        self,
        workload: str,
        device: str,
        *,
        plugin: str = "",
        name: str = "",
        record: bool = False,
        layers: str = "",
        wait: bool = True,
    ) -> None:
        """Start the process and let it do its work once.

        Args:
            workload: "module:function" or "module:function:text"; the function takes a
                `chipdock.Device`, and the text if there is one, and returns a function without
                arguments that does the work and waits for its end.
            device: "acme:0".
            plugin: Library or plugin.toml; "" finds the plugin by its name.
            name: For messages.
            record: Count ABI calls, for `counters`; times are then of no use.
            layers: For CHIPDOCK_LAYERS of the process, "latency=kernel.launch:1ms".
            wait: Return when it is ready; else `ready` waits, so that two can start at once.

        Raises:
            SideError: The plugin or the workload cannot be used.
        """
        self.name = name or plugin or device
        self._folder = tempfile.TemporaryDirectory(prefix="side-") if record else None
        config = {"workload": workload, "device": device, "plugin": plugin, "record": ""}
        env = {key: value for key, value in os.environ.items() if key != "CHIPDOCK_LAYERS"}
        stack = [layers] if layers else []
        if self._folder is not None:
            config["record"] = str(Path(self._folder.name) / "record")
            stack.append(f"record={config['record']}")
        if stack:
            env["CHIPDOCK_LAYERS"] = ",".join(stack)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "chipdock.conformance.evidence.side", json.dumps(config)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=env,
            text=True,
        )
        if wait:
            self.ready()

    def ready(self) -> None:
        """Wait until the process has done its work once; ends it if it cannot.

        Raises:
            SideError: The plugin or the workload cannot be used.
        """
        try:
            self._answer()
        except SideError:
            self.close()
            raise

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SideError(
                f"UNAVAILABLE: the process of {self.name} ended with {self._process.wait()}"
            )
        found: dict[str, Any] = json.loads(line)
        if "error" in found:
            raise SideError(f"{self.name}: {found['error']}")
        return found

    def _ask(self) -> dict[str, Any]:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # why it is gone, the answer tells
            self._process.stdin.write("work\n")
            self._process.stdin.flush()
        return self._answer()

    def sample(self) -> float:
        """Let it work; returns the time of one piece of work in seconds.

        The first call does it once, later ones as often as takes some milliseconds.

        Raises:
            SideError: It died, or the work raised.
        """
        return float(self._ask()["seconds"])

    def counters(self) -> dict[str, int]:
        """Let it work once; returns calls by entry point, allocations and bytes copied.

        Needs `record`.

        Raises:
            SideError: It died, or the work raised.
        """
        return {str(key): int(value) for key, value in self._ask()["counters"].items()}

    def close(self) -> None:
        """End the process."""
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(BrokenPipeError):  # words that were never read
                if pipe is not None:
                    pipe.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._folder is not None:
            self._folder.cleanup()

    def __enter__(self) -> Side:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the process."""
        self.close()


def _counted(record: str) -> Callable[[], Counter[str]]:
    """Make the record file; returns what reads calls by entry point so far."""
    if not record:
        return Counter
    from chipdock._core import STATUS_NAMES  # noqa: PLC0415
    from chipdock.conformance.recorder import Recorder, create, slot_names  # noqa: PLC0415

    names = slot_names()
    create(Path(record), len(names))
    recorder = Recorder(Path(record), names)
    return lambda: Counter(
        {slot: sum(row.values()) for slot, row in recorder.coverage(tuple(STATUS_NAMES)).items()}
    )


def _serve(config: dict[str, Any], say: Callable[..., None]) -> None:
    calls = _counted(config["record"])
    from chipdock.conformance.target import Session  # noqa: PLC0415  after the record file is made

    module, function, *given = str(config["workload"]).split(":", 2)
    make = getattr(importlib.import_module(module), function)
    device = Session(config["device"], plugin=config["plugin"]).device
    work = make(device, *given)
    work()

    def kept() -> Counter[str]:
        stats = device.memory_stats() if config["record"] else {}
        return Counter({name: int(stats[name]) for name in _BYTES if name in stats})

    def timed(times: int) -> float:
        begin = time.perf_counter()
        for _ in range(times):
            work()
        return (time.perf_counter() - begin) / times

    say(state=_READY)
    times = 1
    for number, _ in enumerate(sys.stdin):
        before = calls() + kept()
        spent = timed(times)
        after = calls() + kept()
        after.subtract(before)
        # Calls are counted of one piece of work, and it is not their time that matters then.
        if number == 0 and not config["record"]:
            times = max(1, math.ceil(_LEAST / max(spent, 1e-6)))
        say(seconds=spent, counters={slot: count for slot, count in after.items() if count})


def main() -> int:
    """Run the process of a side; the only argument is its configuration as JSON."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the work prints is no answer

    def say(**values: Any) -> None:
        answers.write(json.dumps(values) + "\n")
        answers.flush()

    try:
        _serve(json.loads(sys.argv[1]), say)
    except BrokenPipeError:
        return 0
    except Exception as error:  # whatever the plugin or the work made of it
        text = str(error)
        named = text.split(":", 1)[0].isupper()
        say(error=text if named else f"INTERNAL: {type(error).__name__}: {text}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

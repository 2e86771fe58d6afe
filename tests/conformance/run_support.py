# SPDX-License-Identifier: Apache-2.0
"""Runs conformance-run on the sample suite, in a process of its own, and reads what it left."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from chipdock.conformance.journal import RunRecord, read


@dataclass
class Ran:
    """What a run of conformance-run left behind."""

    code: int
    out: str
    err: str
    folder: Path
    record: RunRecord = field(default_factory=RunRecord)

    @property
    def lines(self):
        text = (self.folder / "results.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()]

    def outcomes(self):
        return {case_id: str(case.outcome) for case_id, case in self.record.cases.items()}


class Suite:
    """The sample suite and how to run it."""

    def __init__(self, folder):
        self.folder = folder
        self._going = []
        self.environment = os.environ | {
            "CHIPDOCK_CONFORMANCE_SUITE": str(folder / "samples"),
            "CHIPDOCK_SAMPLE_FOLDER": str(folder),
        }

    @contextmanager
    def slow_cases(self):
        """Slow cases write their process numbers here when they start; reading waits for that.

        They end when a file "fast" is there. A run that a failed test has left going is ended, and
        what it said is printed.
        """
        pipe, fast = self.folder / "slow", self.folder / "fast"
        fast.unlink(missing_ok=True)
        os.mkfifo(pipe)
        try:
            yield pipe
        finally:
            pipe.unlink()
            fast.unlink(missing_ok=True)
            for process in self._going:
                if process.poll() is None:
                    process.kill()
                    said, complained = process.communicate()
                    print(f"was still going: {process.args}\n{said}\n{complained}")
            self._going.clear()

    def start(self, *arguments, **environment):
        command = [sys.executable, "-m", "chipdock.conformance.cli", *map(str, arguments)]
        process = subprocess.Popen(
            command, env=self.environment | environment, cwd=self.folder, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self._going.append(process)
        return process

    def run(self, out, *arguments, **environment):
        process = self.start("--out", out, *arguments, **environment)
        return self.end(process, out)

    def end(self, process, out):
        said, complained = process.communicate(timeout=120)
        record = read(out) if (out / "results.jsonl").is_file() else RunRecord()
        return Ran(process.returncode, said, complained, out, record)

# SPDX-License-Identifier: Apache-2.0
"""The plugin that vendors start from keeps every duty of the tables that it has."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from chipdock.conformance.journal import read

NANO = Path(__file__).parents[1] / "fakes" / "nano.c"
LINES = 150


def test_it_is_short_enough_to_read():
    assert len(NANO.read_text("utf-8").splitlines()) <= LINES


@pytest.mark.slow
def test_it_passes_levels_0_and_1(tmp_path):
    library = Path(os.environ["CHIPDOCK_TEST_LIBDIR"]) / "libnano.so"
    asked = f"--plugin {library} --device nano:0 --level L0,L1 -j 2 --out {tmp_path}"
    done = subprocess.run(
        [sys.executable, "-m", "chipdock.conformance.cli", *asked.split()],
        capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    outcomes = [case.outcome for case in read(tmp_path / "results.jsonl").cases.values()]
    assert outcomes.count("PASS") > 500
    assert set(outcomes) == {"PASS", "UNSUPPORTED"}

# SPDX-License-Identifier: Apache-2.0
"""A suite of its own with cases that fail in every way, for tests that really run something."""

import os
import subprocess
import sys
from pathlib import Path

CASES = '''\
# SPDX-License-Identifier: Apache-2.0
"""Cases that fail on purpose."""

import ctypes
import os

import numpy as np

import chipdock
from chipdock.conformance.case import Variant, case, fail


@case("L1.demo.good", duties=("MEM-5",))
def test_good(target, variant):
    """A copy that is as it should be."""
    sent = target.rng.integers(0, 256, 64, dtype=np.uint8)
    assert (chipdock.array(sent, device=target.device).copy_to_numpy() == sent).all()


@case("L1.demo.wrong", duties=("MEM-5",), tolerance="U",
      variants=[Variant("f32", name=f"n{n}", n=n) for n in (1, 2)])
def test_wrong(target, variant):
    """A number that is wrong, and hangs on the seed."""
    x = chipdock.array(np.float32([1.0, 2.0]), device=target.device)
    chipdock.run_op("Add", x, x)
    drawn = int(target.rng.integers(1 << 30))
    fail("the number is wrong", metric="ulp", value=9.5, limit=4.0, index=[variant.n], expected=1.0,
         got=float(drawn))


@case("L1.demo.crash")
def test_crash(target, variant):
    """Reads address 8."""
    ctypes.string_at(8)


_seen = []


@case("L1.demo.first")
def test_first(target, variant):
    """Leaves something behind."""
    _seen.append(1)


@case("L1.demo.second")
def test_second(target, variant):
    """Is disturbed by it."""
    assert not _seen, "somebody was here before"


@case("L1.demo.env")
def test_env(target, variant):
    """Shows what reaches a case."""
    fail(os.environ["CHIPDOCK_LAYERS"] + " " + os.environ.get("CHIPDOCK_DEMO", ""))


@case("L1.demo.overrun", needs="slot:memory.copy")
def test_overrun(target, variant):
    """Copies a block whose length the plugin gets wrong."""
    sent = np.arange(100, dtype=np.uint8)
    chipdock.array(sent, device=target.device).copy_to_numpy()
'''


def make(folder: Path) -> dict[str, str]:
    """Write the suite and its manifest; returns the environment that selects it."""
    area = folder / "l1"
    area.mkdir(parents=True)
    (area / "test_demo.py").write_text(CASES, encoding="utf-8")
    env = {**os.environ, "CHIPDOCK_CONFORMANCE_SUITE": str(folder)}
    subprocess.run(
        [sys.executable, "-m", "chipdock.conformance.manifest", "--write"], env=env, check=True
    )
    return env

# SPDX-License-Identifier: Apache-2.0
"""Cases that do what plugins do to processes; the runner's tests run them, nobody else does."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import chipdock
from chipdock.conformance.case import Variant, case, fail

ORDER = []
HERE = Path(os.environ.get("CHIPDOCK_SAMPLE_FOLDER", "/nonexistent"))


@case("L1.good.calm", duties=("MEM-5",), variants=[Variant(name=f"n{n}") for n in range(6)])
def test_calm(target, variant):
    """It passes."""
    assert target.device.name == target.name


@case("L1.good.remark")
def test_remark(target, variant):
    """It passes with a remark."""
    target.record(max_ulp=0.5)
    target.warn("nearly all zero")


@case("L1.good.lacks", needs="slot:memory.copy and flag:NO_SUCH_FLAG")
def test_lacks(target, variant):
    """It needs what no device has."""
    raise AssertionError("it must not run")


@case("L1.good.tool", needs="tool:no-such-tool-anywhere")
def test_tool(target, variant):
    """It needs what this host has not."""
    raise AssertionError("it must not run")


@case("L1.bad.fails", tolerance="E")
def test_fails(target, variant):
    """It fails with evidence."""
    print("said before")
    fail("3 is not 4", metric="value", value=3, limit=0, expected=4, got=3)


@case("L1.bad.asserts")
def test_asserts(target, variant):
    """It fails by an assertion."""
    assert [1, 2] == [1, 3]


@case("L1.bad.skips")
def test_skips(target, variant):
    """It skips itself, which is no pass."""
    pytest.skip("not today")


@case("L1.bad.refuses", needs="slot:memory.copy")
def test_refuses(target, variant):
    """The plugin declares it and refuses."""
    raise chipdock.errors.UnsupportedError("UNSUPPORTED: not really")


@pytest.fixture
def breaks_behind():
    yield
    raise RuntimeError("the end went wrong")


@case("L1.bad.teardown")
def test_teardown(target, variant, breaks_behind):
    """It fails when it is over."""


@case("L1.crash.segfault")
def test_segfault(target, variant):
    """It reads from address 0."""
    chipdock.array([1.0], device=target.device)
    ctypes.string_at(0)


@case("L1.crash.abort")
def test_abort(target, variant):
    """It aborts."""
    os.abort()


@case("L1.crash.killed")
def test_killed(target, variant):
    """Somebody kills it; what it started has to go too."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    (HERE / "child.pid").write_text(str(child.pid))
    os.kill(os.getpid(), signal.SIGKILL)


@case("L1.crash.memory", budget_ms=2000)
def test_memory(target, variant):
    """It takes memory until it is ended."""
    kept = []
    while True:
        kept.append(b"x" * 2**25)
        time.sleep(0.001)


@case("L1.crash.late")
def test_late(target, variant):
    """A thread of it ends the process when the case is over."""
    threading.Timer(0.05, lambda: ctypes.string_at(0)).start()


@case("L1.crash.late_neighbour")
def test_late_neighbour(target, variant):
    """It waits long enough to be hit."""
    time.sleep(0.2)


@case("L1.hang.native", budget_ms=1)
def test_hang(target, variant):
    """It hangs in native code and holds Python's lock."""
    ctypes.PyDLL(None).sleep(600)


@case("L1.order.culprit", variants=[Variant(name=f"n{n}") for n in range(8)])
def test_culprit(target, variant):
    """The fifth leaves something behind."""
    if variant.name == "n4":
        ORDER.append("left behind")


@case("L1.order.victim")
def test_victim(target, variant):
    """It fails if something was left behind."""
    assert not ORDER


@case("L1.order.flaky")
def test_flaky(target, variant):
    """It fails the first time ever."""
    marker = HERE / "was-here"
    if not marker.exists():
        marker.touch()
        fail("the first time")


@case("L1.alike.many", variants=[Variant(name=f"n{n:02}", n=n) for n in range(30)])
def test_many(target, variant):
    """All fail in the same way."""
    fail(f"value {variant.n} is wrong")

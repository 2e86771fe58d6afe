# SPDX-License-Identifier: Apache-2.0
"""Cases in a second file: it can kill the worker that reads it, and it can lose the device."""

import os
import time
from pathlib import Path

import numpy as np

import chipdock
from chipdock.conformance.case import Variant, case, fail

if os.environ.get("CHIPDOCK_SAMPLE_DIE") == "1":
    os.abort()


@case("L1.more.plain", variants=[Variant(name=f"n{n}") for n in range(3)])
def test_plain(target, variant):
    """It passes."""


@case("L1.more.lost")
def test_lost(target, variant):
    """The device is lost."""
    raise chipdock.errors.DeviceLostError("DEVICE_LOST: it fell off the bus")


@case("L1.more.ill")
def test_ill(target, variant):
    """The device falls ill, see tests/fakes/ill.c, and the process dies."""
    Path(os.environ["FAKE_ILL"]).touch()
    os.abort()


@case("L1.more.after", variants=[Variant(name=f"n{n}") for n in range(3)])
def test_after(target, variant):
    """It passes."""


@case("L1.more.slow", budget_ms=5000, variants=[Variant(name=f"n{n}") for n in range(2)])
def test_slow(target, variant):
    """It takes its time, and says through a named pipe that it started."""
    folder = Path(os.environ["CHIPDOCK_SAMPLE_FOLDER"])
    if not (folder / "fast").exists():
        with (folder / "slow").open("w") as pipe:
            pipe.write(f"{os.getpid()}\n")
        time.sleep(60)


@case("L1.more.waits", budget_ms=5000, variants=[Variant(name=f"n{n}") for n in range(2)])
def test_waits(target, variant):
    """It holds the device until another process was refused, see tests/fakes/exclusive.c."""
    while not Path(os.environ["FAKE_LOCK"] + ".refused").exists():
        time.sleep(0.01)


@case("L1.more.sometimes")
def test_sometimes(target, variant):
    """It fails the third time."""
    count = Path(os.environ["CHIPDOCK_SAMPLE_FOLDER"], "count")
    count.write_text(count.read_text() + "x" if count.exists() else "x")
    if count.read_text() == "xxx":
        fail("the third time")


@case("L0.more.raw", tier="smoke", duties=("BASE-8",), entry_points=("device.count",))
def test_raw(target, variant):
    """A raw instance is there and ends with the case."""
    raw = target.raw()
    table = raw.table("device")
    count = raw.ffi.new("int32_t*")
    raw.call("device.count", raw.slot(table, "count"), raw.plugin, count)
    assert count[0] >= 1
    assert table.count(raw.plugin, raw.ffi.NULL, raw.ffi.NULL) != 0
    again = target.rng.integers(0, 1 << 30)
    assert again == type(target.rng)(type(target.rng.bit_generator)(target.seed)).integers(
        0, 1 << 30
    )


@case("L1.entry.copies", budget_ms=1, variants=[Variant(name=f"n{n}", n=n) for n in (4099, 4111)])
def test_copies(target, variant):
    """It copies; see tests/fakes/faults_copy.c."""
    chipdock.array(np.zeros(variant.n, np.uint8), device=target.device)

# SPDX-License-Identifier: Apache-2.0
"""chipdock.conformance.evidence.side: work in two processes by turns, and what goes wrong there."""

import contextlib
from pathlib import Path

import pytest

from chipdock.conformance.evidence.paired import PAIRS, ROUNDS, compare_counters, judge, measure
from chipdock.conformance.evidence.side import Side, SideError

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))


def side(work, **more):
    return Side(f"side_sample:{work}", "cpu:0", **more)


def test_two_processes_give_a_verdict():
    @contextlib.contextmanager
    def sides():
        with side("add", wait=False) as first, side("add_twice", wait=False) as second:
            first.ready()
            second.ready()
            yield first.sample, second.sample

    samples = measure(sides)
    assert [len(taken) for taken in samples] == [ROUNDS * PAIRS] * 2
    found = judge(*samples)
    assert found.pairs == ROUNDS * PAIRS
    assert found.low <= found.ratio <= found.high


def test_counters_are_exact():
    with side("add", record=True) as first, side("add_twice", record=True) as second:
        once, again, twice = first.counters(), first.counters(), second.counters()
    assert once == again != {}
    assert compare_counters(once, again) == {}
    assert twice["kernel.launch"] == 2 * once["kernel.launch"]
    assert "kernel.launch" in compare_counters(once, twice)


def test_work_that_raises_is_told():
    with side("fails") as made, pytest.raises(SideError, match="cpu:0: INTERNAL: StopIteration"):
        made.sample()


def test_a_process_that_dies_is_told():
    with side("dies", name="new build") as made:
        with pytest.raises(SideError, match="the process of new build ended with 7"):
            made.sample()
        with pytest.raises(SideError, match="ended with 7"):
            made.sample()


def test_a_plugin_or_work_that_is_not_there_is_told():
    with pytest.raises(SideError, match="no plugin provides 'nodevice:0'"):
        Side("side_sample:add", "nodevice:0")
    with pytest.raises(SideError, match="has no attribute 'nothing'"):
        side("nothing")

# SPDX-License-Identifier: Apache-2.0
"""The signs of life of a run where stderr is no terminal."""

import pytest

from chipdock.conformance import progress


@pytest.mark.parametrize(
    ("state", "now"),
    [
        ((1, ["L1.a.b.any.c"], 0), "L1.a.b.any.c"),
        ((1, [], 0), "no case"),
        ((4, [], 0), "the end"),
        ((4, [], 18), "repeating 18 failures alone"),
        ((4, ["L1.a.b.any.c"], 1), "repeating 1 failure alone"),
    ],
)
def test_a_line_says_what_goes_on(monkeypatch, capsys, state, now):
    done, current, repeating = state
    monkeypatch.setattr(progress, "HEARTBEAT_S", 0.0)
    with progress.Display(4) as display:
        display.update(done, {"PASS": done}, current, repeating)
    assert capsys.readouterr().err == f"{done}/4 after 0 s: {done} PASS; now {now}\n"

# SPDX-License-Identifier: Apache-2.0
"""Whose failure it is: the trials that are asked for, and the verdicts."""

import dataclasses

import pytest

from chipdock.conformance.isolate import isolate
from chipdock.conformance.journal import CaseRecord
from chipdock.conformance.outcomes import Outcome
from chipdock.conformance.suspects import CONFIRMED, IDENTICAL, Suspects

FIRST = CaseRecord("L1.a.b.any.x", Outcome.FAIL, reason="at first", evidence={"value": 3})


def ids(count):
    return [f"L1.a.b.any.n{n}" for n in range(count)]


def judge(prefix, batch, world):
    """Runs the trials in a world, a function from cases to whether the last one fails."""
    asked = []
    steps = isolate(FIRST, prefix, batch)
    cases = next(steps)
    while True:
        asked.append(cases)
        outcome = Outcome.FAIL if world(cases) else Outcome.PASS
        try:
            cases = steps.send(dataclasses.replace(FIRST, outcome=outcome, reason="again"))
        except StopIteration as stop:
            return stop.value, asked


def test_what_fails_alone_stays_what_it_was():
    found, asked = judge(ids(5), 5, lambda cases: True)
    assert (found.outcome, found.attempt, found.reason) == ("FAIL", 2, "again")
    assert asked == [[FIRST.id]]


def test_what_never_comes_again_is_flaky():
    found, asked = judge(ids(5), 2, lambda cases: False)
    assert found.outcome == "FLAKY"
    assert asked == [[FIRST.id], [*ids(5)[3:], FIRST.id], [*ids(5), FIRST.id]]
    assert found.evidence == {"value": 3, "first": "FAIL"}


def test_without_cases_before_it_a_failure_that_goes_is_flaky():
    found, asked = judge([], 0, lambda cases: False)
    assert (found.outcome, len(asked)) == ("FLAKY", 1)


@pytest.mark.parametrize("culprits", [{3}, {0}, {99}, {3, 4}, {0, 99}, {10, 50, 90}])
def test_the_shortest_prefix_is_found(culprits):
    wanted = [ids(100)[n] for n in sorted(culprits)]
    found, asked = judge(ids(100), 100, lambda cases: set(wanted) <= set(cases))
    assert found.outcome == "ORDER_DEPENDENT"
    assert found.evidence["behind"] == wanted
    assert len(asked) <= 45


def test_the_batch_is_asked_before_the_whole_life_of_the_worker():
    found, asked = judge(ids(1000), 10, lambda cases: ids(1000)[995] in cases)
    assert found.evidence["behind"] == [ids(1000)[995]]
    assert max(map(len, asked)) == 11


def test_a_search_that_is_too_long_reports_the_shortest_so_far():
    # Every second case is needed: nothing can be left out in large pieces.
    wanted = set(ids(64)[::2])
    found, asked = judge(ids(64), 64, lambda cases: wanted <= set(cases))
    assert found.outcome == "ORDER_DEPENDENT"
    assert wanted <= set(found.evidence["behind"])
    assert len(asked) <= 45


def fail(n, reason="value {} is wrong"):
    return CaseRecord(f"L2.op.add.f32.n{n}", Outcome.FAIL, reason=reason.format(n))


def test_the_twentieth_failure_alike_stops_its_group_once():
    suspects = Suspects(lambda record: None)
    stops = [suspects.add(fail(n), [], 0) for n in range(IDENTICAL + 5)]
    assert [n for n, stop in enumerate(stops, 1) if stop] == [IDENTICAL]
    assert list(suspects.stopped) == ["L2.op.add"]


def test_failures_of_other_kinds_or_groups_are_not_alike():
    suspects = Suspects(lambda record: None)
    words = ["one", "two", "three"]
    stops = [suspects.add(fail(n, f"{words[n % 3]} {{}}"), [], 0) for n in range(45)]
    assert not any(stops)


def test_a_few_confirmations_stand_for_all_alike():
    settled = []
    suspects = Suspects(settled.append)
    for n in range(10):
        suspects.add(fail(n), [], 0)
    while trial := suspects.next():
        suspects.answer(trial, trial.first)
    assert len(settled) == CONFIRMED
    assert len(suspects) == 0


def test_one_that_is_refuted_has_all_of_them_asked():
    settled = []
    suspects = Suspects(settled.append)
    for n in range(10):
        suspects.add(fail(n), [], 0)
    while trial := suspects.next():
        passes = trial.first.id.endswith("n0")
        outcome = Outcome.PASS if passes else Outcome.FAIL
        suspects.answer(trial, dataclasses.replace(trial.first, outcome=outcome))
    assert [str(record.outcome) for record in settled] == ["FLAKY"] + ["FAIL"] * 9

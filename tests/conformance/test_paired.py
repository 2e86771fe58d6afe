# SPDX-License-Identifier: Apache-2.0
"""chipdock.conformance.evidence.paired: verdicts on made-up times, whose truth is known."""

import contextlib
import math
import random

import pytest

from chipdock.conformance.evidence.paired import (
    PAIRS,
    ROUNDS,
    Verdict,
    compare_counters,
    judge,
    measure,
)

LEAST = ROUNDS * PAIRS


def samples(ratio, noise, *, pairs=LEAST, seed=0, drift=0.0, process=0.0):
    """Times of A and B with log-normal noise of a sample and of a process, and a machine that
    slows down."""
    pick = random.Random(seed)

    def side(scale):
        taken = []
        for n in range(pairs):
            if n % PAIRS == 0:
                own = pick.gauss(0.0, process)
            taken.append(scale * math.exp(pick.gauss(0.0, noise) + own + drift * n))
        return taken

    return side(1e-3), side(1e-3 * ratio)


@pytest.mark.parametrize(
    ("ratio", "noise", "verdict"),
    [
        (1.00, 0.01, Verdict.SAME),
        (1.04, 0.01, Verdict.SAME),
        (1.08, 0.005, Verdict.SAME),  # sure, but too small to fail
        (1.20, 0.01, Verdict.SLOWER),
        (1.50, 0.03, Verdict.SLOWER),
        (0.80, 0.01, Verdict.FASTER),
        (1.00, 0.20, Verdict.INCONCLUSIVE),
        (3.00, 0.20, Verdict.INCONCLUSIVE),
    ],
)
def test_verdict(ratio, noise, verdict):
    assert judge(*samples(ratio, noise)).verdict is verdict


def test_same_work_hardly_ever_fails_whatever_the_noise():
    for noise in (0.01, 0.03, 0.06, 0.1):
        wrong = [
            seed
            for seed in range(400)
            if judge(*samples(1.0, noise, seed=seed)).verdict is Verdict.SLOWER
        ]
        assert wrong == []


def test_processes_that_differ_for_good_are_no_loss():
    # As measured: within a process 2 % from sample to sample, from one process to the next more.
    for process in (0.05, 0.1, 0.2):
        found = [
            judge(*samples(1.0, 0.02, seed=seed, process=process)).verdict for seed in range(400)
        ]
        assert found.count(Verdict.SLOWER) <= 4


def test_a_clear_loss_is_found_nearly_always():
    found = [judge(*samples(1.25, 0.03, seed=seed)).verdict for seed in range(200)]
    assert found.count(Verdict.SLOWER) >= 195


def test_a_machine_that_slows_down_does_not_look_like_a_loss():
    found = judge(*samples(1.0, 0.005, drift=0.03))
    assert found.verdict is Verdict.SAME
    assert abs(found.ratio - 1.0) < 0.02


def test_the_interval_holds_the_truth_about_as_often_as_it_says():
    inside = 0
    for seed in range(400):
        found = judge(*samples(1.1, 0.03, seed=seed))
        inside += found.low <= 1.1 <= found.high
    assert 0.91 <= inside / 400 <= 0.985


def test_noise_is_that_of_neighbours_of_one_side():
    # A B B A A B B A …: neighbours of one side are equal here, pairs are not.
    first = [1.0, 1.1, 1.1, 1.0, 1.0, 1.1, 1.1, 1.0, 1.0, 1.1]
    second = [2.0, 2.0, 2.1, 2.1, 2.0, 2.0, 2.1, 2.1, 2.0, 2.0]
    assert judge(first, second).noise == 0.0


def test_twice_the_noise_raises_what_stands_out():
    first = [1.0, 1.09] * 6
    second = [1.14 * value for value in first]
    found = judge(first, second)
    assert found.low > 1.05
    assert found.noise > 0.07
    assert found.verdict is Verdict.SAME


def test_samples_are_taken_by_turns_and_the_shortest_of_each_counts():
    order = []

    def side(name):
        def call():
            order.append(name)
            return 1.0 + order.count(name) % 3

        return call

    @contextlib.contextmanager
    def start():
        order.append("(")
        yield side("A"), side("B")
        order.append(")")

    first, second = measure(start, least_of=2)
    assert len(first) == len(second) == LEAST
    assert "".join(order) == "(ABAABBBBAA)" * ROUNDS
    assert max(first) <= 2.0


@pytest.mark.parametrize(
    ("first", "second"),
    [([1.0] * 8, [1.0] * 8),
     ([1.0] * 11, [1.0] * 11), ([1.0] * 10, [1.0] * 11),
     ([0.0] * 10, [1.0] * 10), ([math.nan] * 10, [1.0] * 10)],
)  # fmt: skip
def test_samples_that_cannot_be_judged_are_refused(first, second):
    with pytest.raises(ValueError, match="sample"):
        judge(first, second)


def test_too_few_rounds_are_refused_before_anything_runs():
    with pytest.raises(ValueError, match=f"at least {ROUNDS} rounds"):
        measure(lambda: pytest.fail("ran"), rounds=ROUNDS - 1)


def test_finding_reads_well():
    text = str(judge(*samples(1.5, 0.001)))
    assert text.startswith("slower: B takes 1.5")
    assert "10 pairs" in text


def test_counters_gate_exactly():
    assert compare_counters({"calls": 100, "bytes": 5}, {"calls": 100, "bytes": 4}) == {}
    assert compare_counters({"calls": 100}, {"calls": 101}) == {"calls": "100 to 101"}
    assert compare_counters({"a": 1}, {"b": 1}) == {
        "a": "counted only in A",
        "b": "counted only in B",
    }

# SPDX-License-Identifier: Apache-2.0
"""Real crashes, hangs and failures: what becomes of the case, and that the rest goes on."""

import os
from collections import Counter
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # they look at one run of some seconds


def case(deeds, name):
    return deeds.record.cases[name if name.count(".") == 4 else f"{name}.any.base"]


def test_every_selected_case_has_a_record_and_the_run_its_end(deeds):
    assert set(deeds.record.run["selected"]) == set(deeds.record.cases)
    assert deeds.record.end["counts"] == deeds.record.counts
    assert deeds.record.end["exit_code"] == deeds.code == 3  # some were not run
    assert not deeds.record.started


def test_good_cases_pass_whatever_their_neighbours_do(deeds):
    outcomes = deeds.outcomes()
    calm = [outcomes[f"L1.good.calm.any.n{n}"] for n in range(6)]
    culprits = [outcomes[f"L1.order.culprit.any.n{n}"] for n in range(8)]
    assert set(calm + culprits) == {"PASS"}


def test_a_remark_of_a_passing_case_is_a_quality_warning(deeds):
    found = case(deeds, "L1.good.remark")
    assert (found.outcome, found.reason) == ("QUALITY_WARN", "nearly all zero")
    assert found.evidence == {"max_ulp": 0.5}


def test_what_the_plugin_lacks_is_unsupported_and_names_the_term(deeds):
    found = case(deeds, "L1.good.lacks")
    assert (found.outcome, found.reason) == ("UNSUPPORTED", "lacks flag:NO_SUCH_FLAG")


def test_what_the_host_lacks_is_not_run(deeds):
    found = case(deeds, "L1.good.tool")
    assert (found.outcome, found.reason) == ("NOT_RUN", "lacks tool:no-such-tool-anywhere")


def test_a_failure_has_its_evidence_and_output_and_was_confirmed_alone(deeds):
    found = case(deeds, "L1.bad.fails")
    assert (found.outcome, found.reason, found.attempt) == ("FAIL", "3 is not 4", 2)
    assert found.evidence["expected"] == 4
    assert found.stdout == "said before\n"


def test_an_assertion_is_explained(deeds):
    found = case(deeds, "L1.bad.asserts")
    assert found.outcome == "FAIL"
    assert found.reason.startswith("[1, 2] == [1, 3] does not hold: test_deeds.py, line ")
    assert "test_asserts" in found.evidence["traceback"]


def test_a_skip_is_never_a_pass(deeds):
    assert case(deeds, "L1.bad.skips").outcome == "FAIL"


def test_unsupported_from_a_declared_capability_is_a_broken_claim(deeds):
    assert case(deeds, "L1.bad.refuses").outcome == "CLAIMED_UNSUPPORTED"


def test_a_failure_in_teardown_is_the_cases(deeds):
    found = case(deeds, "L1.bad.teardown")
    assert found.outcome == "FAIL"
    assert found.reason.startswith("in teardown: RuntimeError")


@pytest.mark.parametrize(
    ("name", "signal"), [("segfault", "SIGSEGV"), ("abort", "SIGABRT"), ("killed", "SIGKILL")]
)
def test_a_death_is_a_crash_with_its_signal(deeds, name, signal):
    found = case(deeds, f"L1.crash.{name}")
    assert (found.outcome, found.signal, found.attempt) == ("CRASH", signal, 2)
    assert signal in found.reason
    if name != "killed":
        assert f"in test_{name}" in found.stderr  # faulthandler's stack


def test_what_a_killed_worker_started_is_gone(deeds, suite):
    child = int((suite.folder / "child.pid").read_text())
    state = Path(f"/proc/{child}/stat")
    assert not state.exists() or state.read_text().rpartition(")")[2].split()[0] in "ZX"


def test_memory_without_end_is_ended_and_said(deeds):
    found = case(deeds, "L1.crash.memory")
    assert found.outcome == "CRASH"
    assert "MiB of memory" in found.reason


def test_a_hang_in_native_code_is_a_timeout_with_a_stack(deeds):
    found = case(deeds, "L1.hang.native")
    assert (found.outcome, found.signal) == ("TIMEOUT", "SIGABRT")
    assert "took longer than 1.0 s" in found.reason
    assert "in test_hang" in found.stderr


def test_a_failure_behind_another_case_is_order_dependent_and_bisected(deeds):
    found = case(deeds, "L1.order.victim")
    assert found.outcome == "ORDER_DEPENDENT"
    assert found.evidence["behind"] == ["L1.order.culprit.any.n4"]


def test_a_crash_that_comes_late_is_traced_to_the_case_that_caused_it(deeds):
    found = case(deeds, "L1.crash.late_neighbour")
    assert found.outcome == "ORDER_DEPENDENT"
    assert found.evidence["behind"] == ["L1.crash.late.any.base"]


def test_a_failure_that_does_not_come_again_is_flaky(deeds):
    found = case(deeds, "L1.order.flaky")
    assert found.outcome == "FLAKY"
    assert "at first: FAIL: the first time" in found.reason


def test_a_group_that_fails_all_alike_is_stopped(deeds):
    found = Counter(o for name, o in deeds.outcomes().items() if name.startswith("L1.alike."))
    assert 20 <= found["FAIL"] < 30
    assert found["FAIL"] + found["NOT_RUN"] == 30
    stopped = [c for c in deeds.record.cases.values() if "was stopped after 20" in c.reason]
    assert len(stopped) == found["NOT_RUN"]


def test_failures_alike_are_confirmed_by_a_few(deeds):
    again = [
        record for record in deeds.record.cases.values()
        if record.id.startswith("L1.alike.") and record.attempt == 2
    ]  # fmt: skip
    assert 3 <= len(again) <= 4


def test_the_device_was_probed_after_each_abnormal_end(deeds):
    events = [event["what"] for event in deeds.record.events]
    assert "probe_ok" in events
    assert "probe_failed" not in events


def test_the_journal_says_what_was_tested_and_how(deeds):
    run = deeds.record.run
    assert run["device"] == "cpu:0"
    assert len(run["plugin"]["sha256"]) == 64
    assert "memory.copy" in run["capabilities"]["slots"]
    assert any(kernel["op"] == "Conv" for kernel in run["capabilities"]["kernels"])
    assert run["options"]["selection"]["globs"] == ["L1.[gbcoha]*"]
    assert (run["mask"], run["seed"]) == ("none", 0)


def test_the_summary_counts_side_by_side_and_names_failures(deeds):
    assert "CRASH L1.crash.segfault.any.base: the process died of SIGSEGV" in deeds.out
    assert "2 ORDER_DEPENDENT" in deeds.out
    assert str(deeds.folder) in deeds.out


def test_no_worker_and_no_scratch_is_left(deeds):
    left = {path.name for path in deeds.folder.iterdir()}
    assert not [name for name in left if name.startswith("workers-")]
    running = [path for path in Path("/proc").glob("[0-9]*/cmdline") if _is_ours(path, deeds)]
    assert not running


def _is_ours(path, deeds):
    try:
        return os.fsencode(deeds.folder) in path.read_bytes()
    except OSError:
        return False

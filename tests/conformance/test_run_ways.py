# SPDX-License-Identifier: Apache-2.0
"""Ways to run: interrupted and resumed, in shards, repeated, on a device that falls ill."""

import os
import select
import signal
from pathlib import Path

import pytest

from chipdock.conformance.journal import read

pytestmark = pytest.mark.slow

LIBDIR = Path(os.environ["CHIPDOCK_TEST_LIBDIR"])
CPU = ("--device", "cpu:0")


@pytest.fixture(scope="module")
def pipe(suite):
    with suite.slow_cases() as path:
        yield path


@pytest.fixture(scope="module")
def interrupted(suite, pipe, tmp_path_factory):
    """A run that Ctrl-C ended while a case slept, and the worker's process number."""
    out = tmp_path_factory.mktemp("interrupted") / "out"
    process = suite.start("--out", out, *CPU, "-k", "L1.more.[ps]l*")
    worker = int(pipe.read_text(encoding="ascii"))
    process.send_signal(signal.SIGINT)
    return suite.end(process, out), worker


def test_results_may_go_to_a_relative_folder(suite):
    process = suite.start("--out", "here/results", *CPU, "-k", "L1.more.plain.*")
    ran = suite.end(process, suite.folder / "here" / "results")
    assert (ran.code, set(ran.outcomes().values())) == (0, {"PASS"})


def test_ctrl_c_ends_the_workers_and_completes_the_journal(interrupted):
    ran, worker = interrupted
    assert ran.code == ran.record.end["exit_code"] == 130
    assert ran.record.events[-1]["what"] == "interrupted"
    assert ran.outcomes() == {
        **{f"L1.more.plain.any.n{n}": "PASS" for n in range(3)},
        **{f"L1.more.slow.any.n{n}": "NOT_RUN" for n in range(2)},
    }
    assert not Path(f"/proc/{worker}").exists()


def test_a_run_resumes_where_it_was_cut_short(suite, interrupted):
    before, _ = interrupted
    settled = {i for i, o in before.outcomes().items() if o == "PASS"}
    (suite.folder / "fast").touch()
    ran = suite.end(suite.start("--resume", before.folder), before.folder)
    assert ran.code == 0
    assert set(ran.outcomes().values()) == {"PASS"}
    assert len(ran.record.cases) == 5
    starts = [line["id"] for line in ran.lines if line["type"] == "start"]
    assert all(starts.count(case_id) == 1 for case_id in settled)


def test_workers_end_with_an_owner_that_is_killed(suite, pipe, tmp_path):
    (suite.folder / "fast").unlink(missing_ok=True)
    process = suite.start("--out", tmp_path / "out", *CPU, "-k", "L1.more.[ps]l*")
    worker = os.pidfd_open(int(pipe.read_text(encoding="ascii")))
    process.kill()
    assert select.select([worker], [], [], 30)[0], "the worker outlived its owner"
    os.close(worker)
    cut = suite.end(process, tmp_path / "out")
    assert cut.record.end is None
    assert cut.record.started <= {"L1.more.slow.any.n0"}
    assert [*cut.folder.glob("workers-*")]
    (suite.folder / "fast").touch()
    ran = suite.end(suite.start("--resume", cut.folder), cut.folder)
    assert ran.code == 0
    assert ran.record.counts == {"PASS": 5}
    assert not [*cut.folder.glob("workers-*")]


def test_a_run_that_cannot_start_leaves_its_folder_free(suite, tmp_path):
    options = ("--plugin", LIBDIR / "libtoo_new.so", "--device", "fake:0", "--level", "L0")
    ran = suite.run(tmp_path / "out", *options)
    assert ran.code == 4
    assert "VERSION_MISMATCH" in ran.err
    assert list(ran.folder.iterdir()) == []


def test_level_0_judges_a_device_that_does_not_open(suite, tmp_path):
    options = ("--plugin", LIBDIR / "libfails_open.so", "--device", "fake:0")
    ran = suite.run(tmp_path / "out", *options, "-k", "L[01].more.[rp][al][wa]*")
    assert ran.code == ran.record.end["exit_code"] == 4
    assert ran.record.counts == {"CRASH": 1, "NOT_RUN": 3}
    assert ran.outcomes()["L0.more.raw.any.base"] == "CRASH"  # this plugin writes through NULL
    reason = ran.record.cases["L1.more.plain.any.n0"].reason
    assert "open" in reason


def test_shards_are_run_apart_and_merged(suite, tmp_path):
    parts = [tmp_path / "one", tmp_path / "two"]
    started = [
        suite.start("--out", part, *CPU, "-k", "L1.good.calm*", "--shard", f"{number}/2")
        for number, part in enumerate(parts, 1)
    ]
    ran = [suite.end(process, part) for process, part in zip(started, parts, strict=True)]
    assert [len(part.record.cases) for part in ran] == [3, 3]
    whole = suite.end(suite.start("merge", *parts, "--out", tmp_path / "all"), tmp_path / "all")
    assert whole.code == 0
    assert whole.record.counts == {"PASS": 6}
    assert whole.record.end["counts"] == {"PASS": 6}
    half = suite.end(suite.start("merge", parts[0], "--out", tmp_path / "half"), tmp_path / "half")
    assert half.code == 3
    assert half.record.counts == {"PASS": 3, "MISSING": 3}
    twice = suite.end(
        suite.start("merge", parts[0], parts[0], "--out", tmp_path / "x"), tmp_path / "x"
    )
    assert twice.code == 2
    assert "are one folder" in twice.err


def test_repeating_finds_what_fails_sometimes(suite, tmp_path):
    ran = suite.run(tmp_path / "out", *CPU, "--case", "L1.more.sometimes.any.base", "--repeat", 4)
    found = ran.record.cases["L1.more.sometimes.any.base"]
    assert (ran.code, found.outcome, found.attempt) == (1, "FLAKY", 4)
    assert found.reason == "failed 1 of 4 times; the first: the third time"


def test_until_fail_stops_at_the_first_failure(suite, tmp_path):
    (suite.folder / "count").unlink(missing_ok=True)
    ran = suite.run(tmp_path / "out", *CPU, "--case", "L1.more.sometimes.any.base", "--until-fail")
    found = ran.record.cases["L1.more.sometimes.any.base"]
    assert (ran.code, found.outcome) == (1, "FLAKY")
    assert found.evidence["failed"] == 1


def test_a_lost_device_is_a_failure_and_the_rest_goes_on(suite, tmp_path):
    ran = suite.run(tmp_path / "out", *CPU, "-k", "L1.more.[pla][lof]*", "--case", "L1.more.*")
    outcomes = ran.outcomes()
    assert outcomes.pop("L1.more.lost.any.base") == "FAIL"
    assert set(outcomes.values()) == {"PASS"}
    events = [event["what"] for event in ran.record.events]
    assert events.index("device_lost") < events.index("probe_ok")


@pytest.fixture
def ill(tmp_path):
    plugin = ("--plugin", LIBDIR / "libill.so", "--device", "ill:0")
    return tmp_path / "ill", (*plugin, "-k", "L1.more.[pia][lf]*")


def test_an_ill_device_is_given_up_and_the_rest_not_run(suite, tmp_path, ill):
    file, options = ill
    ran = suite.run(tmp_path / "out", *options, FAKE_ILL=str(file))
    assert ran.code == 5
    assert [event["what"] for event in ran.record.events][-1] == "quarantined"
    outcomes = ran.outcomes()
    assert outcomes["L1.more.ill.any.base"] == "CRASH"
    rest = {outcome for name, outcome in outcomes.items() if ".after." in name}
    assert rest == {"NOT_RUN"}
    assert "ill:0 device.open: the chip is ill" in ran.record.cases["L1.more.after.any.n0"].reason


def test_the_reset_command_brings_a_device_back(suite, tmp_path, ill):
    file, options = ill
    ran = suite.run(tmp_path / "out", *options, "--reset-cmd", f"rm -v {file}", FAKE_ILL=str(file))
    assert ran.code == 1
    outcomes = ran.outcomes()
    assert outcomes.pop("L1.more.ill.any.base") == "CRASH"
    assert set(outcomes.values()) == {"PASS"}
    resets = [event["detail"] for event in ran.record.events if event["what"] == "reset"]
    assert resets
    assert resets[0].startswith("exit code 0: rm -v")


def test_a_file_that_kills_its_readers_fails_its_cases(suite, tmp_path):
    ran = suite.run(tmp_path / "out", *CPU, "-k", "L1.more.plain*", CHIPDOCK_SAMPLE_DIE="1")
    assert ran.code == 1
    assert ran.record.counts == {"FAIL": 3}
    reason = ran.record.cases["L1.more.plain.any.n0"].reason
    assert "workers die before it can start" in reason
    assert "SIGABRT" in reason


def test_level_0_sees_the_raw_tables(suite, tmp_path):
    ran = suite.run(tmp_path / "out", *CPU, "--level", "L0")
    assert (ran.code, ran.record.counts) == (0, {"PASS": 1})


def test_masks_are_seen_in_the_capabilities(suite, tmp_path):
    ran = suite.run(tmp_path / "out", *CPU, "--level", "L0", "--mask", "required")
    slots = ran.record.run["capabilities"]["slots"]
    assert ran.record.run["mask"] == "required"
    assert len(slots) == 7
    assert ran.record.run["capabilities"]["kernels"] == []


def test_a_device_that_is_not_there_is_said_at_once(suite, tmp_path):
    ran = suite.run(tmp_path / "out", "--device", "cpuu:0", "--level", "L0")
    assert ran.code == 2
    assert "did you mean 'cpu:0'?" in ran.err


def test_a_device_for_one_process_gets_one_worker(suite, tmp_path):
    options = ("--plugin", LIBDIR / "libexclusive.so", "--device", "exclusive:0", "-j", 3)
    ran = suite.run(
        tmp_path / "out", *options, "--case", "L1.more.waits.*", FAKE_LOCK=str(tmp_path / "lock")
    )
    assert (ran.code, ran.record.counts) == (0, {"PASS": 2})
    assert "busy" in [event["what"] for event in ran.record.events]


def test_all_devices_of_a_plugin_share_the_cases(suite, tmp_path):
    plugin = ("--plugin", LIBDIR / "libpair.so", "--device", "pair:all")
    ran = suite.run(tmp_path / "out", *plugin, "-k", "L1.more.[pa][lf]*")
    assert ran.code == 0, ran.err
    assert ran.record.counts == {"PASS": 6}
    parts = [read(ran.folder / f"pair-{n}") for n in range(2)]
    assert [part.run["device"] for part in parts] == ["pair:0", "pair:1"]
    assert [len(part.cases) for part in parts] == [3, 3]


def test_crash_and_hang_name_the_slot_that_the_process_was_in(suite, tmp_path):
    ran = suite.run(
        tmp_path / "out", "--plugin", LIBDIR / "libfaults_copy.so", "--device", "faults:0",
        "--case", "L1.entry.*", "--timeout-scale", 0.5,
    )  # fmt: skip
    crash, hang = (ran.record.cases[f"L1.entry.copies.any.n{n}"] for n in (4099, 4111))
    assert (crash.outcome, hang.outcome) == ("CRASH", "TIMEOUT")
    assert crash.reason == "the process died of SIGSEGV in memory.copy"
    assert hang.reason == "took longer than 1.0 s in memory.copy"
    assert crash.calls[-1] == ("memory.copy", "RUNNING")
    assert ran.record.end["coverage"]["memory.copy"]["OK"] >= 2  # of the probes

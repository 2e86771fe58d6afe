# SPDX-License-Identifier: Apache-2.0
"""Runs of all devices of a plugin that are killed, and go on with what their shards had done."""

import json
import os
import select
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from chipdock.conformance.board import Shard, peek, run_shard
from chipdock.conformance.journal import read
from chipdock.conformance.parts import Parts, finished, free, read_parts

LIBDIR = Path(os.environ["CHIPDOCK_TEST_LIBDIR"])
PAIR = ("--plugin", LIBDIR / "libpair.so", "--device", "pair:all")
CASES = ("-k", "L1.more.[ps]l*")


@pytest.fixture
def pipe(suite):
    with suite.slow_cases() as path:
        yield path


def both_slow(pipe):
    found = set()
    while len(found) < 2:
        found |= {int(word) for word in pipe.read_text(encoding="ascii").split()}
    return [os.pidfd_open(number) for number in found]


def starts(folder):
    lines = (folder / "results.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines if line]
    return [row["id"] for row in rows if row["type"] == "start"]


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_what_is_done_is_not_done_again(suite, pipe, tmp_path, how):
    out = tmp_path / "out"
    process = suite.start("--out", out, *PAIR, *CASES)
    workers = both_slow(pipe)
    process.send_signal(how)
    for worker in workers:
        assert select.select([worker], [], [], 60)[0], "a shard outlived its owner"
        os.close(worker)
    cut = suite.end(process, out)
    shards = [out / f"pair-{n}" for n in range(2)]
    assert (out / "results.jsonl").exists() == (how is signal.SIGINT)
    assert all(free(shard) for shard in shards)
    assert not any(finished(shard) for shard in shards)
    settled = [
        case_id
        for shard in shards
        for case_id, case in read(shard).cases.items()
        if case.outcome == "PASS"
    ]
    assert sorted(settled) == [f"L1.more.plain.any.n{n}" for n in range(3)]
    refused = suite.run(out, *PAIR, *CASES)
    assert (refused.code, "go on with it by --resume" in refused.err) == (2, True), cut.err
    (suite.folder / "fast").touch()
    ran = suite.end(suite.start("--resume", out), out)
    assert ran.code == 0, ran.err
    assert ran.record.counts == {"PASS": 5}
    assert len(ran.record.run["selected"]) == 5
    assert (out / "report.html").is_file()
    begun = [case_id for shard in shards for case_id in starts(shard)]
    assert all(begun.count(case_id) == 1 for case_id in settled)
    # A run that is whole is merged again, and nothing of it runs.
    again = suite.end(suite.start("--resume", out), out)
    assert (again.code, again.record.counts) == (0, {"PASS": 5})
    assert [case_id for shard in shards for case_id in starts(shard)] == begun


@pytest.mark.slow
def test_a_shard_that_never_began_is_begun(suite, tmp_path):
    out = tmp_path / "out"
    ran = suite.run(out, *PAIR, "-k", "L1.more.plain*")
    assert ran.code == 0, ran.err
    (out / "pair-1" / "results.jsonl").write_bytes(b"")  # it opened the file, and was killed
    (out / "results.jsonl").unlink()
    ran = suite.end(suite.start("--resume", out), out)
    assert ran.code == 0, ran.err
    assert ran.record.counts == {"PASS": 3}


@pytest.mark.slow
def test_another_suite_is_refused(suite, tmp_path):
    Parts("devices", "1", "00" * 32, "pair", "", 2, ()).write(tmp_path)
    ran = suite.end(suite.start("--resume", tmp_path), tmp_path)
    assert ran.code == 2
    assert "is a run of another suite, 000000000000; this one is" in ran.err


def test_parts_are_read_as_written_and_damage_is_told(tmp_path):
    parts = Parts("cluster", "1", "ab", "", "lib.so", 3, ("--seed", "7"), {"seed": 7}, "tcp://a:1")
    assert read_parts(tmp_path) is None
    parts.write(tmp_path)
    assert read_parts(tmp_path) == parts
    (tmp_path / "parts.json").write_text('{"schema": 2}')
    with pytest.raises(ValueError, match="is none that this version writes: it is of another"):
        read_parts(tmp_path)


@pytest.mark.slow
def test_a_shard_nobody_asks_after_is_ended(suite, pipe, monkeypatch):
    for name, value in suite.environment.items():
        monkeypatch.setenv(name, value)
    plan = "".join(f"L1.more.{name}\n" for name in ("plain.any.n0", "slow.any.n0"))
    shard = Shard(1, 1, "cpu:0", plan, (), run="mine", lease=2.0)
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(run_shard, shard)
        while b'"type":"start","id":"L1.more.slow' not in peek("mine", 1, 0):
            assert not running.done(), running.result()
        done = running.result(60)
    assert done.code == 130, done.said
    assert b'"interrupted"' in done.journal
    assert b'"outcome":"PASS"' in done.journal
    assert peek("mine", 1, 0) == b""

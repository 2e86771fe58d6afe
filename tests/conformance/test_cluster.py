# SPDX-License-Identifier: Apache-2.0
"""--cluster on a real Dask cluster of worker processes on this machine, one of which is killed."""

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from distributed import Client, LocalCluster, Nanny, Scheduler, SpecCluster

from chipdock.conformance.cluster import MOST_LOSSES, Job, _Cluster
from chipdock.conformance.journal import read
from chipdock.conformance.manifest import read_manifest
from chipdock.conformance.parts import Parts

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

EXTRA = '''
from chipdock.conformance.case import case


@case("L1.extra.more")
def test_more(target, variant):
    """It makes the suite another one."""
'''


@pytest.fixture
def cluster(suite):
    """Make clusters; a worker a device, each device a name in its worker's environment."""
    made = []

    def start(workers, device="cpu:0", **more):
        made.append(
            LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                dashboard_address=None,
                host="127.0.0.1",
                resources={"chipdock": 1},
                silence_logs=50,
                env=suite.environment | {"CHIPDOCK_DEVICE": device},
                **more,
            )
        )
        return made[-1]

    yield start
    for one in made:
        one.close()


def parents(pid):
    """The processes above one, nearest first."""
    while pid > 1:
        pid = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
        yield pid


def worker_above(pid, cluster):
    owned = {nanny.pid for nanny in cluster.workers.values()}
    return next(above for above in parents(pid) if above in owned)


def slow_case(suite):
    """Wait until L1.more.slow runs; returns the process it is in."""
    end = time.monotonic() + 60
    while True:
        pipe = os.open(suite.folder / "slow", os.O_RDONLY | os.O_NONBLOCK)
        try:
            left = end - time.monotonic()
            assert left > 0, "the case never ran"
            assert select.select([pipe], [], [], left)[0], "the case never ran"
            # Nothing comes from a process that was ended between opening and writing.
            if text := os.read(pipe, 100):
                return int(text)
        finally:
            os.close(pipe)


@pytest.fixture
def pipe(suite):
    with suite.slow_cases():
        yield


def events(record, what):
    return [event["detail"] for event in record.events if event["what"] == what]


@pytest.mark.usefixtures("pipe")
def test_a_killed_worker_costs_an_attempt_and_its_run_ends_with_it(suite, cluster, tmp_path):
    made = cluster(2)
    process = suite.start(
        "--cluster", made.scheduler_address, "--case", "L1.more.slow.any.n0",
        "--case", "L1.more.after.*", "--out", tmp_path / "out",
    )  # fmt: skip
    pid = slow_case(suite)
    orphan = os.pidfd_open(pid)
    (suite.folder / "fast").touch()
    os.kill(worker_above(pid, made), signal.SIGKILL)
    assert select.select([orphan], [], [], 40)[0], "the run outlived its worker"
    ran = suite.end(process, tmp_path / "out")
    os.close(orphan)
    assert ran.code == 0, ran.err
    assert ran.record.counts == {"PASS": 4}
    lost = events(ran.record, "worker_lost")
    assert len(lost) == 1
    assert "attempt 1: the worker tcp://127.0.0.1:" in lost[0]
    done = events(ran.record, "shard")
    assert len(done) == len({detail.split(" on ")[0] for detail in done})
    assert [detail.rsplit(" ", 1)[1] for detail in done].count("2") == 1
    assert sorted(folder.name for folder in ran.folder.glob("shard-*")) == [
        f"shard-{n + 1}" for n in range(len(done))
    ]
    assert (ran.folder / "report.html").is_file()


def passed(journal):
    """Cases that a journal in the making has as passed."""
    if not journal.is_file():
        return set()
    return {case.id for case in read(journal).cases.values() if case.outcome == "PASS"}


def until(condition, what):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, what
        select.select([], [], [], 0.05)


def starts(folder):
    lines = (folder / "results.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines if line]
    return [row["id"] for row in rows if row["type"] == "start"]


AFTER = {f"L1.more.after.any.n{n}" for n in range(3)}


@pytest.mark.usefixtures("pipe")
def test_what_a_lost_worker_had_done_is_not_done_again(suite, cluster, tmp_path):
    made, out = cluster(2), tmp_path / "out"
    process = suite.start(
        "--cluster", made.scheduler_address, "--case", "L1.more.slow.any.n0",
        "--case", "L1.more.after.*", "--shards", 1, "--out", out,
    )  # fmt: skip
    pid = slow_case(suite)
    journal = out / "shard-1" / "results.jsonl"
    until(lambda: passed(journal) == AFTER, "the journal of the shard never came")
    (suite.folder / "fast").touch()
    os.kill(worker_above(pid, made), signal.SIGKILL)
    ran = suite.end(process, out)
    assert ran.code == 0, ran.err
    assert ran.record.counts == {"PASS": 4}
    assert len(events(ran.record, "worker_lost")) == 1
    begun = starts(out / "shard-1")
    assert sorted(begun) == sorted([*AFTER, "L1.more.slow.any.n0", "L1.more.slow.any.n0"])


@pytest.mark.usefixtures("pipe")
def test_a_killed_owner_goes_on_with_its_run(suite, cluster, tmp_path):
    made, out = cluster(2), tmp_path / "out"
    process = suite.start(
        "--cluster", made.scheduler_address, "--case", "L1.more.slow.any.n0",
        "--case", "L1.more.after.*", "--shards", 2, "--out", out,
    )  # fmt: skip
    left = os.pidfd_open(slow_case(suite))
    journals = [out / f"shard-{n}" / "results.jsonl" for n in (1, 2)]
    until(lambda: set().union(*map(passed, journals)) == AFTER, "no journal came")
    process.kill()
    cut = suite.end(process, out)
    assert not (out / "results.jsonl").exists(), cut.out
    (suite.folder / "fast").touch()
    ran = suite.end(suite.start("--resume", out), out)
    assert select.select([left], [], [], 60)[0], "the run of the killed owner goes on"
    os.close(left)
    assert ran.code == 0, ran.err
    assert ran.record.counts == {"PASS": 4}
    begun = [case_id for n in (1, 2) for case_id in starts(out / f"shard-{n}")]
    assert sorted(begun) == sorted([*AFTER, "L1.more.slow.any.n0", "L1.more.slow.any.n0"])


@pytest.mark.usefixtures("pipe")
def test_after_three_losses_its_cases_are_not_run(suite, cluster, tmp_path):
    made = cluster(MOST_LOSSES)
    process = suite.start(
        "--cluster", made.scheduler_address, "--case", "L1.more.slow.any.n0",
        "--case", "L1.more.after.any.n0", "--shards", 2, "--out", tmp_path / "out",
    )  # fmt: skip
    for _ in range(MOST_LOSSES):
        os.kill(worker_above(slow_case(suite), made), signal.SIGKILL)
    ran = suite.end(process, tmp_path / "out")
    assert ran.code == 5, ran.err
    assert ran.outcomes() == {"L1.more.slow.any.n0": "NOT_RUN", "L1.more.after.any.n0": "PASS"}
    assert "attempt 3" in ran.record.cases["L1.more.slow.any.n0"].reason
    assert len(events(ran.record, "worker_lost")) == MOST_LOSSES


@pytest.mark.usefixtures("pipe")
def test_an_interrupt_reaches_the_workers(suite, cluster, tmp_path):
    made = cluster(1)
    process = suite.start(
        "--cluster", made.scheduler_address, "--case", "L1.more.slow.any.n0",
        "--case", "L1.more.after.any.n0", "--shards", 1, "--out", tmp_path / "out",
    )  # fmt: skip
    orphan = os.pidfd_open(slow_case(suite))
    process.send_signal(signal.SIGINT)
    ran = suite.end(process, tmp_path / "out")
    assert select.select([orphan], [], [], 0)[0]
    os.close(orphan)
    assert ran.code == 130, ran.err
    assert ran.outcomes()["L1.more.slow.any.n0"] == "NOT_RUN"
    assert set(ran.record.cases) == {"L1.more.slow.any.n0", "L1.more.after.any.n0"}


def test_workers_that_differ_are_refused_unless_told(suite, cluster, tmp_path):
    other = tmp_path / "samples"
    shutil.copytree(suite.folder / "samples", other)
    manifest = next(other.glob("manifest*"))
    (other / "test_extra.py").write_text(EXTRA)
    environment = suite.environment | {"CHIPDOCK_CONFORMANCE_SUITE": str(other)}
    command = [sys.executable, "-m", "chipdock.conformance.manifest", "--write"]
    subprocess.run(command, env=environment, check=True, cwd=tmp_path)
    assert manifest.read_text() != (suite.folder / "samples" / manifest.name).read_text()
    made = SpecCluster(
        scheduler={"cls": Scheduler, "options": {"dashboard": False, "host": "127.0.0.1"}},
        workers={
            number: {
                "cls": Nanny,
                "options": {
                    "nthreads": 1, "resources": {"chipdock": 1}, "host": "127.0.0.1",
                    "dashboard": False, "silence_logs": 50, "env": env,
                },
            }
            for number, env in enumerate((suite.environment, environment))
        },
    )  # fmt: skip
    asked = (
        "--cluster", made.scheduler_address, "--device", "cpu:0", "--case", "L1.more.after.*",
    )  # fmt: skip
    try:
        refused = suite.run(tmp_path / "refused", *asked)
        mixed = suite.run(tmp_path / "mixed", *asked, "--mixed")
    finally:
        made.close()
    assert refused.code == 2
    assert "the workers differ: the suite is" in refused.err
    assert mixed.code == 0, mixed.err
    assert mixed.record.counts == {"PASS": 3}
    assert len({shard["suite_root"] for shard in mixed.record.run["shards"]}) == 2


def test_no_worker_that_can_be_used(suite, cluster, tmp_path):
    made = cluster(1, device="nobody:0")
    ran = suite.run(
        tmp_path / "none", "--cluster", made.scheduler_address, "--case", "L1.more.after.*"
    )
    assert ran.code == 4
    assert "no worker of the cluster can be used" in ran.err


def test_what_does_not_go_with_a_cluster(suite, tmp_path):
    refused = suite.run(
        tmp_path / "a", "--cluster", "tcp://127.0.0.1:1", "--shard", "1/2", "-k", "L1.*"
    )
    assert (refused.code, "makes its own shards" in refused.err) == (2, True)


def test_a_cluster_that_is_not_there(suite, tmp_path):
    ran = suite.run(tmp_path / "a", "--cluster", "nothing://127.0.0.1:1", "-k", "L1.more.after.*")
    assert ran.code == 4, ran.err
    assert "no scheduler answers at 'nothing://127.0.0.1:1'" in ran.err


def test_workers_are_seen_when_the_client_has_refreshed_what_it_knows(
    cluster, tmp_path, monkeypatch
):
    made = cluster(1)
    with Client(made.scheduler_address) as client:
        refresh = client._update_scheduler_info

        async def without_workers(**_more):
            """What the client's own refresh does at any moment."""
            await refresh(n_workers=0)

        monkeypatch.setattr(client, "_update_scheduler_info", without_workers)
        parts = Parts("cluster", "run", read_manifest().root, "cpu:0", "", 1, ())
        watcher = _Cluster(client, Job(read_manifest(), (), parts, tmp_path))
        assert len(watcher._addresses()) == 1
        made.scale(0)
        until(lambda: not watcher._addresses(), "the worker never went")

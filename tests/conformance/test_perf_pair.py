# SPDX-License-Identifier: Apache-2.0
"""Every case of level P on a real pair of plugins: the CPU plugin, and one slower in a slot.

Noise may leave a verdict open, so what is certain is asserted: the slower never passes for as fast,
and what was not slowed does not fail again and again.
"""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

import chipdock
from chipdock.conformance.case import CheckError, NotSupported
from chipdock.conformance.manifest import read_manifest
from chipdock.conformance.suite.perf import claim, test_perf

ALTERED = Path(os.environ["CHIPDOCK_TEST_LIBDIR"]) / "libaltered.so"
# How much longer a call takes, in microseconds, so that the piece of work takes twice as long.
SLOWER = {
    "P.launch.kernel.f32.x1": "kernel.launch:300",
    "P.launch.kernel.f32.x16": "kernel.launch:100",
    "P.launch.kernel.f32.x128": "kernel.launch:50",
    "P.launch.sync.any.base": "stream.sync:20",
    **{f"P.copy.{way}.any.4k": "memory.copy:50" for way in ("h2d", "d2h", "d2d")},
    **{f"P.copy.{way}.any.256k": "memory.copy:200" for way in ("h2d", "d2h", "d2d")},
    **{f"P.copy.{way}.any.4m": "memory.copy:4000" for way in ("h2d", "d2h", "d2d")},
    "P.op.gemm.f32.n64": "kernel.launch:100",
    "P.op.gemm.f32.n256": "kernel.launch:4000",
    "P.op.gemm.f32.n512": "kernel.launch:20000",
    "P.op.elementwise.f32.n64": "kernel.launch:100",
    "P.op.elementwise.f32.n65536": "kernel.launch:400",
    "P.model.step.f32.mlp": "kernel.launch:200",
    "P.model.step.f32.neg64": "kernel.launch:50",
}
# Slowed in a slot that these do not use.
UNTOUCHED = {
    "P.launch.kernel.f32.x16": "memory.copy:3000",
    "P.launch.sync.any.base": "kernel.launch:3000",
    "P.copy.h2d.any.4k": "kernel.launch:3000",
    "P.copy.d2d.any.256k": "kernel.launch:3000",
    "P.op.gemm.f32.n256": "memory.copy:3000",
    "P.op.elementwise.f32.n64": "memory.copy:3000",
    "P.model.step.f32.mlp": "",
}


def cases():
    """Function and variant of each case, by id."""
    found = {}
    for function in vars(test_perf).values():
        for mark in getattr(function, "pytestmark", ()):
            for row in mark.args[1]:
                found[row.id] = (function, row.values[0])
    return found


@pytest.fixture
def pair(monkeypatch):
    """Run a case on the slowed plugin against the CPU plugin; returns what it recorded."""
    base = chipdock.device("cpu:0").plugin.path
    monkeypatch.setenv("CHIPDOCK_ALTERED_BASE", str(base))
    monkeypatch.setenv("CHIPDOCK_CONFORMANCE_AGAINST", "cpu:0")

    def ran(case_id, slowed):
        monkeypatch.setenv("CHIPDOCK_ALTERED_DELAY", slowed)
        if case_id.startswith("P.copy."):  # else the host reads and writes the memory in place
            monkeypatch.setenv("CHIPDOCK_CPU_STRICT", "1")
        sink = SimpleNamespace(name="altered:0", plugin_path=ALTERED, evidence={}, remarks=[])
        sink.record = lambda **evidence: sink.evidence.update(evidence)
        sink.warn = sink.remarks.append
        sink.failure = ""
        function, variant = cases()[case_id]
        try:
            function(sink, variant)
        except CheckError as error:
            sink.failure = str(error)
        return sink

    return ran


def test_every_case_has_a_pair():
    paired = {i for i in read_manifest().rows if i.startswith("P.") and ".claim." not in i}
    assert set(SLOWER) == paired
    assert set(cases()) >= paired


@pytest.mark.slow
@pytest.mark.parametrize("case_id", SLOWER)
def test_a_slower_plugin_is_not_as_fast(pair, case_id):
    sink = pair(case_id, SLOWER[case_id])
    assert sink.evidence["pairs"] == 10
    assert sink.evidence["verdict"] in {"slower", "inconclusive"}, sink.evidence
    if sink.evidence["verdict"] == "slower":
        assert sink.failure.startswith("slower than cpu:0: slower: B takes ")
    else:
        assert "inconclusive" in sink.remarks[0]


@pytest.mark.slow
@pytest.mark.parametrize("case_id", UNTOUCHED)
def test_what_was_not_slowed_does_not_fail(pair, case_id):
    # A verdict is right 95 times of 100 or more: what is wrong each time is no noise.
    verdicts = []
    while len(verdicts) < 3 and (not verdicts or verdicts[-1] == "slower"):
        sink = pair(case_id, UNTOUCHED[case_id])
        verdicts.append(sink.evidence["verdict"])
        assert (sink.failure != "") == (verdicts[-1] == "slower")
    assert verdicts[-1] in {"same", "faster", "inconclusive"}, sink.evidence


class TestClaim:
    """What the device claims, against what copies reach."""

    @pytest.fixture
    def sink(self):
        made = SimpleNamespace(evidence={}, remarks=[])
        made.record = lambda **evidence: made.evidence.update(evidence)
        made.warn = made.remarks.append
        return made

    def test_faster_than_it_says_fails(self, sink):
        with pytest.raises(CheckError, match=r"3\.000e\+10 bytes per second, .* is 3\.00 of what"):
            claim.judge_bandwidth(sink, 3e10, 10**10)

    def test_slower_is_a_remark_from_half_of_it(self, sink):
        claim.judge_bandwidth(sink, 6e9, 10**10)
        assert (sink.remarks, sink.evidence["share"]) == ([], 0.6)
        claim.judge_bandwidth(sink, 4e9, 10**10)
        assert sink.remarks[0].endswith("40 % of it, or the machine is busy")

    def test_blocks_are_larger_than_caches_and_smaller_than_the_heap(self):
        assert claim.block_of(0, 0) == 64 << 20
        assert claim.block_of(40 << 20, 1 << 30) == 160 << 20
        with pytest.raises(NotSupported, match="blocks of 160 MiB"):
            claim.block_of(40 << 20, 256 << 20)

    @pytest.mark.slow
    def test_of_a_plugin_that_claims_something(self, sink, monkeypatch):
        monkeypatch.setenv("CHIPDOCK_ALTERED_BASE", str(chipdock.device("cpu:0").plugin.path))
        monkeypatch.setenv("CHIPDOCK_ALTERED_BANDWIDTH", "0")
        sink.plugin, sink.index = chipdock.open_plugin(ALTERED), 0
        sink.device = chipdock.Device.open(sink.plugin, 0, [])
        with pytest.raises(NotSupported, match="0 is unknown"):
            claim.bandwidth(sink)
        monkeypatch.setenv("CHIPDOCK_ALTERED_BANDWIDTH", str(10**15))
        claim.bandwidth(sink)
        assert 1e8 < sink.evidence["value"] < 1e13
        assert len(sink.remarks) == 1
        monkeypatch.setenv("CHIPDOCK_ALTERED_BANDWIDTH", str(10**7))
        with pytest.raises(CheckError, match="is the unit bytes per second"):
            claim.bandwidth(sink)

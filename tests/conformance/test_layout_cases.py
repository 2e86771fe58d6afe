# SPDX-License-Identifier: Apache-2.0
"""The cases of private layouts on plugins other than the reference: two layouts, and none."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from chipdock.conformance.case import CheckError
from chipdock.conformance.journal import read
from chipdock.conformance.manifest import read_manifest
from chipdock.conformance.models.layout_nets import LAYOUT_NETS
from chipdock.conformance.suite.layout import check_elements
from chipdock.conformance.suite.layout_node import _rule

LIBRARIES = Path(os.environ["CHIPDOCK_TEST_LIBDIR"])
WORDS = ("L1.layout.*", "L0.kernel.descriptor.*.layout_rules", "L2.layout.relu.f32.*",
         "L2.layout.neg.f32.*", "L2.layout.add.f32.ragged", "L2.layout.exp.f32.*")  # fmt: skip


def outcomes(folder, library, device):
    """Outcomes and the record of a run of the cases of layouts."""
    words = [word for case_id in WORDS for word in ("--case", case_id)]
    command = [sys.executable, "-m", "chipdock.conformance.cli", "--device", device, "--out",
               str(folder), "--plugin", str(LIBRARIES / library), *words]  # fmt: skip
    subprocess.run(command, capture_output=True, check=False, timeout=120)
    record = read(folder)
    return {case_id: str(case.outcome) for case_id, case in record.cases.items()}, record


@pytest.mark.slow
def test_two_layouts_without_blocks_pass(tmp_path):
    found, record = outcomes(tmp_path / "out", "liblayouts.so", "layouts:0")
    for case_id in ("L1.layout.round_trip.f32.c17_b3", "L1.layout.size.any.unknown_rank",
                    "L1.layout.values.f32.nans", "L2.layout.relu.f32.ragged",
                    "L2.layout.neg.f32.full", "L2.layout.add.f32.ragged"):  # fmt: skip
        assert found[case_id] == "PASS", record.cases[case_id].reason
    assert found["L2.layout.exp.f32.full"] == "UNSUPPORTED"  # it lists none
    assert set(found.values()) <= {"PASS", "UNSUPPORTED"}
    assert record.cases["L1.layout.round_trip.f32.c17_b3"].evidence["layouts"] == 2
    relu = record.cases["L2.layout.relu.f32.ragged"].evidence["in_layouts"]
    assert relu == ["padded_Relu: 7 -> 7", "padded_Relu: 9 -> 9"]


@pytest.mark.slow
def test_a_plugin_without_layouts_lacks_them(tmp_path):
    found, record = outcomes(tmp_path / "out", "libwork.so", "work:0")
    assert found.pop("L0.kernel.descriptor.any.layout_rules") == "PASS"
    assert set(found.values()) == {"UNSUPPORTED"}
    assert all(record.cases[case_id].reason for case_id in found)


def test_bytes_beside_the_elements_are_counted():
    plain = np.arange(1, 5, dtype=np.float32).tobytes()
    check_elements(bytes(8) + plain[::-1] + bytes(3), plain, "it")
    with pytest.raises(CheckError, match="it: 1 bytes are neither"):
        check_elements(bytes(7) + b"\x80" + plain, plain, "it")
    with pytest.raises(CheckError, match="bytes are neither"):
        check_elements(bytes(16), plain, "it")


def test_every_net_has_its_cases():
    ids = [case_id for case_id in read_manifest().rows if case_id.startswith("L2.layout.net.f32.")]
    assert {case_id.rpartition(".")[2] for case_id in ids} == set(LAYOUT_NETS)


def test_the_last_rule_before_an_argument_serves_it():
    class Rule:
        def __init__(self, argument):
            self.argument = argument

    first, third, out = rules = [Rule(0), Rule(2), Rule(-1)]
    assert [_rule(rules, at) for at in (0, 1, 2, 5)] == [first, first, third, third]
    assert _rule(rules, -3) is out
    assert _rule([third], 1) is None

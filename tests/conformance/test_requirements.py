# SPDX-License-Identifier: Apache-2.0
"""chipdock.conformance.requirements: each duty has a case or a reason, and the document says so."""

import json
from pathlib import Path

import pytest

from chipdock.conformance import contract, requirements
from chipdock.conformance.case import Case
from chipdock.conformance.manifest import read_manifest
from chipdock.conformance.suite.l0.signatures import signature, slots
from chipdock.conformance.suite.l0.sizes import FIRST_SIZE
from chipdock.conformance.suite.raw import STATUS

ROOT = Path(__file__).resolve().parents[2]
ALL = {duty for own in requirements.plugin_duties().values() for duty in own}


@pytest.fixture(scope="module")
def cases():
    return [row.case for row in read_manifest().rows.values()]


def test_every_duty_has_a_case_or_a_reason(cases):
    assert requirements.findings(cases, requirements.reasons()) == []


def test_the_document_is_up_to_date(cases):
    text = (ROOT / "device_api" / "REQUIREMENTS.md").read_text(encoding="utf-8")
    assert text == requirements.document(cases, requirements.reasons())


def test_a_duty_without_case_and_reason_is_found(cases):
    left = [case for case in cases if "MEM-7" not in case.duties]
    found = requirements.findings(left, requirements.reasons())
    assert len(found) == 1
    assert found[0].startswith("MEM-7 has neither a case nor a reason: Size 0")


def test_unknown_names_are_found():
    case = Case("L1.memory.copy.any.base", duties=("MEM-99",), entry_points=("memory.paste",))
    reasons = dict.fromkeys(ALL, "not now") | {"XYZ-1": "gone"}
    assert requirements.findings([case], reasons) == [
        "unseen.toml names XYZ-1, which no header has",
        "L1.memory.copy.any.base names the duty MEM-99, which no header has",
        "L1.memory.copy.any.base names the entry point memory.paste, which no table has",
    ]


def test_a_reason_beside_a_case_is_found():
    case = Case("L1.memory.copy.any.base", duties=("MEM-1",))
    reasons = dict.fromkeys(ALL, "not now")
    assert requirements.findings([case], reasons) == [
        "MEM-1 has cases and a reason why it can have none"
    ]


def test_two_reasons_are_refused(tmp_path):
    row = '[[unseen]]\nduties = ["MEM-1"]\nreason = "x"\n'
    (tmp_path / "unseen.toml").write_text(row * 2)
    with pytest.raises(ValueError, match="MEM-1 has two reasons"):
        requirements.reasons(tmp_path / "unseen.toml")


def test_check_tells_an_old_document(tmp_path, capsys):
    old = tmp_path / "REQUIREMENTS.md"
    assert requirements.main(["--write", str(old)]) == 0
    assert requirements.main(["--check", str(old)]) == 0
    old.write_text(old.read_text() + "more")
    assert requirements.main(["--check", str(old)]) == 1
    assert "out of date" in capsys.readouterr().err


def test_families_count_cases():
    made = [Case(f"L1.memory.copy.any.n{n}", duties=("MEM-5",)) for n in range(3)]
    assert requirements.families(made) == {"MEM-5": {"L1.memory.copy": 3}}


def test_duties_of_the_host_are_not_a_plugins():
    assert "HST-1" in contract.duties()
    assert "HST-1" not in ALL
    assert {"BASE-1", "CCL-12", "PRF-9"} <= ALL


# What level 0 takes from the headers


def test_signatures_are_those_of_the_headers():
    assert set(slots()) == set(contract.slots())
    assert [(a.name, a.role) for a in signature("memory.alloc")] == [
        ("device", "handle"), ("desc", "desc"), ("out_memory", "output"),
    ]  # fmt: skip
    assert [a.role for a in signature("device.info")] == ["handle", "value", "answer"]
    assert [a.role for a in signature("kernel.list")] == ["handle", "output", "output"]
    for slot in slots():
        for argument in signature(slot):
            assert argument.name.startswith("out_") == (argument.role in {"output", "answer"}), slot


def test_first_sizes_are_those_of_the_first_golden():
    golden = json.loads((ROOT / "tests" / "abi" / "goldens" / "abi-1.0.json").read_text())[
        "structs"
    ]
    assert {name: golden[name]["size"] for name in FIRST_SIZE} == FIRST_SIZE


def test_statuses_are_those_of_the_header():
    assert tuple(STATUS) == contract.STATUSES

# SPDX-License-Identifier: Apache-2.0
"""The journal: what is written is what is read, also after a crash of the writer."""

import json

import numpy as np

from chipdock.conformance.journal import FILE, CaseRecord, Journal, plain, read
from chipdock.conformance.outcomes import Outcome

RECORD = CaseRecord(
    "L1.a.b.any.x", Outcome.CRASH, revision=2, ms=1.5, worker=3, attempt=2, reason="it died",
    evidence={"core": "/tmp/core"}, duties=("MEM-1",), calls=(("memory.copy", "RUNNING"),),
    signal="SIGSEGV", stderr="stack",
)  # fmt: skip


def test_a_record_comes_back_as_it_was(tmp_path):
    journal = Journal(tmp_path)
    journal.write(RECORD.to_json())
    assert read(tmp_path).cases == {RECORD.id: RECORD}
    assert read(tmp_path / FILE).cases == journal.record.cases


def test_the_type_stands_first_in_each_line(tmp_path):
    journal = Journal(tmp_path)
    journal.write(RECORD.to_json())
    journal.event("reset", "ok")
    lines = (tmp_path / FILE).read_text().splitlines()
    assert [next(iter(json.loads(line))) for line in lines] == ["type", "type"]


def test_the_last_line_of_a_case_counts(tmp_path):
    journal = Journal(tmp_path)
    for outcome in (Outcome.FAIL, Outcome.FLAKY):
        journal.write(CaseRecord("L1.a.b.any.x", outcome).to_json())
    assert read(tmp_path).counts == {"FLAKY": 1}


def test_a_start_without_a_record_is_kept(tmp_path):
    journal = Journal(tmp_path)
    for case_id in ("L1.a.b.any.x", "L1.a.b.any.y"):
        journal.write({"type": "start", "id": case_id, "worker": 0, "attempt": 1})
    journal.write(RECORD.to_json())
    assert read(tmp_path).started == {"L1.a.b.any.y"}


def test_a_line_cut_short_is_ignored_and_the_next_one_stands_alone(tmp_path):
    first = Journal(tmp_path)
    first.write(RECORD.to_json())
    first.close()
    with (tmp_path / FILE).open("a") as file:
        file.write('{"type":"case","id":"L1.')
    second = Journal(tmp_path)
    second.write(CaseRecord("L1.a.b.any.z", Outcome.PASS).to_json())
    assert set(read(tmp_path).cases) == {RECORD.id, "L1.a.b.any.z"}


def test_keys_of_a_later_schema_do_no_harm(tmp_path):
    row = RECORD.to_json() | {"colour": "green"}
    (tmp_path / FILE).write_text(json.dumps(row) + "\n" + json.dumps({"type": "new"}) + "\n")
    assert read(tmp_path).cases[RECORD.id] == RECORD


def test_evidence_becomes_what_json_can_hold():
    found = plain({"a": np.float32(0.5), "b": float("nan"), "c": np.arange(2), 4: {1}, "d": 1 + 2j})
    assert json.loads(json.dumps(found, allow_nan=False)) == {
        "a": 0.5, "b": "nan", "c": [0, 1], "4": [1], "d": "(1+2j)",
    }  # fmt: skip

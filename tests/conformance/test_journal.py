# SPDX-License-Identifier: Apache-2.0
"""The journal: what is written is what is read, also after a crash of the writer."""

import json
import os

import numpy as np
import pytest

from chipdock.conformance.journal import FILE, CaseRecord, Journal, JournalError, plain, read
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


def test_a_line_cut_inside_a_character_is_ignored(tmp_path):
    line = json.dumps(RECORD.to_json() | {"reason": "größer"}, ensure_ascii=False).encode()
    (tmp_path / FILE).write_bytes(line + b"\n" + line[: line.index("ß".encode()) + 1])
    assert set(read(tmp_path).cases) == {RECORD.id}


def test_what_is_no_text_is_kept_as_its_bytes(tmp_path):
    Journal(tmp_path).write(RECORD.to_json() | {"stderr": "grr \udcff ß"})
    assert read(tmp_path).cases[RECORD.id].stderr == "grr \\udcff ß"


def test_a_write_that_is_taken_in_parts_is_whole(tmp_path, monkeypatch):
    journal, write = Journal(tmp_path), os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:7]))
    journal.write(RECORD.to_json())
    assert read(tmp_path).cases == {RECORD.id: RECORD}


RUN = {
    "type": "run", "suite_root": "0", "device": "a:0", "plugin": {"sha256": ""}, "selected": [],
    "device_info": {"product": "", "architecture": "", "driver": ""},
    "options": {
        "device": "a:0", "plugin": "", "jobs": 1, "seed": 0, "mask": "none", "memory": 0,
        "timeout_scale": 1.0, "reset_command": "", "selection": {},
    },
    "started": "2026-03-01T12:00:00+00:00",
}  # fmt: skip
END = {"type": "end", "exit_code": 0, "seconds": 1, "coverage": {}}


@pytest.mark.parametrize(
    "row",
    [
        RECORD.to_json() | {"outcome": "BANANA"},
        RECORD.to_json() | {"id": ["L1.a.b.any.x"]},
        RECORD.to_json() | {"id": "L9.a.b.any.x"},
        RECORD.to_json() | {"id": "../../x"},
        RECORD.to_json() | {"calls": [1]},
        RECORD.to_json() | {"evidence": None},
        RECORD.to_json() | {"ms": "long"},
        {"type": "case"},
        {"type": "start"},
        {"type": "event", "what": "x"},
        *({k: v for k, v in RUN.items() if k != name} for name in RUN if name != "type"),
        *(RUN | {"options": RUN["options"] | {name: None}} for name in RUN["options"]),
        RUN | {"started": "yesterday"},
        RUN | {"selected": [[]]},
        END | {"exit_code": 99},
        END | {"coverage": []},
    ],
)
def test_a_damaged_line_is_named(tmp_path, row):
    (tmp_path / FILE).write_text(f"{json.dumps(RUN)}\n{json.dumps(row)}\n{json.dumps(END)}\n")
    with pytest.raises(JournalError, match=r"INVALID_ARGUMENT: .*results.jsonl, line 2,"):
        read(tmp_path)


def test_json_that_is_too_deep_and_a_fifo_are_refused(tmp_path):
    (tmp_path / FILE).write_text("[" * 100_000 + "\n")
    with pytest.raises(JournalError, match="line 1"):
        read(tmp_path)
    (tmp_path / FILE).unlink()
    os.mkfifo(tmp_path / FILE)
    with pytest.raises(JournalError, match="no regular file"):
        read(tmp_path)


def test_a_journal_has_one_writer(tmp_path):
    first = Journal(tmp_path)
    with pytest.raises(JournalError, match="another run writes"):
        Journal(tmp_path)
    first.write(RECORD.to_json())
    first.close()
    second = Journal(tmp_path)
    assert second.record.cases == {RECORD.id: RECORD}

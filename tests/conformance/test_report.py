# SPDX-License-Identifier: Apache-2.0
"""chipdock.conformance.evidence: the document, its schema, causes, groups, coverage, JUnit, TAP."""

import json
import math
import xml.etree.ElementTree as ET

import evidence_sample as sample
import jsonschema
import pytest

from chipdock.conformance.contract import SlotContract
from chipdock.conformance.evidence import cause, coverage, junit, report, tap
from chipdock.conformance.outcomes import Outcome


@pytest.fixture(scope="module")
def document():
    records, rows = sample.every_outcome()
    return report.build(sample.RUN, records, rows, end=sample.END)


def test_document_with_every_outcome_is_valid(document):
    jsonschema.validate(document, report.schema())
    assert document["counts"] == {str(outcome): 1 for outcome in Outcome}
    assert document["levels"][0]["counts"] == document["counts"]
    assert document["verdict"] == "failures"


def test_schema_knows_the_outcomes_and_refuses_others(document):
    schema = report.schema()
    assert schema["$defs"]["outcome"]["enum"] == [str(outcome) for outcome in Outcome]
    wrong = json.loads(json.dumps(document))
    wrong["cases"][0]["outcome"] = "OK"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, schema)


def test_document_survives_its_file(document, tmp_path):
    report.write(document, tmp_path / "report.json")
    assert report.load(tmp_path) == json.loads(json.dumps(document))
    # A line a case, so that a text diff of two reports is readable.
    lines = (tmp_path / "report.json").read_text(encoding="utf-8").splitlines()
    assert sum(line.startswith('  {"id": ') for line in lines) == len(document["cases"])


def test_a_text_that_is_no_unicode_is_written_as_its_code(document, tmp_path):
    case = document["cases"][0] | {"stderr": "grr \udcff"}
    report.write(document | {"cases": [case]}, tmp_path / "report.json")
    assert "grr \\udcff" in (tmp_path / "report.json").read_text()
    assert report.load(tmp_path)["cases"] == [case]


def test_a_run_that_was_broken_off_says_so():
    records, rows = sample.every_outcome()
    made = report.build(sample.RUN, records[:1], rows)
    jsonschema.validate(made, report.schema())
    assert not made["finished"]
    assert made["verdict"] == "interrupted"


def test_numbers_that_are_not_finite_stay_json():
    record = sample.wrong("L2.op.erf.f16.odd")
    record["evidence"] = {"metric": "ulp", "value": math.inf, "limit": 4.0, "got": math.nan}
    made = report.build(sample.RUN, [record], {}, end=sample.END)
    text = json.dumps(made, allow_nan=False)
    assert '"value": "inf"' in text
    assert '"got": "nan"' in text


def test_load_names_what_is_wrong(tmp_path):
    with pytest.raises(report.ReportError, match=r"^UNAVAILABLE: .*report DIR"):
        report.load(tmp_path)
    file = tmp_path / "report.json"
    file.write_text("{")
    with pytest.raises(report.ReportError, match=r"^INVALID_ARGUMENT"):
        report.load(file)
    file.write_text('{"schema": "chipdock.conformance-report/9"}')
    with pytest.raises(report.ReportError, match=r"^VERSION_MISMATCH: .*report/9"):
        report.load(file)


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (sample.crash("L2.a.b.f32.c"), "the process died of SIGSEGV in kernel.launch, which"),
        (sample.of_kind("TIMEOUT", "L1.a.b.any.c"), "no end after 2.0 s in stream.sync, wh"),
        (sample.wrong("L2.a.b.f32.c"), "ULP 9.25, limit 4, worst at index [3, 17], expected"),
        (
            {
                "id": "L1.a.b.any.c", "outcome": "FAIL",
                "reason": "memory.copy returned OK, UNSUPPORTED was due: ",
                "evidence": {"expected": "UNSUPPORTED", "got": "OK"},
            },
            "memory.copy returned OK, UNSUPPORTED was due",
        ),
        ({"id": "L1.a.b.any.c", "outcome": "NOT_RUN"}, "no reason was recorded for NOT_RUN"),
        ({"id": "L1.a.b.any.c", "outcome": "CRASH"}, "the process died of an exit"),
    ],
)  # fmt: skip
def test_cause_in_words(record, words):
    assert words in cause.in_words(record)


def test_failures_that_differ_in_numbers_only_are_one_group():
    records = [
        sample.wrong(
            f"L2.op.erf.{dtype}.odd", reason=f"L2.op.erf.{dtype}.odd: {n} of {dtype} differ"
        )
        for n, dtype in enumerate(["f16", "f32", "bf16"])
    ]
    records += [sample.crash("L2.op.exp.f32.odd"), sample.passed("L2.op.abs.f32.odd")]
    groups = cause.group(records)
    assert [(made["outcome"], len(made["ids"])) for made in groups] == [("FAIL", 3), ("CRASH", 1)]
    assert groups[0]["dtypes"] == ["bf16", "f16", "f32"]
    assert groups[1]["entry_point"] == "kernel.launch"


def test_crashes_in_two_entry_points_are_two_groups():
    other = sample.crash("L2.op.exp.f32.odd", calls=[["memory.copy", "running"]])
    assert len(cause.group([sample.crash("L2.op.abs.f32.odd"), other])) == 2


CONTRACT = {
    "memory.copy": SlotContract("memory.copy", True, ("INVALID_ARGUMENT", "DEVICE_LOST"), ""),
    "memory.fill": SlotContract("memory.fill", False, ("INVALID_ARGUMENT",), ""),
    "stream.sync": SlotContract("stream.sync", False, ("TIMEOUT",), ""),
}


def test_coverage_tells_what_was_claimed_and_not_touched():
    counts = {"memory.copy": {"OK": 4, "BUSY": 1, "DEVICE_LOST": 0}}
    found = coverage.measure(counts, ["memory.copy", "memory.fill"], [], {}, CONTRACT)
    assert found["never_called"] == ["memory.fill"]
    assert found["unseen_errors"] == {
        "memory.copy": ["INVALID_ARGUMENT", "DEVICE_LOST"],
        "memory.fill": ["INVALID_ARGUMENT"],
    }
    assert found["unseen_argument_errors"]["memory.copy"] == ["INVALID_ARGUMENT"]
    assert found["undocumented"] == {"memory.copy": ["BUSY"]}
    assert found["entry_points"] == {"memory.copy": {"OK": 4, "BUSY": 1}}


def test_an_operator_counts_as_executed_only_where_it_ran_on_the_target():
    ids = [f"L2.op.erf.f16.{shape}" for shape in ("odd", "empty", "scalar", "special")]
    rows = {
        case_id: sample.row(case_id, op="Erf", shape_class=case_id.rsplit(".", 1)[1])
        for case_id in ids
    }
    records = [
        sample.passed(ids[0]),
        sample.of_kind("UNSUPPORTED", ids[1]),
        sample.passed(ids[2], fallback=3),
        sample.wrong(ids[3]),
    ]
    cell = coverage.operators(records, rows)["Erf"]["f16"]
    assert cell["executed"] == ["odd", "special"]
    assert cell["fallback"] == 3
    assert cell["counts"] == {"PASS": 2, "UNSUPPORTED": 1, "FAIL": 1}


def test_absent_is_what_no_case_could_run():
    names = {"erf": ("f16", "f32"), "exp": ("f16", "f32"), "abs": ("f32",)}
    ids = [f"L2.op.{op}.{dtype}.odd" for op, dtypes in names.items() for dtype in dtypes]
    rows = {case_id: sample.row(case_id, op=case_id.split(".")[2].title()) for case_id in ids}
    lacking = {"L2.op.erf.f16.odd", "L2.op.exp.f16.odd", "L2.op.exp.f32.odd"}
    records = [sample.of_kind("UNSUPPORTED" if i in lacking else "PASS", i) for i in ids]
    records.append(sample.of_kind("UNSUPPORTED", "L5.model.whisper.f32.base"))
    made = report.build(sample.RUN, records, rows, end=sample.END)
    jsonschema.validate(made, report.schema())
    assert made["absence"] == {
        "operators": [{"op": "Erf", "dtypes": ["f16"]}, {"op": "Exp", "dtypes": []}],
        "models": [{"name": "L5.model.whisper.f32.base", "missing": ["op:Erf:f16"]}],
    }


def test_junit_counts_agree_with_its_cases(document):
    root = ET.fromstring(junit.render(document))
    cases = root.findall(".//testcase")
    assert len(cases) == len(Outcome) == int(root.get("tests"))
    kinds = {
        tag: len(root.findall(f".//testcase/{tag}")) for tag in ("failure", "error", "skipped")
    }
    assert kinds == {"failure": 4, "error": 5, "skipped": 2}
    assert [int(root.get(key)) for key in ("failures", "errors", "skipped")] == [4, 5, 2]
    failure = root.find(".//failure[@type='FAIL']")
    assert "kernel.launch -> OK" in failure.text


def test_junit_holds_characters_that_xml_has_none_for():
    record = sample.wrong("L2.op.erf.f16.odd", stderr="a\x00b\x1b[31m<&>")
    made = report.build(sample.RUN, [record], {}, end=sample.END)
    assert ET.fromstring(junit.render(made)).find(".//system-err").text == "a�b�[31m<&>"


def test_tap_is_red_for_all_that_fails_a_run(document):
    lines = tap.render(document).splitlines()
    assert lines[:2] == ["TAP version 14", f"1..{len(Outcome)}"]
    results = [line for line in lines if line.startswith(("ok ", "not ok "))]
    assert [int(line.split(" - ")[0].split()[-1]) for line in results] == list(
        range(1, len(Outcome) + 1)
    )
    by_outcome = {
        case["outcome"]: line for case, line in zip(document["cases"], results, strict=True)
    }
    for outcome in ("XPASS", "NOT_RUN", "MISSING", "FAIL", "CRASH"):
        assert by_outcome[outcome].startswith("not ok")
        assert "# todo" not in by_outcome[outcome]
        assert "# SKIP" not in by_outcome[outcome]
    assert "# SKIP op:Erf:f16" in by_outcome["UNSUPPORTED"]
    assert by_outcome["WAIVED"].endswith("# todo W-2026-014")
    assert lines.count("  ---") == lines.count("  ...") == len(Outcome) - 2


def test_tap_bails_out_when_the_run_was_broken_off():
    records, rows = sample.every_outcome()
    assert tap.render(report.build(sample.RUN, records, rows)).endswith("the run was broken off\n")

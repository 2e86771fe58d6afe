# SPDX-License-Identifier: Apache-2.0
"""chipdock.conformance.evidence.diff: what counts as worse, and that nothing hides it."""

import evidence_sample as sample
import pytest

from chipdock.cli.exit_codes import ExitCode
from chipdock.conformance.evidence import diff, report
from chipdock.conformance.outcomes import Outcome

ID = "L2.op.erf.f16.odd"


def document(*records, rows=None, **run):
    return report.build(sample.RUN | run, records, rows or {}, end=sample.END)


def one(outcome, case_id=ID, **more):
    return sample.of_kind(str(outcome), case_id) | more


def sections(found):
    return {name: len(getattr(found, name)) for name in diff.SECTIONS if getattr(found, name)}


@pytest.mark.parametrize(
    ("was", "now", "section"),
    [
        ("PASS", "FAIL", "regressed"),
        ("QUALITY_WARN", "CRASH", "regressed"),
        ("PASS", "UNSUPPORTED", "regressed"),
        ("PASS", "WAIVED", "regressed"),
        ("PASS", "NOT_RUN", "regressed"),
        ("PASS", "MISSING", "regressed"),
        ("WAIVED", "FAIL", "regressed"),
        ("UNSUPPORTED", "CLAIMED_UNSUPPORTED", "regressed"),
        ("NOT_RUN", "TIMEOUT", "regressed"),
        ("FAIL", "PASS", "fixed"),
        ("UNSUPPORTED", "PASS", "fixed"),
        ("WAIVED", "XPASS", "fixed"),
        ("FAIL", "CRASH", "changed"),
        ("FAIL", "WAIVED", "changed"),
        ("FAIL", "UNSUPPORTED", "changed"),
        ("PASS", "QUALITY_WARN", ""),
        ("FAIL", "FAIL", ""),
    ],
)
def test_section_of_a_change(was, now, section):
    found = diff.compare(document(one(was)), document(one(now)))
    assert sections(found) == ({section: 1} if section else {})


def test_every_pair_of_outcomes_has_a_place():
    for was in Outcome:
        for now in Outcome:
            found = diff.compare(document(one(was)), document(one(now)))
            assert sum(sections(found).values()) <= 1
            if was == Outcome.PASS and found.exit_code == ExitCode.GOOD:
                assert now in {Outcome.PASS, Outcome.QUALITY_WARN, Outcome.XPASS}


def test_one_regression_fails_among_a_thousand_fixes():
    before = [one("FAIL", f"L2.op.a.f32.v{n}") for n in range(1000)] + [one("PASS")]
    after = [one("PASS", f"L2.op.a.f32.v{n}") for n in range(1000)] + [one("FAIL")]
    found = diff.compare(document(*before), document(*after))
    assert sections(found) == {"regressed": 1, "fixed": 1000}
    assert found.exit_code == ExitCode.FAILURES


def test_a_renamed_case_keeps_its_history():
    new = "L2.op.erf.f16.uneven"
    rows = {new: sample.row(new, was=(ID,))}
    found = diff.compare(document(one("PASS")), document(one("FAIL", new), rows=rows))
    assert sections(found) == {"regressed": 1, "renamed": 1}
    assert found.renamed[0].text == f"was {ID}"
    assert found.regressed[0].id == new


def test_two_cases_that_stem_from_one_share_no_history():
    names = ["L2.op.erf.f16.a", "L2.op.erf.f16.b"]
    rows = {name: sample.row(name, was=(ID,)) for name in names}
    after = document(*(one("FAIL", name) for name in names), rows=rows)
    found = diff.compare(document(one("PASS")), after)
    assert sections(found) == {"regressed": 1, "renamed": 1, "new": 1}


def test_new_and_gone_are_told_apart():
    found = diff.compare(document(one("PASS")), document(one("FAIL", "L2.op.exp.f16.odd")))
    assert sections(found) == {"new": 1, "gone": 1}
    assert found.exit_code == ExitCode.NOT_RUN  # nothing was compared


def test_slower_only_is_a_regression_of_its_own_code():
    before, after = document(one("PASS", ms=30.0)), document(one("PASS", ms=61.0))
    assert diff.compare(before, after).exit_code == ExitCode.GOOD, "times are judged if asked for"
    found = diff.compare(before, after, 2.0)
    assert sections(found) == {"slower": 1}
    assert found.exit_code == ExitCode.REGRESSION
    for before, after in ((30.0, 59.0), (1.0, 15.0)):
        found = diff.compare(document(one("PASS", ms=before)), document(one("PASS", ms=after)), 2.0)
        assert sections(found) == {}
    with pytest.raises(ValueError, match="above 1"):
        diff.compare(document(), document(), 1.0)


def test_a_case_of_another_revision_is_not_timed_and_says_so():
    before, after = document(one("PASS", ms=30.0)), document(one("PASS", ms=300.0, revision=2))
    assert sections(diff.compare(before, after, 2.0)) == {}
    found = diff.compare(before, document(one("FAIL", revision=2)))
    assert "revision 1 to 2" in found.regressed[0].text


def test_what_makes_runs_hard_to_compare_is_remarked():
    other = report.build(sample.RUN | {"seed": 7, "mask": "required"}, [one("PASS")], {})
    found = diff.compare(document(one("PASS")), other)
    assert len(found.remarks) == 3
    assert "run B was broken off" in found.remarks

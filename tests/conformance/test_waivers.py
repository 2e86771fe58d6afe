# SPDX-License-Identifier: Apache-2.0
"""chipdock.conformance.waivers and waiver_file: every rule bites, and no bad file gets through."""

import datetime
import math

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from chipdock.cli._command import Failure
from chipdock.cli.exit_codes import ExitCode
from chipdock.conformance import waiver_file, waivers
from chipdock.conformance._cli_waivers import waivers as waivers_command
from chipdock.conformance.case import Case
from chipdock.conformance.outcomes import Outcome
from chipdock.conformance.waivers import Device

TODAY = datetime.date(2026, 4, 1)
DEVICE = Device("demo-x1", "2.4.1")
DAY = datetime.timedelta(days=1)

GOOD = """\
schema = 1
# why this is here
[[waiver]]
id = "W-2026-014"
cases = ["L2.op.erf.f16.*"]
max_matches = 6
kind = "xfail"
chip = "demo-x1"
driver = ">=2.3,<2.6"
reason = "erf uses a table of five terms"  # not six
owner = "dev@demo.example"
issue = "https://demo.example/issues/88"
opened = 2026-03-01
expires = 2026-05-30
"""
LIMIT = 'limit = { metric = "ulp", value = 9.0, measured = 7.2 }\n'
TOLERANCE = GOOD.replace("xfail", "tolerance") + LIMIT


def changed(**fields):
    """The good file with fields replaced, or taken away where None."""
    lines = []
    for line in GOOD.splitlines():
        name = line.split(" = ")[0]
        if name not in fields:
            lines.append(line)
        elif fields[name] is not None:
            lines.append(f"{name} = {fields[name]}")
    return "\n".join([*lines, ""])


def rows(count=600):
    ids = [f"L2.op.erf.f16.v{n}" for n in range(5)]
    ids += [f"L2.op.add.f32.v{n}" for n in range(count - 5)]
    made = {case_id: Case(id=case_id) for case_id in ids}
    made["L0.abi.query.any.base"] = Case(id="L0.abi.query.any.base")
    made["L2.op.mul.f32.must"] = Case(id="L2.op.mul.f32.must", mustpass=True)
    return made


def kinds(text, today=TODAY, known=None):
    return {p.kind for p in waivers.lint(waiver_file.parse(text), known or rows(), today)}


def test_a_good_file_has_no_problems():
    (waiver,) = waiver_file.parse(GOOD)
    assert waiver.latest == datetime.date(2026, 5, 30)
    assert waivers.lint([waiver], rows(), TODAY) == []
    assert kinds(TOLERANCE) == set()


@pytest.mark.parametrize(
    "text",
    [
        "schema = 2\nwaiver = []",
        "waiver = []",
        'schema = 1\nwaiver = "none"',
        "schema = 1\n[[waiver]]\n",
        GOOD + "extra = 1\n",
        GOOD + LIMIT,
        GOOD.replace("xfail", "tolerance"),
        GOOD + GOOD.split("\n", 1)[1],
        changed(id='"14"'),
        changed(cases="[]"),
        changed(cases='["*"]'),
        changed(cases='["L2.a", "L2.a"]'),
        changed(max_matches="0"),
        changed(max_matches="true"),
        changed(kind='"skip"'),
        changed(driver='"about 2"'),
        changed(chip='""'),
        changed(reason='"later"'),
        changed(owner='"me"'),
        changed(issue='"88"'),
        changed(opened='"March"'),
        changed(opened="2026-03-01T10:00:00Z"),
        changed(opened='"2026-03-01"'),
        changed(expires='"2026-05-01"'),
        changed(opened="9999-12-31", expires="9999-12-31"),
        changed(expires="2026-13-01"),
        changed(owner=None),
        changed(issue=None),
        changed(expires=None),
        "\x00",
        "schema = 1\n[[waiver]",
    ],
)
def test_a_malformed_file_is_refused_with_where_and_why(text):
    with pytest.raises(waiver_file.WaiverError, match=r"^INVALID_ARGUMENT: waivers"):
        waiver_file.parse(text)


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"expires": "2026-03-31"}, "expired"),
        ({"expires": "2026-05-31"}, "too_long"),
        ({"opened": "2026-04-02"}, "dates"),
        ({"expires": "2026-02-01"}, "dates"),
        ({"cases": '["L2.op.erf.f16.*", "L2.op.erg.f16.*"]'}, "no_match"),
        ({"max_matches": "4"}, "too_broad"),
        ({"cases": '["L0.abi.*"]'}, "forbidden"),
        ({"cases": '["L2.op.mul.*"]'}, "forbidden"),
        ({"kind": '"flaky"'}, "too_long"),
        ({"kind": '"flaky"'}, "too_many"),
    ],
)
def test_each_rule_bites(fields, kind):
    assert kind in kinds(changed(**fields))


def test_a_share_of_a_level_is_the_most():
    assert "too_many" not in kinds(GOOD, known=rows(600))
    assert "too_many" in kinds(GOOD, known=rows(400))


@pytest.mark.slow
def test_twenty_entries_are_the_most():
    def entry(n):
        return changed(id=f'"W-2026-{n:03}"', cases=f'["L2.op.add.f32.v{n}"]').split("\n", 1)[1]

    def file(count):
        return "schema = 1\n" + "".join(entry(n) for n in range(count))

    assert kinds(file(20), known=rows(4000)) == set()
    assert kinds(file(21), known=rows(4000)) == {"too_many"}


def test_measured_over_the_limit_and_overlap_are_told():
    assert kinds(TOLERANCE.replace("7.2", "9.1")) == {"limit"}
    second = changed(id='"W-2026-015"').split("\n", 1)[1]
    assert kinds(GOOD + second) == {"overlap"}
    other_chip = changed(id='"W-2026-015"', chip='"demo-x2"').split("\n", 1)[1]
    assert kinds(GOOD + other_chip) == set()


def test_no_match_suggests_what_is_close():
    (problem,) = waivers.lint(
        waiver_file.parse(changed(cases='["L2.op.erf.f16.w1"]')), rows(), TODAY
    )
    assert "L2.op.erf.f16.v1" in problem.text


CASE = "L2.op.erf.f16.v1"


def applied(text, outcome, today=TODAY, device=DEVICE, **evidence):
    return waivers.apply({CASE: (outcome, evidence)}, waiver_file.parse(text), device, today)


@pytest.mark.parametrize(
    ("kind", "outcome", "becomes"),
    [
        ("xfail", Outcome.FAIL, Outcome.WAIVED),
        ("xfail", Outcome.CLAIMED_UNSUPPORTED, Outcome.WAIVED),
        ("xfail", Outcome.CRASH, None),
        ("xfail", Outcome.TIMEOUT, None),
        ("xfail", Outcome.FLAKY, None),
        ("xfail", Outcome.PASS, Outcome.XPASS),
        ("xfail", Outcome.QUALITY_WARN, Outcome.XPASS),
        ("xfail", Outcome.NOT_RUN, None),
        ("xfail", Outcome.UNSUPPORTED, None),
        ("crash", Outcome.CRASH, Outcome.WAIVED),
        ("crash", Outcome.TIMEOUT, Outcome.WAIVED),
        ("crash", Outcome.FAIL, None),
        ("crash", Outcome.PASS, Outcome.XPASS),
        ("flaky", Outcome.FLAKY, Outcome.WAIVED),
        ("flaky", Outcome.ORDER_DEPENDENT, Outcome.WAIVED),
        ("flaky", Outcome.FAIL, None),
        ("flaky", Outcome.PASS, None),
    ],
)
def test_what_a_kind_covers(kind, outcome, becomes):
    made = applied(changed(kind=f'"{kind}"'), outcome)
    assert made.outcomes.get(CASE) == becomes
    unneeded = becomes == Outcome.XPASS or outcome == Outcome.UNSUPPORTED
    assert [p.kind for p in made.problems] == (["unneeded"] if unneeded else [])


@pytest.mark.parametrize(
    ("evidence", "covered"),
    [
        ({"metric": "ulp", "value": 9.0}, True),
        ({"metric": "ulp", "value": 9.01}, False),
        ({"metric": "rel_l2", "value": 1.0}, False),
        ({"metric": "ulp", "value": math.nan}, False),
        ({"metric": "ulp", "value": "inf"}, False),
        ({"metric": "ulp"}, False),
        ({}, False),
    ],
)
def test_a_tolerance_waiver_covers_its_metric_up_to_its_limit(evidence, covered):
    made = applied(TOLERANCE, Outcome.FAIL, **evidence)
    assert (made.outcomes.get(CASE) == Outcome.WAIVED) == covered
    assert made.notes[CASE].startswith("W-2026-014")
    assert made.used["W-2026-014"] == ([CASE] if covered else [])


def test_a_waiver_holds_only_for_its_chip_driver_and_time():
    other = applied(GOOD, Outcome.FAIL, device=Device("demo-x2", "2.4.1"))
    assert (other.outcomes, other.problems) == ({}, [])
    assert applied(GOOD, Outcome.FAIL, device=Device("demo-x1", "Demo 2.4.1 (release 7)")).outcomes
    for driver in ("2.6", "2.2.9", "", "unknown", "Demo 2.6.0"):
        out = applied(GOOD, Outcome.FAIL, device=Device("demo-x1", driver))
        assert out.outcomes == {}
        assert [p.kind for p in out.problems] == ["driver"]
    assert applied(GOOD, Outcome.FAIL, today=datetime.date(2026, 5, 30)).outcomes
    assert not applied(GOOD, Outcome.FAIL, today=datetime.date(2026, 5, 31)).outcomes


def test_planner_learns_which_cases_run_last():
    crash = waiver_file.parse(changed(kind='"crash"'))
    assert waivers.planned(crash, [CASE, "L2.op.add.f32.v1"]) == {CASE: "crash"}


def test_renewal_moves_the_end_once_and_keeps_comments():
    made = waiver_file.renewed(GOOD, "W-2026-014", TODAY)
    (waiver,) = waiver_file.parse(made)
    assert (waiver.renewed, waiver.expires) == (TODAY, TODAY + 90 * DAY)
    assert waivers.lint([waiver], rows(), TODAY) == []
    assert "# why this is here" in made
    assert "# not six" in made
    with pytest.raises(waiver_file.WaiverError, match="once is all"):
        waiver_file.renewed(made, "W-2026-014", TODAY + DAY)


def test_renewal_touches_no_other_entry():
    second = changed(id='"W-2026-015"', cases='["L2.op.add.f32.v1"]').split("\n", 1)[1]
    made = waiver_file.parse(waiver_file.renewed(GOOD + second, "W-2026-015", TODAY, 5))
    assert made[0] == waiver_file.parse(GOOD)[0]
    assert made[1].expires == TODAY + 5 * DAY


@pytest.mark.parametrize(("waiver_id", "days"), [("W-2026-999", None), ("W-2026-014", 91)])
def test_renewal_refuses(waiver_id, days):
    with pytest.raises(waiver_file.WaiverError, match=r"^INVALID_ARGUMENT"):
        waiver_file.renewed(GOOD, waiver_id, TODAY, days)


def test_renewal_of_a_layout_it_cannot_change_says_what_to_write():
    inline = 'schema = 1\nwaiver = [{id = "W-2026-014", cases = ["L2.a.*"], max_matches = 1, '
    inline += 'kind = "xfail", chip = "x", driver = ">1", reason = "a reason it is", '
    inline += 'owner = "a@b", issue = "https://b", opened = 2026-03-01, expires = 2026-04-01}]'
    with pytest.raises(waiver_file.WaiverError, match="renewed = 2026-04-01"):
        waiver_file.renewed(inline, "W-2026-014", TODAY)


def test_files_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(waiver_file.WaiverError, match=r"^UNAVAILABLE"):
        waiver_file.read(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(waiver_file.WaiverError, match="no UTF-8"):
        waiver_file.read(tmp_path / "bad.toml")
    done = CliRunner().invoke(waivers_command, ["renew", str(tmp_path / "bad.toml"), "W-2026-001"])
    assert isinstance(done.exception, Failure)
    assert done.exception.code == ExitCode.WAIVERS


def test_a_renewal_at_the_end_of_time_is_refused():
    with pytest.raises(waiver_file.WaiverError, match="is the last day"):
        waiver_file.renewed(GOOD, "W-2026-014", datetime.date.max)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats()
    | st.text("Lx2.*W-0[]'\"\\", max_size=8),
    lambda inner: st.lists(inner, max_size=2), max_leaves=3,
)  # fmt: skip
FIELDS = ["id", "cases", "max_matches", "kind", "chip", "driver", "reason", "owner", "issue",
          "opened", "expires"]  # fmt: skip


def as_toml(value):
    import json

    if isinstance(value, list):
        return "[" + ", ".join(as_toml(item) for item in value) + "]"
    return json.dumps(value) if isinstance(value, str) else str(value).lower()


@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(st.dictionaries(st.sampled_from(FIELDS), VALUES, min_size=1, max_size=3))
def test_a_file_with_wild_fields_is_refused_or_keeps_every_rule(fields):
    text = changed(**{name: None if v is None else as_toml(v) for name, v in fields.items()})
    try:
        found = waiver_file.parse(text)
    except waiver_file.WaiverError:
        return
    known = rows()
    problems = waivers.lint(found, known, TODAY)
    if not problems:
        (waiver,) = found
        matched = waivers.matches(found, list(known))[waiver.id]
        assert 1 <= len(matched) <= waiver.max_matches
        assert not any(known[i].level == "L0" or known[i].mustpass for i in matched)
        assert TODAY <= waiver.expires <= waiver.latest


@pytest.mark.slow
@settings(max_examples=80, deadline=None, derandomize=True, database=None)
@given(st.integers(0, len(GOOD)), st.integers(0, 40), st.text(max_size=6))
def test_a_file_cut_or_scribbled_on_raises_nothing_else(start, length, new):
    text = GOOD[:start] + new + GOOD[start + length :]
    try:
        found = waiver_file.parse(text)
    except waiver_file.WaiverError:
        return
    waivers.lint(found, rows(50), TODAY)
    waivers.apply({CASE: (Outcome.FAIL, {})}, found, DEVICE, TODAY)

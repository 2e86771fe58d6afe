# SPDX-License-Identifier: Apache-2.0
"""What waivers mean: the rules they keep, which cases they plan, and what they turn outcomes into.

Waived cases still run. A waiver never covers level 0, a mustpass case, or a lack that the plugin
could declare. The file itself is read by waiver_file.py.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from packaging.version import InvalidVersion, Version

from chipdock.conformance import ids
from chipdock.conformance.case import Case
from chipdock.conformance.outcomes import Outcome
from chipdock.conformance.waiver_file import Waiver

__all__ = ["SOON", "Applied", "Device", "Problem", "apply", "lint", "matches", "planned"]

SOON = 14
"""Days before its end from which a waiver is called stale."""

_MOST_ENTRIES = 20
_SHARE = {"flaky": 0.001}
_SHARE_ALL = 0.01

# What each kind turns into WAIVED. A flaky waiver does not cover a case that failed twice.
_COVERS = {
    "xfail": {Outcome.FAIL, Outcome.CLAIMED_UNSUPPORTED},
    "tolerance": {Outcome.FAIL},
    "crash": {Outcome.CRASH, Outcome.TIMEOUT},
    "flaky": {Outcome.FLAKY, Outcome.ORDER_DEPENDENT},
}
_GOOD = frozenset({Outcome.PASS, Outcome.QUALITY_WARN})


@dataclass(frozen=True, slots=True)
class Problem:
    """A waiver, or the whole file, breaks a rule.

    Attributes:
        waiver: Id, "" for the file.
        kind: expired, too_long, dates, no_match, too_broad, forbidden, overlap, too_many, driver,
            limit, unneeded.
        text: What, the values, what is allowed, what to do.
    """

    waiver: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Device:
    """What waivers are matched with, as the device's info says.

    Attributes:
        chip: The product.
        driver: What the driver calls itself; the first version in it counts.
    """

    chip: str
    driver: str


@dataclass
class Applied:
    """What waivers did to a run.

    Attributes:
        outcomes: Of each case that changed.
        notes: By case: the waiver's id and, where it did not cover, why.
        used: Waiver id -> cases that it covered.
        problems: Of the run: waivers that are not needed, or out of range.
    """

    outcomes: dict[str, Outcome] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    used: dict[str, list[str]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


def matches(waivers: Iterable[Waiver], known: Sequence[str]) -> dict[str, list[str]]:
    """Return waiver id -> the ids of `known` that its patterns match."""
    return {waiver.id: ids.match(waiver.cases, known) for waiver in waivers}


def _dates(waiver: Waiver, today: datetime.date) -> Iterable[Problem]:
    if waiver.opened > today or (waiver.renewed is not None and waiver.renewed > today):
        yield Problem(waiver.id, "dates", f"{waiver.id} begins after today, {today}")
    if waiver.renewed is not None and waiver.renewed < waiver.opened:
        yield Problem(
            waiver.id, "dates", f"{waiver.id} was renewed {waiver.renewed}, before it was opened"
        )
    if waiver.expires < (waiver.renewed or waiver.opened):
        yield Problem(waiver.id, "dates", f"{waiver.id} ends {waiver.expires}, before it begins")
    if waiver.expires > waiver.latest:
        yield Problem(
            waiver.id,
            "too_long",
            f"{waiver.id} ends {waiver.expires}; of the kind {waiver.kind} it may hold until "
            f"{waiver.latest}",
        )
    if waiver.expires < today:
        yield Problem(
            waiver.id,
            "expired",
            f"{waiver.id} ended {waiver.expires}; remove it"
            + ("" if waiver.renewed else ", or renew it once by `waivers renew`"),
        )


def _reach(waiver: Waiver, matched: Sequence[str], rows: Mapping[str, Case]) -> Iterable[Problem]:
    for pattern in waiver.cases:
        if not ids.match([pattern], rows):
            close = ids.suggestions(pattern, list(rows))
            hint = f"; close are {', '.join(close)}" if close else ""
            yield Problem(
                waiver.id, "no_match", f"{waiver.id}: '{pattern}' matches no case{hint}; remove it"
            )
    if len(matched) > waiver.max_matches:
        yield Problem(
            waiver.id,
            "too_broad",
            f"{waiver.id} matches {len(matched)} cases, max_matches is {waiver.max_matches}; "
            "narrow its patterns",
        )
    level_0 = [case_id for case_id in matched if rows[case_id].level == "L0"]
    must = [case_id for case_id in matched if rows[case_id].mustpass and case_id not in level_0]
    for what, found in (("of level 0", level_0), ("mustpass", must)):
        if found:
            yield Problem(
                waiver.id,
                "forbidden",
                f"{waiver.id} covers {len(found)} cases {what}, such as {found[0]}; none of them "
                "can be waived",
            )


def _shares(
    waivers: Sequence[Waiver], matched: Mapping[str, Sequence[str]], rows: Mapping[str, Case]
) -> Iterable[Problem]:
    sizes: dict[str, int] = {}
    for row in rows.values():
        sizes[row.level] = sizes.get(row.level, 0) + 1
    for kind, share in (("", _SHARE_ALL), *_SHARE.items()):
        covered = {
            case_id
            for waiver in waivers
            if not kind or waiver.kind == kind
            for case_id in matched[waiver.id]
        }
        for level, size in sizes.items():
            count = sum(rows[case_id].level == level for case_id in covered)
            most = math.floor(size * share)
            if count > most:
                word = f"{kind} " if kind else ""
                yield Problem(
                    "",
                    "too_many",
                    f"{count} of the {size} cases of {level} have a {word}waiver; at most "
                    f"{100 * share:g} %, which is {most}, may",
                )


def lint(
    waivers: Sequence[Waiver], rows: Mapping[str, Case], today: datetime.date
) -> list[Problem]:
    """Check waivers against the rules and the manifest, without a run.

    Args:
        waivers: Of one file.
        rows: Every case of the suite by id.
        today: For the dates.
    """
    known = list(rows)
    matched = matches(waivers, known)
    problems: list[Problem] = []
    if len(waivers) > _MOST_ENTRIES:
        problems.append(
            Problem("", "too_many", f"{len(waivers)} entries; a file may hold {_MOST_ENTRIES}")
        )
    owner: dict[tuple[str, str], str] = {}
    for waiver in waivers:
        problems += _dates(waiver, today)
        problems += _reach(waiver, matched[waiver.id], rows)
        if waiver.limit is not None and waiver.limit.measured > waiver.limit.value:
            problems.append(
                Problem(
                    waiver.id,
                    "limit",
                    f"{waiver.id} measured {waiver.limit.measured:g} {waiver.limit.metric}, which "
                    f"is over its own limit {waiver.limit.value:g}",
                )
            )
        for case_id in matched[waiver.id]:
            first = owner.setdefault((case_id, waiver.chip), waiver.id)
            if first != waiver.id:
                problems.append(
                    Problem(waiver.id, "overlap", f"{waiver.id} and {first} both cover {case_id}")
                )
                break
    problems += _shares(waivers, matched, rows)
    return problems


def _version(text: str) -> Version | None:
    """Return the version in what a driver calls itself, "Acme Driver 2.4.1 (release)"."""
    try:
        return Version(text)
    except InvalidVersion:
        found = re.search(r"\d+(?:\.\d+)+", text)
        return Version(found[0]) if found else None


def _active(
    waivers: Sequence[Waiver], device: Device, today: datetime.date
) -> tuple[list[Waiver], list[Problem]]:
    active, problems = [], []
    for waiver in waivers:
        if waiver.chip != device.chip or waiver.expires < today:
            continue  # Another chip's is no concern of this run; an expired one is lint's.
        version = _version(device.driver)
        if version is not None and waiver.driver.contains(version, prereleases=True):
            active.append(waiver)
        else:
            problems.append(
                Problem(
                    waiver.id,
                    "driver",
                    f"{waiver.id} holds for the driver {waiver.driver}, this one is "
                    f"'{device.driver}'; remove it or look whether the fault is still there",
                )
            )
    return active, problems


def planned(waivers: Sequence[Waiver], selected: Sequence[str]) -> dict[str, str]:
    """Return case id -> kind of the waiver that names it, for the planner.

    Cases of the kind "crash" run last, each in a batch of its own. Chip, driver and dates play no
    part: the device is not known before the run, and the order of cases changes no result.
    """
    found: dict[str, str] = {}
    for waiver in waivers:
        for case_id in ids.match(waiver.cases, selected):
            found.setdefault(case_id, waiver.kind)
    return found


def _within(waiver: Waiver, evidence: Mapping[str, Any]) -> str:
    """Return why the evidence is outside the waiver's limit, "" if it is within."""
    limit = waiver.limit
    if limit is None:
        return ""
    metric, value = evidence.get("metric"), evidence.get("value")
    if metric != limit.metric:
        return f"it waives {limit.metric}, the case failed by {metric or 'no metric'}"
    if isinstance(value, bool) or not isinstance(value, int | float) or not value <= limit.value:
        return f"it waives up to {limit.value:g} {limit.metric}, seen was {value}"
    return ""


def apply(
    results: Mapping[str, tuple[Outcome, Mapping[str, Any]]],
    waivers: Sequence[Waiver],
    device: Device,
    today: datetime.date,
) -> Applied:
    """Turn outcomes into WAIVED and XPASS.

    Args:
        results: Case id -> outcome and evidence, of a whole run.
        waivers: Of one file.
        device: Whose run it was.
        today: Day of the run.

    Returns:
        Changes and problems. A waiver none of whose cases failed is a problem only if one ran.
    """
    made = Applied()
    active, made.problems = _active(waivers, device, today)
    for waiver in active:
        covered = made.used.setdefault(waiver.id, [])
        passed, absent = [], []
        for case_id in ids.match(waiver.cases, results):
            outcome, evidence = results[case_id]
            if case_id in made.outcomes:
                continue
            if outcome in _COVERS[waiver.kind]:
                why_not = _within(waiver, evidence)
                made.notes[case_id] = f"{waiver.id}: {why_not}" if why_not else waiver.id
                if not why_not:
                    made.outcomes[case_id] = Outcome.WAIVED
                    covered.append(case_id)
            elif outcome in _GOOD and waiver.kind != "flaky":
                made.outcomes[case_id] = Outcome.XPASS
                made.notes[case_id] = waiver.id
                passed.append(case_id)
            elif outcome == Outcome.UNSUPPORTED:
                absent.append(case_id)
        for found, what in ((passed, "passed"), (absent, "is declared as unsupported")):
            if found:
                more = f" and {len(found) - 1} more" if len(found) > 1 else ""
                made.problems.append(
                    Problem(
                        waiver.id,
                        "unneeded",
                        f"{waiver.id} is not needed: {found[0]}{more} {what}; narrow or remove it",
                    )
                )
    return made

# SPDX-License-Identifier: Apache-2.0
"""What changed between two runs: regressed, fixed, changed, new, gone, renamed, slower.

Works on the documents of report.py. A regression is told and fails whatever else got better.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from chipdock.cli.exit_codes import ExitCode
from chipdock.conformance.outcomes import FAILED, Outcome

__all__ = ["SECTIONS", "Change", "Difference", "compare"]

SECTIONS = ("regressed", "fixed", "changed", "new", "gone", "renamed", "slower")

_GOOD = frozenset({Outcome.PASS, Outcome.QUALITY_WARN, Outcome.XPASS})
_LEAST_MS = 20.0
"""Times below this are mostly those of the machine."""


@dataclass(frozen=True, slots=True)
class Change:
    """One case that differs.

    Attributes:
        id: In run B; in A where B lacks it.
        was: Outcome in A, "" where A lacks it.
        now: Outcome in B, "" where B lacks it.
        text: Cause, old id, or times.
    """

    id: str
    was: str
    now: str
    text: str = ""


@dataclass
class Difference:
    """All changes from a run A to a run B, and remarks on what makes them hard to compare."""

    regressed: list[Change] = field(default_factory=list)
    fixed: list[Change] = field(default_factory=list)
    changed: list[Change] = field(default_factory=list)
    new: list[Change] = field(default_factory=list)
    gone: list[Change] = field(default_factory=list)
    renamed: list[Change] = field(default_factory=list)
    slower: list[Change] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    compared: int = 0

    @property
    def exit_code(self) -> ExitCode:
        """FAILURES if anything regressed, NOT_RUN if no case is in both, REGRESSION if slower."""
        if self.regressed:
            return ExitCode.FAILURES
        if not self.compared:
            return ExitCode.NOT_RUN
        return ExitCode.REGRESSION if self.slower else ExitCode.GOOD


def _section(was: str, now: str) -> str:
    """Return the name of the section for a change of outcome, "" where there is no change."""
    if was == now or (was in _GOOD and now in _GOOD):
        return ""
    if was in _GOOD or (now in FAILED and was not in FAILED):
        return "regressed"
    return "fixed" if now in _GOOD else "changed"


def _remarks(first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[str]:
    for key, what in (
        ("suite_root", "suites"),
        ("seed", "seeds"),
        ("mask", "masks"),
        ("device", "devices"),
    ):
        old, new = first["run"].get(key), second["run"].get(key)
        if old != new:
            yield f"the {what} differ: {old} and {new}"
    for name, document in (("A", first), ("B", second)):
        if not document["finished"]:
            yield f"run {name} was broken off"


def _pairs(
    old: Mapping[str, Mapping[str, Any]], new: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[Mapping[str, Any] | None, Mapping[str, Any]]]:
    taken = set()
    for case_id, case in new.items():
        former = old.get(case_id)
        if former is None:
            name = next(
                (name for name in case.get("was", []) if name in old and name not in new), ""
            )
            # Two cases may stem from one; the first keeps its history.
            former = old[name] if name and name not in taken else None
            taken.add(name)
        yield former, case


def compare(
    first: Mapping[str, Any], second: Mapping[str, Any], slower: float | None = None
) -> Difference:
    """Compare run A, `first`, with run B, `second`.

    Args:
        first: Document of the older run.
        second: Document of the newer run.
        slower: Ratio of B's time to A's from which a good case counts as slower, above 1. None
            judges no times: one run tells little of them; paired.py measures them.

    Raises:
        ValueError: `slower` is not above 1.
    """
    if slower is not None and not slower > 1.0:
        raise ValueError(f"slower must be a ratio above 1, got {slower}")
    old = {case["id"]: case for case in first["cases"]}
    new = {case["id"]: case for case in second["cases"]}
    made = Difference(remarks=list(_remarks(first, second)))
    seen = set()
    for former, case in _pairs(old, new):
        now = case["outcome"]
        if former is None:
            made.new.append(Change(case["id"], "", now, case.get("cause", "")))
            continue
        made.compared += 1
        seen.add(former["id"])
        was = former["outcome"]
        if former["id"] != case["id"]:
            made.renamed.append(Change(case["id"], was, now, f"was {former['id']}"))
        other_meaning = former["revision"] != case["revision"]
        section = _section(was, now)
        if section:
            text = case.get("cause", "")
            if other_meaning:
                text += (
                    f" (its meaning changed: revision {former['revision']} to {case['revision']})"
                )
            getattr(made, section).append(Change(case["id"], was, now, text.strip()))
        timed = now in _GOOD and was in _GOOD and not other_meaning and case["ms"] >= _LEAST_MS
        if timed and slower is not None and case["ms"] > slower * max(former["ms"], 1e-3):
            made.slower.append(
                Change(case["id"], was, now, f"{former['ms']:.1f} ms to {case['ms']:.1f} ms")
            )
    made.gone = [
        Change(case_id, case["outcome"], "", "not in run B")
        for case_id, case in old.items()
        if case_id not in seen
    ]
    return made

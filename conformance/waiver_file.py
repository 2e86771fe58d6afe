# SPDX-License-Identifier: Apache-2.0
"""The waiver file: reading it, and moving the end of one entry. What it means is in waivers.py."""

from __future__ import annotations

import datetime
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
from packaging.specifiers import InvalidSpecifier, SpecifierSet

__all__ = ["LONGEST", "Limit", "Waiver", "WaiverError", "parse", "read", "read_text", "renewed"]

LONGEST = {"xfail": 90, "tolerance": 90, "crash": 90, "flaky": 14}
"""Days that an entry of each kind may hold, from its opening or renewal."""

_LAST_DAY = datetime.date(9998, 12, 31)
"""Behind it terms could not be counted."""


class WaiverError(Exception):
    """The file cannot be used; the text says where and why."""


@dataclass(frozen=True, slots=True)
class Limit:
    """What a waiver of the kind tolerance allows.

    Attributes:
        metric: As the evidence of the case names it, "ulp".
        value: Largest value that is waived, in the metric's unit.
        measured: What the owner saw, at most `value`.
    """

    metric: str
    value: float
    measured: float


@dataclass(frozen=True, slots=True)
class Waiver:
    """One entry: one reason.

    Attributes:
        id: "W-2026-014".
        cases: Patterns of case ids; `*` also crosses dots.
        max_matches: How many cases they may match at most.
        kind: xfail, flaky, tolerance or crash.
        chip: Name of the device it holds for, as its info says.
        driver: Versions of the driver it holds for.
        limit: Of the kind tolerance; else None.
        reason: What is wrong.
        owner: Whom to ask, an address.
        issue: Where it is followed up, an address of the web.
        opened: First day.
        expires: Last day on which it holds.
        renewed: Day of its one renewal; None before.
    """

    id: str
    cases: tuple[str, ...]
    max_matches: int
    kind: str
    chip: str
    driver: SpecifierSet
    limit: Limit | None
    reason: str
    owner: str
    issue: str
    opened: datetime.date
    expires: datetime.date
    renewed: datetime.date | None

    @property
    def latest(self) -> datetime.date:
        """The last day that the rules allow."""
        return (self.renewed or self.opened) + datetime.timedelta(days=LONGEST[self.kind])


def _schema() -> dict[str, Any]:
    import json  # noqa: PLC0415  once, and only where a file is read

    text = (
        resources.files("chipdock.conformance").joinpath("waivers.schema.json").read_text("utf-8")
    )
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def _dates_as_text(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _dates_as_text(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_dates_as_text(item) for item in value]
    is_date = isinstance(value, datetime.date) and not isinstance(value, datetime.datetime)
    return value.isoformat() if is_date else value


def _check_dates(entry: Mapping[str, Any], name: str) -> None:
    for field in ("opened", "expires", "renewed"):
        day = entry.get(field)
        where = f"INVALID_ARGUMENT: {name}: waiver {entry['id']}: {field}"
        if isinstance(day, str):
            raise WaiverError(f"{where} is text; write the date without quotes: {field} = {day}")
        if day is not None and day > _LAST_DAY:
            raise WaiverError(f"{where} is {day}; {_LAST_DAY} is the last day that is allowed")


def _waiver(entry: Mapping[str, Any], name: str) -> Waiver:
    _check_dates(entry, name)
    try:
        driver = SpecifierSet(entry["driver"])
    except InvalidSpecifier as cause:
        raise WaiverError(
            f"INVALID_ARGUMENT: {name}: waiver {entry['id']}: driver {entry['driver']!r} is no "
            'version range; write one as ">=2.3,<2.6"'
        ) from cause
    limit = entry.get("limit")
    return Waiver(
        id=entry["id"],
        cases=tuple(entry["cases"]),
        max_matches=entry["max_matches"],
        kind=entry["kind"],
        chip=entry["chip"],
        driver=driver,
        limit=None
        if limit is None
        else Limit(limit["metric"], float(limit["value"]), float(limit["measured"])),
        reason=entry["reason"],
        owner=entry["owner"],
        issue=entry["issue"],
        opened=entry["opened"],
        expires=entry["expires"],
        renewed=entry.get("renewed"),
    )


def parse(text: str, name: str = "waivers") -> list[Waiver]:
    """Read the text of a waiver file.

    Args:
        text: TOML.
        name: What errors call it.

    Raises:
        WaiverError: It is no TOML, breaks the schema, or names an id twice.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as cause:
        raise WaiverError(f"INVALID_ARGUMENT: {name} is no TOML: {cause}") from cause
    validator = jsonschema.Draft202012Validator(_schema())
    wrong = jsonschema.exceptions.best_match(validator.iter_errors(_dates_as_text(data)))
    if wrong is not None:
        where = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in wrong.absolute_path)
        entries = data.get("waiver")
        number = wrong.absolute_path[1] if len(wrong.absolute_path) > 1 else None
        entry = entries[number] if isinstance(entries, list) and isinstance(number, int) else {}
        of = f" (waiver {entry['id']})" if isinstance(entry, dict) and "id" in entry else ""
        raise WaiverError(f"INVALID_ARGUMENT: {name}{where}{of}: {wrong.message}")
    waivers = [_waiver(entry, name) for entry in data["waiver"]]
    seen: set[str] = set()
    for waiver in waivers:
        if waiver.id in seen:
            raise WaiverError(
                f"INVALID_ARGUMENT: {name}: the id {waiver.id} stands twice; one entry, one id"
            )
        seen.add(waiver.id)
    return waivers


def read_text(path: Path) -> str:
    """Return the text of a file.

    Raises:
        WaiverError: It cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as cause:
        raise WaiverError(f"INVALID_ARGUMENT: {path} is no UTF-8 text: {cause}") from cause
    except OSError as cause:
        raise WaiverError(f"UNAVAILABLE: {path}: {cause.strerror}") from cause


def read(path: Path) -> list[Waiver]:
    """Read a waiver file.

    Raises:
        WaiverError: It cannot be read, or see `parse`.
    """
    return parse(read_text(path), path.name)


def renewed(text: str, waiver_id: str, today: datetime.date, days: int | None = None) -> str:
    """Return the text of a file with one entry renewed from today; comments stay.

    Args:
        text: Of the file.
        waiver_id: Whose end moves.
        today: First day of the new term.
        days: How long it is to hold; None takes the longest that its kind allows.

    Raises:
        WaiverError: There is no such entry, it was renewed before, `days` is too long, or the
            layout of the file is not one entry a block with `expires` on a line of its own.
    """
    before = {waiver.id: waiver for waiver in parse(text)}
    if waiver_id not in before:
        raise WaiverError(
            f"INVALID_ARGUMENT: there is no waiver {waiver_id}; there are {', '.join(before)}"
        )
    waiver = before[waiver_id]
    if waiver.renewed is not None:
        raise WaiverError(
            f"FAILED_PRECONDITION: {waiver_id} was renewed on {waiver.renewed}, and once is all; "
            "mend the cause, or declare the capability as absent"
        )
    longest = LONGEST[waiver.kind]
    term = longest if days is None else days
    if not 1 <= term <= longest:
        raise WaiverError(
            f"INVALID_ARGUMENT: {term} days; {waiver.kind} may hold for 1 to {longest} days"
        )
    if today > _LAST_DAY:
        raise WaiverError(f"INVALID_ARGUMENT: today is {today}; {_LAST_DAY} is the last day")
    expires = today + datetime.timedelta(days=term)
    blocks = re.split(r"(?m)^(?=\s*\[\[\s*waiver\s*\]\])", text)
    for number, block in enumerate(blocks):
        if re.search(rf"(?m)^\s*id\s*=\s*[\"']{re.escape(waiver_id)}[\"']", block):
            blocks[number] = re.sub(
                r"(?m)^(\s*)expires\s*=\s*[\d-]+",
                lambda match: f"{match[1]}renewed = {today}\n{match[1]}expires = {expires}",
                block,
                count=1,
            )
    made = "".join(blocks)
    after = {entry.id: entry for entry in parse(made)}.get(waiver_id)
    if after is None or (after.renewed, after.expires) != (today, expires):
        raise WaiverError(
            f"INVALID_ARGUMENT: the lines of {waiver_id} could not be changed; put `expires` on a "
            f"line of its own, or write renewed = {today} and expires = {expires} by hand"
        )
    return made

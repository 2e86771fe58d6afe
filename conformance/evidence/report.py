# SPDX-License-Identifier: Apache-2.0
"""The document that every report and comparison is made from, report.json.

Built from a run's journal and the manifest's facts. Its form is report.schema.json; a change that
breaks a reader raises the number in SCHEMA. How it looks is left to html.py, junit.py and tap.py.
"""

from __future__ import annotations

import datetime
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from chipdock.cli.exit_codes import PRIORITY, ExitCode
from chipdock.conformance.case import Case
from chipdock.conformance.evidence import cause, coverage
from chipdock.conformance.ids import LEVELS
from chipdock.conformance.outcomes import FAILED, Outcome

__all__ = ["SCHEMA", "ReportError", "build", "load", "schema", "write"]

SCHEMA = "chipdock.conformance-report/1"
_SLOWEST = 25
_FACTS = ("op", "shape_class", "tolerance", "budget_ms", "needs", "mustpass")
_SEEN = ("reason", "signal", "stdout", "stderr", "digest", "waiver")


class ReportError(Exception):
    """A file is no report that this version reads."""


def _plain(value: Any) -> Any:
    """Return what strict JSON can hold: numbers that are not finite become their names."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if value - value == 0.0 else str(value)
    return str(value)


def _case(record: Mapping[str, Any], row: Case | None) -> dict[str, Any]:
    outcome = str(record["outcome"])
    made: dict[str, Any] = {
        "id": record["id"],
        "outcome": outcome,
        "ms": round(float(record.get("ms") or 0.0), 3),
        "revision": int(record.get("revision") or (row.revision if row else 1)),
    }
    if row is not None:
        made |= {name: getattr(row, name) for name in _FACTS if getattr(row, name)}
        if row.was:
            made["was"] = list(row.was)
    if int(record.get("fallback") or 0):
        made["fallback"] = int(record["fallback"])
    if record.get("evidence"):
        made["evidence"] = _plain(record["evidence"])
    if outcome == Outcome.PASS:
        if record.get("digest"):
            made["digest"] = record["digest"]
        return made
    made["cause"] = cause.in_words(record)
    made["duties"] = list(record.get("duties") or (row.duties if row else ()))
    made["entry_points"] = list(row.entry_points if row else ())
    made["calls"] = [[str(part) for part in call] for call in record.get("calls") or []]
    made["worker"] = int(record.get("worker") or 0)
    made["attempt"] = int(record.get("attempt") or 1)
    for name in _SEEN:
        if record.get(name):
            made[name] = str(record[name])
    return made


def _counts(cases: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    found = Counter(str(made["outcome"]) for made in cases)
    return {str(outcome): found[outcome] for outcome in Outcome if found[outcome]}


def _levels(cases: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    levels = []
    for level in LEVELS:
        own = [made for made in cases if str(made["id"]).split(".", 1)[0] == level]
        if own:
            levels.append(
                {
                    "level": level,
                    "cases": len(own),
                    "counts": _counts(own),
                    "seconds": round(sum(made["ms"] for made in own) / 1000.0, 3),
                    "good": not any(
                        made["outcome"] in FAILED | {Outcome.NOT_RUN, Outcome.MISSING}
                        for made in own
                    ),
                }
            )
    return levels


def _order_groups(cases: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    groups = []
    for made in cases:
        if made["outcome"] == Outcome.ORDER_DEPENDENT:
            evidence = made.get("evidence", {})
            prefix = evidence.get("behind") or []
            groups.append(
                {"id": made["id"], "prefix": [str(item) for item in prefix], "cause": made["cause"]}
            )
    return groups


def build(
    run: Mapping[str, Any],
    cases: Iterable[Mapping[str, Any]],
    rows: Mapping[str, Case],
    *,
    events: Iterable[Mapping[str, Any]] = (),
    end: Mapping[str, Any] | None = None,
    waivers: Mapping[str, Any] | None = None,
    absence: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Make the document of a run.

    Args:
        run: The journal's line of type "run".
        cases: Its last line of type "case" of each id, waivers already applied.
        rows: Manifest rows (case.Case) by id; ids without a row keep what the journal says.
        events: Lines of type "event".
        end: The line of type "end"; None for a run that was broken off.
        waivers: What waivers.py tells of its file: {"entries": […], "problems": […]}.
        absence: Operators the plugin lacks and models that blocks, as `coverage.absent` has them;
            None takes what the run has seen.

    Returns:
        Plain data that `schema()` describes.
    """
    records = list(cases)
    made = [_case(record, rows.get(record["id"])) for record in records]
    made.sort(key=lambda case: (LEVELS.index(case["id"].split(".", 1)[0]), case["id"]))
    ended = end or {}
    code = ExitCode(int(ended.get("exit_code", ExitCode.INTERRUPTED)))
    capabilities = run.get("capabilities") or {}
    covered = coverage.measure(
        ended.get("coverage") or {}, capabilities.get("slots") or (), records, rows
    )
    slowest = sorted(made, key=lambda case: -case["ms"])[:_SLOWEST]
    return {
        "schema": SCHEMA,
        "made": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "run": _plain({key: value for key, value in run.items() if key != "type"}),
        "finished": end is not None,
        "exit_code": int(code),
        "verdict": dict(PRIORITY).get(code, ""),
        "seconds": float(ended.get("seconds") or 0.0),
        "counts": _counts(made),
        "levels": _levels(made),
        "cases": made,
        "groups": cause.group(records),
        "order_groups": _order_groups(made),
        "timing": {
            "slowest": [
                {"id": case["id"], "ms": case["ms"], "budget_ms": case.get("budget_ms", 0)}
                for case in slowest
                if case["ms"] > 0.0
            ]
        },
        "coverage": covered,
        "waivers": _plain(waivers or {"entries": [], "problems": []}),
        "absence": _plain(absence or coverage.absent(covered["operators"], records)),
        "events": [
            _plain({key: value for key, value in event.items() if key != "type"})
            for event in events
        ],
    }


def schema() -> dict[str, Any]:
    """Return the JSON Schema of the document."""
    file = resources.files("chipdock.conformance.evidence").joinpath("report.schema.json")
    loaded: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return loaded


def write(document: Mapping[str, Any], path: Path) -> None:
    """Write the document, a line a case, so that two of them can be compared by eye."""
    rest = {key: value for key, value in document.items() if key != "cases"}
    text = json.dumps(rest, indent=1, ensure_ascii=False, allow_nan=False)
    lines = [json.dumps(case, ensure_ascii=False, allow_nan=False) for case in document["cases"]]
    body = ",\n  ".join(lines)
    whole = f'{text[:-2]},\n "cases": [\n  {body}\n ]\n}}\n'
    path.write_text(whole, "utf-8", "backslashreplace")


def load(path: Path) -> dict[str, Any]:
    """Read report.json, or that of a run's folder.

    Raises:
        ReportError: There is none, or it is not of this schema.
    """
    file = path / "report.json" if path.is_dir() else path
    try:
        document: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except OSError as cause_:
        raise ReportError(
            f"UNAVAILABLE: {file}: {cause_.strerror}; a run with --out writes it, "
            "`conformance-run report DIR` makes it from a journal"
        ) from cause_
    except ValueError as cause_:
        raise ReportError(f"INVALID_ARGUMENT: {file} is no JSON: {cause_}") from cause_
    found = document.get("schema") if isinstance(document, dict) else None
    if found != SCHEMA:
        raise ReportError(
            f"VERSION_MISMATCH: {file} has the schema {found!r}, this version reads {SCHEMA!r}; "
            "make it again from its journal with `conformance-run report DIR`"
        )
    return document

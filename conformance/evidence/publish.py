# SPDX-License-Identifier: Apache-2.0
"""From a journal to all files of a run: waivers applied, reports, scripts, and the exit code.

The journal stays as the run wrote it; what waivers make of it stands in the reports.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chipdock.cli.exit_codes import ExitCode, worst
from chipdock.conformance import waivers as rules
from chipdock.conformance.absence import absent, unlock
from chipdock.conformance.capabilities import Capabilities
from chipdock.conformance.evidence import html, junit, report, repro, tap
from chipdock.conformance.journal import RunRecord
from chipdock.conformance.manifest import Manifest
from chipdock.conformance.outcomes import exit_code
from chipdock.conformance.waiver_file import Waiver
from chipdock.conformance.waivers import Applied, Device, Problem

__all__ = ["FILES", "Conclusion", "conclude", "device_of", "publish"]

FILES = ("report.json", "report.html", "junit.xml", "tap.txt", "coverage.json")

# A run that ended so has no verdict that waivers could change.
_FINAL = frozenset({ExitCode.INTERRUPTED, ExitCode.NOT_STARTED, ExitCode.USAGE})


@dataclass(frozen=True, slots=True)
class Conclusion:
    """A run with its waivers applied.

    Attributes:
        document: See report.py.
        exit_code: Of the run.
    """

    document: dict[str, Any]
    exit_code: ExitCode


def device_of(record: RunRecord) -> Device:
    """Return what waivers are matched with, from a journal's run line."""
    info = record.run.get("device_info") or {}
    return Device(str(info.get("product", "")), str(info.get("driver", "")))


def _entry(
    waiver: Waiver, matched: Sequence[str], applied: Applied, today: datetime.date
) -> dict[str, Any]:
    return {
        "id": waiver.id,
        "kind": waiver.kind,
        "cases": list(waiver.cases),
        "chip": waiver.chip,
        "driver": str(waiver.driver),
        "limit": None if waiver.limit is None else dataclasses.asdict(waiver.limit),
        "owner": waiver.owner,
        "issue": waiver.issue,
        "reason": waiver.reason,
        "expires": waiver.expires.isoformat(),
        "days_left": (waiver.expires - today).days,
        "renewed": waiver.renewed is not None,
        "matched": list(matched),
        "covered": applied.used.get(waiver.id, []),
    }


def _absence(record: RunRecord, manifest: Manifest) -> dict[str, Any] | None:
    """Return what the plugin declares that it lacks, None if the journal has no list of kernels."""
    capabilities = record.run.get("capabilities") or {}
    if "kernels" not in capabilities:
        return None
    lacking = absent(record, [row.case for row in manifest.rows.values()])
    blocked: dict[str, list[str]] = {}
    for row in lacking:
        for model in row.models:
            blocked.setdefault(model, []).append(row.op)
    reach = unlock(Capabilities.from_json(capabilities))
    return {
        "operators": [
            {"op": row.op, "dtypes": [] if row.dtypes == ("any",) else list(row.dtypes)}
            for row in lacking
        ],
        "models": [{"name": name, "missing": ops} for name, ops in sorted(blocked.items())],
        "reach": dataclasses.asdict(reach),
    }


def conclude(
    record: RunRecord,
    manifest: Manifest,
    *,
    waivers: Sequence[Waiver] = (),
    today: datetime.date | None = None,
    command: str = "",
) -> Conclusion:
    """Apply waivers to a run and make its document.

    Args:
        record: The journal.
        manifest: Of the suite that ran.
        waivers: Of one file.
        today: Day for their dates; None is the day on which the run started.
        command: What the user typed, for the report.

    Raises:
        ReportError: The journal has no run line.
    """
    if not record.run:
        raise report.ReportError(
            "INVALID_ARGUMENT: the journal has no run line, so there is nothing to report; the run "
            "ended before its first case"
        )
    day = today or datetime.datetime.fromisoformat(record.run["started"]).date()
    rows = {case_id: row.case for case_id, row in manifest.rows.items()}
    applied = Applied()
    problems: list[Problem] = []
    if waivers:
        results = {k: (case.outcome, case.evidence) for k, case in record.cases.items()}
        applied = rules.apply(results, waivers, device_of(record), day)
        problems = [*rules.lint(waivers, rows, day), *applied.problems]
    cases = []
    for case_id, case in record.cases.items():
        row = case.to_json()
        row["outcome"] = applied.outcomes.get(case_id, case.outcome)
        if case_id in applied.notes:
            row["waiver"] = applied.notes[case_id]
        cases.append(row)
    end = record.end
    code = ExitCode(int(end["exit_code"])) if end is not None else ExitCode.INTERRUPTED
    if waivers and code not in _FINAL:
        judged = exit_code(
            [row["outcome"] for row in cases], quarantined=code is ExitCode.INFRASTRUCTURE
        )
        code = worst([judged, *([ExitCode.WAIVERS] if problems else [])])
    matched = rules.matches(waivers, list(rows))
    document = report.build(
        record.run | ({"command": command} if command else {}),
        cases,
        rows,
        absence=_absence(record, manifest),
        events=record.events,
        end=None if end is None else end | {"exit_code": int(code)},
        waivers={
            "entries": [_entry(w, matched[w.id], applied, day) for w in waivers],
            "problems": [dataclasses.asdict(problem) for problem in problems],
        },
    )
    return Conclusion(document, code)


def publish(conclusion: Conclusion, folder: Path) -> list[Path]:
    """Write every report and the scripts into the folder of the run.

    Args:
        conclusion: Its document learns the commands that repeat failures.
        folder: Holds results.jsonl already.

    Returns:
        The files of FILES; the scripts are in folder/repro.
    """
    document = conclusion.document
    repro.write_all(document, folder)
    report.write(document, folder / "report.json")
    texts = {
        "report.html": html.render(document),
        "junit.xml": junit.render(document),
        "tap.txt": tap.render(document),
        "coverage.json": json.dumps(document["coverage"], indent=1) + "\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text, "utf-8", "backslashreplace")
    return [folder / name for name in FILES]

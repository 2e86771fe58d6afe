# SPDX-License-Identifier: Apache-2.0
"""What one case asks for and how it went: duties, tolerance, needs, entry points, limits, history.

Plain data for the command `explain`; nothing is run and no plugin is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from chipdock.conformance.case import Case
from chipdock.conformance.contract import duties, slots
from chipdock.conformance.evidence.report import ReportError
from chipdock.conformance.evidence.report import load as load_report
from chipdock.conformance.journal import FILE, read
from chipdock.conformance.manifest import Manifest

__all__ = ["LEVEL_NAMES", "TOLERANCES", "explain", "history"]

LEVEL_NAMES = {
    "L0": "ABI sanity",
    "L1": "runtime",
    "L2": "operators",
    "L3": "robustness",
    "L4": "collectives",
    "L5": "models",
    "P": "performance",
}

TOLERANCES = {
    "none": "nothing is compared by numbers",
    "E": "exact: every bit as expected; any NaN equals any other",
    "U": "each element within the operator's number of ULP of the result in fp64",
    "R": "each element within the rounding of a sum of that length, |y - y64| <= "
    "c * gamma(k) * (|A||B|) + u * |y|, and a relative L2 error of at most twice (fp32) or three "
    "times (half types) that of the CPU plugin",
    "C": "collectives: bit-equal where inputs are exact, else within (n - 1) * u * sum|x|",
    "Q": "quantized: integers exact; requantized values within one step, in 0.1 % of the elements",
    "D": "random numbers: the same seed gives the same bits, and the distribution passes its test "
    "at a level of 1e-6",
    "M": "models: a relative L2 error of at most 1e-4 (fp32) or 2e-2 (half types), and the same "
    "first answer in 99.9 % or 99 % of the inputs",
}
"""What each class of tolerance allows, in words. The limit of a case is in its evidence."""


def _limit(case: Case) -> str:
    """Return the figure of a case of class U, "" where the limit hangs on the values."""
    if case.tolerance != "U":
        return ""
    from chipdock.conformance.numerics.ulp import ulp_limit  # noqa: PLC0415  needs numpy

    try:
        limit = ulp_limit(case.op.rpartition("::")[2], case.id.split(".")[3])
    except KeyError:
        return ""
    steps = f", and {limit.roundings:g} roundings of what is between" if limit.roundings else ""
    return f"; for {case.op} {limit.ulps:g} ULP{steps}"


def history(case_id: str, names: Sequence[str], folders: Sequence[Path]) -> list[dict[str, Any]]:
    """Return what became of a case in earlier runs, the oldest first.

    Args:
        case_id: Of the case.
        names: Ids it had before.
        folders: Of runs; report.json is read where there is one, else the journal.

    Raises:
        ReportError: A folder has neither.
    """
    found = []
    for folder in folders:
        if (folder / "report.json").is_file():
            document = load_report(folder)
            run, cases = document["run"], {case["id"]: case for case in document["cases"]}
        elif (folder / FILE).is_file():
            record = read(folder)
            run, cases = record.run, {k: case.to_json() for k, case in record.cases.items()}
        else:
            raise ReportError(f"UNAVAILABLE: {folder} holds neither report.json nor {FILE}")
        for name in (case_id, *names):
            if name in cases:
                case = cases[name]
                found.append(
                    {
                        "run": str(folder),
                        "started": run.get("started", ""),
                        "device": run.get("device", ""),
                        "plugin": (run.get("plugin") or {}).get("version", ""),
                        "outcome": str(case["outcome"]),
                        "ms": case["ms"],
                        "cause": case.get("cause") or case.get("reason") or "",
                    }
                )
                break
    return sorted(found, key=lambda row: row["started"])


def explain(manifest: Manifest, case_id: str, folders: Sequence[Path] = ()) -> dict[str, Any]:
    """Return all that is known of a case as plain data.

    Args:
        manifest: Of the suite.
        case_id: Of the case.
        folders: Of earlier runs.

    Raises:
        KeyError: The manifest lacks the case.
        ReportError: See `history`.
    """
    row = manifest.rows[case_id]
    case = row.case
    texts, contracts = duties(), slots()
    return {
        "id": case.id,
        "text": row.doc,
        "level": f"{case.level}, {LEVEL_NAMES[case.level]}",
        "revision": case.revision,
        "tier": case.tier,
        "mustpass": case.mustpass,
        "was": list(case.was),
        "file": str(manifest.folder / row.file),
        "function": row.function,
        "operator": case.op,
        "shape_class": case.shape_class,
        "duties": {name: texts.get(name, "in no header") for name in case.duties},
        "tolerance": case.tolerance,
        "tolerance_text": TOLERANCES[case.tolerance] + _limit(case),
        "needs": case.needs,
        "entry_points": {
            name: {
                "text": contracts[name].text if name in contracts else "in no header",
                "errors": list(contracts[name].errors) if name in contracts else [],
            }
            for name in case.entry_points
        },
        "budget_ms": case.budget_ms,
        "limit_s": max(2.0, 20.0 * case.budget_ms / 1000.0),
        "history": history(case_id, case.was, folders),
    }

# SPDX-License-Identifier: Apache-2.0
"""The report for people: one HTML file that needs neither scripts nor a network.

Passing cases are counted, not listed; of failures that are alike the first ones are shown in full,
so that the file stays small whatever went wrong. The looks are in report.html.j2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from typing import Any

import jinja2

from chipdock.conformance.evidence.cause import last_call, measured
from chipdock.conformance.outcomes import FAILED, Outcome

__all__ = ["render"]

_IN_FULL = 10
"""Failures of one group that are shown with everything."""
_IN_FULL_ALL = 300
"""The same for the whole page."""
_ORDER = (
    "PASS", "QUALITY_WARN", "FAIL", "CRASH", "TIMEOUT", "CLAIMED_UNSUPPORTED", "FLAKY",
    "ORDER_DEPENDENT", "WAIVED", "XPASS", "UNSUPPORTED", "NOT_RUN", "MISSING",
)  # fmt: skip
_MEANING = {
    "PASS": "did what its duties say",
    "QUALITY_WARN": "passed, with a remark on the evidence",
    "FAIL": "broke a duty",
    "CRASH": "the process died in it",
    "TIMEOUT": "did not end in its time",
    "CLAIMED_UNSUPPORTED": "the plugin declares it and answered UNSUPPORTED; fails",
    "FLAKY": "failed behind others, passed alone; fails",
    "ORDER_DEPENDENT": "fails behind certain other cases only; fails",
    "WAIVED": "failed as a waiver foretells",
    "XPASS": "waived, and passed: the waiver has to go",
    "UNSUPPORTED": "the plugin declares that it lacks what the case needs",
    "NOT_RUN": "selected and never started",
    "MISSING": "selected, and no result was written",
}
# How bad an outcome is for the colour of a cell in the map.
_RANK = ("bad", "gap", "warn", "waived", "good", "none")
_CLASS = {
    "PASS": "good",
    "QUALITY_WARN": "warn",
    "WAIVED": "waived",
    "XPASS": "warn",
    "UNSUPPORTED": "none",
    "NOT_RUN": "gap",
    "MISSING": "gap",
    **{str(outcome): "bad" for outcome in FAILED},
}
_TOLERANCE = {
    "E": "exact",
    "U": "ULP of each element",
    "R": "bound of the rounding of a reduction",
    "C": "collective",
    "Q": "quantized",
    "D": "distribution",
    "M": "model",
}


def _map_columns(operators: Mapping[str, Mapping[str, Any]]) -> list[str]:
    names = {dtype for dtypes in operators.values() for dtype in dtypes}

    def key(name: str) -> tuple[int, int, str]:
        kinds = ("f", "bf", "c", "i", "u", "bool", "str", "any")
        letters = name.rstrip("0123456789") if not name.startswith("f8") else "f"
        digits = "".join(c for c in name[1:3] if c.isdigit())
        kind = kinds.index(letters) if letters in kinds else len(kinds)
        return kind, -int(digits or 0), name

    return sorted(names, key=key)


def _map_cell(cell: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if cell is None:
        return None
    counts = cell["counts"]
    classes = {_CLASS[name] for name in counts}
    good = counts.get("PASS", 0) + counts.get("QUALITY_WARN", 0)
    words = ", ".join(f"{counts[name]} {name}" for name in _ORDER if name in counts)
    if cell["executed"]:
        words += "; shapes run: " + ", ".join(cell["executed"])
    if cell["fallback"]:
        words += f"; {cell['fallback']} calls fell back to the host"
    worst = next(kind for kind in _RANK if kind in classes)
    # The text says what colour cannot: how many of all passed.
    ran = sum(counts.values()) - counts.get("UNSUPPORTED", 0)
    text = "-" if not ran else str(good) if good == sum(counts.values()) else f"{good}/{ran}"
    return {"class": worst, "text": text, "title": words}


def _subjects(cases: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for case in cases:
        name = ".".join(case["id"].split(".")[:3])
        row = found.setdefault(name, {"name": name, "counts": {}, "ms": 0.0})
        row["counts"][case["outcome"]] = row["counts"].get(case["outcome"], 0) + 1
        row["ms"] += case["ms"]
    return list(found.values())


def _reasons(cases: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Cases without a verdict, by outcome and reason, the most frequent reason first."""
    found: dict[tuple[str, str], list[str]] = {}
    for case in cases:
        if case["outcome"] in {"UNSUPPORTED", "NOT_RUN", "MISSING"}:
            found.setdefault((case["outcome"], case["cause"]), []).append(case["id"])
    rows = [{"outcome": key[0], "cause": key[1], "ids": ids} for key, ids in found.items()]
    return sorted(rows, key=lambda row: (-len(row["ids"]), row["cause"]))


def _groups(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    cases = {case["id"]: case for case in document["cases"]}
    left = _IN_FULL_ALL
    made = []
    for group in document["groups"]:
        members = [cases[case_id] for case_id in group["ids"] if case_id in cases]
        # A waiver may have taken some of the group away since it was made.
        members = [case for case in members if case["outcome"] in FAILED]
        if not members:
            continue
        full = members[: min(_IN_FULL, left)]
        left -= len(full)
        made.append({**group, "count": len(members), "full": full, "rest": members[len(full) :]})
    return made


def _environment() -> jinja2.Environment:
    made = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    made.filters["measured"] = measured
    made.filters["seconds"] = lambda value: (
        f"{value:.1f} s" if value < 120 else f"{value / 60:.1f} min"
    )
    made.filters["ms"] = lambda value: f"{value:,.1f}" if value < 1000 else f"{value:,.0f}"
    made.filters["last_call"] = last_call
    return made


def _identity(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    run = document["run"]
    plugin, info, env = (run.get(name) or {} for name in ("plugin", "device_info", "env"))
    chip = ", ".join(str(info[key]) for key in ("product", "architecture") if info.get(key))
    rows = [
        ("device", run["device"]),
        ("chip", chip),
        ("driver", info.get("driver")),
        ("device uuid", info.get("uuid")),
        ("PCI address", info.get("pci_address")),
        ("plugin", " ".join(str(plugin[key]) for key in ("name", "version") if plugin.get(key))),
        ("plugin ABI", plugin.get("abi")),
        ("plugin file", plugin.get("path")),
        ("plugin sha256", plugin.get("sha256")),
        ("suite", run.get("suite_version")),
        ("suite root", run.get("suite_root")),
        ("seed", run["seed"]),
        ("mask", run.get("mask", "none")),
        ("command", run.get("command")),
        ("started", run.get("started")),
        ("machine", ", ".join(f"{key} {value}" for key, value in env.items() if value)),
    ]
    return [(name, str(value)) for name, value in rows if value not in (None, "")]


def render(document: Mapping[str, Any]) -> str:
    """Return the report as one HTML page.

    Args:
        document: See report.py.
    """
    cases: Sequence[Mapping[str, Any]] = document["cases"]
    operators = document["coverage"]["operators"]
    columns = _map_columns(operators)
    statuses = sorted(
        {code for codes in document["coverage"]["entry_points"].values() for code in codes}
    )
    longest = max((row["ms"] for row in document["timing"]["slowest"]), default=1.0)
    template = resources.files("chipdock.conformance.evidence").joinpath("report.html.j2")
    return (
        _environment()
        .from_string(template.read_text(encoding="utf-8"))
        .render(
            document=document,
            run=document["run"],
            identity=_identity(document),
            outcomes=[name for name in _ORDER if document["counts"].get(name)],
            classes=_CLASS,
            meaning=_MEANING,
            tolerance=_TOLERANCE,
            groups=_groups(document),
            remarks=[c for c in cases if c["outcome"] in {"QUALITY_WARN", "XPASS", "WAIVED"}],
            reasons=_reasons(cases),
            subjects=_subjects(cases),
            columns=columns,
            operators={
                op: {dtype: _map_cell(dtypes.get(dtype)) for dtype in columns}
                for op, dtypes in operators.items()
            },
            statuses=[s for s in ("OK", "NOT_READY") if s in statuses]
            + [s for s in statuses if s not in {"OK", "NOT_READY"}],
            longest=longest,
            failed=sorted(str(outcome) for outcome in FAILED | {Outcome.NOT_RUN, Outcome.MISSING}),
        )
    )

# SPDX-License-Identifier: Apache-2.0
"""Why a case did not pass, in words, and which cases failed for the same reason.

Works on the case records of a journal as plain mappings. What is shown is left to the reports.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from chipdock.conformance.outcomes import FAILED

__all__ = ["group", "in_words", "last_call", "measured"]

_Record = Mapping[str, Any]

_RUNNING = frozenset({"", "RUNNING", "NONE", "-2147483648"})
_UNITS = {
    "ulp": "ULP",
    "rel_l2": "relative L2 error",
    "bits": "elements with other bits",
    "bound_ratio": "error, as a share of its bound,",
    "steps": "steps of the quantization",
    "share_off_by_one": "share of elements one step off",
}
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|[-+]?(?<![A-Za-z_])\d+(?:\.\d+)?(?:e[-+]?\d+)?")
_DTYPE = re.compile(r"\b(?:b?f(?:loat)?\d+\w*|[iu](?:nt)?\d+|bool|c\d+)\b")


def last_call(record: _Record) -> tuple[str, str]:
    """Return entry point and status of the last call seen, ("", "") if none was.

    The status of a call that had not returned is "running".
    """
    calls = record.get("calls") or []
    if not calls:
        return "", ""
    slot, status = str(calls[-1][0]), str(calls[-1][1] if len(calls[-1]) > 1 else "")
    return slot, "running" if status.upper() in _RUNNING else status


def _number(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int) or not math.isfinite(value):
        return str(value)
    return f"{value:.9g}"


def measured(evidence: _Record) -> str:
    """Return metric, value, limit, index, expected and got as a sentence, "" if there is no value.

    Args:
        evidence: Of a case; "metric", "value", "limit", "index", "expected", "got" are read.
    """
    parts = []
    if "value" in evidence:
        name = str(evidence.get("metric", "value"))
        parts.append(f"{_UNITS.get(name, name)} {_number(evidence['value'])}")
        if evidence.get("limit") is not None:
            parts.append(f"limit {_number(evidence['limit'])}")
    if evidence.get("index") not in (None, "", [], ()):
        parts.append(f"worst at index {evidence['index']}")
    if "expected" in evidence or "got" in evidence:
        parts.append(
            f"expected {_number(evidence.get('expected', 'nothing'))}, "
            f"got {_number(evidence.get('got', 'nothing'))}"
        )
    return ", ".join(parts)


def in_words(record: _Record) -> str:
    """Return the cause of an outcome in one line.

    Args:
        record: "outcome", "reason", "evidence", "calls", "signal", "ms" are read.
    """
    outcome = str(record["outcome"])
    reason = (str(record.get("reason") or "").strip().splitlines() or [""])[0]
    if outcome in {"CRASH", "TIMEOUT"} and not reason:
        slot, status = last_call(record)
        where = f" in {slot}, which had not returned" if status == "running" else f" after {slot}"
        late = f"no end after {float(record.get('ms') or 0.0) / 1000.0:.1f} s"
        died = f"the process died of {record.get('signal') or 'an exit'}"
        return (died if outcome == "CRASH" else late) + (where if slot else "")
    reason = reason.rstrip(": ")  # a plugin that gave no text of its own
    evidence = record.get("evidence") or {}
    said = [str(evidence[name]) for name in ("expected", "got") if name in evidence]
    words = set(re.findall(r"\w+", reason))
    if len(said) == 2 and words.issuperset(said):  # status names that the sentence holds already
        evidence = {k: v for k, v in evidence.items() if k not in ("expected", "got")}
    numbers = measured(evidence)
    if reason and numbers:
        return f"{reason} ({numbers})"
    return reason or numbers or f"no reason was recorded for {outcome}"


def _signature(record: _Record) -> tuple[str, ...]:
    outcome = str(record["outcome"])
    slot, status = last_call(record)
    if outcome in {"CRASH", "TIMEOUT"}:
        return outcome, str(record.get("signal") or ""), slot, status
    reason = (str(record.get("reason") or "").strip().splitlines() or [""])[0]
    reason = reason.replace(str(record["id"]), "CASE")
    metric = str((record.get("evidence") or {}).get("metric", ""))
    subject = ".".join(str(record["id"]).split(".")[:3]) if not reason else ""
    return outcome, metric, subject, _NUMBER.sub("#", _DTYPE.sub("DTYPE", reason))


def group(records: Iterable[_Record]) -> list[dict[str, Any]]:
    """Return failures that look alike as groups, the largest first.

    Two failures are alike if outcome and reason agree but for numbers, dtypes and the id; a crash
    or a timeout, if it happened in the same entry point.

    Args:
        records: Of a run; those that did not fail are passed over.

    Returns:
        Of each group: outcome, cause (of its first case), entry_point, ids, dtypes, all plain data.
    """
    found: dict[tuple[str, ...], list[_Record]] = {}
    for record in records:
        if record["outcome"] in FAILED:
            found.setdefault(_signature(record), []).append(record)
    groups = [
        {
            "outcome": str(members[0]["outcome"]),
            "cause": in_words(members[0]),
            "entry_point": last_call(members[0])[0],
            "ids": [str(member["id"]) for member in members],
            "dtypes": sorted({str(member["id"]).split(".")[3] for member in members}),
        }
        for members in found.values()
    ]
    return sorted(groups, key=lambda made: (-len(made["ids"]), made["ids"][0]))

# SPDX-License-Identifier: Apache-2.0
"""What a run has really touched: entry points by return code, operators by dtype and shape class.

A level counts as judged only if every entry point of a claimed capability was called, and every
error that an argument can bring about was seen. Counting itself is done by the record layer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from chipdock.conformance.case import Case
from chipdock.conformance.contract import ARGUMENT_CODES, SlotContract, slots
from chipdock.conformance.outcomes import Outcome

__all__ = ["EXECUTED", "absent", "measure", "operators"]

EXECUTED = frozenset(
    {
        Outcome.PASS,
        Outcome.QUALITY_WARN,
        Outcome.FAIL,
        Outcome.FLAKY,
        Outcome.ORDER_DEPENDENT,
        Outcome.WAIVED,
        Outcome.XPASS,
    }
)
"""Outcomes of cases whose operator ran to its end on the target."""


def operators(
    cases: Iterable[Mapping[str, Any]], rows: Mapping[str, Case]
) -> dict[str, dict[str, dict[str, Any]]]:
    """Return operator -> dtype -> counts by outcome and the shape classes executed.

    Args:
        cases: Case records of a run.
        rows: Manifest rows by id; those of cases without an operator are passed over.

    Returns:
        {"Conv": {"f32": {"counts": {"PASS": 3}, "executed": ["odd", …], "fallback": 0}}}; fallback
        counts calls that ran on the host instead.
    """
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for record in cases:
        row = rows.get(record["id"])
        if row is None or not row.op:
            continue
        dtype = str(record["id"]).split(".")[3]
        cell = found.setdefault(row.op, {}).setdefault(
            dtype, {"counts": {}, "executed": [], "fallback": 0}
        )
        outcome = str(record["outcome"])
        cell["counts"][outcome] = cell["counts"].get(outcome, 0) + 1
        cell["fallback"] += int(record.get("fallback") or 0)
        on_target = outcome in EXECUTED and not record.get("fallback")
        if on_target and row.shape_class and row.shape_class not in cell["executed"]:
            cell["executed"].append(row.shape_class)
    for dtypes in found.values():
        for cell in dtypes.values():
            cell["executed"].sort()
    return {op: dict(sorted(found[op].items())) for op in sorted(found)}


def absent(
    table: Mapping[str, Mapping[str, Mapping[str, Any]]], cases: Iterable[Mapping[str, Any]]
) -> dict[str, list[dict[str, Any]]]:
    """Return what the device lacks as far as this run has seen, and the models that blocks.

    Args:
        table: From `operators`.
        cases: Case records of the run.

    Returns:
        operators: [{"op": "Erf", "dtypes": ["f16"]}] where all cases of a dtype were UNSUPPORTED;
        dtypes is empty if that holds for every dtype that was tried. models: [{"name": id of the
        case, "missing": [reason]}] for each case of level 5 that was UNSUPPORTED.
    """
    lacking = []
    for op, dtypes in table.items():
        gone = [name for name, cell in dtypes.items() if set(cell["counts"]) == {"UNSUPPORTED"}]
        if gone:
            lacking.append({"op": op, "dtypes": gone if len(gone) < len(dtypes) else []})
    blocked = [
        {"name": record["id"], "missing": [str(record.get("reason") or "not said")]}
        for record in cases
        if record["outcome"] == Outcome.UNSUPPORTED and str(record["id"]).startswith("L5.")
    ]
    return {"operators": lacking, "models": blocked}


def measure(
    counts: Mapping[str, Mapping[str, int]],
    claimed: Iterable[str],
    cases: Sequence[Mapping[str, Any]],
    rows: Mapping[str, Case],
    contract: Mapping[str, SlotContract] | None = None,
) -> dict[str, Any]:
    """Return the coverage of a run as plain data, coverage.json.

    Args:
        counts: Entry point -> status name -> calls, of the journal's end line.
        claimed: Slots that the plugin offers, "memory.copy".
        cases: Case records.
        rows: Manifest rows by id.
        contract: What the headers document; None reads the installed ones.

    Returns:
        entry_points: the counts, for every slot that was called;
        never_called: claimed slots without a call;
        unseen_errors: of claimed slots, documented codes that never came back, and of these
        unseen_argument_errors those that level 0 has to see;
        undocumented: codes that came back and stand in no header, by slot;
        operators: see `operators`.
    """
    known = slots() if contract is None else contract
    offered = [slot for slot in known if slot in set(claimed)]
    seen = {slot: {code: n for code, n in codes.items() if n} for slot, codes in counts.items()}
    unseen = {
        slot: [code for code in known[slot].errors if not seen.get(slot, {}).get(code)]
        for slot in offered
    }
    arguments = {slot: [c for c in codes if c in ARGUMENT_CODES] for slot, codes in unseen.items()}
    # UNSUPPORTED may come from every slot by BASE rules, INTERNAL is a fault that has no place.
    everywhere = {"OK", "UNSUPPORTED", "NOT_READY"}
    undocumented = {
        slot: sorted(set(codes) - set(known[slot].errors) - everywhere)
        for slot, codes in seen.items()
        if slot in known
    }
    return {
        "entry_points": {slot: seen[slot] for slot in sorted(seen) if seen[slot]},
        "claimed": offered,
        "never_called": [slot for slot in offered if not seen.get(slot)],
        "unseen_errors": {slot: codes for slot, codes in unseen.items() if codes},
        "unseen_argument_errors": {slot: codes for slot, codes in arguments.items() if codes},
        "undocumented": {slot: codes for slot, codes in undocumented.items() if codes},
        "operators": operators(cases, rows),
    }

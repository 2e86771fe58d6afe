# SPDX-License-Identifier: Apache-2.0
"""Which cases are the smoke tier: a short list that touches every slot, operator and subject once.

The list is a file of the package, so that ids stay in the tier whatever runs how fast; it is made
anew from the journals of a run when the suite has grown.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chipdock.conformance.manifest import Row

__all__ = ["FILE", "choose", "main", "smoke_ids", "traits"]

FILE = Path(__file__).with_name("smoke.txt")
_DEAR_MS = 1000.0
_LEVELS = ("L0", "L1", "L2", "L3")


@functools.cache
def smoke_ids() -> frozenset[str]:
    """Return the ids of the smoke tier."""
    lines = FILE.read_text(encoding="utf-8").splitlines()
    return frozenset(line for line in lines if line and not line.startswith("#"))


def traits(row: Row) -> set[str]:
    """Return what a case stands for: the tier has one case at least of each.

    Args:
        row: Of the manifest.
    """
    case = row.case
    level, area, subject, dtype, _ = case.id.split(".", 4)
    found = {f"slot {slot}" for slot in case.entry_points} | {f"duty {d}" for d in case.duties}
    found.add(f"subject {level}.{area}" if level == "L3" else f"subject {level}.{area}.{subject}")
    if level == "L2":
        found |= {f"dtype {dtype}", f"class {case.tolerance}", f"file {row.file}"}
        found |= {f"shapes {row.file} {case.shape_class}"}
        if area != "op":  # The node cases are as many as the operators, and say much the same.
            found.remove(f"subject {level}.{area}.{subject}")
    return found


def choose(
    rows: Mapping[str, Row], times: Mapping[str, float], covered: Collection[str] = ()
) -> list[str]:
    """Choose cases greedily: each step takes what adds most for its time.

    Args:
        rows: Of the manifest.
        times: Milliseconds of the cases to choose from.
        covered: Traits that need no case.

    Returns:
        Ids, sorted.
    """
    left = {
        case_id: traits(rows[case_id])
        for case_id, ms in times.items()
        if case_id in rows and case_id.split(".", 1)[0] in _LEVELS and ms <= _DEAR_MS
    }
    missing = set[str]().union(*left.values()).difference(covered)
    chosen: list[str] = []
    while missing:
        best = max(left, key=lambda i: (len(left[i] & missing) / (5.0 + times[i]), i))
        missing -= left.pop(best)
        chosen.append(best)
    return sorted(chosen)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the list; returns the exit code."""
    from chipdock.conformance.journal import read  # noqa: PLC0415
    from chipdock.conformance.manifest import read_manifest  # noqa: PLC0415

    parser = argparse.ArgumentParser(prog="chipdock.conformance.smoke", description=__doc__)
    parser.add_argument("runs", type=Path, nargs="+", help="folders of runs of the whole suite")
    parser.add_argument("--write", type=Path, default=FILE, metavar="FILE", help="by default ours")
    asked = parser.parse_args(arguments)
    rows, times, absent = read_manifest().rows, dict[str, float](), dict[str, float]()
    for folder in asked.runs:
        for case_id, case in read(folder / "results.jsonl").cases.items():
            if case.outcome == "PASS":
                times[case_id] = case.ms
            elif case.outcome == "UNSUPPORTED" and case_id in rows:
                absent[case_id] = float(rows[case_id].case.budget_ms)
    chosen = choose(rows, times)
    # What only other plugins have, such as an operator, must not be without a case for them.
    covered = set[str]().union(*(traits(rows[i]) for i in chosen))
    others = choose(rows, absent, covered)
    text = "# The smoke tier, made by python -m chipdock.conformance.smoke RUN.\n"
    text += "".join(f"{i}\n" for i in sorted([*chosen, *others]))
    asked.write.write_text(text, encoding="utf-8")
    total = sum(times[i] for i in chosen) / 1000
    sys.stdout.write(f"{len(chosen)} and {len(others)} cases, {total:.1f} s in {asked.write}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

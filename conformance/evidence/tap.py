# SPDX-License-Identifier: Apache-2.0
"""TAP 14, a line a case; what did not pass carries its facts in a YAML block.

UNSUPPORTED is SKIP and WAIVED is todo (TAP takes either case). A harness takes both for good, and
so also a todo that passes: therefore XPASS, NOT_RUN and MISSING, which fail the run, are "not ok"
without a directive.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from chipdock.conformance.outcomes import Outcome

__all__ = ["render"]

_OK = frozenset({Outcome.PASS, Outcome.QUALITY_WARN, Outcome.UNSUPPORTED})


def _escape(text: str) -> str:
    return " ".join(text.split()).replace("\\", "\\\\").replace("#", "\\#")


def _block(case: Mapping[str, Any]) -> Iterator[str]:
    facts: dict[str, Any] = {"outcome": case["outcome"], "cause": case["cause"]}
    facts |= {key: case[key] for key in ("duties", "evidence", "calls", "repro") if case.get(key)}
    yield "  ---"
    for key, value in facts.items():
        # JSON is YAML, and stays on one line.
        yield f"  {key}: {json.dumps(value, ensure_ascii=True)}"
    yield "  ..."


def render(document: Mapping[str, Any]) -> str:
    """Return the report as TAP version 14."""
    cases = document["cases"]
    lines = ["TAP version 14", f"1..{len(cases)}"]
    run = document["run"]
    lines += [
        f"# {key}: {run[key]}" for key in ("device", "seed", "mask", "suite_root") if key in run
    ]
    for number, case in enumerate(cases, 1):
        outcome = case["outcome"]
        line = f"{'ok' if outcome in _OK else 'not ok'} {number} - {case['id']}"
        if outcome == Outcome.UNSUPPORTED:
            line += f" # SKIP {_escape(case['cause'])}"
        elif outcome == Outcome.WAIVED:
            line += f" # todo {_escape(case.get('waiver') or case['cause'])}"
        lines.append(line)
        if outcome not in {Outcome.PASS, Outcome.UNSUPPORTED}:
            lines += _block(case)
    if not document["finished"]:
        lines.append("Bail out! the run was broken off")
    return "\n".join(lines) + "\n"

# SPDX-License-Identifier: Apache-2.0
"""Prints pass counts by kind and operator: `PYTHONPATH=tests/python python -m onnx_cases`."""

from __future__ import annotations

import argparse
import fnmatch
import sys
from collections import Counter

from onnx_cases.cases import KINDS, all_cases, known
from onnx_cases.judge import failure


def main() -> int:
    """Run the chosen cases; 1 if any result differs from what known.toml says."""
    parser = argparse.ArgumentParser(prog="onnx_cases", description=__doc__)
    parser.add_argument("pattern", nargs="?", default="*", help="name of cases, with * and ?")
    parser.add_argument("--kind", choices=KINDS, help="only this kind")
    parser.add_argument("--device", default="cpu:0", help="device name (cpu:0)")
    parser.add_argument("--operators", action="store_true", help="every operator, good ones too")
    parser.add_argument("--failures", action="store_true", help="each failure with its reason")
    options = parser.parse_args()
    passed: Counter[str] = Counter()
    total: Counter[str] = Counter()
    surprises = []
    for case in all_cases():
        if options.kind not in {None, case.kind} or not fnmatch.fnmatch(case.name, options.pattern):
            continue
        text = failure(case, options.device)
        keys = {case.kind, f"{case.kind} {case.operator}"} if case.kind == "node" else {case.kind}
        total.update(keys)
        passed.update(keys if text is None else ())
        entry = known().get((case.kind, case.name))
        if not (text is None if entry is None else entry.holds(text)):
            surprises.append(f"{case.kind} {case.name}: {text or 'passes, known.toml says not'}")
        if text is not None and options.failures:
            print(f"{case.kind} {case.name}: {text}", flush=True)
    for key in sorted(total, key=lambda k: (k not in KINDS, k)):
        if key in KINDS or options.operators or passed[key] < total[key]:
            print(f"{key:<44} {passed[key]:>5} of {total[key]:>5}")
    print(f"{sum(passed[k] for k in KINDS)} of {sum(total[k] for k in KINDS)} cases pass")
    for line in surprises:
        print(f"unexpected: {line}", file=sys.stderr)
    return 1 if surprises else 0


if __name__ == "__main__":
    sys.exit(main())

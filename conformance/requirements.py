# SPDX-License-Identifier: Apache-2.0
"""Every duty of the C headers with the cases that judge it, or the reason why no test can see it.

`python -m chipdock.conformance.requirements --write FILE` makes the document anew, `--check FILE`
says whether it is up to date. The cases are those of the manifest; reasons stand in unseen.toml.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from chipdock._cabi import HEADERS, include_dir
from chipdock.conformance import contract
from chipdock.conformance.case import Case
from chipdock.conformance.manifest import read_manifest

__all__ = ["document", "families", "findings", "main", "plugin_duties", "reasons"]

_UNSEEN = Path(__file__).parent / "unseen.toml"
_TITLE = """# Requirements

Each numbered duty of the C headers, and the cases of the conformance suite that judge it: families
of cases with the number of cases in each. What no case judges has its reason. Made by
`python -m chipdock.conformance.requirements --write device_api/REQUIREMENTS.md`.
"""


def plugin_duties() -> Mapping[str, Mapping[str, str]]:
    """Return the duties of the C ABI, texts by number, for each header that has some.

    The embedders' headers, host*.h, bind the host: its own tests judge them.
    """
    known = contract.duties()
    found = {}
    for name in HEADERS:
        text = (include_dir() / "chipdock" / name).read_text(encoding="utf-8")
        own = re.findall(r"^ \*   ([A-Z]+-\d+) ", text, re.MULTILINE)
        if own:
            found[name] = {duty: known[duty] for duty in own}
    return found


def reasons(path: Path = _UNSEEN) -> Mapping[str, str]:
    """Return the reason of each duty that no case judges.

    Raises:
        ValueError: A duty stands there twice.
    """
    rows = tomllib.loads(path.read_text(encoding="utf-8"))["unseen"]
    found: dict[str, str] = {}
    for row in rows:
        for duty in row["duties"]:
            if duty in found:
                raise ValueError(f"{duty} has two reasons in {path.name}")
            found[duty] = row["reason"]
    return found


def families(cases: Iterable[Case]) -> Mapping[str, Mapping[str, int]]:
    """Return by duty how many cases of each family judge it; a family is LEVEL.area.subject."""
    found: dict[str, Counter[str]] = {}
    for facts in cases:
        family = ".".join(facts.id.split(".")[:3])
        for duty in facts.duties:
            found.setdefault(duty, Counter())[family] += 1
    return found


def findings(cases: Sequence[Case], unseen: Mapping[str, str]) -> list[str]:
    """Return what is wrong, a sentence each; empty if nothing is.

    Args:
        cases: Of the manifest.
        unseen: Reasons by duty.
    """
    known = {duty: text for own in plugin_duties().values() for duty, text in own.items()}
    slots = contract.slots()
    judged = families(cases)
    found = [
        f"{duty} has neither a case nor a reason: {text}"
        for duty, text in known.items()
        if duty not in judged and duty not in unseen
    ]
    found += [
        f"{duty} has cases and a reason why it can have none" for duty in unseen if duty in judged
    ]
    found += [
        f"unseen.toml names {duty}, which no header has" for duty in unseen if duty not in known
    ]
    for facts in cases:
        found += [
            f"{facts.id} names the duty {d}, which no header has"
            for d in facts.duties
            if d not in known
        ]
        found += [
            f"{facts.id} names the entry point {slot}, which no table has"
            for slot in facts.entry_points
            if slot not in slots
        ]
    return found


def document(cases: Sequence[Case], unseen: Mapping[str, str]) -> str:
    """Return the document as Markdown: a table for each header."""
    judged = families(cases)
    lines = [_TITLE]
    for name, own in plugin_duties().items():
        lines += [f"## {name}", "", "| duty | text | judged by |", "|---|---|---|"]
        for duty, text in own.items():
            count = judged.get(duty, {})
            cell = ", ".join(f"`{family}` {n}" for family, n in sorted(count.items()))
            shown = cell or f"no case: {unseen.get(duty, 'no reason given')}"
            lines.append(f"| {duty} | {_cell(text)} | {_cell(shown)} |")
        lines.append("")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check the document; returns the exit code."""
    parser = argparse.ArgumentParser(prog="chipdock.conformance.requirements", description=__doc__)
    choice = parser.add_mutually_exclusive_group(required=True)
    choice.add_argument("--write", type=Path, metavar="FILE", help="make it anew")
    choice.add_argument("--check", type=Path, metavar="FILE", help="say whether it is up to date")
    asked = parser.parse_args(arguments)
    cases = [row.case for row in read_manifest().rows.values()]
    unseen = reasons()
    wrong = findings(cases, unseen)
    text = document(cases, unseen)
    if asked.write is not None:
        asked.write.write_text(text, encoding="utf-8")
    elif asked.check.read_text(encoding="utf-8") != text:
        wrong.append(f"{asked.check} is out of date; write it anew")
    for finding in wrong:
        sys.stderr.write(f"{finding}\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""Keeps the list of duties in device_api/ABI.md equal to the headers.

`python tests/lint/abi_duties.py --write` renews the list; without the option a difference is told
and the exit code is 1. Also finds the tests that ABI.md names.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from c_headers import ROOT, Header, load_all

DOCUMENT = ROOT / "device_api" / "ABI.md"
BEGIN, END = "<!-- duties: begin -->\n", "<!-- duties: end -->\n"


def duty_list(headers: list[Header]) -> str:
    """Returns the list as Markdown: one table a header."""
    lines = []
    for header in headers:
        if header.duties:
            lines += [f"### {header.name}", "", "| duty | text |", "|---|---|"]
            lines += [
                f"| {duty} | {text.replace('|', chr(92) + '|')} |" for duty, text in header.duties
            ]
            lines.append("")
    return "\n".join(lines)


def with_duties(document: str, headers: list[Header]) -> str:
    """Returns the document with its list renewed.

    Raises:
        ValueError: The marks are missing.
    """
    if BEGIN not in document or END not in document:
        raise ValueError(f"{DOCUMENT.name} lacks the marks {BEGIN.strip()} and {END.strip()}")
    before, rest = document.split(BEGIN, 1)
    return f"{before}{BEGIN}\n{duty_list(headers)}\n{END}{rest.split(END, 1)[1]}"


def named_tests(document: str) -> list[tuple[str, str]]:
    """Returns (path, name) of every `path::name` in the document."""
    return re.findall(r"`([\w./]+\.(?:py|cpp))::(\w+)`", document)


def missing_tests(document: str, root: Path = ROOT) -> list[str]:
    """Returns the `path::name` that are neither a Python function nor a C++ TEST."""
    missing = []
    for path, name in named_tests(document):
        file = root / path
        text = file.read_text(encoding="utf-8") if file.is_file() else ""
        if not re.search(rf"^(def {name}\(|TEST\({name}\))", text, re.MULTILINE):
            missing.append(f"{path}::{name}")
    return missing


def main() -> int:
    """Writes or compares; returns the exit code."""
    old = DOCUMENT.read_text(encoding="utf-8")
    new = with_duties(old, load_all())
    if "--write" in sys.argv[1:]:
        DOCUMENT.write_text(new, encoding="utf-8")
        return 0
    if old != new:
        sys.stdout.write(
            "device_api/ABI.md: the duties differ from the headers; run with --write\n"
        )
    for test in missing_tests(new):
        sys.stdout.write(f"device_api/ABI.md: {test} does not exist\n")
    return int(old != new or bool(missing_tests(new)))


if __name__ == "__main__":
    sys.exit(main())

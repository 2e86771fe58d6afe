# SPDX-License-Identifier: Apache-2.0
"""Reads the C headers of the ABI into plain data for the checkers.

It knows the house style of these headers, not C: a change of style shows up as a table or struct
that is missing, which the tests count. What is right or wrong is left to check_headers.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INCLUDE = ROOT / "device_api" / "include" / "chipdock"

_STRUCT = re.compile(
    r"(?:typedef )?struct (?P<name>\w+) \{\n(?P<body>.*?)\n\}(?: (?P=name))?;", re.DOTALL
)
_SLOT = re.compile(
    r"(?:/\*\*(?P<doc>(?:(?!\*/).)*?)\*/\s*)?"
    r"(?P<result>[\w ]+\*?)\(CHIPDOCK_CALL\*\s*(?P<name>\w+)\)\((?P<params>[^;]*?)\);",
    re.DOTALL,
)
_FUNCTION = re.compile(
    r"(?:/\*\*(?P<doc>(?:(?!\*/).)*?)\*/\s*)?"
    r"CHIPDOCK_HOST_API (?P<result>[\w ]+?\*?) CHIPDOCK_CALL\s+"
    r"(?P<name>\w+)\((?P<params>[^;]*?)\);",
    re.DOTALL,
)
_DUTY = re.compile(r"^ \*   (?P<id>[A-Z]+-\d+) +(?P<text>\S.*(?:\n \* {6,}\S.*)*)", re.MULTILINE)
_REFERENCE = re.compile(r"\b[A-Z]{3,4}-\d+\b")
_RANGE = re.compile(r"\[([A-Z]+)-(\d+)\] to \[\1-(\d+)\]")


@dataclass(frozen=True)
class Parameter:
    """One parameter of a slot: C type and name."""

    type: str
    name: str


@dataclass(frozen=True)
class Slot:
    """A function pointer of a struct with its doc comment as lines without the stars."""

    name: str
    result: str
    parameters: tuple[Parameter, ...]
    doc: tuple[str, ...]


@dataclass
class Struct:
    """A struct: fields in order as (type, name), and its function pointers."""

    name: str
    fields: list[tuple[str, str]] = field(default_factory=list)
    slots: list[Slot] = field(default_factory=list)

    @property
    def is_table(self) -> bool:
        """True for a table of slots, which a plugin returns from get_table."""
        return self.name.endswith("_api")


@dataclass
class Header:
    """One header file."""

    name: str
    text: str
    duties: list[tuple[str, str]]
    structs: list[Struct]
    functions: list[Slot] = field(default_factory=list)  # of the library, host*.h

    @property
    def opening(self) -> str:
        """The comment that opens the file and lists the duties."""
        match = re.search(r"/\*\*.*?\*/", self.text, re.DOTALL)
        return match.group(0) if match else ""

    @property
    def rest(self) -> str:
        """Everything behind the opening comment."""
        return self.text[self.text.find(self.opening) + len(self.opening) :]


def strip_comments(text: str) -> str:
    """Returns C text with each comment replaced by spaces, line ends kept."""

    def blank(match: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", match.group(0))

    return re.sub(r"/\*.*?\*/|//[^\n]*", blank, text, flags=re.DOTALL)


def comment_share(text: str) -> float:
    """Returns the share of non-blank lines that carry comment, 0 to 1."""
    bare = strip_comments(text).splitlines()
    lines = text.splitlines()
    full = [i for i, line in enumerate(lines) if line.strip()]
    return sum(lines[i].rstrip() != bare[i].rstrip() for i in full) / max(1, len(full))


def references(text: str) -> set[str]:
    """Returns the duty ids that a text names; `[A-1] to [A-3]` names three."""
    found = set(_REFERENCE.findall(text))
    for prefix, first, last in _RANGE.findall(text):
        found |= {f"{prefix}-{n}" for n in range(int(first), int(last) + 1)}
    return found


def _declarator(text: str) -> tuple[str, str]:
    match = re.fullmatch(r"(.*?)(\w+)((?:\[\w+\])*)", " ".join(text.split()), re.DOTALL)
    if text.strip() == "...":
        return "...", "..."
    if match is None:
        raise ValueError(f"not a declaration: {text!r}")
    return match.group(1).strip() + match.group(3), match.group(2)


def _slot(match: re.Match[str]) -> Slot:
    doc = tuple(re.sub(r"^\s*\* ?", "", line) for line in (match["doc"] or "").splitlines())
    listed = strip_comments(match["params"]).split(",")
    parts = [part for part in listed if part.strip() not in {"", "void"}]
    parameters = tuple(Parameter(*_declarator(part)) for part in parts)
    return Slot(match["name"], match["result"].strip(), parameters, doc)


def parse(name: str, text: str) -> Header:
    """Reads one header's text."""
    structs = []
    for match in _STRUCT.finditer(text):
        struct = Struct(match["name"])
        body = match["body"]
        struct.slots = [_slot(slot) for slot in _SLOT.finditer(body)]
        plain = strip_comments(_SLOT.sub("", body))
        struct.fields = [_declarator(part) for part in plain.split(";") if part.strip()]
        structs.append(struct)
    opening = re.search(r"/\*\*.*?\*/", text, re.DOTALL)
    duties = [
        (m["id"], " ".join(re.sub(r"\n \* +", " ", m["text"]).split()))
        for m in _DUTY.finditer(opening.group(0) if opening else "")
    ]
    return Header(name, text, duties, structs, [_slot(m) for m in _FUNCTION.finditer(text)])


def load_all(folder: Path = INCLUDE) -> list[Header]:
    """Reads every C header of the ABI, by name."""
    paths = sorted(folder.glob("*.h"))
    return [parse(path.name, path.read_text(encoding="utf-8")) for path in paths]

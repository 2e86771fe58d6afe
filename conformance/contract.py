# SPDX-License-Identifier: Apache-2.0
"""What the C headers promise, as plain data: duties by number, and the documented errors of slots.

It knows the house style of the headers, which tests/lint checks, not C. Which case judges which
duty is left to the cases.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from chipdock._cabi import include_dir

__all__ = ["ARGUMENT_CODES", "STATUSES", "SlotContract", "duties", "slots"]

STATUSES = (
    "OK", "NOT_READY", "UNSUPPORTED", "INVALID_ARGUMENT", "FAILED_PRECONDITION", "OUT_OF_MEMORY",
    "UNAVAILABLE", "BUSY", "TIMEOUT", "ABORTED", "DEVICE_LOST", "RESET_REQUIRED", "PEER_FAILED",
    "MISMATCH", "REVOKED", "VERSION_MISMATCH", "SHUTDOWN", "FORKED", "INTERNAL",
)  # fmt: skip
"""Names of chipdock_status, in the order of base.h."""

ARGUMENT_CODES = frozenset({"INVALID_ARGUMENT", "VERSION_MISMATCH"})
"""Errors that a bad argument alone brings about, so that level 0 can and has to see them."""

_TABLE = re.compile(
    r"typedef struct chipdock_(?P<name>\w+)_api \{\n(?P<body>.*?)\n\} chipdock_(?P=name)_api;",
    re.DOTALL,
)
_SLOT = re.compile(r"/\*\*((?:(?!\*/).)*?)\*/\s*[\w ]+\*?\(CHIPDOCK_CALL\*\s*(\w+)\)", re.DOTALL)
_ERRORS = re.compile(r"^Errors:\s*(.*?)^Since:\s*(.*)", re.DOTALL | re.MULTILINE)
_DUTY = re.compile(r"^ \*   ([A-Z]+-\d+) +(\S.*(?:\n \* {6,}\S.*)*)", re.MULTILINE)
_CODE = re.compile(r"\b(" + "|".join(STATUSES[1:]) + r")\b")


@dataclass(frozen=True, slots=True)
class SlotContract:
    """What a header says of one slot.

    Attributes:
        name: "memory.copy".
        required: The plugin must have it.
        errors: Documented codes in the order of base.h; those of a slot it refers to are included.
        text: First sentence of its comment.
    """

    name: str
    required: bool
    errors: tuple[str, ...]
    text: str


def _folder(folder: Path | None) -> Path:
    return (folder or include_dir()) / "chipdock"


@functools.cache
def duties(folder: Path | None = None) -> Mapping[str, str]:
    """Return the text of each duty by its number, "MEM-7".

    Args:
        folder: Holds `chipdock/`; None takes that of the installed headers.
    """
    found = {}
    for path in sorted(_folder(folder).glob("*.h")):
        for match in _DUTY.finditer(path.read_text(encoding="utf-8")):
            found[match[1]] = " ".join(re.sub(r"\n \* +", " ", match[2]).split())
    return found


def _errors(table: Mapping[str, str], name: str, seen: frozenset[str]) -> set[str]:
    text = table[name]
    codes = set(_CODE.findall(text))
    for other in re.findall(r"\bas (\w+)", text, re.IGNORECASE):
        if other in table and other not in seen:
            codes |= _errors(table, other, seen | {name})
    return codes


@functools.cache
def slots(folder: Path | None = None) -> Mapping[str, SlotContract]:
    """Return every slot of every table by its name, in the headers' order.

    Args:
        folder: Holds `chipdock/`; None takes that of the installed headers.
    """
    found: dict[str, SlotContract] = {}
    for path in sorted(_folder(folder).glob("*.h")):
        for table in _TABLE.finditer(path.read_text(encoding="utf-8")):
            comments = {
                slot[2]: re.sub(r"^\s*\* ?", "", slot[1], flags=re.MULTILINE)
                for slot in _SLOT.finditer(table["body"])
            }
            parts = {name: _ERRORS.search(text) for name, text in comments.items()}
            errors = {name: match[1] if match else "" for name, match in parts.items()}
            for name, comment in comments.items():
                match = parts[name]
                codes = _errors(errors, name, frozenset({name}))
                found[f"{table['name']}.{name}"] = SlotContract(
                    f"{table['name']}.{name}",
                    match is not None and bool(re.match(r"ABI [\d.]+, required\b", match[2])),
                    tuple(code for code in STATUSES if code in codes),
                    " ".join(comment.split(".", 1)[0].split()),
                )
    return found

# SPDX-License-Identifier: Apache-2.0
"""What the headers say of each slot's arguments, so that cases are made from them and not by hand.

Roles: "output" (an address that a call fills), "answer" (a struct of the caller that it fills),
"desc" (a struct that it reads), "handle", "value".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from chipdock._cabi import TABLES, ffi, include_dir

__all__ = ["Argument", "signature", "slots"]

_SLOT = re.compile(r"\(CHIPDOCK_CALL\* *(\w+)\)\(([^;]*?)\);", re.DOTALL)
# Structs without "const" in the headers: the caller's, to be filled.
_ANSWERS = re.compile(r"chipdock_(\w*info|\w*stats|health|external|\w*caps|\w*support|\w*failure|"
                      r"\w*sample)$")  # fmt: skip


@dataclass(frozen=True)
class Argument:
    """One argument of a slot.

    Attributes:
        name: As in the header.
        kind: C type, "chipdock_alloc_desc*".
        role: See this module.
        position: From 0.
    """

    name: str
    kind: str
    role: str
    position: int

    @property
    def struct(self) -> str:
        """Name of the struct of a desc or an answer."""
        return self.kind.rstrip("* ")


def _role(kind: str, const: bool) -> str:
    base = kind.rstrip("* ")
    stars = kind.count("*")
    if stars >= 2:
        return "output"
    if stars == 1 and base in {"int32_t", "int64_t", "uint64_t", "double"}:
        return "output"
    if stars == 1 and base.startswith("chipdock_") and ffi().typeof(base).kind == "struct":
        if ffi().typeof(base).fields is None or base == "chipdock_plugin":
            return "handle"
        if const:
            return "kernel" if base == "chipdock_kernel" else "desc"
        return "answer" if _ANSWERS.match(base) else "handle"
    return "value"


@cache
def _names(table: str) -> dict[str, tuple[Argument, ...]]:
    text = (include_dir() / "chipdock" / f"{table}.h").read_text(encoding="utf-8")
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    body = text[text.index(f"struct chipdock_{table}_api") :]
    found = {}
    for slot, parameters in _SLOT.findall(body):
        arguments = []
        for position, part in enumerate(parameters.split(",")[:-1]):
            words = " ".join(part.split())
            kind, name = re.fullmatch(r"(.*?)(\w+)", words).groups()  # type: ignore[union-attr]
            const = kind.startswith("const ")
            plain = kind.replace("const", "").replace(" ", "")
            arguments.append(Argument(name, plain, _role(plain, const), position))
        found[slot] = tuple(arguments)
    return found


def signature(slot: str) -> tuple[Argument, ...]:
    """Return the arguments of "memory.alloc" but the error record."""
    table, _, name = slot.partition(".")
    return _names(table)[name]


@cache
def slots() -> tuple[str, ...]:
    """Return every slot of every table, in the headers' order."""
    found: list[str] = []
    for table in TABLES:
        kind: Any = ffi().typeof(f"chipdock_{table}_api")
        found += [f"{table}.{name}" for name, _ in kind.fields if name != "header"]
    return tuple(found)

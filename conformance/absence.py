# SPDX-License-Identifier: Apache-2.0
"""What a plugin with a partial operator set lacks, and which models that blocks."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from chipdock.conformance.capabilities import Capabilities
from chipdock.conformance.case import Case
from chipdock.conformance.journal import RunRecord

__all__ = ["Absence", "Unlock", "absent", "operators_of_models", "unlock"]


class Absence(NamedTuple):
    """One operator that a plugin does not have, or not for all types.

    Attributes:
        op: Operator, with its domain unless it is ONNX's own.
        dtypes: Types that it lacks, of those that the suite has cases for; ("any",) is all of it.
        models: Names of the catalogue's models that cannot run for it.
    """

    op: str
    dtypes: tuple[str, ...]
    models: tuple[str, ...]


@dataclass(frozen=True)
class Unlock:
    """How far an operator set reaches.

    Attributes:
        running: Models of the set of 66 that run with the complete steps, so at least that many.
        total: 66.
        missing: Operators that the next step still needs.
        then: Models that run once these are there.
    """

    running: int
    total: int
    missing: tuple[str, ...]
    then: int


_TOTAL = 66


@cache
def _table() -> dict[str, Any]:
    path = Path(__file__).with_name("absence.toml")
    return tomllib.loads(path.read_text("utf-8"))


def operators_of_models() -> dict[str, tuple[str, ...]]:
    """Return the operators of each model of the catalogue that need a kernel."""
    host = set(_table()["host"])
    return {
        row["name"]: tuple(op for op in row["operators"] if op not in host)
        for row in _table()["model"]
    }


def absent(
    source: RunRecord | Capabilities | Mapping[str, Any], cases: Iterable[Case] = ()
) -> list[Absence]:
    """Return what is missing, the operators that block most models first.

    Args:
        source: A run with its journal, or what a plugin declares (also as `to_json` gives it).
        cases: Operator cases that say which operators and types there are to have; without them
            only the operators of models are looked at. A run adds those that it reports as
            UNSUPPORTED.
    """
    if isinstance(source, RunRecord):
        capabilities = Capabilities.from_json(source.run["capabilities"])
        lacking = _unsupported(source)
        through = _expanded(source)
    else:
        made = isinstance(source, Capabilities)
        capabilities = source if made else Capabilities.from_json(source)  # type: ignore[assignment,arg-type]
        lacking, through = {}, {}
    host = set(_table()["host"])
    wanted: dict[str, set[str]] = {
        op: set() for ops in operators_of_models().values() for op in ops
    }
    for case in cases:
        if case.op and case.level == "L2":
            wanted.setdefault(case.op, set()).add(case.id.split(".")[3])
    for op, dtypes in lacking.items():
        wanted.setdefault(op, set()).update(dtypes)
    found = []
    for op, dtypes in wanted.items():
        if op in host:
            continue
        missing = _missing(op, dtypes, capabilities)
        if op.lower() in through:  # the host puts other operators in its place, and these are there
            lacked = dtypes if missing == ("any",) else set(missing)
            missing = tuple(sorted(lacked - through[op.lower()]))
        if missing:
            found.append(Absence(op, missing, _blocked(op, missing)))
    return sorted(found, key=lambda row: (-len(row.models), row.op))


def _missing(op: str, dtypes: Iterable[str], capabilities: Capabilities) -> tuple[str, ...]:
    domain, _, name = op.rpartition("::")
    kernels = [k for k in capabilities.kernels if k.op == name and k.domain == domain]
    if not kernels:
        return ("any",)
    return tuple(sorted(d for d in dtypes if not any(kernel.takes(d) for kernel in kernels)))


def _blocked(op: str, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    """The catalogue's models compute in f32, so other types block none of them."""
    if not {"any", "f32"} & set(dtypes):
        return ()
    return tuple(name for name, ops in operators_of_models().items() if op in ops)


def _unsupported(record: RunRecord) -> dict[str, set[str]]:
    """Operators and types of level 2 that a run found to be declared as absent."""
    found: dict[str, set[str]] = {}
    for case_id, row in record.cases.items():
        if not case_id.startswith("L2.") or row.outcome != "UNSUPPORTED":
            continue
        # The reason names the term that does not hold: "lacks op:Conv:f16".
        _, marker, term = row.reason.partition("lacks op:")
        if marker:
            op, _, dtype = term.split()[0].rpartition(":")
            found.setdefault(op, set()).add(dtype)
    return found


def _expanded(record: RunRecord) -> dict[str, set[str]]:
    """Operators, in lower case, and types of level 2 that ran as what they were expanded into."""
    found: dict[str, set[str]] = {}
    for case_id, row in record.cases.items():
        if row.evidence.get("expanded") and row.outcome in {"PASS", "QUALITY_WARN"}:
            _, _, op, dtype, _ = case_id.split(".")
            found.setdefault(op, set()).add(dtype)
    return found


def unlock(capabilities: Capabilities) -> Unlock:
    """Say how many of 66 real models an operator set runs, and what the next step takes."""
    have = {kernel.op for kernel in capabilities.kernels if not kernel.domain}
    have |= set(_table()["host"])
    running = 0
    for step in _table()["step"]:
        missing = tuple(op for op in step["operators"] if op not in have)
        if missing:
            return Unlock(running, _TOTAL, missing, int(step["models"]))
        running = int(step["models"])
    return Unlock(running, _TOTAL, (), _TOTAL)

# SPDX-License-Identifier: Apache-2.0
"""The table of a mutant plugin: which faults it has, which duty each breaks, who should see it.

A mutant plugin is one library with many faults, of which an environment variable switches one on.
What is made of the table is in selftest.py.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from chipdock.conformance.ids import match
from chipdock.conformance.manifest import Manifest

__all__ = ["MOST_JUDGES", "Mutant", "Table", "bystanders", "judges", "read_table"]

MOST_JUDGES = 120
"""Cases that are run for one fault if there are more."""
_OPERATORS = 24
_QUICK_MS = 1000


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault.

    Attributes:
        name: Value of the switch.
        duty: Of the C headers that it breaks, "MEM-5".
        breaks: What it does, in words.
        cases: Patterns of the cases that should see it; empty for all cases of the duty.
        allowed: Patterns of other cases that may fail with it, each with the reason why.
    """

    name: str
    duty: str
    breaks: str
    cases: tuple[str, ...] = ()
    allowed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Table:
    """A mutant plugin.

    Attributes:
        library: Its library.
        device: Name of its device, "acme:0".
        switch: Environment variable that takes a fault's name, or "none".
        environment: What it needs besides.
        mutants: By name, in the table's order.
    """

    library: Path
    device: str
    switch: str
    environment: Mapping[str, str]
    mutants: Mapping[str, Mutant]


def read_table(path: Path) -> Table:
    """Read a table.

    Args:
        path: A TOML file with [plugin] library, device, switch and faults, and [environment];
            paths are relative to it. `faults` is a folder of TOML files with one table a fault.

    Raises:
        FileNotFoundError: It is not there.
        ValueError: A key is missing or unknown, or two faults have one name.
    """
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    try:
        plugin = data["plugin"]
        mutants: dict[str, Mutant] = {}
        for file in sorted((path.parent / plugin["faults"]).glob("*.toml")):
            for name, facts in tomllib.loads(file.read_text(encoding="utf-8")).items():
                if name in mutants:
                    raise ValueError(f"{file} has the fault '{name}' a second time")
                allowed = {
                    pattern: row["why"]
                    for row in facts.pop("allowed", ())
                    for pattern in row["cases"]
                }
                if not all(allowed.values()):
                    raise ValueError(f"{file}: '{name}' allows cases to fail and does not say why")
                lists = {key: tuple(v) for key, v in facts.items() if isinstance(v, list)}
                mutants[name] = Mutant(name=name, allowed=allowed, **(facts | lists))
        return Table(
            library=(path.parent / plugin["library"]).resolve(),
            device=plugin["device"],
            switch=plugin["switch"],
            environment=data.get("environment", {}),
            mutants=mutants,
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path} is no table of mutants: {error}") from error


def judges(mutant: Mutant, manifest: Manifest, most: int = MOST_JUDGES) -> list[str]:
    """Return the cases that should see a fault, in the manifest's order; of more, a spread."""
    if mutant.cases:
        found = match(mutant.cases, manifest.rows)
    else:
        found = [i for i, row in manifest.rows.items() if mutant.duty in row.case.duties]
    return _spread(found, most)


def bystanders(manifest: Manifest) -> list[str]:
    """Return cases by which to see what else a fault breaks, in the manifest's order.

    One of each area, and several of level 2, whose areas are wide. They hang on their ids alone,
    so that a case more in the suite leaves the others where they are.
    """
    areas: dict[str, list[str]] = defaultdict(list)
    for case_id, row in manifest.rows.items():
        if row.case.level != "P" and row.case.budget_ms <= _QUICK_MS:
            level, area, _ = case_id.split(".", 2)
            areas[level if level == "L2" else f"{level}.{area}"].append(case_id)
    taken = {
        case_id
        for area, ids in areas.items()
        for case_id in sorted(ids, key=_lot)[: _OPERATORS if area == "L2" else 1]
    }
    return [case_id for case_id in manifest.rows if case_id in taken]


def _lot(case_id: str) -> bytes:
    return hashlib.sha256(case_id.encode()).digest()


def _spread(ids: list[str], most: int) -> list[str]:
    return ids if len(ids) <= most else [ids[i * len(ids) // most] for i in range(most)]

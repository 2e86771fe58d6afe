# SPDX-License-Identifier: Apache-2.0
"""The manifest: every case of the suite with its facts, and the root that is the suite's identity.

The owner of a run reads it instead of the cases. `python -m chipdock.conformance.manifest --write`
makes it anew in the suite's folder, `--check` says whether it is up to date. How cases are found is
in _collect.py.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import hashlib
import json
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chipdock.conformance.case import Case

__all__ = [
    "SUITE_VARIABLE",
    "Manifest",
    "Row",
    "dump",
    "load",
    "main",
    "make",
    "merkle_root",
    "read_manifest",
    "suite_folder",
]

_SCHEMA = 1
_FILE = "manifest.json"
SUITE_VARIABLE = "CHIPDOCK_CONFORMANCE_SUITE"
"""Names another folder of cases, for tests of the suite itself and for a vendor's own cases."""

_DEFAULTS = {field.name: field.default for field in dataclasses.fields(Case) if field.name != "id"}


@dataclass(frozen=True, slots=True)
class Row:
    """One case of the manifest.

    Attributes:
        case: Its facts.
        file: The file it is in, relative to the suite's folder.
        function: Name of its function.
        doc: Docstring of the function.
        body: Hash of what the case does: source of the function and of its helpers, the variant.
    """

    case: Case
    file: str
    function: str
    doc: str
    body: str

    @property
    def leaf(self) -> bytes:
        """What stands for the case in the suite's identity."""
        facts = json.dumps([dataclasses.astuple(self.case), self.body], separators=(",", ":"))
        return hashlib.sha256(b"\0" + facts.encode()).digest()


@dataclass(frozen=True)
class Manifest:
    """All cases of a suite, in the suite's order.

    Attributes:
        rows: By id.
        root: The suite's identity, hexadecimal.
        folder: Where the cases are.
    """

    rows: dict[str, Row]
    root: str
    folder: Path


def suite_folder() -> Path:
    """Return the folder of the cases."""
    named = os.environ.get(SUITE_VARIABLE, "")
    return Path(named).absolute() if named else Path(__file__).parent / "suite"


def merkle_root(leaves: Sequence[bytes]) -> str:
    """Return the root of a binary hash tree; leaves are hashes, sorted by the caller.

    Source:
        RFC 6962, section 2.1, whose prefixes keep leaves and inner nodes apart.
    """
    if not leaves:
        return hashlib.sha256(b"").hexdigest()
    level = list(leaves)
    while len(level) > 1:
        pairs = [level[i : i + 2] for i in range(0, len(level), 2)]
        level = [hashlib.sha256(b"\1" + p[0] + p[1]).digest() if p[1:] else p[0] for p in pairs]
    return level[0].hex()


def make(rows: Iterable[Row], folder: Path) -> Manifest:
    """Return the manifest of these cases."""
    by_id = {row.case.id: row for row in rows}
    leaves = [by_id[case_id].leaf for case_id in sorted(by_id)]
    return Manifest(by_id, merkle_root(leaves), folder)


def dump(manifest: Manifest) -> str:
    """Return the manifest as JSON text, one function and one case a line, defaults left out."""
    keys = {(row.file, row.function): row.doc for row in manifest.rows.values()}
    numbers = {key: number for number, key in enumerate(keys)}
    functions = [_line([*key, doc]) for key, doc in keys.items()]
    cases = []
    for row in manifest.rows.values():
        facts: dict[str, Any] = {"id": row.case.id}
        for name, default in _DEFAULTS.items():
            value = getattr(row.case, name)
            if value != default:
                facts[name] = value
        cases.append(_line(facts | {"f": numbers[row.file, row.function], "body": row.body}))
    return (
        f'{{"schema":{_SCHEMA},"root":"{manifest.root}",\n"functions":[\n'
        + ",\n".join(functions)
        + '\n],\n"cases":[\n'
        + ",\n".join(cases)
        + "\n]}\n"
    )


def _line(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def load(text: str, folder: Path) -> Manifest:
    """Return the manifest that `dump` made text."""
    data = json.loads(text)
    rows = {}
    for facts in data["cases"]:
        file, function, doc = data["functions"][facts.pop("f")]
        body = facts.pop("body")
        lists = {name: tuple(value) for name, value in facts.items() if isinstance(value, list)}
        rows[facts["id"]] = Row(Case(**(facts | lists)), file, function, doc, body)
    return Manifest(rows, data["root"], folder)


def read_manifest(folder: Path | None = None) -> Manifest:
    """Return the manifest in a suite's folder.

    Args:
        folder: The suite's folder; None is the one of `suite_folder`.

    Raises:
        FileNotFoundError: There is none; the text says how to make it.
        ValueError: It is no manifest, or of another schema.
    """
    return _read(folder or suite_folder())


@functools.cache
def _read(where: Path) -> Manifest:
    path = where / _FILE
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} does not exist; python -m chipdock.conformance.manifest --write makes it"
        )
    text = path.read_text(encoding="utf-8")
    if not text.startswith(f'{{"schema":{_SCHEMA},'):
        raise ValueError(f"{path} is no manifest of schema {_SCHEMA}; make it anew with --write")
    return load(text, where)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check the manifest; returns the exit code."""
    parser = argparse.ArgumentParser(prog="chipdock.conformance.manifest", description=__doc__)
    choice = parser.add_mutually_exclusive_group(required=True)
    choice.add_argument("--write", action="store_true", help="make it anew")
    choice.add_argument("--check", action="store_true", help="say whether it is up to date")
    parser.add_argument("--suite", type=Path, default=None, help="folder of the cases")
    asked = parser.parse_args(arguments)
    from chipdock.conformance._collect import collect  # noqa: PLC0415  pytest, wanted here only

    folder = (asked.suite or suite_folder()).absolute()
    path = folder / _FILE
    text = dump(make(collect(folder), folder))
    if asked.write:
        path.write_text(text, encoding="utf-8")
        return 0
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return 0
    sys.stderr.write(f"{path} is out of date; python -m chipdock.conformance.manifest --write\n")
    return 1


if __name__ == "__main__":
    # The module of this name is another one than __main__, and rows are of its class.
    from chipdock.conformance.manifest import main as run_main

    sys.exit(run_main())

# SPDX-License-Identifier: Apache-2.0
"""What a run of many devices is made of, kept beside its plan, so that it can go on when cut short.

Each shard is a run with a folder of its own, and their journals are all that counts: the journal of
the whole is made of them at the end, and made anew when the run goes on.
"""

from __future__ import annotations

import dataclasses
import fcntl
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chipdock.conformance.journal import FILE, RunRecord, plain, read
from chipdock.conformance.run import unsettled

__all__ = ["PLAN", "Parts", "finished", "free", "journal_of", "read_parts", "write_plan"]

PLAN = "plan.txt"
_PARTS = "parts.json"
_SCHEMA = 1
_GRACE_S = 60.0
_TICK_S = 0.1


@dataclass(frozen=True)
class Parts:
    """How the shards of a run are run.

    Attributes:
        kind: "devices" of one plugin in this machine, or "cluster".
        run: Identity of the run, the same when it goes on.
        suite_root: Of the suite.
        device: "acme" for acme:0, acme:1, …; of a cluster, where workers name none.
        plugin: Library or plugin.toml; "" finds it by name.
        count: Of shards.
        arguments: Options of `run` for all of them, without device, shard and out.
        options: As `Options` has them, for the run line of a shard that no worker began.
        address: Of the cluster.
        mixed: Suites, plugins and devices may differ.
    """

    kind: str
    run: str
    suite_root: str
    device: str
    plugin: str
    count: int
    arguments: tuple[str, ...]
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    address: str = ""
    mixed: bool = False

    def write(self, folder: Path) -> None:
        """Keep this in the folder of the whole."""
        facts = {"schema": _SCHEMA, **plain(dataclasses.asdict(self))}
        draft = folder / f"{_PARTS}.new"
        draft.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
        draft.replace(folder / _PARTS)


def read_parts(folder: Path) -> Parts | None:
    """Return what a run of many devices is made of; None if the folder is of another run.

    Raises:
        ValueError: The file was not written by a run, or by another version.
    """
    path = folder / _PARTS
    if not path.is_file():
        return None
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        if facts.pop("schema") != _SCHEMA:
            raise ValueError("it is of another schema")
        return Parts(**facts | {"arguments": tuple(facts["arguments"])})
    except (KeyError, TypeError, AttributeError, ValueError) as cause:
        raise ValueError(
            f"{path} is none that this version writes: {cause}; start a new run"
        ) from cause


def write_plan(folder: Path, ids: list[str]) -> Path:
    """Write the ids of the whole, one a line, and return the file."""
    path = folder / PLAN
    path.write_text("".join(f"{case_id}\n" for case_id in ids), encoding="utf-8")
    return path


def journal_of(folder: Path) -> RunRecord | None:
    """Return the journal of a shard; None if it never started a device."""
    if not (folder / FILE).is_file():
        return None
    record = read(folder)
    return record if record.run else None


def finished(folder: Path) -> bool:
    """Whether a shard ran to its end and no case of it is left to run."""
    record = journal_of(folder)
    return (
        record is not None
        and record.end is not None
        and not any(unsettled(record, case_id) for case_id in record.run["selected"])
    )


def free(folder: Path) -> bool:
    """Wait until nobody writes a shard's journal: what a killed owner left takes a moment to end.

    Returns:
        Whether it is free now.
    """
    path = folder / FILE
    end = time.monotonic() + _GRACE_S
    while path.is_file():
        with path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > end:
                    return False
                time.sleep(_TICK_S)
            except OSError:
                return True  # a file system without locks
            else:
                return True
    return True

# SPDX-License-Identifier: Apache-2.0
"""Keeps runs with the sources: what a version passed, small, and without a word of the machine's.

`python -m chipdock.conformance.evidence.keep FOLDER NAME=RUN …` writes FOLDER/NAME.json.gz, the
outcome of every case, and FOLDER/README.md for people. The same runs give the same bytes. What is
in it names the suite by its root, so that a report of another suite is seen to be old.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from chipdock.conformance.journal import RunRecord, read

__all__ = ["RENEW", "digest", "keep", "load", "main"]

RENEW = "./dev release-report"
_SCHEMA = 1
_QUIET = frozenset({"PASS", "UNSUPPORTED"})
_PATH = re.compile(r"(?<![\w.])/(?:[\w.+-]+/)+([\w.+-]+)")
_SHOWN = 40
_MOST_REASON = 400


def digest(record: RunRecord) -> dict[str, Any]:
    """Return what is kept of a run, as plain data.

    Raises:
        ValueError: The run did not come to its end.
    """
    if record.end is None:
        raise ValueError("the run did not end; go on with it by --resume first")
    run = record.run
    levels: dict[str, Counter[str]] = defaultdict(Counter)
    ids: dict[str, list[str]] = defaultdict(list)
    for case_id, case in record.cases.items():
        levels[case_id.split(".", 1)[0]][str(case.outcome)] += 1
        ids[str(case.outcome)].append(case_id)
    options = run["options"]
    return {
        "schema": _SCHEMA,
        "suite_root": run["suite_root"],
        "suite_version": run["suite_version"],
        "device": run["device"],
        "plugin": {key: run["plugin"][key] for key in ("name", "version", "sha256", "abi")},
        "seed": run["seed"],
        "mask": run["mask"],
        "selection": {key: options["selection"][key] for key in ("level", "tier", "order")},
        "jobs": options["jobs"],
        "env": {key: run["env"][key] for key in ("cpu", "os", "python")},
        "started": run["started"][:10],
        "seconds": round(record.end["seconds"]),
        "resumed": sum(event["what"] == "resumed" for event in record.events),
        "exit_code": record.end["exit_code"],
        "counts": record.counts,
        "levels": {level: dict(sorted(found.items())) for level, found in sorted(levels.items())},
        "remarks": [
            [case_id, str(case.outcome), _bare(case.reason)]
            for case_id, case in sorted(record.cases.items())
            if str(case.outcome) not in _QUIET
        ],
        "cases": {outcome: sorted(found) for outcome, found in sorted(ids.items())},
    }


def _bare(text: str) -> str:
    """The first line of a reason, with the last part of each path in it."""
    first = text.split("\n", 1)[0][:_MOST_REASON]
    return _PATH.sub(r"\1", first)


def load(path: Path) -> dict[str, Any]:
    """Return what `keep` wrote."""
    found: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return found


def keep(folder: Path, runs: Mapping[str, RunRecord]) -> list[Path]:
    """Write the kept reports of runs by their names; returns the files.

    Raises:
        ValueError: A run did not end, or they are of different suites or plugins.
    """
    kept = {name: digest(record) for name, record in runs.items()}
    for what in ("suite_root", "plugin"):
        if len({json.dumps(row[what], sort_keys=True) for row in kept.values()}) != 1:
            raise ValueError(f"the runs differ in {what}, so they are of no one version")
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, row in kept.items():
        path = folder / f"{name}.json.gz"
        text = json.dumps(row, separators=(",", ":"), ensure_ascii=True).encode()
        packed = io.BytesIO()
        with gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=0) as file:
            file.write(text)
        path.write_bytes(packed.getvalue())
        written.append(path)
    page = folder / "README.md"
    page.write_text(_page(kept), encoding="utf-8")
    return [*written, page]


def _page(kept: Mapping[str, Mapping[str, Any]]) -> str:
    first = next(iter(kept.values()))
    lines = [
        "# The release band of this version",
        "",
        f"Made by `{RENEW}`, which runs the suite twice and writes this folder anew; a test fails "
        "when it is of",
        "another suite than the one beside it. `NAME.json.gz` has the outcome of every case.",
        "",
        f"* suite {first['suite_version']}, root `{first['suite_root']}`",
        f"* plugin {first['plugin']['name']} {first['plugin']['version']}, ABI "
        f"{first['plugin']['abi']}, sha256 `{first['plugin']['sha256']}`",
        f"* {first['env']['cpu']}, {first['env']['os']}, Python {first['env']['python']}",
        "",
    ]
    for name, row in kept.items():
        mask = f" --mask {row['mask']}" if row["mask"] != "none" else ""
        level = row["selection"]["level"] or "release"
        lines += [
            f"## {name}",
            "",
            f"`conformance-run --device {row['device']} --level {level} -j {row['jobs']}{mask}`, "
            f"seed {row['seed']},",
            f"{row['started']}: exit code {row['exit_code']} after {row['seconds']} s"
            + (", the last part of a run that was cut short." if row["resumed"] else "."),
            "",
            *_table(row["levels"]),
            "",
        ]
        shown = row["remarks"][:_SHOWN]
        lines += [f"* {outcome} `{case_id}`: {reason}" for case_id, outcome, reason in shown]
        if len(row["remarks"]) > _SHOWN:
            lines.append(f"* and {len(row['remarks']) - _SHOWN} more, see {name}.json.gz")
        lines += [""] if row["remarks"] else []
    return "\n".join(lines)


def _table(levels: Mapping[str, Mapping[str, int]]) -> list[str]:
    names = sorted({outcome for row in levels.values() for outcome in row})
    head = ["| level | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    return head + [
        f"| {level} | " + " | ".join(str(row.get(name, 0)) for name in names) + " |"
        for level, row in levels.items()
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Keep runs; returns the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    pairs = [word.partition("=") for word in given[1:]]
    if not pairs or not all(sign and re.fullmatch(r"[a-z0-9-]+", name) for name, sign, _ in pairs):
        sys.stderr.write("usage: python -m chipdock.conformance.evidence.keep FOLDER NAME=RUN …\n")
        return 2
    try:
        written = keep(Path(given[0]), {name: read(Path(run)) for name, _, run in pairs})
    except (FileNotFoundError, ValueError) as error:
        sys.stderr.write(f"INVALID_ARGUMENT: {error}\n")
        return 2
    sys.stdout.write("".join(f"{path}\n" for path in written))
    return 0


if __name__ == "__main__":
    sys.exit(main())

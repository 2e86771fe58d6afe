# SPDX-License-Identifier: Apache-2.0
"""The command `explain`: what a case asks for, and how it went in earlier runs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from chipdock.cli._command import Failure
from chipdock.cli._output import emit_json, json_option
from chipdock.cli.exit_codes import ExitCode

__all__ = ["explain"]

_WIDTH = 100


def _wrapped(label: str, text: str) -> str:
    return textwrap.fill(
        text, _WIDTH, initial_indent=f"{label:<14}", subsequent_indent=" " * 14,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def _lines(found: Mapping[str, Any]) -> Iterator[str]:
    yield found["id"]
    for paragraph in found["text"].split("\n\n"):
        yield textwrap.fill(" ".join(paragraph.split()), _WIDTH)
    yield ""
    must = ", mustpass: no waiver can cover it" if found["mustpass"] else ""
    yield _wrapped("level", f"{found['level']}; tier {found['tier']}{must}")
    yield _wrapped("revision", f"{found['revision']}" + _former(found["was"]))
    if found["operator"]:
        yield _wrapped("operator", f"{found['operator']}, shapes {found['shape_class'] or 'any'}")
    for name, text in found["duties"].items():
        yield _wrapped(f"duty {name}", text)
    yield _wrapped("tolerance", f"{found['tolerance']}: {found['tolerance_text']}")
    yield _wrapped("needs", found["needs"] or "only what every plugin must have")
    for name, entry in found["entry_points"].items():
        errors = f"; errors {', '.join(entry['errors'])}" if entry["errors"] else ""
        yield _wrapped("touches", f"{name}: {entry['text']}{errors}")
    yield _wrapped(
        "time",
        f"about {found['budget_ms']} ms on the CPU plugin, ended after {found['limit_s']:g} s",
    )
    yield _wrapped("defined in", f"{found['file']}, {found['function']}")
    yield _wrapped("run it", f"conformance-run --device NAME:N --case {found['id']}")
    yield _wrapped("", f"python -m chipdock.conformance.solo --device NAME:N {found['id']}")
    for row in found["history"]:
        cause = f": {row['cause']}" if row["cause"] else ""
        yield _wrapped(
            "history",
            f"{row['started']} {row['device']} {row['plugin']} {row['outcome']} in "
            f"{row['ms']:.1f} ms{cause} ({row['run']})",
        )


def _former(was: list[str]) -> str:
    return f"; before: {', '.join(was)}" if was else ""


@click.command()
@click.argument("case_id", metavar="ID")
@click.argument(
    "runs",
    metavar="[RUN]...",
    nargs=-1,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
@json_option
@click.option("--debug", is_flag=True, expose_value=False, help="Show where an error came from.")
def explain(case_id: str, runs: tuple[Path, ...], as_json: bool) -> None:
    """Say what the case ID asks for; RUN are folders of earlier runs for its history."""
    from chipdock.conformance.evidence.report import ReportError  # noqa: PLC0415
    from chipdock.conformance.explain import explain as explained  # noqa: PLC0415
    from chipdock.conformance.ids import suggestions  # noqa: PLC0415
    from chipdock.conformance.manifest import read_manifest  # noqa: PLC0415

    manifest = read_manifest()
    former = {was: row.case.id for row in manifest.rows.values() for was in row.case.was}
    name = former.get(case_id, case_id)
    if name not in manifest.rows:
        close = suggestions(case_id, list(manifest.rows))
        hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
        raise Failure(f"INVALID_ARGUMENT: no case {case_id!r}{hint}", ExitCode.USAGE)
    try:
        found = explained(manifest, name, runs)
    except ReportError as error:
        raise Failure(str(error), ExitCode.USAGE) from error
    if as_json:
        emit_json("conformance-explain", found)
    else:
        click.echo("\n".join(_lines(found)))

# SPDX-License-Identifier: Apache-2.0
"""The options that choose cases, shared by `run` and `list`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from chipdock.cli._command import Failure
from chipdock.cli.exit_codes import ExitCode
from chipdock.conformance.manifest import Manifest, read_manifest
from chipdock.conformance.plan import TIERS, Selection, SelectionError, select

__all__ = ["Ratio", "Seed", "chosen", "described", "selection_options"]

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Ratio(click.FloatRange):
    """A number within its range, which NaN is not."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number."""
        found = float(super().convert(value, param, ctx))
        if not math.isfinite(found):
            self.fail(f"{value!r} is no finite number", param, ctx)
        return found


class Seed(click.IntRange):
    """A whole number in the digits 0 to 9, where int() takes those of every script."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number."""
        if isinstance(value, str) and not value.isascii():
            self.fail(f"{value!r} is no number; write it in the digits 0 to 9", param, ctx)
        return int(super().convert(value, param, ctx))


class _Shard(click.ParamType[tuple[int, int]]):
    """I/N with 1 <= I <= N."""

    name = "I/N"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        """Return (I, N)."""
        if isinstance(value, tuple):
            return value
        match = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", value)
        number, count = (int(match.group(1)), int(match.group(2))) if match else (0, 0)
        if not 1 <= number <= count:
            self.fail(
                f"{value!r} is no shard; it is I/N with I from 1 to N, such as 2/4", param, ctx
            )
        return number, count


def selection_options(function: _Function) -> _Function:
    """Add the options that choose cases."""
    for option in (
        click.option(
            "--seed",
            type=Seed(0, 2**63 - 1),
            default=0,
            show_default=True,
            help="Of inputs and order.",
        ),
        click.option("--order", type=click.Choice(["manifest", "shuffle"]), default="manifest"),
        click.option("--shard", type=_Shard(), default=(1, 1), help="Part I of N."),
        click.option(
            "--plan",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="File of ids, one a line.",
        ),
        click.option("-k", "globs", multiple=True, metavar="GLOB", help="Only ids that match."),
        click.option("--case", "cases", multiple=True, metavar="ID", help="An id or pattern."),
        click.option("--tier", type=click.Choice(TIERS), default="submit", help="Largest tier."),
        click.option(
            "--level", default="", metavar="LEVELS", help="sanity, core, release, L0-L3, …"
        ),
    ):
        function = option(function)
    return function


def chosen(given: dict[str, Any]) -> tuple[Manifest, list[str]]:
    """Return the manifest and the ids that the options choose.

    Raises:
        Failure: An id or level is unknown (exit code 2), or nothing is chosen (3).
    """
    try:
        manifest = read_manifest()
        asked = described(given)
        lists = {key: tuple(value) for key, value in asked.items() if isinstance(value, list)}
        ids = select(manifest, Selection(**(asked | lists)))
    except (SelectionError, FileNotFoundError) as error:
        raise Failure(f"INVALID_ARGUMENT: {error}", ExitCode.USAGE) from error
    if not ids:
        text = "NOT_RUN: the selection holds no case, so nothing can be shown; see the options"
        raise Failure(text, ExitCode.NOT_RUN)
    return manifest, ids


def described(given: dict[str, Any]) -> dict[str, Any]:
    """Return what was asked for, as plain data: the fields of `plan.Selection`."""
    return {
        "level": given["level"],
        "tier": given["tier"],
        "cases": [*given["cases"], *_planned(given["plan"])],
        "globs": list(given["globs"]),
        "shard": list(given["shard"]),
        "order": given["order"],
        "seed": given["seed"],
    }


def _planned(path: Path | None) -> list[str]:
    if path is None:
        return []
    lines = (line.split("#", 1)[0].strip() for line in path.read_text("utf-8").splitlines())
    return [line for line in lines if line]

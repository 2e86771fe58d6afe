# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: PLC0415  rich and other slow modules are imported where they are used
"""How results look: JSON with a schema, tables, and units. Errors are left to _app.py."""

import json
import math
import re
import sys
from collections.abc import Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, cast

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = [
    "STATE_STYLES",
    "big",
    "console",
    "emit_json",
    "json_option",
    "load_schema",
    "milliseconds",
    "plain",
    "rate",
    "size",
    "table",
]

_FILE_WIDTH = 500  # of a table that goes to a file: nothing wraps, so that it can be searched

STATE_STYLES = {
    "ready": "green",
    "ok": "green",
    "PASS": "green",
    "note": "cyan",
    "unavailable": "yellow",
    "warn": "yellow",
    "broken": "red",
    "timeout": "red",
    "fail": "red",
    "FAIL": "red",
}
"""Colour by the word that is shown; the word alone says all."""

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")


def plain(value: Any) -> Any:  # noqa: ANN401  walks values of any kind
    """Return what JSON can hold: tuples become lists, NaN and infinities null."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, bool | int | str) or value is None:
        return value
    number = float(value)
    return number if math.isfinite(number) else None


def emit_json(schema: str, data: Mapping[str, Any]) -> None:
    """Print one JSON document with its schema's name, such as "run" for "chipdock.run/1"."""
    document = {"schema": f"chipdock.{schema}/1", **plain(data)}
    click.echo(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))


def load_schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema of "run" and so on."""
    from importlib import resources

    file = resources.files("chipdock.cli").joinpath("schemas", f"{name}.json")
    loaded: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return loaded


def console() -> "Console":
    """Return a console on today's stdout: as wide as the terminal, or as a file wants it."""
    from rich.console import Console

    class Ours(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # for _app.py; rich would end the process

    if sys.stdout.isatty():
        return Ours(file=sys.stdout, highlight=False)
    return Ours(file=cast("IO[str]", _Trimmed()), width=_FILE_WIDTH, highlight=False)


class _Trimmed:
    """stdout without the spaces that fill up the cells at the end of a line."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        sys.stdout.write(re.sub(" +(?=\n)", "", text))
        return len(text)

    def flush(self) -> None:
        sys.stdout.flush()


def table(*columns: str, right: Sequence[str] = (), fold: Sequence[str] = ()) -> "Table":
    """Return an empty table; columns in `fold` may wrap, those in `right` hold numbers."""
    from rich import box
    from rich.table import Table

    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=False)
    made.padding = (0, 1, 0, 0)
    for column in columns:
        made.add_column(
            column,
            justify="right" if column in right else "left",
            no_wrap=column not in fold,
            overflow="fold" if column in fold else "ellipsis",
        )
    return made


def size(count: int | float) -> str:
    """Return bytes for people: "1.5 GiB"."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    raise AssertionError


def big(value: float) -> str:
    """Return a number with a metric prefix: "12.3 G"."""
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:.1f} {prefix}"
    return f"{value:.0f} "


def rate(bytes_per_second: float) -> str:
    """Return bytes per second for people, "" when unknown."""
    return f"{big(bytes_per_second)}B/s" if bytes_per_second else ""


def milliseconds(value: float) -> str:
    """Return a time given in ms for people, with three digits: "12.3 ms", "45.0 µs"."""
    number, unit = (value, "ms") if value >= 1 else (value * 1e3, "µs")
    digits = 0 if number >= 100 else 1 if number >= 10 else 2
    return f"{number:.{digits}f} {unit}"

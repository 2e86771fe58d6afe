# SPDX-License-Identifier: Apache-2.0
"""Shows results: a table, JSON as schema.json says, and one figure of all ratios."""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from bench.harness import Result

SCHEMA = Path(__file__).resolve().parent / "schema.json"


def number(value: float) -> str:
    """Return three significant digits, without an exponent."""
    if value == 0 or not math.isfinite(value):
        return str(value)
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{digits}f}"


def _aim(result: Result) -> str:
    if result.aim is None:
        return ""
    mark = {True: "reached", False: "missed", None: ""}[result.reached]
    if result.aim_is_difference:
        return f"+{number(result.aim)} {result.unit}: {mark}"
    return f"{result.aim:.3g}: {mark}"


def row(result: Result) -> tuple[str, ...]:
    """Return the cells of one line; a result that was not run shows its cause."""
    if result.cause:
        return result.benchmark, result.case, result.peer, "NOT_RUN", "", "", "", result.cause
    ours = f"{number(result.ours.median)} {result.unit}" if result.ours else ""
    other = f"{number(result.other.median)} {result.unit}" if result.other else ""
    shown, spread = "", ""
    if result.ratio is not None:
        shown = f"{result.ratio.median:.2f}"
        spread = f"{result.ratio.p10:.2f} to {result.ratio.p90:.2f}"
    if result.aim_is_difference and result.difference is not None:
        shown = f"{result.difference:+.1f} {result.unit}"
    return result.benchmark, result.case, result.peer, ours, other, shown, spread, _aim(result)


HEADS = ("benchmark", "case", "peer", "chipdock", "of the peer", "ratio", "p10 to p90", "aim")


def print_table(results: Iterable[Result], console: Console) -> None:
    """Print one line a result."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for head in HEADS:
        right = head in {"chipdock", "of the peer", "ratio", "p10 to p90"}
        table.add_column(head, justify="right" if right else "left", overflow="fold")
    last = ""
    for result in results:
        if last and result.benchmark != last:
            table.add_section()
        last = result.benchmark
        style = "red" if result.reached is False else "yellow" if result.cause else None
        table.add_row(*row(result), style=style)
    console.print(table)


def markdown(results: Iterable[Result]) -> str:
    """Return the same table for docs."""
    lines = ["| " + " | ".join(HEADS) + " |", "|---|---|---|--:|--:|--:|--:|---|"]
    lines += ["| " + " | ".join(row(result)) + " |" for result in results]
    return "\n".join(lines) + "\n"


def as_json(
    machine: dict[str, Any],
    settings: dict[str, Any],
    loads: dict[str, dict[str, float]],
    results: Sequence[Result],
) -> dict[str, Any]:
    """Return what schema.json describes."""
    return {
        "schema": 1,
        "machine": machine,
        "settings": settings,
        "load": loads,
        "results": [
            {**asdict(r), "difference": r.difference, "reached": r.reached} for r in results
        ],
    }


def write_json(path: Path, data: dict[str, Any]) -> None:
    """Write `data` readable."""
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


_COLOURS = {True: "#1a7f37", False: "#c62828", None: "#3b6ea5"}


def plot(results: Sequence[Result], folder: Path, title: str) -> Path:
    """Draw every ratio with its spread, on a logarithmic scale; left of 1 chipdock is faster.

    Returns:
        The file, ratios.png in `folder`.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.lines import Line2D

    shown = [r for r in results if r.ratio is not None]
    places, labels, groups = [], [], []
    at = 0.0
    for index, result in enumerate(shown):
        if index and result.benchmark != shown[index - 1].benchmark:
            at += 0.9
        if not index or result.benchmark != shown[index - 1].benchmark:
            groups.append((at, result.benchmark))
        places.append(at)
        labels.append(f"{result.case}  ·  {result.peer}")
        at += 1
    figure, axes = plt.subplots(figsize=(11, 0.235 * at + 1.6), layout="constrained")
    for place, result in zip(places, shown, strict=True):
        ratio, colour = result.ratio, _COLOURS[result.reached]
        axes.plot([ratio.p10, ratio.p90], [place, place], color=colour, lw=3, alpha=0.35)
        axes.plot([ratio.median], [place], "o", color=colour, ms=5)
        ends = [ratio.p90, ratio.median]
        if result.aim is not None and not result.aim_is_difference:
            axes.plot([result.aim], [place], "|", color="black", ms=11, mew=1.6)
            ends.append(result.aim if result.aim < 2 * max(ends) else 0)
        axes.annotate(
            row(result)[5],
            (max(ends), place),
            (6, 0),
            textcoords="offset points",
            va="center",
            fontsize=7,
            color=colour,
        )
    for place, name in groups:
        axes.annotate(
            name, (0, place - 0.95), xycoords=("axes fraction", "data"), xytext=(-4, 0),
            textcoords="offset points", ha="right", va="center", fontsize=8, fontweight="bold",
        )  # fmt: skip
    axes.axvline(1.0, color="black", lw=0.8)
    axes.set_xscale("log")
    axes.set_yticks(places, labels, fontsize=7.5)
    axes.set_ylim(at - 0.2, -1.5)
    ticks = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100]
    low, high = axes.get_xlim()
    high *= 1.7
    axes.set_xticks([t for t in ticks if low <= t <= high])
    axes.set_xticks([], minor=True)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xlim(low, high)
    axes.grid(axis="x", lw=0.4, alpha=0.6)
    axes.set_xlabel("chipdock ÷ peer, less is better; bar: p10 to p90 of the paired ratios")
    axes.set_title(title, fontsize=9)
    legend = [
        Line2D([], [], marker="o", ls="", color=_COLOURS[True], label="aim reached"),
        Line2D([], [], marker="o", ls="", color=_COLOURS[False], label="aim missed"),
        Line2D([], [], marker="o", ls="", color=_COLOURS[None], label="no aim"),
        Line2D([], [], marker="|", ls="", color="black", ms=11, mew=1.6, label="aim"),
    ]
    axes.legend(handles=legend, fontsize=7.5, loc="upper right", ncols=4)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "ratios.png"
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path

# SPDX-License-Identifier: Apache-2.0
"""`./dev bench`, or `python tests/bench`: runs benchmarks, prints a table, writes JSON and a plot.

Exit codes: 0 everything ran, 3 something did not. A missed aim is no failure: times are no tests.
"""

import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

import click
from rich.console import Console

if __package__ in {None, ""}:  # run as a folder: make it the package `bench`
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from bench import machine, report
from bench.harness import Result, Settings
from bench.native import NotRun

# Name to module and function; the modules import their peers, so only what runs is imported.
BENCHMARKS = {
    "abi": ("bench_native", "run_abi", "a call through the host, against the function pointer"),
    "run_op": ("bench_ops", "run_run_op", "one Add from Python, against torch and numpy"),
    "executor": ("bench_executor", "run_executor", "1,000 tiny nodes, against onnxruntime"),
    "copies": ("bench_native", "run_copies", "H2D, D2H, D2D, against memcpy"),
    "rmsnorm": ("bench_ops", "run_rms_norm", "RMSNorm 4096x4096, against C by hand and frameworks"),
    "half": ("bench_half", "run_half", "bf16 products and Llama blocks, against torch, OpenVINO"),
    "import": ("bench_import", "run_import", "import time, against numpy, onnxruntime and torch"),
    "idle": ("bench_idle", "run_idle", "what a peer's spinning threads cost the next in turn"),
    "sharing": ("bench_sharing", "run_sharing", "runs at once, and beside a busy process"),
    "models": ("bench_models", "run_models", "models: latency, load, first run, memory taken"),
    "shapes": ("bench_shapes", "run_shapes", "one load of 200 shapes, against loads of one each"),
    "memory": ("bench_memory", "run_memory", "planned activations, against the lower bound"),
}


def run_one(name: str, settings: Settings) -> tuple[list[Result], machine.Load]:
    """Run a benchmark; one that cannot run is a result with its cause."""
    module, function, _ = BENCHMARKS[name]
    with machine.watch() as load:
        try:
            run: Callable[[Settings], list[Result]] = getattr(
                import_module(f"bench.{module}"), function
            )
            results = run(settings)
        except NotRun as error:
            results = [Result(name, name, cause=str(error))]
    return results, load


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--quick", is_flag=True, help="Smallest sizes, two samples: only shows that it runs.")
@click.option("--only", multiple=True, type=click.Choice(list(BENCHMARKS)), help="Can be repeated.")
@click.option("--list", "show", is_flag=True, help="Say what there is and end.")
@click.option("--threads", type=click.IntRange(1), help="Of chipdock and of peers; default: cores.")
@click.option("--budget", default=3.0, show_default=True, help="Seconds for each comparison.")
@click.option("--wait-quiet", default=0.0, help="Seconds to wait at most, before each benchmark,"
              " until other processes take less than a tenth of the machine.")  # fmt: skip
@click.option("--essential", is_flag=True, help="Of models the main ones, one length: 15 minutes.")
@click.option("--model", "models", multiple=True, help="Of models only these; * and ? stand for"
              " anything. Can be repeated.")  # fmt: skip
@click.option("--offline", is_flag=True, help="Download no models.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write results here.")
@click.option("--markdown", type=click.Path(path_type=Path), help="Write the table here.")
@click.option("--plot", type=click.Path(path_type=Path, file_okay=False), help="Folder of the PNG.")
def main(  # noqa: PLR0917  click passes them by name
    quick: bool,
    only: tuple[str, ...],
    show: bool,
    threads: int | None,
    budget: float,
    wait_quiet: float,
    essential: bool,
    models: tuple[str, ...],
    offline: bool,
    json_path: Path | None,
    markdown: Path | None,
    plot: Path | None,
) -> None:
    """Measure chipdock against its peers, in turns on this machine."""
    console = Console() if sys.stdout.isatty() else Console(width=150)
    if show:
        for name, (_, _, text) in BENCHMARKS.items():
            console.print(f"{name:9} {text}")
        return
    count = threads if threads is not None else machine.cores()
    # Before any of them is imported: nobody gets more threads than the others.
    os.environ["OMP_NUM_THREADS"] = os.environ["CHIPDOCK_CPU_THREADS"] = str(count)
    download = False if offline else None
    settings = Settings(quick, count, budget, download, essential, models)
    about = machine.describe()
    results: list[Result] = []
    loads: dict[str, dict[str, float]] = {}
    for name in only or BENCHMARKS:
        if wait_quiet and not machine.wait_until_quiet(wait_quiet):
            console.print(f"[yellow]{name}: the machine did not become quiet[/]")
        with console.status(f"{name} …"):
            found, load = run_one(name, settings)
        results += found
        loads[name] = asdict(load)
    console.print(
        f"{about['cpu']}, {about['cores']} cores{', virtual' if about['virtual'] else ''}; "
        f"{about['date']}; threads: {count}"
    )
    report.print_table(results, console)
    busiest = max(loads, key=lambda name: loads[name]["others"])
    console.print(
        f"Other processes took up to {loads[busiest]['others']:.0%} of the machine ({busiest})."
    )
    if json_path is not None:
        report.write_json(json_path, report.as_json(about, asdict(settings), loads, results))
    if markdown is not None:
        markdown.write_text(report.markdown(results), encoding="utf-8")
    if plot is not None:
        title = f"{about['cpu']}, {about['cores']} cores, {about['date'][:10]}"
        console.print(f"plot: {report.plot(results, plot, title)}")
    if any(result.cause for result in results):
        sys.exit(3)


if __name__ == "__main__":
    main()

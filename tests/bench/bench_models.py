# SPDX-License-Identifier: Apache-2.0
"""models: latency, load, first run and memory of models, against onnxruntime and OpenVINO."""

import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from bench import peers
from bench.harness import (
    Ratio,
    Result,
    Samples,
    Settings,
    Stats,
    compare,
    geometric_mean,
    in_turns,
)
from bench.models import cold
from bench.models.subject import Subject, subjects
from chipdock.models import ModelUnavailable

AIM_LATENCY = 1.0
# A model slower than this against the better peer is to be looked into.
AIM_EACH = 1.1
BETTER = "better peer"
OPTIONAL = "openvino"
# Of the largest magnitude; rougher models (int8) say so.
_DIFFERENCE = 1e-2

# Benchmark, what is measured in a fresh process, unit, and how it is read.
_READINGS: tuple[tuple[str, str, str, Callable[[cold.Cold], float]], ...] = (
    ("load", "load", "ms", lambda c: c.load_s),
    ("load", "first run", "ms", lambda c: c.first_s),
    ("rss", "memory taken", "bytes", lambda c: float(max(c.growth, 1))),
)


@dataclass
class Report:
    """What has been found.

    Attributes:
        rows: Results by benchmark, in the order in which they are shown.
        compared: Results that means are taken of, by what is averaged, then by model.
    """

    rows: dict[str, list[Result]] = field(
        default_factory=lambda: {"models": [], "load": [], "rss": []}
    )
    compared: dict[str, dict[str, list[list[Result]]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )

    def add(self, what: str, model: str, results: list[Result]) -> None:
        """Keep the results of one case, one per peer."""
        self.rows[results[0].benchmark] += results
        self.compared[what][model].append(results)

    def not_run(self, benchmark: str, case: str, peer: str, cause: str) -> None:
        self.rows[benchmark].append(Result(benchmark, case, peer, cause=cause))


def _threads(settings: Settings) -> tuple[int, ...]:
    return (1,) if settings.quick or settings.threads == 1 else (1, settings.threads)


def _plural(threads: int) -> str:
    return f"{threads} thread{'s' if threads > 1 else ''}"


def _one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


class _Run:
    """One run of the benchmark: what it was asked for, and what it has found."""

    def __init__(self, settings: Settings, names: list[str], folder: Path) -> None:
        self.settings = settings
        self.names = names
        self.folder = folder
        self.report = Report()

    def measure(self, subject: Subject) -> None:
        """Measure all there is of a model."""
        try:
            path = subject.source(self.settings, self.folder)
        except ModelUnavailable as error:
            self.report.not_run("models", subject.name, "", str(error))
            return
        # Fresh processes first: a runtime that crashes over a model does it there.
        able = self._cold(subject, path)
        for threads in _threads(self.settings):
            self._latencies(subject, path, threads, able)
        if path.parent == self.folder:
            path.unlink()

    def _latencies(self, subject: Subject, path: Path, threads: int, able: list[str]) -> None:
        """Measure every size at one number of threads; each runtime loads the model once."""
        if "chipdock" not in able or len(able) < 2:
            return
        runners = {name: peers.runner(name, path, threads) for name in able}
        for point in subject.points(self.settings):
            case = f"{subject.name}, {point.text}, {_plural(threads)}"
            feeds = subject.feeds(point)
            answers: dict[str, list[np.ndarray]] = {}
            for name, run in runners.items():
                try:
                    answers[name] = run(feeds)
                except Exception as error:  # a runtime that cannot run a model is a finding
                    self.report.not_run("models", case, name, _one_line(error))
            if "chipdock" not in answers or len(answers) < 2:
                continue
            if not subject.rough:
                _check(self.report, case, answers)
            samples = self._turns({name: partial(runners[name], feeds) for name in answers})
            found = _results(case, samples, feeds)
            self.report.add(_plural(threads), subject.name, found)

    def _turns(self, runners: Mapping[str, Callable[[], object]]) -> Samples:
        return in_turns(
            runners,
            self.settings,
            sample_s=0.02,
            rounds=10,
            least=2 if self.settings.short else 4,
            idle_s=self.settings.idle_s,
        )

    def _cold(self, subject: Subject, path: Path) -> list[str]:
        """Measure load, first run and memory in fresh processes, in turns.

        Returns:
            The runtimes that can run the model.
        """
        point = subject.first_point()
        threads = _threads(self.settings)[-1]
        archive = self.folder / "feeds.npz"
        np.savez(archive, **subject.feeds(point))
        found: dict[str, list[cold.Cold]] = {name: [] for name in self.names}
        turns = 1 if self.settings.quick else 2 if self.settings.short else 4
        for turn in range(turns):
            for name in list(found)[:: 1 if turn % 2 == 0 else -1]:
                try:
                    found[name].append(cold.measure(name, path, threads, archive))
                except Exception as error:  # as above
                    case = f"{subject.name}, fresh process"
                    self.report.not_run("models", case, name, _one_line(error))
                    del found[name]
        if "chipdock" not in found or len(found) < 2:
            return list(found)
        sizes = f"batch {point.batch}" + (f", {point.text}" if point.text else "")
        for benchmark, what, unit, reading in _READINGS:
            samples = Samples(
                {name: [reading(c) for c in colds] for name, colds in found.items()},
                dict.fromkeys(found, 1),
            )
            case = f"{subject.name}, {what}, {sizes}, {_plural(threads)}"
            self.report.add(what, subject.name, compare(benchmark, case, samples, unit))
        return list(found)


def run_models(settings: Settings) -> list[Result]:
    """Return latencies of all models and sizes, load, first run and memory, and their means."""
    names = [name for name in peers.RUNTIMES if peers.present(name)]
    if "onnxruntime" not in names:
        return [Result("models", "all", "onnxruntime", cause="onnxruntime is not installed")]
    with tempfile.TemporaryDirectory(prefix="chipdock-bench-") as folder:
        run = _Run(settings, names, Path(folder))
        for subject in subjects(settings):
            if not settings.quick:
                print(f"models: {subject.name}", file=sys.stderr, flush=True)
            run.measure(subject)
    if OPTIONAL not in names:
        run.report.not_run("models", "all", OPTIONAL, "openvino is not installed, and optional")
    means = [] if settings.quick else _means(run.report)
    return [
        result
        for benchmark, rows in run.report.rows.items()
        for result in (*(m for m in means if m.benchmark == benchmark), *rows)
    ]


def _check(report: Report, case: str, answers: Mapping[str, list[np.ndarray]]) -> None:
    """Report outputs that are not those of the first peer: a fast wrong answer is no result."""
    ours = answers["chipdock"]
    peer = next(name for name in answers if name != "chipdock")
    for index, (got, wanted) in enumerate(zip(ours, answers[peer], strict=True)):
        if got.shape != wanted.shape:
            text = f"output {index} has shape {got.shape}, {peer}'s {wanted.shape}"
            report.not_run("models", case, peer, text)
        elif wanted.size and wanted.dtype.kind == "f":
            largest = max(float(np.abs(wanted).max()), 1e-6)
            worst = float(np.abs(got - wanted).max()) / largest
            if not worst < _DIFFERENCE:
                text = f"output {index} differs from {peer}'s by {worst:.2g} of the largest value"
                report.not_run("models", case, peer, text)


def _results(case: str, samples: Samples, feeds: Mapping[str, np.ndarray]) -> list[Result]:
    medians = {n: statistics.median(s) for n, s in samples.seconds.items() if n != "chipdock"}
    shapes = ", ".join(f"{name} {list(array.shape)}" for name, array in feeds.items())
    aims = {min(medians, key=medians.__getitem__): AIM_EACH}
    return compare("models", case, samples, "ms", aims=aims, note=shapes)


def _means(report: Report) -> list[Result]:
    """Geometric means over models: against each peer, and against the better one of each case."""
    out = []
    for what, models in report.compared.items():
        peers_met = dict.fromkeys(r.peer for cases in models.values() for c in cases for r in c)
        for peer in (*peers_met, BETTER):
            chosen: dict[str, list[Result]] = {}
            for model, cases in models.items():
                picked = [_of(case, peer) for case in cases]
                kept = [result for result in picked if result is not None]
                if kept:
                    chosen[model] = kept
            out.append(_mean(what, peer, chosen))
    return out


def _of(case: list[Result], peer: str) -> Result | None:
    if peer == BETTER:
        return min(case, key=lambda r: r.other.median if r.other else float("inf"))
    return next((result for result in case if result.peer == peer), None)


def _mean(what: str, peer: str, chosen: Mapping[str, list[Result]]) -> Result:
    """One mean of each model's own mean, so that a model with many sizes counts once."""
    benchmark = next(iter(chosen.values()))[0].benchmark
    unit = next(iter(chosen.values()))[0].unit

    def over(read: Callable[[Result], float]) -> float:
        return geometric_mean(
            [geometric_mean([read(r) for r in results]) for results in chosen.values()]
        )

    def side(name: str) -> Stats:
        fields = ("median", "minimum", "p10", "p90")
        values = [over(lambda r, f=f: getattr(getattr(r, name), f)) for f in fields]
        return Stats(*values, samples=sum(len(results) for results in chosen.values()))

    fields = ("median", "p10", "p90", "low", "high", "of_minima")
    means = Ratio(*(over(lambda r, f=f: getattr(r.ratio, f)) for f in fields))
    latency = benchmark == "models"
    return Result(
        benchmark,
        f"geometric mean, {what}",
        peer,
        unit,
        side("ours"),
        side("other"),
        means,
        AIM_LATENCY if latency and peer == BETTER else None,
        note=f"{len(chosen)} models, {sum(map(len, chosen.values()))} cases",
    )

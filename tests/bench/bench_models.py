# SPDX-License-Identifier: Apache-2.0
"""models: latency, first run and load of real models; memory: peak against its lower bound."""

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import chipdock
from bench import peers
from bench.harness import (
    SCALES,
    Result,
    Samples,
    Settings,
    Stats,
    compare,
    geometric_mean,
    in_turns,
    ratio,
    stats,
)
from chipdock.models import Case, ModelUnavailable, cases, entries
from chipdock.models.fetch import fetch

AIM_LATENCY = 1.0
AIM_MEMORY = 1.1
_QUICK = "ppocr-cls-mobile-v2"


def _models(settings: Settings) -> Iterator[tuple[str, Path | None, Case | None, str]]:
    """Yield name, file, timed case and the cause if there is none, of the first set."""
    for item in entries(first_only=True):
        if settings.quick and item.name != _QUICK:
            continue
        try:
            path = fetch(item, download=settings.download)
            yield item.name, path, cases(item, path)[0], ""
        except ModelUnavailable as error:
            yield item.name, None, None, str(error)


def _loads(path: Path, case: Case, threads: int, settings: Settings) -> tuple[Samples, Samples]:
    """Return load times and times of the first run after it; the file is in the page cache."""
    feeds = dict(case.feeds)
    made: dict[str, object] = {}

    def load_ours() -> None:
        made["chipdock"] = chipdock.load(path, threads=threads)

    def load_other() -> None:
        made["onnxruntime"] = peers.session(path, threads)

    def run_ours() -> None:
        _to_numpy(made["chipdock"].run(feeds))  # type: ignore[attr-defined]

    def run_other() -> None:
        made["onnxruntime"].run(None, feeds)  # type: ignore[attr-defined]

    loads = {"chipdock": load_ours, "onnxruntime": load_other}
    runs = {"chipdock": run_ours, "onnxruntime": run_other}
    load, first = Samples(), Samples()
    for turn in range(2 if settings.quick else 6):
        for name in list(loads)[:: 1 if turn % 2 == 0 else -1]:
            start = time.perf_counter()
            loads[name]()
            middle = time.perf_counter()
            runs[name]()
            end = time.perf_counter()
            load.seconds.setdefault(name, []).append(middle - start)
            first.seconds.setdefault(name, []).append(end - middle)
            load.calls[name] = first.calls[name] = 1
            made.clear()
    return load, first


def _to_numpy(outputs: "dict[str, chipdock.Array]") -> list[np.ndarray]:
    return [array.numpy() for array in outputs.values()]


def run_models(settings: Settings) -> list[Result]:
    """Return the first set against onnxruntime at one and two threads, and the geometric means."""
    results: list[Result] = []
    starts: list[Result] = []  # shown behind the latencies
    counts = (1,) if settings.quick or settings.threads == 1 else (1, settings.threads)
    paired: dict[int, list[tuple[list[float], list[float]]]] = {n: [] for n in counts}
    for name, path, case, cause in _models(settings):
        if path is None or case is None:
            results.append(Result("models", name, "onnxruntime", cause=cause))
            continue
        feeds = dict(case.feeds)
        for threads in counts:
            ours, other = chipdock.load(path, threads=threads), peers.session(path, threads)
            if other is None:
                return [Result("models", name, "onnxruntime", cause="onnxruntime is not installed")]
            runners = {
                "chipdock": lambda ours=ours, feeds=feeds: _to_numpy(ours.run(feeds)),
                "onnxruntime": lambda other=other, feeds=feeds: other.run(None, feeds),
            }
            samples = in_turns(runners, settings, sample_s=0.02, rounds=60)
            what = f"{name}, {threads} thread{'s' if threads > 1 else ''}"
            results += compare("models", what, samples, "ms", note=f"{case.name} {case.shapes}")
            paired[threads].append((samples.seconds["chipdock"], samples.seconds["onnxruntime"]))
        load, first = _loads(path, case, counts[-1], settings)
        starts += compare("load", f"{name}, load", load, "ms")
        starts += compare("load", f"{name}, first run", first, "ms")
    for threads, all_of_them in paired.items():
        if all_of_them and not settings.quick:
            results.append(_mean_result(threads, all_of_them))
    return results + starts


def _mean_result(threads: int, paired: list[tuple[list[float], list[float]]]) -> Result:
    """Return the geometric mean over models, of medians and of each quantile of the ratios."""
    found = [ratio(ours, other) for ours, other in paired]
    fields = ("median", "p10", "p90", "low", "high", "of_minima")
    mean = {field: geometric_mean([getattr(r, field) for r in found]) for field in fields}

    def over(sides: list[list[float]]) -> Stats:
        each = [stats(side, SCALES["ms"]) for side in sides]
        values = [
            geometric_mean([getattr(s, field) for s in each])
            for field in ("median", "minimum", "p10", "p90")
        ]
        return Stats(*values, samples=min(s.samples for s in each))

    return Result(
        "models",
        f"geometric mean, {threads} thread{'s' if threads > 1 else ''}",
        "onnxruntime",
        "ms",
        over([ours for ours, _ in paired]),
        over([other for _, other in paired]),
        type(found[0])(**mean),
        AIM_LATENCY,
        note=f"{len(paired)} models",
    )


def run_memory(settings: Settings) -> list[Result]:
    """Return the bytes planned for activations against the largest sum of live ones."""
    results = []
    for name, path, case, cause in _models(settings):
        if path is None or case is None:
            results.append(Result("memory", name, "lower bound", "bytes", cause=cause))
            continue
        model = chipdock.load(path)
        found = model.memory({key: value.shape for key, value in case.feeds.items()})
        ours, bound = float(found["activation_bytes"]), float(found["activation_lower_bound"])
        exact = [Stats(v, v, v, v, 1) for v in (ours, bound)]
        note = f"workspace {found['workspace_bytes']:,} B, weights {found['weight_bytes']:,} B"
        share = ratio([ours], [bound]) if bound else None
        results.append(
            Result("memory", name, "lower bound", "bytes", *exact, share, AIM_MEMORY, note=note)
        )
    return results

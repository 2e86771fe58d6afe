# SPDX-License-Identifier: Apache-2.0
"""shapes: one load that has met 200 shapes, against loads that meet one shape each."""

import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from bench import peers
from bench.harness import Result, Samples, Settings, compare, in_turns
from bench.models import transformers, vision
from bench.models.net import Net, saved

AIM = 1.1
ALONE = "a load for it alone"

Feeds = dict[str, np.ndarray]


def _pictures(count: int) -> Iterator[Feeds]:
    """Batches of 1 and 2 pictures of `count` different shapes."""
    for i in range(count):
        height, width = 33 + 2 * (i // 20), 33 + 3 * (i % 10)
        yield {"x": np.full((1 + i // 10 % 2, 3, height, width), 0.5, np.float32)}


def _sentences(count: int) -> Iterator[Feeds]:
    for i in range(count):
        yield {"input_ids": np.full((1 + i % 2, 1 + i // 2), 7, np.int64)}


def run_shapes(settings: Settings) -> list[Result]:
    """Return first, second and later visits of shapes, of a convolutional net and a transformer."""
    count = 8 if settings.quick else 200
    nets: tuple[tuple[str, Callable[[Net], None], Iterator[Feeds]], ...] = (
        ("convolutions", vision.tiny if settings.quick else vision.small, _pictures(count)),
        ("transformer", partial(transformers.llama_stack, blocks=1, width=256), _sentences(count)),
    )
    results = []
    for name, make, feeds in nets:
        with tempfile.TemporaryDirectory(prefix="chipdock-bench-") as folder:
            path = saved(make, Path(folder), name)
            results += _visits(name, path, list(feeds), settings)
    return results


def _visits(name: str, path: Path, feeds: list[Feeds], settings: Settings) -> list[Result]:
    everything = peers.runner("chipdock", path, settings.threads)
    first = [_timed(everything, each) for each in feeds]
    again = [_timed(everything, each) for each in feeds]  # each after all the others
    chosen = range(0, len(feeds), max(len(feeds) // 10, 1))
    loads = {at: peers.runner("chipdock", path, settings.threads) for at in chosen}
    alone: dict[int, list[float]] = {}
    ours: list[float] = []
    other: list[float] = []
    budget = Settings(settings.quick, settings.threads, settings.budget_s / 10)
    for at, load in loads.items():
        runners = {
            "chipdock": partial(everything, feeds[at]),
            ALONE: partial(load, feeds[at]),
        }
        samples = in_turns(runners, budget)
        ours += samples.seconds["chipdock"]
        other += samples.seconds[ALONE]
        alone[at] = samples.seconds[ALONE]
    usual = {at: sorted(times)[len(times) // 2] for at, times in alone.items()}
    rows = [
        ("second visit, at once", ours, other, AIM),
        ("first visit", [first[at] for at in usual], list(usual.values()), None),
        (f"second visit, {len(feeds) - 1} others between",
         [again[at] for at in usual], list(usual.values()), AIM),
    ]  # fmt: skip
    results = []
    for what, mine, peer, aim in rows:
        samples = Samples({"chipdock": mine, ALONE: peer}, {"chipdock": 1, ALONE: 1})
        aims = {} if aim is None else {ALONE: aim}
        results += compare("shapes", f"{name}, {what}", samples, "ms", aims=aims)
    return results


def _timed(run: peers.Runner, feeds: Feeds) -> float:
    start = time.perf_counter()
    run(feeds)
    return time.perf_counter() - start

# SPDX-License-Identifier: Apache-2.0
"""sharing: several runs of one load at once, and a run beside a process that keeps a core busy."""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np

from bench import peers
from bench.harness import Result, Run, Settings, compare, in_turns
from bench.models import transformers, vision
from bench.models.net import Net, saved

_ROUNDS = 80
_RUNS = 8
"""Runs of each thread in one turn."""

Feeds = dict[str, np.ndarray]


def run_sharing(settings: Settings) -> list[Result]:
    """Return the time of runs at once, and beside a neighbour, against that of the peers."""
    side = 16 if settings.quick else 128
    nets: tuple[tuple[str, Callable[[Net], None], Feeds], ...] = (
        ("convolutions", vision.tiny if settings.quick else vision.small,
         {"x": np.ones((1, 3, side, side), np.float32)}),
        ("transformer", partial(transformers.llama_stack, blocks=1, width=256),
         {"input_ids": np.ones((1, 32), np.int64)}),
    )  # fmt: skip
    results = []
    for name, make, feeds in nets:
        with tempfile.TemporaryDirectory(prefix="chipdock-bench-") as folder:
            path = saved(make, Path(folder), name)
            results += _at_once(name, path, feeds, settings)
            results += _beside(name, path, feeds, settings)
    return results


def _present() -> list[str]:
    return [name for name in peers.RUNTIMES if peers.present(name)]


def _at_once(name: str, path: Path, feeds: Feeds, settings: Settings) -> list[Result]:
    """Two threads that run one load, each with all the threads inside an operator."""
    with ThreadPoolExecutor(2) as pool:

        def turn(runners: list[peers.Runner]) -> None:
            list(pool.map(lambda run: [run(feeds) for _ in range(_RUNS)], runners))

        loads = {peer: peers.runners(peer, path, settings.threads, 2) for peer in _present()}
        turns: dict[str, Run] = {peer: partial(turn, load) for peer, load in loads.items()}
        samples = in_turns(turns, settings, rounds=_ROUNDS, idle_s=settings.idle_s)
    case = f"{name}, 2 times {_RUNS} runs at once, {settings.threads} threads"
    return compare("sharing", case, samples, "ms")


@contextmanager
def _neighbour() -> Iterator[None]:
    """A process that never rests."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def _beside(name: str, path: Path, feeds: Feeds, settings: Settings) -> list[Result]:
    loads = {peer: peers.runner(peer, path, settings.threads) for peer in _present()}
    turns: dict[str, Run] = {peer: partial(load, feeds) for peer, load in loads.items()}
    with _neighbour():
        samples = in_turns(turns, settings, rounds=_ROUNDS, idle_s=settings.idle_s)
    case = f"{name}, beside a busy process, {settings.threads} threads"
    return compare("sharing", case, samples, "ms")

# SPDX-License-Identifier: Apache-2.0
"""idle: what a runtime's threads, which spin after its call, cost whoever runs next.

It says how long to wait between turns (harness.IDLE_S), and that waiting matters.
"""

import tempfile
import time
from pathlib import Path

import numpy as np

from bench import peers
from bench.harness import Result, Samples, Settings, compare
from bench.models import vision
from bench.models.net import saved

PAUSES_MS = (0, 10, 20, 40, 80, 160)
_SIDE = 128


def run_idle(settings: Settings) -> list[Result]:
    """Return chipdock's time right after a run of each runtime, against that after a long pause.

    And the processor time that each burns after its run, which a busy machine does not blur.
    """
    results = []
    burnt: dict[str, list[float]] = {}
    rounds = 2 if settings.quick else 40
    with tempfile.TemporaryDirectory(prefix="chipdock-bench-") as folder:
        path = saved(vision.tiny if settings.quick else vision.small, Path(folder))
        side = 16 if settings.quick else _SIDE
        feeds = {"x": np.ones((1, 3, side, side), np.float32)}
        ours = peers.runner("chipdock", path, settings.threads)
        for name in peers.RUNTIMES:
            if not peers.present(name):
                results.append(Result("idle", name, cause=f"{name} is not installed"))
                continue
            before = peers.runner(name, path, settings.threads)
            samples = _after(before, ours, feeds, rounds)
            longest = f"{PAUSES_MS[-1]} ms after it"
            for pause in PAUSES_MS[:-1]:
                pair = {"chipdock": samples[pause], longest: samples[PAUSES_MS[-1]]}
                case = f"chipdock {pause} ms after a run of {name}, {settings.threads} threads"
                found = Samples(pair, dict.fromkeys(pair, 1))
                results += compare("idle", case, found, "ms")
            burnt[name] = _burnt(before, feeds, rounds)
            del before
    found = Samples(burnt, dict.fromkeys(burnt, 1))
    case = f"processor time in the {PAUSES_MS[-1]} ms after a run, {settings.threads} threads"
    return results + compare("idle", case, found, "ms")


def _burnt(run: peers.Runner, feeds: dict[str, np.ndarray], rounds: int) -> list[float]:
    """Seconds of processor time that this process takes while it sleeps after a run."""
    found = []
    for _ in range(rounds):
        run(feeds)
        start = time.process_time()
        time.sleep(PAUSES_MS[-1] / 1000)
        found.append(time.process_time() - start)
    return found


def _after(
    before: peers.Runner, ours: peers.Runner, feeds: dict[str, np.ndarray], rounds: int
) -> dict[int, list[float]]:
    """Seconds of one run of ours, by the pause after another's run; pauses take turns."""
    found: dict[int, list[float]] = {pause: [] for pause in PAUSES_MS}
    for turn in range(rounds):
        for pause in PAUSES_MS[:: 1 if turn % 2 == 0 else -1]:
            ours(feeds)
            before(feeds)
            time.sleep(pause / 1000)
            start = time.perf_counter()
            ours(feeds)
            found[pause].append(time.perf_counter() - start)
    return found

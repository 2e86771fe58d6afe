# SPDX-License-Identifier: Apache-2.0
"""How anything is measured: turns, warm-up, medians, ratios with their spread.

Two runners are never compared by times taken one after the other: on a shared machine the second
would meet another machine. They take turns, A B B A, and a ratio is the median of the ratios of
neighbours. What is measured stands in the bench_*.py files.
"""

import gc
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

Clock = Callable[[], float]
Run = Callable[[], object]

LONG_CALL_S = 0.5
# Twice the time for which any of the runtimes was seen spinning after a call; see bench_idle.py.
IDLE_S = 0.08


@dataclass(frozen=True)
class Settings:
    """What the command line says to every benchmark.

    Attributes:
        quick: Smallest sizes, two samples: shows that a benchmark runs, its numbers mean nothing.
        threads: Threads inside an operator, for chipdock and for every peer that can be told.
        budget_s: Seconds that one comparison may take, about.
        download: Whether models may be downloaded.
        essential: Only the models, and of each the sizes, that a short run needs.
        models: Names of models, with * and ?; none stands for all.
    """

    quick: bool = False
    threads: int = 1
    budget_s: float = 3.0
    download: bool | None = None
    essential: bool = False
    models: tuple[str, ...] = ()

    @property
    def idle_s(self) -> float:
        """Seconds before each turn in which nothing runs, for runtimes whose threads spin."""
        return 0.0 if self.quick else IDLE_S

    @property
    def short(self) -> bool:
        """Whether the fewest samples that still take turns both ways are enough."""
        return self.essential or self.budget_s < 1.0


@dataclass(frozen=True)
class Stats:
    """Times of one runner, in the unit of its result.

    Attributes:
        median, minimum, p10, p90: Of the samples.
        samples: How many there were.
        calls: Calls in one sample; a sample is their mean.
    """

    median: float
    minimum: float
    p10: float
    p90: float
    samples: int
    calls: int = 1


@dataclass(frozen=True)
class Ratio:
    """Ours divided by the peer's.

    Attributes:
        median: Of the paired ratios.
        p10, p90: Of the paired ratios.
        low, high: 95 % confidence interval of the median, by bootstrap.
        of_minima: Fastest sample of ours by the fastest of the peer: what is left without noise.
    """

    median: float
    p10: float
    p90: float
    low: float
    high: float
    of_minima: float


@dataclass(frozen=True)
class Result:
    """One line of the report.

    Attributes:
        benchmark: Name that --only takes.
        case: What was measured, unique in the benchmark.
        peer: What it is compared with, "" if with nothing.
        unit: "ns", "us", "ms" or "bytes"; less is better.
        ours: Of chipdock, None if it was not run.
        other: Of the peer.
        ratio: Ours by the peer's; below 1 chipdock is better.
        aim: Largest ratio wanted, or with `aim_is_difference` the largest difference in `unit`.
        note: What a reader must know.
        cause: Why it was not run, "" if it was.
    """

    benchmark: str
    case: str
    peer: str = ""
    unit: str = "us"
    ours: Stats | None = None
    other: Stats | None = None
    ratio: Ratio | None = None
    aim: float | None = None
    aim_is_difference: bool = False
    note: str = ""
    cause: str = ""

    @property
    def difference(self) -> float | None:
        """Median of ours less median of the peer's, in `unit`."""
        return self.ours.median - self.other.median if self.ours and self.other else None

    @property
    def reached(self) -> bool | None:
        """Whether the aim was reached; None without an aim or a measurement."""
        value = self.difference if self.aim_is_difference else self.ratio and self.ratio.median
        return None if self.aim is None or value is None else value <= self.aim


def quantile(values: Sequence[float], q: float) -> float:
    """Return the q-quantile, linear between neighbours."""
    ordered = sorted(values)
    at = q * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def stats(samples: Sequence[float], scale: float = 1.0, calls: int = 1) -> Stats:
    """Summarise samples, each multiplied by `scale`."""
    scaled = [sample * scale for sample in samples]
    return Stats(
        statistics.median(scaled),
        min(scaled),
        quantile(scaled, 0.1),
        quantile(scaled, 0.9),
        len(scaled),
        calls,
    )


def ratio(ours: Sequence[float], other: Sequence[float], resamples: int = 1000) -> Ratio:
    """Compare samples that were taken in turns; the i-th of both are neighbours in time."""
    paired = [a / b for a, b in zip(ours, other, strict=True)]
    chance = random.Random(7)
    medians = [
        statistics.median(chance.choices(paired, k=len(paired)))
        for _ in range(resamples if len(paired) > 1 else 0)
    ]
    return Ratio(
        statistics.median(paired),
        quantile(paired, 0.1),
        quantile(paired, 0.9),
        quantile(medians, 0.025) if medians else paired[0],
        quantile(medians, 0.975) if medians else paired[0],
        min(ours) / min(other),
    )


@dataclass
class Samples:
    """Seconds per call by runner, and the calls in one sample of each."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)


def _time(run: Run, calls: int, clock: Clock) -> float:
    start = clock()
    for _ in range(calls):
        run()
    return (clock() - start) / calls


def _pause(seconds: float, sleep: Callable[[float], None]) -> None:
    if seconds > 0:
        sleep(seconds)


def in_turns(
    runners: Mapping[str, Run],
    settings: Settings,
    *,
    sample_s: float = 5e-4,
    rounds: int = 1000,
    least: int = 6,
    idle_s: float = 0.0,
    clock: Clock = time.perf_counter,
    sleep: Callable[[float], None] = time.sleep,
) -> Samples:
    """Time runners in turns: A B C, C B A, A B C, …

    Args:
        runners: What to call, by name.
        settings: Gives the budget; quick means two rounds of one call.
        sample_s: Seconds one sample should last at least: long for the clock, and so short that
            most samples are not interrupted by other processes.
        rounds: Most samples of each runner.
        least: Fewest samples of each, however long they take; even.
        idle_s: Seconds in which nothing runs before each turn. Threads of a runtime spin for a
            while after its call, on cores that the next one in turn would have to share.
        clock: Seconds; another one in tests.
        sleep: As time.sleep; another one in tests.

    Returns:
        Samples; each is preceded by a call that is not timed, so that caches which a peer filled,
        and threads that went to sleep meanwhile, are not charged to the next one. A call of more
        than half a second has no such call in front, which would be lost in it.
    """
    out = Samples({name: [] for name in runners}, {})
    long: dict[str, bool] = {}
    pauses = 0.0
    for name, run in runners.items():
        _pause(idle_s, sleep)
        run()
        once = _time(run, 1, clock)
        if not settings.quick and once < LONG_CALL_S:
            once = min(once, _time(run, 3, clock))
        long[name] = once > LONG_CALL_S
        wanted = 1 if settings.quick else int(sample_s / max(once, 1e-9)) + 1
        out.calls[name] = min(wanted, 100_000)
    order = list(runners)
    start = clock()
    collecting = gc.isenabled()
    gc.disable()
    try:
        for number in range(2 if settings.quick else rounds):
            for name in order if number % 2 == 0 else reversed(order):
                before = clock()
                _pause(idle_s, sleep)
                pauses += clock() - before
                if not long[name]:
                    runners[name]()
                out.seconds[name].append(_time(runners[name], out.calls[name], clock))
            # The same number of both directions; pauses are not on the budget.
            spent = clock() - start - pauses
            if number >= least - 1 and number % 2 == 1 and spent > settings.budget_s:
                break
    finally:
        if collecting:
            gc.enable()
    return out


SCALES = {"ns": 1e9, "us": 1e6, "ms": 1e3, "bytes": 1.0}


def compare(
    benchmark: str,
    case: str,
    samples: Samples,
    unit: str,
    *,
    aims: Mapping[str, float] | None = None,
    note: str = "",
    ours: str = "chipdock",
) -> list[Result]:
    """Return one result per peer, each against the runner called `ours`.

    Args:
        benchmark: Name of the benchmark.
        case: What was measured.
        samples: From in_turns.
        unit: "ns", "us", "ms" or "bytes"; then samples are no seconds.
        aims: Largest ratio wanted, by peer.
        note: For every result.
        ours: Name of chipdock's own runner.
    """
    scale = SCALES[unit]
    mine = samples.seconds[ours]
    return [
        Result(
            benchmark,
            case,
            name,
            unit,
            stats(mine, scale, samples.calls[ours]),
            stats(seconds, scale, samples.calls[name]),
            ratio(mine, seconds),
            (aims or {}).get(name),
            note=note,
        )
        for name, seconds in samples.seconds.items()
        if name != ours
    ]


def geometric_mean(values: Sequence[float]) -> float:
    """Return the geometric mean of positive values."""
    return statistics.geometric_mean(values)

# SPDX-License-Identifier: Apache-2.0
"""Runs the catalogue's models on one device and records how they compare with onnxruntime.

Knows chipdock only through what a loaded model can do, so any loader can be handed in. Printing is
left to __main__.py.
"""

import statistics
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from chipdock.cli.exit_codes import ExitCode, worst
from chipdock.models.catalogue import Entry
from chipdock.models.check import CaseResult, Runner, check_case, reference_runner
from chipdock.models.fetch import ModelUnavailable, fetch
from chipdock.models.tasks import cases

__all__ = ["SCHEMA", "Loaded", "Loader", "Record", "exit_code", "run_model"]

SCHEMA = "chipdock.models.demo/1"

_MAX_REPEATS = 9
_TIME_BUDGET_S = 2.0


class _Node(Protocol):
    @property
    def device(self) -> str: ...
    @property
    def placement(self) -> str: ...


class _Explain(Protocol):
    @property
    def nodes(self) -> Sequence[_Node]: ...


class Loaded(Protocol):
    """What the demonstration needs of a loaded model; `chipdock.Model` has it."""

    def run(self, feeds: dict[str, NDArray[Any]], /) -> Mapping[str, Any]:
        """Run once."""

    def explain(self) -> _Explain:
        """Say where each node ran."""


Loader = Callable[[Path], Loaded]


_NO_WORK = frozenset({"folded", "view"})


@dataclass(frozen=True)
class Record:
    """What became of one model.

    Attributes:
        model: Name in the catalogue.
        domain: What it is for.
        verdict: "PASS", "FAIL" or "NOT_RUN".
        cause: Why it is not a pass, else "".
        on_device: Nodes that ran on the asked device.
        elsewhere: Nodes that ran on another one, by its name.
        cases: The judged cases.
        chipdock_ms: Median time of the first case, None when it was not timed.
        reference_ms: The same for onnxruntime.
    """

    model: str
    domain: str
    verdict: str
    cause: str = ""
    on_device: int = 0
    elsewhere: Mapping[str, int] | None = None
    cases: tuple[CaseResult, ...] = ()
    chipdock_ms: float | None = None
    reference_ms: float | None = None

    @property
    def relative(self) -> float | None:
        """Largest relative difference of all cases, None when nothing was compared."""
        found = [case.relative for case in self.cases if case.outputs]
        return max(found) if found else None

    def as_json(self) -> dict[str, Any]:
        """Return plain values only; infinite differences become None."""
        data = asdict(self)
        data["relative"] = self.relative
        for case, plain in zip(self.cases, data["cases"], strict=True):
            plain["ok"] = case.ok
        plain_data: dict[str, Any] = _finite(data)
        return plain_data


def _finite(value: Any) -> Any:  # noqa: ANN401  walks plain JSON values
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _numpy_runner(model: Loaded) -> Runner:
    def run(feeds: dict[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        return {name: np.asarray(array) for name, array in model.run(feeds).items()}

    return run


def _medians(runners: Sequence[Runner], feeds: Mapping[str, NDArray[Any]]) -> list[float]:
    """Return the median time of each runner in ms; the runners take turns."""
    times: list[list[float]] = [[] for _ in runners]
    end = time.perf_counter() + _TIME_BUDGET_S
    for _ in range(_MAX_REPEATS):
        for runner, taken in zip(runners, times, strict=True):
            start = time.perf_counter()
            runner(dict(feeds))
            taken.append((time.perf_counter() - start) * 1e3)
        if time.perf_counter() > end:
            break
    return [statistics.median(taken) for taken in times]


def _judge(item: Entry, path: Path, load: Loader, device: str, threads: int | None) -> Record:
    # Everything that may be unavailable comes before the judged side runs at all.
    reference = reference_runner(path, threads)
    todo = cases(item, path)
    try:
        model = load(path)
    except Exception as error:  # a model that does not load is a result
        return Record(item.name, item.domain, "FAIL", f"load: {type(error).__name__}: {error}")
    runner = _numpy_runner(model)
    results = tuple(check_case(case, runner, reference) for case in todo)
    causes = [f"{result.case}: {result.cause}" for result in results if not result.ok]
    if causes:
        return Record(item.name, item.domain, "FAIL", " / ".join(causes), cases=results)
    mine, theirs = _medians((runner, reference), todo[0].feeds)
    # Folded nodes and views do no work in a run, so they are nowhere.
    working = [n for n in model.explain().nodes if n.placement not in _NO_WORK]
    places = Counter(str(node.device) for node in working)
    here = places.pop(device, 0)
    return Record(item.name, item.domain, "PASS", "", here, dict(places), results, mine, theirs)


def run_model(
    item: Entry,
    load: Loader,
    device: str,
    *,
    threads: int | None = None,
    log: Callable[[str], None] = lambda _: None,
) -> Record:
    """Fetch, load, run and judge one model.

    Args:
        item: The model.
        load: Loads a file for the device, most often through `chipdock.load`.
        device: Name of the device that the nodes should run on.
        threads: Threads for onnxruntime; hand the same number to `load`.
        log: Called with a line before something slow.

    Returns:
        The record. A model or input that cannot be had gives NOT_RUN; an error of the device gives
        FAIL.
    """
    try:
        return _judge(item, fetch(item, log=log), load, device, threads)
    except ModelUnavailable as error:
        return Record(item.name, item.domain, "NOT_RUN", str(error))


_VERDICTS = {"PASS": ExitCode.GOOD, "FAIL": ExitCode.FAILURES, "NOT_RUN": ExitCode.NOT_RUN}


def exit_code(records: Sequence[Record]) -> ExitCode:
    """Return the exit code of a run: of its verdicts and lost devices the one that weighs most."""
    codes = [_VERDICTS[record.verdict] for record in records] or [ExitCode.NOT_RUN]
    if any("DEVICE_LOST" in record.cause for record in records):
        codes.append(ExitCode.INFRASTRUCTURE)
    return worst(codes)

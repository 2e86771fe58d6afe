# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: PLC0415  optional and slow packages are imported where they are used
"""Runs a loaded model on feeds: times, outputs, operators, and the comparison with onnxruntime."""

import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from chipdock.cli._command import Failure
from chipdock.cli._feeds import Feed
from chipdock.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    import chipdock
    from chipdock.models import Runner

__all__ = [
    "output_data",
    "placement_data",
    "profile_once",
    "reference",
    "run_feed",
    "spread",
    "timed",
]

Outputs = Mapping[str, NDArray[Any]]


def timed(function: Callable[[], Any]) -> tuple[Any, float]:
    """Return what `function` returns and the milliseconds it took."""
    start = time.perf_counter()
    value = function()
    return value, (time.perf_counter() - start) * 1e3


def spread(times: list[float]) -> dict[str, float | int]:
    """Return runs, min_ms, median_ms, p90_ms and max_ms of times in ms."""
    return {
        "runs": len(times),
        "min_ms": min(times),
        "median_ms": statistics.median(times),
        "p90_ms": float(np.percentile(times, 90)),
        "max_ms": max(times),
    }


def _plain(value: Any) -> NDArray[Any]:  # noqa: ANN401  whatever a model computes
    """A value as one numpy array: strings, and the elements of a sequence, as objects."""
    if isinstance(value, np.ndarray):
        return value
    if value is not None and not isinstance(value, list):
        array: NDArray[Any] = value.numpy()
        return array
    items = value or []
    out = np.empty(len(items), object)
    out[:] = items
    return out


def output_data(name: str, array: NDArray[Any]) -> dict[str, Any]:
    """Return name, dtype, shape and the range of one output; no range for strings and nothing."""
    data: dict[str, Any] = {"name": name, "dtype": str(array.dtype), "shape": list(array.shape)}
    data |= {"min": None, "max": None, "mean": None, "nan": 0}
    if array.size == 0 or array.dtype.kind in "OSUTc":
        return data
    values = array.astype(np.float64)
    finite = values[~np.isnan(values)]
    data["nan"] = int(values.size - finite.size)
    if finite.size:
        data |= {"min": finite.min(), "max": finite.max(), "mean": finite.mean()}
    return data


def placement_data(model: "chipdock.Model") -> tuple[dict[str, int], list[dict[str, Any]]]:
    """Return the number of nodes by placement, and every node."""
    explained = model.explain()
    nodes = [
        {
            "name": node.name,
            "op": node.op,
            "since_version": node.since_version,
            "placement": node.placement,
            "device": node.device,
            "kernel": node.kernel,
            "reason": node.reason,
            "layout": node.layout,
        }
        for node in explained.nodes
    ]
    return explained.counts, nodes


def profile_once(model: "chipdock.Model", feed: Feed, trace: str | None) -> list[dict[str, Any]]:
    """Run once under the profiler.

    Returns:
        name, calls and ms of each operator and copy, the longest first.

    Raises:
        Failure: `trace` cannot be written (exit code 1).
    """
    import chipdock

    ran = False
    try:
        with chipdock.profile(trace) as profile:
            model.run(feed.arrays)
            ran = True
    except chipdock.errors.UnavailableError as error:
        if not ran:
            raise
        raise Failure(str(error), ExitCode.FAILURES) from error
    return [
        {"name": name, "calls": calls, "ms": spent / 1e6}
        for name, (calls, spent) in profile.total_by_name().items()
    ]


def reference(path: Path, threads: int | None, wanted: bool | None) -> "Runner | None":
    """Return onnxruntime as a runner.

    Args:
        path: The model.
        threads: Threads inside an operator.
        wanted: False gives None. With None, where onnxruntime cannot be used, so does that.

    Raises:
        Failure: It was asked for and cannot be used; the runner raises it when a run fails there
            (exit code 3).
    """
    if wanted is False:
        return None
    from chipdock.models.check import reference_runner

    try:
        inner = reference_runner(path, threads)
    except Exception as error:  # onnxruntime's errors have no base of their own
        if wanted:
            raise _no_reference(error) from error
        return None

    def run(feeds: dict[str, NDArray[Any]]) -> Outputs:
        try:
            return inner(feeds)
        except Exception as error:  # as above
            raise _no_reference(error) from error

    return run


def _no_reference(error: Exception) -> Failure:
    text = str(error)
    known = text.startswith("UNAVAILABLE: ")
    return Failure(text if known else f"UNAVAILABLE: onnxruntime: {text}", ExitCode.NOT_RUN)


def _compared(feed: Feed, got: Outputs, runner: "Runner") -> dict[str, Any]:
    from chipdock.models import compare_outputs

    want = runner(dict(feed.arrays))
    found = compare_outputs(dict(got), dict(want))
    return {
        "relative": max((item.relative for item in found), default=0.0),
        "largest": max((item.largest for item in found), default=0.0),
        "cause": "; ".join(item.cause for item in found if item.cause),
    }


def run_feed(
    model: "chipdock.Model", feed: Feed, runner: "Runner | None"
) -> tuple[dict[str, Any], ExitCode]:
    """Run once and judge.

    Returns:
        One entry of "cases" of the schema of `run`, and FAILURES when the answer is wrong or an
        output is further from the reference than compare_outputs allows.
    """
    outputs = {name: _plain(value) for name, value in model.run(feed.arrays).items()}
    difference = _compared(feed, outputs, runner) if runner is not None else None
    cause = difference["cause"] if difference is not None else ""
    answer = None
    if feed.decode is not None and not cause:
        answer = feed.decode(outputs)
        if answer != feed.expected:
            cause = f"the answer is {answer!r}, right is {feed.expected!r}"
    data = {
        "name": feed.name,
        "inputs": [output_data(name, array) for name, array in feed.arrays.items()],
        "outputs": [output_data(name, array) for name, array in outputs.items()],
        "difference": difference,
        "answer": answer,
        "expected": feed.expected if feed.decode is not None else None,
        "cause": cause,
    }
    return data, ExitCode.FAILURES if cause else ExitCode.GOOD

# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: PLC0415  optional and slow packages are imported where they are used
"""Compares what a runner computes with onnxruntime, number by number and by the answer.

A runner is any function from input arrays to output arrays, so this file knows no chip. The
limits are those that independent runtimes keep to among themselves; none is widened for a plugin.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipdock.models.fetch import ModelUnavailable
from chipdock.models.tasks import Arrays, Case

__all__ = [
    "ABSOLUTE_FLOOR",
    "RELATIVE_LIMIT",
    "CaseResult",
    "OutputDifference",
    "Runner",
    "check_case",
    "compare_outputs",
    "reference_runner",
]

Runner = Callable[[dict[str, NDArray[Any]]], Mapping[str, NDArray[Any]]]

RELATIVE_LIMIT = 1e-4
"""Of the largest absolute reference value of an output. Independent float32 runtimes differ by
9e-7 in the median and 4.8e-5 at worst."""

ABSOLUTE_FLOOR = 1e-6
"""Smallest limit, for outputs whose values are all next to zero."""


@dataclass(frozen=True)
class OutputDifference:
    """How far one output is from the reference.

    Attributes:
        name: Output name.
        largest: Largest absolute difference; inf when the outputs cannot be compared.
        scale: Largest finite absolute reference value.
        limit: Largest difference allowed.
        cause: Why it failed, "" when it is within the limit.
    """

    name: str
    largest: float
    scale: float
    limit: float
    cause: str

    @property
    def ok(self) -> bool:
        """Whether the output is within its limit."""
        return not self.cause

    @property
    def relative(self) -> float:
        """`largest` divided by `scale`; 0.0 when both are zero."""
        if self.largest == 0.0:
            return 0.0
        return self.largest / self.scale if self.scale else math.inf


@dataclass(frozen=True)
class CaseResult:
    """The judgement of one case.

    Attributes:
        case: Name of the case.
        shapes: Its input shapes.
        outputs: One entry per output of the reference.
        answer: The answer read out of the runner's outputs, "" when it could not be read.
        expected: The right answer.
        cause: What failed, "" when nothing did.
    """

    case: str
    shapes: str
    outputs: tuple[OutputDifference, ...]
    answer: str
    expected: str
    cause: str

    @property
    def ok(self) -> bool:
        """Whether every output is within its limit and the answer is right."""
        return not self.cause

    @property
    def relative(self) -> float:
        """Largest relative difference of all outputs; inf when nothing was compared."""
        return max((output.relative for output in self.outputs), default=math.inf)


def _compare(name: str, got: NDArray[Any] | None, want: NDArray[Any]) -> OutputDifference:
    def refused(cause: str) -> OutputDifference:
        return OutputDifference(name, math.inf, 0.0, 0.0, cause)

    if got is None:
        return refused(f"output {name} is missing")
    if got.dtype != want.dtype or got.shape != want.shape:
        return refused(
            f"output {name} is {got.dtype}{list(got.shape)}, "
            f"the reference is {want.dtype}{list(want.shape)}"
        )
    if want.dtype.kind not in "fc":
        equal = np.array_equal(got, want)
        return (
            OutputDifference(name, 0.0, 0.0, 0.0, "")
            if equal
            else refused(f"output {name} differs in {np.count_nonzero(got != want)} values")
        )
    kind = np.complex128 if want.dtype.kind == "c" else np.float64
    x, y = got.astype(kind), want.astype(kind)
    finite = np.isfinite(y)
    if not np.array_equal(x[~finite], y[~finite], equal_nan=True):
        return refused(f"output {name} differs where the reference is NaN or infinite")
    if not np.isfinite(x[finite]).all():
        return refused(f"output {name} has NaN or infinite values where the reference has none")
    largest = float(np.abs(x[finite] - y[finite]).max(initial=0.0))
    scale = float(np.abs(y[finite]).max(initial=0.0))
    limit = max(RELATIVE_LIMIT * scale, ABSOLUTE_FLOOR)
    cause = "" if largest <= limit else f"output {name} is off by {largest:.3g}, limit {limit:.3g}"
    return OutputDifference(name, largest, scale, limit, cause)


def compare_outputs(got: Arrays, want: Arrays) -> tuple[OutputDifference, ...]:
    """Compare outputs by name.

    Args:
        got: Outputs of the runner.
        want: Outputs of the reference. Integers, booleans and strings must be equal; floats may
            differ by RELATIVE_LIMIT of the largest reference value of the output.

    Returns:
        One difference per output of `want`, in its order.
    """
    return tuple(_compare(name, got.get(name), array) for name, array in want.items())


def check_case(case: Case, runner: Runner, reference: Runner) -> CaseResult:
    """Run one case on both and judge the runner.

    Args:
        case: The case.
        runner: What is judged. An exception out of it fails the case and is its cause.
        reference: Most often `reference_runner(path)`.

    Returns:
        The judgement; it also fails when the reference itself gives a wrong answer.
    """
    want = reference(dict(case.feeds))
    try:
        got = runner(dict(case.feeds))
    except Exception as error:  # a failure of the judged side is a result
        cause = f"{type(error).__name__}: {error}"
        return CaseResult(case.name, case.shapes, (), "", case.expected, cause)
    outputs = compare_outputs(got, want)
    causes = [output.cause for output in outputs if output.cause]
    answer = ""
    if all(math.isfinite(output.largest) for output in outputs):
        answer = case.decode(got)
        if answer != case.expected:
            causes.append(f"the answer is {answer!r}, right is {case.expected!r}")
        if case.decode(want) != case.expected:
            causes.append("the reference gives a wrong answer too")
    return CaseResult(case.name, case.shapes, outputs, answer, case.expected, "; ".join(causes))


def reference_runner(model: Path, threads: int | None = None) -> Runner:
    """Return onnxruntime on the CPU with its default optimisations.

    Args:
        model: ONNX file.
        threads: Threads inside an operator; None is onnxruntime's own choice.

    Raises:
        ModelUnavailable: onnxruntime is not installed.
    """
    try:
        import onnxruntime as ort
    except ImportError as error:
        raise ModelUnavailable("the reference", [f"onnxruntime cannot be used: {error}"]) from error
    options = ort.SessionOptions()
    options.log_severity_level = 3
    if threads is not None:
        options.intra_op_num_threads = threads
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]

    def run(feeds: dict[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        return dict(zip(names, session.run(names, feeds), strict=True))

    return run

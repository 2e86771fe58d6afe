# SPDX-License-Identifier: Apache-2.0
"""A wrong runner fails, in numbers and in the answer; a right one passes."""

import numpy as np
import pytest

from chipdock.cli.exit_codes import ExitCode
from chipdock.models import Case, check_case, compare_outputs
from chipdock.models.catalogue import Entry
from chipdock.models.demo import Record, exit_code, run_model

X = np.linspace(-2.0, 2.0, 12, dtype=np.float32).reshape(3, 4)


def right(feeds):
    return {"y": feeds["x"] * np.float32(3), "n": np.arange(3)}


CASE = Case("rows", {"x": X}, lambda out: str(int(out["y"].argmax())), "11")


def test_equal_outputs_pass():
    result = check_case(CASE, right, right)
    assert result.ok
    assert result.answer == "11"
    assert result.relative == 0.0


@pytest.mark.parametrize(("factor", "ok"), [(1 + 5e-5, True), (1 + 2e-4, False)])
def test_limit_is_a_ten_thousandth_of_the_largest_value(factor, ok):
    def runner(feeds):
        return {**right(feeds), "y": right(feeds)["y"] * np.float32(factor)}

    result = check_case(CASE, runner, right)
    assert result.ok is ok
    assert ok or "output y is off by" in result.cause


@pytest.mark.parametrize(
    ("wrong", "cause"),
    [
        ({"y": X * 3}, "output n is missing"),
        ({"y": X * 3, "n": np.arange(3) + 1}, "output n differs in 3 values"),
        ({"y": X * 3, "n": np.arange(3, dtype=np.int32)}, "output n is int32"),
        ({"y": (X * 3).T, "n": np.arange(3)}, r"output y is float32[4, 3]"),
        ({"y": np.full_like(X, np.nan), "n": np.arange(3)}, "output y has NaN"),
    ],
)
def test_output_that_cannot_be_compared_fails_with_its_cause(wrong, cause):
    result = check_case(CASE, lambda _: wrong, right)
    assert not result.ok
    assert cause in result.cause


def test_exception_of_the_runner_is_the_cause():
    def runner(_):
        raise MemoryError("OUT_OF_MEMORY: alloc of 1 B failed")

    result = check_case(CASE, runner, right)
    assert not result.ok
    assert "OUT_OF_MEMORY" in result.cause


def test_wrong_answer_fails_although_the_numbers_agree():
    case = Case("rows", CASE.feeds, CASE.decode, "7")
    result = check_case(case, right, right)
    assert "the answer is '11', right is '7'" in result.cause
    assert "reference gives a wrong answer too" in result.cause


def test_nan_and_infinity_of_the_reference_must_be_met():
    want = {"y": np.array([np.nan, np.inf, 1.0], np.float32)}
    assert all(item.ok for item in compare_outputs(want, want))
    got = {"y": np.array([np.nan, -np.inf, 1.0], np.float32)}
    assert "NaN or infinite" in compare_outputs(got, want)[0].cause


def test_empty_and_tiny_outputs_have_a_floor():
    empty = {"y": np.zeros((0, 3), np.float32)}
    assert compare_outputs(empty, empty)[0].ok
    tiny = {"y": np.zeros(3, np.float32)}
    assert compare_outputs({"y": tiny["y"] + np.float32(1e-7)}, tiny)[0].ok


def test_missing_model_is_not_run_and_never_a_pass(monkeypatch):
    monkeypatch.setenv("CHIPDOCK_MODEL_PATH", "")
    item = Entry(name="own", sha256="0" * 64, licence="MIT", domain="test", filename="own.onnx")
    record = run_model(item, lambda path: pytest.fail(f"loaded {path}"), "cpu:0")
    assert record.verdict == "NOT_RUN"
    assert exit_code([record]) == 3


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [("", 3), ("PASS", 0), ("PASS FAIL", 1), ("FAIL NOT_RUN", 3), ("PASS LOST", 5)],
)
def test_exit_codes_follow_the_one_table(verdicts, code):
    records = [
        Record("m", "d", "FAIL", "run: DEVICE_LOST: gone")
        if verdict == "LOST"
        else Record("m", "d", verdict)
        for verdict in verdicts.split()
    ]
    assert exit_code(records) is ExitCode(code)

# SPDX-License-Identifier: Apache-2.0
"""Operators without a kernel that run as what ONNX defines them by, on the device's own kernels."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import chipdock
from chipdock.conformance.absence import absent
from chipdock.conformance.capabilities import is_function
from chipdock.conformance.journal import read
from chipdock.conformance.numerics.judge import Judge
from chipdock.conformance.opcases.expansion import EXPANDED, stepwise

ALTERED = Path(os.environ["CHIPDOCK_TEST_LIBDIR"]) / "libaltered.so"
HIDDEN = "Relu,Softplus,Selu,Gelu,ReduceL2,ReduceLogSumExp,LayerNormalization,Bernoulli,Clip,Abs"
CASES = (
    "L2.op.softplus.f32.wide", "L2.op.selu.bf16.back", "L2.op.gelu.f64.set0",
    "L2.op.reducel2.f64.last", "L2.op.reducelogsumexp.f32.large_values",
    "L2.op.layernormalization.f64.wide", "L2.op.bernoulli.f32.never", "L2.op.bernoulli.f16.always",
    "L2.op.relu.f32.n17", "L2.op.clip.bf16.high", "L2.onnx.abs.f32.abs",
)  # fmt: skip


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    """A run on the CPU plugin without some of its kernels."""
    out = tmp_path_factory.mktemp("expanded") / "out"
    words = [word for case_id in CASES for word in ("--case", case_id)]
    environment = os.environ | {
        "CHIPDOCK_ALTERED_BASE": str(chipdock.device("cpu:0").plugin.path),
        "CHIPDOCK_ALTERED_HIDES": HIDDEN,
    }
    command = [sys.executable, "-m", "chipdock.conformance.cli", "--plugin", str(ALTERED),
               "--device", "altered:0", "--out", str(out), *words]  # fmt: skip
    subprocess.run(command, env=environment, capture_output=True, check=False)
    return read(out)


@pytest.mark.slow
@pytest.mark.parametrize("case_id", CASES[:-2])
def test_the_body_on_kernels_of_the_device_is_a_result(record, case_id):
    if case_id == "L2.op.softplus.f32.wide":  # its body wants Abs, which is hidden
        assert record.cases[case_id].outcome == "UNSUPPORTED"
        return
    found = record.cases[case_id]
    assert found.outcome == "PASS", found.reason
    assert len(found.evidence[EXPANDED]) > 1


@pytest.mark.slow
def test_what_cannot_be_expanded_is_absent(record):
    clip = record.cases["L2.op.clip.bf16.high"]
    assert clip.outcome == "UNSUPPORTED", clip.reason
    assert "its body does not take its inputs" in clip.reason
    assert record.cases["L2.onnx.abs.f32.abs"].reason == "lacks op:Abs:f32"
    missing = {row.op: row.dtypes for row in absent(record)}
    assert missing["Abs"] == ("any",)
    assert "Relu" not in missing, "it runs as other operators, so it blocks no model"


def test_functions_of_onnx_are_known():
    asked = ("Relu", "Abs", "MatMulInteger", "ai.onnx.preview.training::Adam", "com.acme::Relu")
    assert [op for op in asked if is_function(op)] == [asked[0], *asked[2:4]]


def test_each_step_may_be_rounded():
    case = Judge("U", "Gelu")
    whole = SimpleNamespace(evidence={})
    steps = SimpleNamespace(evidence={EXPANDED: ["Mul", "Erf", "Add"]})
    assert stepwise(case, whole, "f32") is case
    assert stepwise(case, steps, "i32") is case
    assert stepwise(Judge("E"), steps, "f32").tolerance == "E"
    made = stepwise(case, steps, "bf16")
    assert (made.tolerance, made.factor, made.own_unit, made.steps) == ("R", 6.0, True, 3)
    assert not stepwise(case, steps, "f32").own_unit

# SPDX-License-Identifier: Apache-2.0
"""Operator cases on the reference plugin: what passes, what fails, what is unsupported."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from chipdock.conformance import opcases
from chipdock.conformance.case import Case, CheckError, NotSupported
from chipdock.conformance.numerics.judge import Expected
from chipdock.conformance.opcases import execute, onnx_nodes, run_random
from chipdock.conformance.opcases.fills import make_array
from chipdock.conformance.opcases.node import set_view
from chipdock.conformance.opcases.spec import In, ints, pick, variant
from chipdock.conformance.target import HostLacks, Session, Target

SUITE = Path(opcases.__path__[0]).parent / "suite" / "l2"


@pytest.fixture(scope="module")
def session():
    return Session("cpu:0")


@pytest.fixture
def target(session):
    return Target(session, Case("L2.op.any.f32.test"))


def add(**extra):
    return variant("Add", "f32", "t", [In("f32", (3, 4)), In("f32", (4,))], {}, shape_class="nd",
                   tolerance="U", **extra)[1]  # fmt: skip


def test_a_right_result_leaves_evidence_and_a_digest(target):
    execute.run_operator(target, add())
    assert {"metric", "value", "limit", "max_ulp", "rel_l2", "cosine"} <= set(target.evidence)
    assert len(target.digest_text) == 64
    assert not target.remarks


def test_a_wrong_reference_is_seen(target, monkeypatch):
    real = execute.reference

    def off(*arguments):
        rows = real(*arguments)
        value = rows[0].value.copy()
        value[1, 2] += 1e-6
        return [Expected(value)]

    monkeypatch.setattr(execute, "reference", off)
    monkeypatch.setenv("CHIPDOCK_REFERENCE_CACHE", "off")
    with pytest.raises(CheckError, match=r"at \(1, 2\)"):
        execute.run_operator(target, add())


def test_absent_operators_and_types_are_not_supported(target):
    for op, dtype in (("com.acme::Anything", "f32"), ("Conv", "i8")):
        given = [In(dtype, (1, 1, 3, 3)), In(dtype, (1, 1, 1, 1))]
        made = variant(op, dtype, "t", given[: 2 if op == "Conv" else 1], {}, shape_class="nd",
                       tolerance="R")[1]  # fmt: skip
        if op == "Conv":
            with pytest.raises(Exception, match="allowed are"):
                execute.run_operator(target, made)
        else:
            with pytest.raises(NotSupported, match="Anything"):
                execute.run_operator(target, made)


def test_outputs_that_are_nearly_zero_are_remarked_on(target):
    made = variant("Relu", "f32", "t", [In("f32", (64,), "values", values=(-1.0,))], {},
                   shape_class="nd", tolerance="E")[1]  # fmt: skip
    execute.run_operator(target, made)
    assert any("MOSTLY_ZERO" in remark for remark in target.remarks)


def test_a_second_run_with_other_bits_fails_where_kernels_are_deterministic(target):
    one, two = np.zeros(4, np.float32), np.ones(4, np.float32)
    execute.check_repeat(target, "Add", "", [one], [one])
    flags = [kernel.flags >> 3 & 1 for kernel in target.kernels("Add")]
    if all(flags):
        with pytest.raises(CheckError, match="DETERMINISTIC"):
            execute.check_repeat(target, "Add", "", [one], [two])
    else:
        execute.check_repeat(target, "Add", "", [one], [two])
        assert any("NONDETERMINISTIC" in remark for remark in target.remarks)


def test_other_plugins_are_compared_with_the_host_by_relative_error(target, monkeypatch):
    made = variant("MatMul", "f32", "t", [In("f32", (5, 64)), In("f32", (64, 3))], {},
                   shape_class="nd", tolerance="R")[1]  # fmt: skip
    monkeypatch.setattr(execute, "_host_path", lambda: Path("/elsewhere/libother.so"))
    seen = []
    real = execute.rel_l2
    monkeypatch.setattr(execute, "rel_l2", lambda a, b: seen.append(real(a, b)) or seen[-1])
    execute.run_operator(target, made)
    assert len(seen) == 1
    assert 0 < seen[0] < 1e-6


def test_opsets_that_the_installed_onnx_lacks_are_not_run(target):
    made = variant("Relu", "f32", "t", [In("f32", (3,))], {}, shape_class="nd", tolerance="E",
                   opset=999)[1]  # fmt: skip
    with pytest.raises(HostLacks, match="999"):
        execute.run_operator(target, made)


def test_node_cases_that_the_installed_onnx_lacks_are_not_run():
    for name, module in (("test_no_such_case", "abs"), ("test_abs", "no_such_module")):
        with pytest.raises(HostLacks, match="installed onnx has no"):
            onnx_nodes.node_of(name, module)


@pytest.mark.parametrize("view", ["", "step", "back", "inner"])
def test_views_hold_the_values(target, view):
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    array = set_view(values, view, target.device)
    assert np.array_equal(array.numpy(), values)
    assert array.is_contiguous == (not view)


def test_random_operators_are_judged_by_their_distribution(target):
    numbers = {"shape": [100, 100], "low": 0.0, "high": 1.0, "dtype": 1}
    made = variant("RandomUniform", "f32", "t", [], numbers,
                   shape_class="random", tolerance="D", opset=22)[1]  # fmt: skip
    run_random.run_random(target, made)
    assert target.evidence["metric"] == "kolmogorov_smirnov"
    squared = np.random.default_rng(0).uniform(0, 1, 10000).astype(np.float32) ** 2
    with pytest.raises(CheckError, match="away from their distribution"):
        run_random._check(made, [squared])


def test_fills_are_the_same_for_the_same_seed_and_hold_their_edges():
    for fill in ("normal", "special", "denormal", "wide", "halves", "unit", "holes", "distinct"):
        first, again = (make_array(In("f16", (4, 9), fill), np.random.default_rng(5))
                        for _ in range(2))  # fmt: skip
        assert first.tobytes() == again.tobytes()
    assert np.isnan(make_array(In("f32", (31,), "special"), np.random.default_rng(0))).any()
    small = np.abs(make_array(In("f32", (31,), "denormal"), np.random.default_rng(0)))
    assert small.max() < np.finfo(np.float32).tiny
    assert sorted(make_array(In("f32", (5,), "distinct"), np.random.default_rng(0))) == [
        -2, -1, 0, 1, 2]  # fmt: skip
    assert make_array(ints(-1, 2), np.random.default_rng(0)).tolist() == [-1, 2]


def test_picks_are_stable_and_bounded():
    names = [f"n{i}" for i in range(10)]
    assert pick(names, "op", "f32", count=3) == pick(names, "op", "f32", count=3)
    assert len(set(pick(names, "a", count=4))) == 4
    assert pick(names, "x", count=99) == tuple(names)


@pytest.mark.slow
def test_collecting_level_two_loads_no_onnx():
    program = (
        "import importlib.util, pathlib, sys\n"
        f"for file in sorted(pathlib.Path({str(SUITE)!r}).glob('test_*.py')):\n"
        "    spec = importlib.util.spec_from_file_location(file.stem, file)\n"
        "    module = importlib.util.module_from_spec(spec)\n"
        "    spec.loader.exec_module(module)\n"
        "print([n for n in ('onnx', 'onnx.reference') if n in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True,
                          text=True, timeout=120, env=os.environ)  # fmt: skip
    assert done.stdout.strip() == "[]"

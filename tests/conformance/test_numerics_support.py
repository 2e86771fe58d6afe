# SPDX-License-Identifier: Apache-2.0
"""Statistics of random operators, the cache of references, fences, absent operators."""

import hashlib

import numpy as np
import pytest

import chipdock
from chipdock.conformance import absence
from chipdock.conformance.capabilities import Capabilities, Kernel
from chipdock.conformance.case import Case, CheckError
from chipdock.conformance.journal import RunRecord
from chipdock.conformance.numerics import cache, stats
from chipdock.conformance.numerics.dtypes import numpy_dtype
from chipdock.conformance.numerics.guards import FILL, fenced, mostly_zero, unwritten
from chipdock.conformance.numerics.judge import Expected


def test_right_distributions_pass():
    rng = np.random.default_rng(0)
    stats.ks_check(stats.uniform_cdf(rng.uniform(-1, 3, 20000), -1, 3), "uniform")
    stats.ks_check(stats.normal_cdf(rng.normal(2, 3, 20000), 2, 3), "normal")
    shares = np.array([0.5, 0.25, 0.25, 0.0])
    counts = np.bincount(rng.choice(4, 20000, p=shares), minlength=4)
    stats.chi2_check(counts, shares, "choice")


@pytest.mark.parametrize("wrong", ["shifted", "narrow", "constant", "repeated"])
def test_wrong_distributions_fail(wrong):
    values = np.random.default_rng(0).uniform(0, 1, 20000)
    changed = {
        "shifted": values + 0.05, "narrow": values * 0.9, "constant": np.full(20000, 0.5),
        "repeated": np.repeat(values[:20], 1000),
    }[wrong]  # fmt: skip
    with pytest.raises(CheckError, match="away from their distribution"):
        stats.ks_check(stats.uniform_cdf(changed, 0, 1), "uniform")


def test_wrong_shares_fail():
    with pytest.raises(CheckError):
        stats.chi2_check(np.array([5300, 4700]), np.array([0.5, 0.5]), "coin")
    with pytest.raises(CheckError, match="1 draws of classes that have no chance"):
        stats.chi2_check(np.array([10, 1]), np.array([1.0, 0.0]), "never")


def test_limits_are_those_of_tables():
    # Quantiles of chi-squared at 1 - 1e-6, from tables.
    for freedom, value in ((1, 23.928), (2, 27.631), (5, 35.888), (100, 182.13)):
        assert stats.chi2_limit(freedom) == pytest.approx(value, rel=0.003)
    assert stats.ks_limit(20000) == pytest.approx(0.01904, rel=1e-3)


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("CHIPDOCK_REFERENCE_CACHE", str(tmp_path))
    monkeypatch.setattr(cache, "_WORTH_SECONDS", -1.0)
    return tmp_path


def _never():
    raise AssertionError("computed though it is cached")


def test_references_come_back_as_they_were(place):
    rows = [
        Expected(np.arange(6.0).reshape(2, 3), np.ones((2, 3)), 7),
        Expected(np.array([1, 2], np.longdouble)), Expected(np.array([True])),
    ]  # fmt: skip
    key = cache.key_of(["op"], [np.zeros(3), None])
    cache.cached(key, lambda: rows)
    again = cache.cached(key, _never)
    for a, b in zip(rows, again, strict=True):
        assert a.value.dtype == b.value.dtype
        assert np.array_equal(a.value, b.value)
        assert a.terms == b.terms
    assert np.array_equal(again[0].magnitude, rows[0].magnitude)
    assert again[1].magnitude is None


@pytest.mark.parametrize("name", ["bf16", "f8e5m2", "f8e4m3fn", "i4"])
def test_types_that_the_file_format_lacks_are_computed_each_time(place, name):
    key = cache.key_of([name], [])
    for value in (1, 2):
        made = cache.cached(
            key, lambda v=value: [Expected(np.full(3, v).astype(numpy_dtype(name)))]
        )
        assert made[0].value.tolist() == [value] * 3
    assert not list(place.glob("*/*"))


def test_a_file_that_numpy_cannot_read_is_computed_anew(place):
    key = cache.key_of(["op"], [])
    path = place / key[:2] / f"{key[2:]}.npz"
    path.parent.mkdir()
    body = b"no archive"
    path.write_bytes(hashlib.sha256(body).digest() + body)
    assert cache.cached(key, lambda: [Expected(np.ones(2))])[0].value[0] == 1


def test_keys_tell_inputs_apart():
    zero = np.zeros(4, np.float32)
    keys = {
        cache.key_of(["a"], [zero]), cache.key_of(["b"], [zero]), cache.key_of(["a"], [zero + 1]),
        cache.key_of(["a"], [zero.reshape(2, 2)]), cache.key_of(["a"], [zero.view(np.int32)]),
        cache.key_of(["a"], [zero, None]),
    }  # fmt: skip
    assert len(keys) == 6


def test_a_damaged_file_is_computed_anew(place):
    key = cache.key_of(["op"], [])
    cache.cached(key, lambda: [Expected(np.zeros(3))])
    (file,) = place.glob("*/*.npz")
    raw = bytearray(file.read_bytes())
    raw[-1] ^= 1
    file.write_bytes(bytes(raw))
    assert cache.cached(key, lambda: [Expected(np.ones(3))])[0].value[0] == 1


def test_the_cache_keeps_to_its_size(place):
    for i in range(6):
        cache.cached(cache.key_of([str(i)], []), lambda: [Expected(np.zeros(100))])
    before = sum(f.stat().st_size for f in place.glob("*/*"))
    cache.trim(place, before // 2)
    assert sum(f.stat().st_size for f in place.glob("*/*")) <= before // 2


def test_off_means_off(monkeypatch):
    monkeypatch.setenv("CHIPDOCK_REFERENCE_CACHE", "off")
    assert cache.folder() is None
    assert cache.cached("ab" * 32, lambda: [Expected(np.ones(1))])[0].value[0] == 1


@pytest.mark.parametrize("shape", [(), (1,), (17,), (3, 5), (2, 3, 7)])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.bool_, np.float64])
def test_a_fence_sees_bytes_on_either_side(shape, dtype):
    device = chipdock.device("cpu:0")
    fence = fenced(shape, np.dtype(dtype), device)
    assert fence.array.shape == shape
    fence.array.copy_from(np.ones(shape, dtype))
    fence.check("y")
    for side in (fence._rows - 1, fence._rows + fence._count):
        row = fence._whole[side]
        good = row.numpy().copy()
        row.copy_from(np.ones(row.shape, dtype))
        with pytest.raises(CheckError, match="overwritten"):
            fence.check("y")
        row.copy_from(good)
    fence.check("y")


def test_outputs_that_were_never_written_show():
    assert unwritten(np.full(8, FILL, np.uint8))
    assert unwritten(np.full(32, FILL, np.uint8).view(np.float32))
    assert not unwritten(np.zeros(8, np.float32))
    assert mostly_zero(np.zeros(20), np.zeros(20))
    assert not mostly_zero(np.zeros(20), np.arange(20))


def _has(*ops, dtypes=("f32",)):
    return Capabilities(kernels=tuple(
        Kernel(op, "", op, 1, 0, 0, {0: tuple(dtypes)}) for op in ops))  # fmt: skip


def test_absent_operators_name_the_models_that_they_block():
    rows = {row.op: row for row in absence.absent(_has("Conv", "PRelu", "Softmax"))}
    assert "Conv" not in rows
    assert rows["MaxPool"].dtypes == ("any",)
    assert "mtcnn-pnet" in rows["MaxPool"].models
    assert "Constant" not in rows
    first = absence.absent(_has("Conv"))[0]
    assert len(first.models) == max(len(row.models) for row in rows.values())


def test_nothing_is_absent_from_the_reference_plugin_for_f32_models():
    names = {name for ops in absence.operators_of_models().values() for name in ops}
    listed = {kernel[1] for kernel in chipdock.device("cpu:0").kernels()}
    assert names <= listed


def test_types_that_cases_ask_for_are_absent_too():
    cases = [Case("L2.op.conv.f16.k3", op="Conv"), Case("L2.op.conv.f32.k3", op="Conv")]
    rows = {row.op: row for row in absence.absent(_has("Conv"), cases)}
    assert rows["Conv"].dtypes == ("f16",)
    assert rows["Conv"].models == ()


def test_a_run_tells_what_it_found_absent():
    record = RunRecord(run={"capabilities": _has("Conv").to_json()})
    record.add({"type": "case", "id": "L2.op.conv.f16.k3", "outcome": "UNSUPPORTED",
                "reason": "lacks op:Conv:f16", "revision": 1})  # fmt: skip
    rows = {row.op: row for row in absence.absent(record)}
    assert rows["Conv"].dtypes == ("f16",)


def test_the_next_step_is_named():
    step = absence.unlock(_has("Gemm", "Relu", "Reshape", "Sigmoid", "Add", "Clip", "Conv"))
    assert (step.running, step.missing, step.then) == (0, ("ReduceMean",), 3)
    every = [op for row in absence._table()["step"] for op in row["operators"]]
    assert absence.unlock(_has(*every)).running == 59 or not absence.unlock(_has(*every)).missing

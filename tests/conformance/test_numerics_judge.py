# SPDX-License-Identifier: Apache-2.0
"""Verdicts of each tolerance class, and the evidence that comes with them."""

import math

import ml_dtypes
import numpy as np
import pytest

from chipdock.conformance.case import CheckError
from chipdock.conformance.numerics.judge import Expected, Judge

EVIDENCE = {"metric", "value", "limit", "index", "expected", "got", "max_ulp", "rel_l2", "cosine"}
F32 = np.float32


def passes(judge, got, exact, **options):
    return judge.check(np.asarray(got), Expected(np.asarray(exact), **options))


def fails(judge, got, exact, host_error=None, **options):
    with pytest.raises(CheckError) as caught:
        judge.check(np.asarray(got), Expected(np.asarray(exact), **options), host_error=host_error)
    return caught.value.evidence


def test_exact_takes_any_nan_and_no_other_bit():
    other_nan = np.array([0x7FC12345], np.uint32).view(F32)
    passes(Judge("E"), other_nan, np.array([math.nan], F32))
    evidence = fails(Judge("E"), np.array([1, 2, 3], np.int32), np.array([1, 2, 4], np.int32))
    assert set(evidence) >= EVIDENCE
    assert evidence["index"] == [2]
    assert (evidence["expected"], evidence["got"]) == (4, 3)
    fails(Judge("E"), np.nextafter(F32(1), F32(2)).reshape(1), np.array([1.0]))


def test_sign_of_zero_counts_only_where_asked_for():
    got, exact = np.array([-0.0], F32), np.array([0.0])
    passes(Judge("E"), got, exact)
    fails(Judge("E", zero_sign=True), got, exact)


def test_exact_rounds_the_reference_to_the_type_of_the_output():
    passes(Judge("E"), np.array([0.1], F32), np.array([0.1]))
    passes(Judge("E"), np.array([0.1]).astype(ml_dtypes.bfloat16), np.array([0.1]))


def test_another_shape_fails():
    evidence = fails(Judge("E"), np.zeros((2, 3), F32), np.zeros((3, 2)))
    assert evidence["metric"] == "shape"


def test_correctly_rounded_operators_allow_no_neighbour():
    near = np.nextafter(F32(0.3), F32(1)).reshape(1)
    fails(Judge("U", "Add"), near, np.array([float(F32(0.3))]))
    passes(Judge("U", "Div"), near, np.array([float(F32(0.3))]))


@pytest.mark.parametrize(("ulps", "good"), [(2, True), (3, True), (4, False)])
def test_exp_may_be_three_ulp_off(ulps, good):
    exact = np.array([1.0])
    got = np.array([1 + ulps * 2**-23], F32)
    if good:
        assert passes(Judge("U", "Exp"), got, exact)["value"] == pytest.approx(ulps)
    else:
        assert fails(Judge("U", "Exp"), got, exact)["value"] == pytest.approx(ulps)


def test_denormals_may_be_zero_only_if_the_plugin_says_so():
    got, exact = np.array([0.0], F32), np.array([1e-40])
    fails(Judge("U", "Exp"), got, exact)
    passes(Judge("U", "Exp", flushes=True), got, exact)
    fails(Judge("U", "Exp", flushes=True), got, np.array([1e-37]))


def test_results_of_flushed_inputs_are_as_good():
    got, exact, flushed = np.array([0.5], F32), np.array([0.7]), np.array([0.5])
    passes(Judge("U", "Exp", flushes=True), got, exact, flushed=flushed)
    fails(Judge("U", "Exp"), got, exact, flushed=flushed)


def test_sums_are_within_their_bound():
    exact, size = np.array([1e-3]), np.array([1000.0])
    allowed = 6 * math.sqrt(100) * 2**-24 * 1000
    passes(Judge("R"), np.array([1e-3 + 0.9 * allowed], F32), exact, magnitude=size, terms=100)
    evidence = fails(
        Judge("R"), np.array([1e-3 + 1.1 * allowed], F32), exact, magnitude=size, terms=100
    )
    assert evidence["value"] == pytest.approx(1.1, rel=0.01)
    passes(Judge("R", factor=2.0), np.array([1e-3 + 1.5 * allowed], F32), exact, magnitude=size,
           terms=100)  # fmt: skip


def test_one_bad_element_among_many_is_found():
    exact = np.random.default_rng(0).standard_normal((37, 91))
    got = exact.astype(F32)
    got[20, 5] += 0.01
    evidence = fails(Judge("R"), got, exact, magnitude=np.abs(exact), terms=50)
    assert evidence["index"] == [20, 5]
    assert evidence["rel_l2"] < 1e-3  # by itself it would hide the element
    assert evidence["wrong"] == 1


def test_nan_and_infinity_are_never_close():
    for bad in (math.nan, math.inf):
        fails(Judge("R"), np.array([bad], F32), np.array([1.0]), terms=9)
        fails(Judge("U", "Exp"), np.array([bad], F32), np.array([1.0]))
        fails(Judge("M"), np.array([bad, 1.0], F32), np.array([1.0, 1.0]))
        fails(Judge("R"), np.array([1.0], F32), np.array([bad]), terms=9)


def test_overflow_of_the_type_is_infinity():
    passes(Judge("U", "Exp"), np.array([math.inf], np.float16), np.array([1e6]))
    fails(Judge("U", "Exp"), np.array([-math.inf], np.float16), np.array([1e6]))
    passes(Judge("E"), np.array([math.inf], np.float16), np.array([1e6]))


def test_worse_than_the_host_fails_though_the_bound_holds():
    exact = np.ones(64)
    got = (exact + 2e-5).astype(F32)
    options = {"magnitude": np.full(64, 1000.0), "terms": 4}
    passes(Judge("R"), got, exact, **options)
    evidence = fails(Judge("R"), got, exact, host_error=1e-7, **options)
    assert evidence["metric"] == "rel_l2"


def test_quantized_may_be_one_step_off_in_a_thousandth():
    exact = np.arange(5000, dtype=np.int64).astype(np.int16)
    got = exact.copy()
    got[7] += 1
    passes(Judge("Q"), got, exact)
    got[:6] += 1
    assert fails(Judge("Q"), got, exact)["metric"] == "elements_off_by_one"
    got = exact.copy()
    got[7] += 2
    assert fails(Judge("Q"), got, exact)["value"] == 2


def test_collectives_are_exact_or_two_ulp():
    passes(Judge("C"), np.array([1 + 2 * 2**-23], F32), np.array([1.0]))
    fails(Judge("C"), np.array([1 + 3 * 2**-23], F32), np.array([1.0]))


def test_models_have_a_distance_and_a_floor_of_the_cosine():
    exact = np.random.default_rng(1).standard_normal(1000)
    passes(Judge("M"), (exact * (1 + 5e-5)).astype(F32), exact)
    assert fails(Judge("M"), (exact * 1.001).astype(F32), exact)["metric"] == "rel_l2"
    assert fails(Judge("M"), (exact[::-1]).astype(F32), exact)["metric"] == "cosine"
    passes(Judge("M"), (exact * 1.001).astype(np.float16), exact)


def test_complex_parts_are_judged_each():
    exact = np.array([1 + 1j, 2 - 1j])
    passes(Judge("R"), exact.astype(np.complex64), exact, terms=4)
    evidence = fails(Judge("R"), np.array([1 + 1j, 2 - 1.1j], np.complex64), exact, terms=4)
    assert evidence["index"] == [1]


def test_empty_and_scalar_outputs():
    assert passes(Judge("R"), np.zeros((0, 3), F32), np.zeros((0, 3)))["value"] == 0
    passes(Judge("U", "Exp"), np.array(1.0, F32), np.array(1.0))
    fails(Judge("U", "Exp"), np.array(1.1, F32), np.array(1.0))

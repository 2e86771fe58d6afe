# SPDX-License-Identifier: Apache-2.0
"""Runs one case of a random operator: seeds first, then the distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from chipdock.conformance.case import Variant, fail
from chipdock.conformance.numerics import stats
from chipdock.conformance.numerics.dtypes import bits, float_format, short_name
from chipdock.conformance.opcases.execute import load_on
from chipdock.conformance.opcases.fills import make_array
from chipdock.conformance.opcases.node import Call, make_model
from chipdock.conformance.opcases.random import LOGITS

if TYPE_CHECKING:
    from chipdock.conformance.target import Target

__all__ = ["run_random"]


def run_random(target: Target, variant: Variant) -> None:
    """Run a random operator three times: seed a, seed a, seed b.

    Raises:
        CheckError: One seed gave two results, two seeds gave one, or the distribution is another.
        NotSupported: The plugin lists no such kernel.
    """
    call = Call(variant.op, variant.inputs, variant.attributes, variant.opset, variant.outputs)
    arrays = [make_array(wanted, target.rng) for wanted in variant.inputs]
    model = load_on(target, make_model(call, arrays))
    feeds = {f"x{i}": array for i, array in enumerate(arrays)}
    seed = target.seed & 0x7FFFFFFF
    runs = [
        [array.numpy() for array in model.run(feeds, seed=number).values()]
        for number in (seed, seed, seed + 1)
    ]
    for first, again in zip(runs[0], runs[1], strict=True):
        if not np.array_equal(bits(first), bits(again)):
            fail("two runs with one seed differ", metric="rerun_bits", value=1, limit=0)
    fixed = variant.name in {"never", "always", "training_0"}
    if not fixed and np.array_equal(bits(runs[0][0]), bits(runs[2][0])):
        fail("two seeds give the same numbers", metric="equal_runs", value=1, limit=0)
    target.digest(*runs[0])
    target.record(**_check(variant, runs[0]))


def _check(variant: Variant, outputs: list[Any]) -> dict[str, Any]:
    op, attributes, got = variant.op, variant.attributes, outputs[0]
    if op.startswith("Random"):
        values = got.astype(np.float64)
        # Samples of f16 share values: that much the distance grows by itself.
        coarse = 2.0 * float_format(short_name(got.dtype)).unit
        if op.startswith("RandomNormal"):
            numbers = (attributes.get("mean", 0.0), attributes.get("scale", 1.0))
            return stats.ks_check(stats.normal_cdf(values, *numbers), op, coarse)
        low, high = attributes.get("low", 0.0), attributes.get("high", 1.0)
        if values.min() < low or values.max() > high:
            fail(f"{op} gave {values.min()} to {values.max()}, allowed is {low} to {high}",
                 metric="range", value=float(values.max()), limit=high)  # fmt: skip
        return stats.ks_check(stats.uniform_cdf(values, low, high), op, coarse)
    if op == "Multinomial":
        counts = np.bincount(got.reshape(-1), minlength=6)
        shares = np.exp(np.array(LOGITS))
        return stats.chi2_check(counts, shares / shares.sum(), op)
    if op == "Bernoulli":
        chance = float(variant.inputs[0].values[0])
        ones = int(np.count_nonzero(got.astype(np.float64)))
        counts = np.array([got.size - ones, ones])
        return stats.chi2_check(counts, np.array([1 - chance, chance]), op)
    return _dropout(float(variant.inputs[1].values[0]), outputs)


def _dropout(ratio: float, outputs: list[Any]) -> dict[str, Any]:
    got, mask = outputs
    kept = np.asarray(1.0 / (1.0 - ratio)).astype(got.dtype)
    wrong = np.flatnonzero(np.where(mask, got != kept, got != 0))
    if wrong.size:
        at = int(wrong[0])
        fail(f"element {at} is {got[at]} where the mask says {bool(mask[at])}: kept ones are "
             f"{kept}, the others 0", metric="wrong_elements", value=int(wrong.size), limit=0,
             index=at)  # fmt: skip
    counts = np.array([int(np.count_nonzero(mask)), int(np.count_nonzero(~mask))])
    return stats.chi2_check(counts, np.array([1 - ratio, ratio]), "Dropout")

# SPDX-License-Identifier: Apache-2.0
"""Duties of kernels that only certain operators show: host inputs, strides, packing, extents."""

from __future__ import annotations

from typing import Any

import numpy as np

import chipdock
from chipdock.conformance.case import Variant, case
from chipdock.conformance.suite.layered import fresh_device
from chipdock.conformance.suite.models import mlp
from chipdock.conformance.suite.variants import named, sizes
from chipdock.conformance.target import Target

_LAUNCH = ("kernel.create", "kernel.launch")


@case(
    "L1.operator.host_input",
    duties=("KRN-7",),
    needs="op:Tile:f32",
    entry_points=_LAUNCH,
    tolerance="E",
    variants=named("each_its_own same_array"),
)
def test_host_inputs(target: Target, variant: Variant) -> None:
    """An input that steers shapes is read when the launch is made, not later."""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    repeats = np.ones(2, np.int64)
    outputs = []
    array = chipdock.array(x, target.device)
    for i in range(1, 5):
        given = repeats if variant.name == "same_array" else np.ones(2, np.int64)
        given[:] = (i, 2)
        outputs.append(chipdock.run_op("Tile", array, given, device=target.device))
        given[:] = 1
    for i, output in enumerate(outputs, 1):
        np.testing.assert_array_equal(output.copy_to_numpy(), np.tile(x, (i, 2)))


@case(
    "L1.operator.strided",
    duties=("KRN-8",),
    needs="op:Neg:f32",
    entry_points=_LAUNCH,
    tolerance="E",
    variants=named("step rows column reversed"),
)
def test_strided_inputs(target: Target, variant: Variant) -> None:
    """An input that is a strided view gives the result of the elements that it shows."""
    x = np.arange(120, dtype=np.float32).reshape(10, 12)
    key: Any = {
        "step": np.s_[:, ::3],
        "rows": np.s_[::2],
        "column": np.s_[:, 4],
        "reversed": np.s_[::-1],
    }[variant.name]
    view = chipdock.array(x, target.device)[key]
    got = chipdock.run_op("Neg", view, device=target.device)
    np.testing.assert_array_equal(got.copy_to_numpy(), -x[key])


@case(
    "L1.operator.extents",
    duties=("KRN-13",),
    needs="op:NonZero:f32",
    entry_points=_LAUNCH,
    tolerance="E",
    variants=sizes(0, 1, 7, 40),
)
def test_data_dependent_shape(target: Target, variant: Variant) -> None:
    """An output whose shape depends on the data has the true extents, not the upper bound."""
    x = np.zeros((5, 8), np.float32)
    x.flat[: variant.size] = 1
    array = chipdock.array(x, target.device)
    got = chipdock.run_op("NonZero", array, device=target.device).copy_to_numpy()
    np.testing.assert_array_equal(got, np.stack(np.nonzero(x)))


@case(
    "L1.operator.packed",
    duties=("KRN-12",),
    tolerance="R",
    needs="op:MatMul:f32 and op:Add:f32 and op:Relu:f32 and op:Softmax:f32",
    entry_points=("kernel.prepack_size", "kernel.prepack", "kernel.launch"),
    variants=named("once twice two_loads"),
)
def test_packed_weights(target: Target, variant: Variant) -> None:
    """A model with constant weights is right on every run, also when its weights are shared."""
    proto = mlp()
    weights = {init.name: np.frombuffer(init.raw_data, np.float32).reshape(init.dims)
               for init in proto.graph.initializer}  # fmt: skip
    x = target.rng.standard_normal((3, 8)).astype(np.float32)
    hidden = np.maximum(x.astype(np.float64) @ weights["w1"] + weights["b"], 0)
    logits = hidden @ weights["w2"]
    exact = np.exp(logits - logits.max(-1, keepdims=True))
    exact /= exact.sum(-1, keepdims=True)
    with fresh_device(target) as device:
        models = [
            chipdock.load(proto, device) for _ in range(2 if variant.name == "two_loads" else 1)
        ]
        for model in models * (2 if variant.name == "twice" else 1):
            # Sums of at most 16 products, and softmax of values below 100: far inside 1e-4.
            got = model.run({"x": x})["y"].copy_to_numpy()
            np.testing.assert_allclose(got, exact, rtol=1e-4, atol=1e-6)


@case(
    "L1.operator.random",
    duties=("KRN-11",),
    needs="op:RandomNormal:f32",
    entry_points=_LAUNCH,
    tolerance="D",
    variants=named("same_seed other_seed"),
)
def test_random(target: Target, variant: Variant) -> None:
    """The same seed gives the same numbers, another seed others."""

    def draw(seed: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        drawn = chipdock.run_op("RandomNormal", shape=[1000], seed=seed, device=target.device)
        return np.asarray(drawn.copy_to_numpy())

    first, second = draw(1.0), draw(1.0 if variant.name == "same_seed" else 2.0)
    assert np.array_equal(first, second) == (variant.name == "same_seed")

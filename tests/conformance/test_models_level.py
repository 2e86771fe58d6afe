# SPDX-License-Identifier: Apache-2.0
"""The pure parts of level 5: networks, their fp64 twins, top-1 agreement, gradients, goldens."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from chipdock.conformance.case import CheckError
from chipdock.conformance.models.net import outputs_of
from chipdock.conformance.models.nets import NETS, decoder
from chipdock.conformance.models.run_net import agreement
from chipdock.conformance.models.run_training import check_losses, reference_run
from chipdock.conformance.models.training import MODELS, RATES, batch_of, make_step, rate_at


@pytest.mark.parametrize("name", NETS)
def test_networks_are_valid_and_every_value_has_a_type(name: str) -> None:
    network = NETS[name][0]("bf16")
    onnx.checker.check_model(network.model, full_check=True)
    known = {value.name for value in (*network.model.graph.value_info, *network.model.graph.output)}
    made = {out for node in network.model.graph.node for out in node.output if out}
    assert made <= known


def test_the_twin_has_the_weights_of_the_type_under_test() -> None:
    network = NETS["mlp"][0]("f16")
    for narrow, wide in zip(
        network.model.graph.initializer, network.double.graph.initializer, strict=True
    ):
        a, b = onnx.numpy_helper.to_array(narrow), onnx.numpy_helper.to_array(wide)
        assert np.array_equal(a.astype(np.float64), b)


def test_a_network_is_the_same_each_time_and_others_differ() -> None:
    assert NETS["gru"][0]("f32").key == NETS["gru"][0]("f32").key
    assert len({build("f32").key for build, _ in NETS.values()}) == len(NETS)


def test_decoder_sets_one_row_of_its_caches() -> None:
    caches = {name: np.full((1, 4, 16, 8), 2.0) for name in ("keys", "values")}
    feeds = {"token": np.array([[7]]), "place": np.array([3])} | caches
    _, keys, _ = outputs_of(decoder("f32").double, feeds)
    changed = (keys != 2.0).any(axis=(0, 1, 3))
    assert changed.tolist() == [i == 3 for i in range(16)]


def test_agreement_counts_rows_and_forgives_ties() -> None:
    exact = np.array([[0.0, 1.0, 0.0], [0.5, 0.5 + 1e-9, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    got = np.array([[0.0, 1.0, 0.0], [0.6, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    assert agreement(got, exact, 1e-6) == 0.75
    assert agreement(got, exact, 0.0) == 0.5
    assert agreement(got[:, :1], exact[:, :1], 0.0) == 1.0


def _feeds(step: Any, optimizer: str, count: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(9)
    return [
        dict(batch_of(rng, step.rows, "f64"))
        | {"rate": np.array(rate_at(optimizer, i + 1, fused=False))}
        for i in range(count)
    ]


def _first(outputs: Any) -> float:
    return float(outputs[0])


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_gradients_are_those_of_finite_differences(model: str) -> None:
    """Plain SGD at rate 1: what a weight lost is the derivative of the loss."""
    step = make_step(model, "sgd", "f64")
    (given,) = _feeds(step, "sgd", 1)
    given["rate"] = np.array(1.0)
    evaluator = ReferenceEvaluator(step.network.double)
    base: Any = evaluator.run(None, {**given, **step.state})
    rng = np.random.default_rng(0)
    for (name, value), new in zip(step.state.items(), base[1:], strict=True):
        direction = rng.standard_normal(value.shape)
        ahead, behind = (
            _first(evaluator.run(None, {**given, **step.state, name: value + h * direction}))
            for h in (1e-6, -1e-6)
        )
        slope = float(np.sum((value - new) * direction))
        assert slope == pytest.approx((ahead - behind) / 2e-6, rel=2e-5, abs=1e-8), name


@pytest.mark.parametrize("optimizer", RATES)
def test_training_learns(optimizer: str) -> None:
    step = make_step("mlp", optimizer, "f64")
    losses, *_ = reference_run(step, _feeds(step, optimizer, 20))
    assert losses[-1] < 0.25 * losses[0]


def test_losses_outside_of_the_band_are_named() -> None:
    exact = np.array([2.0, 1.0, 0.5])
    check_losses(exact * (1 + 5e-5), exact, "f32")
    with pytest.raises(CheckError, match="step 2") as found:
        check_losses(np.array([2.0, 1.01, 0.5]), exact, "f32")
    assert found.value.evidence["index"] == [1]
    with pytest.raises(CheckError, match="step 3"):
        check_losses(np.array([2.0, 1.0, np.nan]), exact, "bf16")

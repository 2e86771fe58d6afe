# SPDX-License-Identifier: Apache-2.0
"""The pure parts of level 5: networks, their fp64 twins, top-1 agreement, gradients, goldens."""

import numpy as np
import onnx
import pytest

from chipdock.conformance.models.net import outputs_of
from chipdock.conformance.models.nets import NETS, decoder
from chipdock.conformance.models.run_net import agreement


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

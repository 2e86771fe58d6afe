# SPDX-License-Identifier: Apache-2.0
"""The pure parts of level 5: networks, their fp64 twins, top-1 agreement, gradients, goldens."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import chipdock
from chipdock.conformance import goldens
from chipdock.conformance.capabilities import Kernel
from chipdock.conformance.case import CheckError, NotSupported
from chipdock.conformance.models.golden import (
    FOLDER,
    SAMPLES,
    check_output,
    digest_of,
    read_golden,
    read_index,
    summarize,
)
from chipdock.conformance.models.net import outputs_of
from chipdock.conformance.models.nets import NETS, decoder
from chipdock.conformance.models.run_net import agreement
from chipdock.conformance.models.run_training import check_losses, reference_run
from chipdock.conformance.models.run_zoo import zoo_variants
from chipdock.conformance.models.training import MODELS, RATES, batch_of, make_step, rate_at
from chipdock.conformance.opcases.execute import explained
from chipdock.models import catalogue, tasks


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


def _big(seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal((3, 50, 70)).astype(np.float32)


def test_a_golden_takes_what_rounding_changes() -> None:
    output = _big()
    golden = summarize(output)
    assert golden["samples"].shape == (SAMPLES,)
    evidence = check_output(output * np.float32(1 + 2e-5), golden, "y")
    assert evidence["metric"] == "rel_l2"
    assert 1e-5 < evidence["value"] < 3e-5


@pytest.mark.parametrize(
    ("metric", "change"),
    [
        ("rel_l2", lambda y: y * np.float32(1.001)),
        ("shape", lambda y: y.reshape(3, 3500)),
        ("kind", lambda y: y.astype(np.float64)),
        ("rel_l2", lambda y: np.where(np.arange(y.size).reshape(y.shape) % 7 == 0, np.nan, y)),
        ("cosine", np.zeros_like),
    ],
)
def test_a_golden_refuses_what_is_wrong(metric: str, change: Any) -> None:
    output = _big()
    with pytest.raises(CheckError) as found:
        check_output(change(output).astype(change(output).dtype), summarize(output), "y")
    assert found.value.evidence["metric"] == metric


@pytest.mark.parametrize("value", [0.0, 30.0, np.nan])
def test_an_error_between_the_samples_is_seen(value: float) -> None:
    """Every element that is not sampled is replaced by its neighbour's, or by a number."""
    output = _big()
    golden = summarize(output)
    wrong = output.reshape(-1).copy()
    taken = np.isin(wrong, golden["samples"])
    wrong[~taken] = value if value else np.roll(wrong, 1)[~taken]
    with pytest.raises(CheckError) as found:
        check_output(wrong.reshape(output.shape), golden, "y")
    assert found.value.evidence["metric"] in {"norm", "signed_sum"}


def test_integers_of_a_golden_are_exact() -> None:
    labels = np.arange(9, dtype=np.int64)
    check_output(labels, summarize(labels), "y")
    with pytest.raises(CheckError):
        check_output(labels[::-1].copy(), summarize(labels), "y")


@pytest.mark.slow
def test_goldens_are_whole_and_say_where_they_come_from() -> None:
    index = read_index()
    assert index["tool"].startswith("onnxruntime ")
    assert "ORT_DISABLE_ALL" in index["tool"]
    assert index["date"]
    assert set(index["models"]) == {item.name for item in catalogue.entries()}
    for variant in zoo_variants():
        rows = read_golden(variant.model, variant.case, variant.outputs)
        assert all(np.isfinite(row["samples"]).all() and row["norm"] > 0 for row in rows)


def test_a_golden_file_that_was_changed_is_refused(tmp_path: Path) -> None:
    (tmp_path / "index.json").write_text((FOLDER / "index.json").read_text())
    (tmp_path / "magika.npz").write_bytes((FOLDER / "magika.npz").read_bytes() + b"x")
    with pytest.raises(ValueError, match="another sha256"):
        read_golden("magika", "source", 1, tmp_path)


def _two_outputs(model: Path, feeds: Any) -> list[Any]:
    assert model.name == "m.onnx"
    return [feeds["x"] * 2, feeds["x"].sum(keepdims=True)]


def test_writing_goldens_is_never_a_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "m.onnx").write_bytes(b"model")
    feeds = {"x": _big(1)[0]}
    case = tasks.Case("one", feeds, lambda _: "", "")
    monkeypatch.setattr(goldens, "fetch", lambda _: tmp_path / "m.onnx")
    monkeypatch.setattr(tasks, "cases", lambda *_: [case])
    monkeypatch.setattr(catalogue, "entries", lambda: catalogue.assets()[:1])
    monkeypatch.setattr(catalogue, "entry", lambda _: catalogue.assets()[0])
    monkeypatch.setattr(goldens, "independent_run", _two_outputs)
    folder = tmp_path / "made"
    assert goldens.main(["--write", "--folder", str(folder)]) == 1
    assert goldens.main(["--folder", str(folder)]) == 0
    assert read_index(folder)["models"]["china"]["cases"]["one"]["inputs"] == digest_of(feeds)
    monkeypatch.setattr(goldens, "independent_run", lambda *_: [feeds["x"], feeds["x"]])
    assert goldens.main(["--folder", str(folder)]) == 1


class _Lists:
    """A target whose plugin lists kernels for all operators but one, in all types."""

    def __init__(self, lacks: str) -> None:
        self._lacks = lacks

    def kernels(self, op: str, domain: str) -> list[Kernel]:
        kernel = Kernel(op, domain, op, 1, 0, 0, {0: ("f32", "f16", "i64")})
        return [] if op == self._lacks else [kernel]


def _refused(lacks: str, text: str) -> None:
    target: Any = _Lists(lacks)
    with explained(target, NETS["encoder"][0]("f16").model):
        raise chipdock.errors.UnsupportedError(text)


def test_a_refusal_is_a_lack_only_of_what_it_names() -> None:
    text = "UNSUPPORTED: 1 of 60 nodes cannot run on a:0: MatMul (a:0 has no kernel for MatMul)"
    with pytest.raises(NotSupported, match="MatMul-13"):
        _refused("MatMul", text)
    # Reshape needs no kernel, so lacking one is no reason why MatMul is refused.
    with pytest.raises(chipdock.errors.UnsupportedError):
        _refused("Reshape", text)
    with pytest.raises(NotSupported, match="Gelu-20"):
        _refused("Gelu", "UNSUPPORTED: Erf (a:0 has no kernel for Erf)")

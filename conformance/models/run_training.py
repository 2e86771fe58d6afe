# SPDX-License-Identifier: Apache-2.0
"""Trains a small network on the device under test and beside it in fp64."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from chipdock.conformance.case import Variant, fail
from chipdock.conformance.models.training import STEPS, Step, batch_of, make_step, rate_at
from chipdock.conformance.numerics.cache import cached, key_of
from chipdock.conformance.numerics.dtypes import numpy_dtype
from chipdock.conformance.numerics.judge import Expected, Judge
from chipdock.conformance.opcases.execute import explained, judge_all, load_on

if TYPE_CHECKING:
    from chipdock.conformance.target import Target

__all__ = ["BANDS", "check_losses", "reference_run", "run_training"]

_Array = NDArray[Any]

BANDS = {"f32": (1e-4, 1e-5), "f16": (3e-2, 3e-3), "bf16": (1e-1, 2e-2)}
"""How far a loss may be from fp64's: relative, and on top absolute."""


def reference_run(step: Step, feeds: list[dict[str, _Array]]) -> list[_Array]:
    """Train in fp64; returns the losses [steps] and then the state as it ended.

    Args:
        step: Of plain operators.
        feeds: Of each step, without the state.
    """
    from onnx.reference import ReferenceEvaluator  # noqa: PLC0415  slow to import

    run = ReferenceEvaluator(step.network.double)
    state = [np.asarray(value, np.float64) for value in step.state.values()]
    losses = []
    for given in feeds:
        wide = {name: value.astype(np.float64) for name, value in given.items()}
        results: Any = run.run(None, wide | dict(zip(step.state, state, strict=True)))
        losses.append(float(results[0]))
        state = results[1:]
    return [np.array(losses), *state]


def check_losses(got: _Array, exact: _Array, dtype: str) -> None:
    """Judge a curve of losses.

    Args:
        got: [steps].
        exact: [steps], of fp64.
        dtype: In which was trained.

    Raises:
        CheckError: A loss is outside of the band around the exact one, or not finite.
    """
    relative, absolute = BANDS[dtype]
    share = np.abs(got - exact) / (relative * np.abs(exact) + absolute)
    bad = ~(share <= 1.0)
    if bad.any():
        at = int(np.argmax(bad))
        fail(f"the loss of step {at + 1} is {got[at]:.6g}, in fp64 it is {exact[at]:.6g}",
             metric="loss_band", value=float(share[at]), limit=1.0, index=[at],
             expected=float(exact[at]), got=float(got[at]))  # fmt: skip


def run_training(target: Target, variant: Variant) -> None:
    """Train for 20 steps; weights and moments stay on the device from step to step.

    Args:
        target: The device under test.
        variant: model, optimizer, fused.

    Raises:
        CheckError: The losses or what was learned are too far from fp64's.
        NotSupported: The plugin lists no kernel for a node.
    """
    import chipdock  # noqa: PLC0415

    dtype, optimizer, fused = variant.dtype, variant.optimizer, variant.fused
    kind = numpy_dtype(dtype)
    step = make_step(variant.model, optimizer, dtype, fused=fused)
    loaded = load_on(target, step.network.model)

    def batches(inner: bool) -> list[dict[str, _Array]]:
        return [
            dict(batch) | {"rate": np.array(rate_at(optimizer, i + 1, fused=inner), kind)}
            for i, batch in enumerate(drawn)
        ]

    drawn = [batch_of(target.rng, step.rows, dtype) for _ in range(STEPS)]
    state: dict[str, Any] = {
        name: chipdock.array(value.astype(kind), target.device)
        for name, value in step.state.items()
    }
    losses = []
    for i, given in enumerate(batches(fused)):
        count = {"count": np.array(i + 1, np.int64)} if fused else {}
        with explained(target, step.network.model):
            results = loaded.run({**given, **count, **state})
        losses.append(float(results["loss"].numpy()))
        state = {name: results[f"{name}_new"] for name in state}
    # Fused steps are judged by the plain ones, which do not hang on how onnx computes them.
    plain = make_step(variant.model, optimizer, dtype) if fused else step
    feeds = batches(inner=False)
    arrays = [value for given in feeds for value in given.values()]
    exact, *learned = cached(
        key_of([plain.network.key], [*plain.state.values(), *arrays]),
        lambda: [Expected(value) for value in reference_run(plain, feeds)],
    )
    check_losses(np.array(losses), exact.value, dtype)
    flat = np.concatenate([state[name].numpy().reshape(-1) for name in _weights(state)])
    target.digest(flat)
    whole = np.concatenate([row.value.reshape(-1) for name, row in
                            zip(state, learned, strict=True) if "_" not in name])  # fmt: skip
    judge_all(target, Judge("M"), [flat], [Expected(whole)], None)
    target.record(loss_first=losses[0], loss_last=losses[-1])


def _weights(state: dict[str, Any]) -> list[str]:
    return [name for name in state if "_" not in name]

# SPDX-License-Identifier: Apache-2.0
"""Training steps: losses and weights beside fp64."""

from chipdock.conformance.case import Variant, case
from chipdock.conformance.models.run_training import run_training
from chipdock.conformance.models.training import MODELS
from chipdock.conformance.target import Target

_ENTRY_POINTS = ("kernel.list", "kernel.supports", "kernel.create", "kernel.launch")

_ROWS = [
    *(("f32", model, optimizer, False) for model in MODELS
      for optimizer in ("sgd", "momentum", "adam")),
    ("f32", "mlp", "adagrad", False), ("f16", "mlp", "sgd", False), ("bf16", "mlp", "sgd", False),
    ("f16", "transformer", "sgd", False),
    *(("f32", "mlp", optimizer, True) for optimizer in ("momentum", "adam", "adagrad")),
]  # fmt: skip


@case("L5.train.step", entry_points=_ENTRY_POINTS, tolerance="M", budget_ms=3000,
      variants=[Variant(dtype, f"{model}_{optimizer}{'_fused' if fused else ''}", model=model,
                        optimizer=optimizer, fused=fused, mustpass=dtype == "f32" and not fused)
                for dtype, model, optimizer, fused in _ROWS])  # fmt: skip
def test_training(target: Target, variant: Variant) -> None:
    """After 20 steps the losses and the weights are those of fp64."""
    run_training(target, variant)

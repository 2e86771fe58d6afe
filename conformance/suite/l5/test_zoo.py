# SPDX-License-Identifier: Apache-2.0
"""Models that others made."""

from chipdock.conformance.case import Variant, case
from chipdock.conformance.models.run_zoo import LIGHT, run_light, run_zoo, zoo_variants
from chipdock.conformance.target import Target

_ENTRY_POINTS = ("kernel.list", "kernel.supports", "kernel.create", "kernel.launch")


@case("L5.zoo.real", entry_points=_ENTRY_POINTS, tolerance="M", budget_ms=4000, tier="nightly",
      variants=zoo_variants())  # fmt: skip
def test_real(target: Target, variant: Variant) -> None:
    """A real model gives what an independent runtime gave, and the answer that is right."""
    run_zoo(target, variant)


@case("L5.zoo.light", entry_points=_ENTRY_POINTS, tolerance="M", budget_ms=8000, tier="nightly",
      variants=[Variant("f32", name) for name in LIGHT])  # fmt: skip
def test_light(target: Target, variant: Variant) -> None:
    """A network of the onnx package runs, and its output is finite and near the one beside it."""
    run_light(target, variant)

# SPDX-License-Identifier: Apache-2.0
"""Operators that move elements from place to place."""

from chipdock.conformance.case import Variant
from chipdock.conformance.opcases import movement
from chipdock.conformance.opcases.execute import run_operator
from chipdock.conformance.opcases.publish import family
from chipdock.conformance.target import Target


@family(movement.cases)
def test_movement(target: Target, variant: Variant) -> None:
    """Elements arrive unchanged at the places that the definition says."""
    run_operator(target, variant)

# SPDX-License-Identifier: Apache-2.0
"""Operators of one input that work element by element."""

from chipdock.conformance.case import Variant
from chipdock.conformance.opcases import unary
from chipdock.conformance.opcases.execute import run_operator
from chipdock.conformance.opcases.publish import family
from chipdock.conformance.target import Target


@family(unary.cases)
def test_unary(target: Target, variant: Variant) -> None:
    """Every element is as close to the exact function value as its class allows."""
    run_operator(target, variant)

# SPDX-License-Identifier: Apache-2.0
"""Operators of several inputs with broadcasting."""

from chipdock.conformance.case import Variant
from chipdock.conformance.opcases import binary
from chipdock.conformance.opcases.execute import run_operator
from chipdock.conformance.opcases.publish import family
from chipdock.conformance.target import Target


@family(binary.cases)
def test_binary(target: Target, variant: Variant) -> None:
    """Every element is as close to the exact result of its operands as its class allows."""
    run_operator(target, variant)

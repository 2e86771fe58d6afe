# SPDX-License-Identifier: Apache-2.0
"""Quantized operators."""

from chipdock.conformance.case import Variant
from chipdock.conformance.opcases import quantized
from chipdock.conformance.opcases.execute import run_operator
from chipdock.conformance.opcases.publish import family
from chipdock.conformance.target import Target


@family(quantized.cases)
def test_quantized(target: Target, variant: Variant) -> None:
    """Results are what the definition gives, within the class of the case."""
    run_operator(target, variant)

# SPDX-License-Identifier: Apache-2.0
"""Normalization and softmax."""

from chipdock.conformance.case import Variant
from chipdock.conformance.opcases import norm
from chipdock.conformance.opcases.execute import run_operator
from chipdock.conformance.opcases.publish import family
from chipdock.conformance.target import Target


@family(norm.cases)
def test_norm(target: Target, variant: Variant) -> None:
    """Results are within the bound of their arithmetic."""
    run_operator(target, variant)

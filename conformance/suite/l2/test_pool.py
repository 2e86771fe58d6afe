# SPDX-License-Identifier: Apache-2.0
"""Pooling."""

from chipdock.conformance.case import Variant
from chipdock.conformance.opcases import pool
from chipdock.conformance.opcases.execute import run_operator
from chipdock.conformance.opcases.publish import family
from chipdock.conformance.target import Target


@family(pool.cases)
def test_pool(target: Target, variant: Variant) -> None:
    """Sums are within the bound of their arithmetic, everything else is exact."""
    run_operator(target, variant)

# SPDX-License-Identifier: Apache-2.0
"""Reductions, cumulative sums, and the places of the largest and smallest elements."""

from chipdock.conformance.case import Variant
from chipdock.conformance.opcases import reduce
from chipdock.conformance.opcases.execute import run_operator
from chipdock.conformance.opcases.publish import family
from chipdock.conformance.target import Target


@family(reduce.cases)
def test_reduce(target: Target, variant: Variant) -> None:
    """Sums are within the bound of their arithmetic, everything else is exact."""
    run_operator(target, variant)

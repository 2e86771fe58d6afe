# SPDX-License-Identifier: Apache-2.0
"""Operators that read or write by indices."""

from chipdock.conformance.case import Variant
from chipdock.conformance.opcases import indexing
from chipdock.conformance.opcases.execute import run_operator
from chipdock.conformance.opcases.publish import family
from chipdock.conformance.target import Target


@family(indexing.cases)
def test_indexing(target: Target, variant: Variant) -> None:
    """Elements arrive unchanged at the places that the definition says."""
    run_operator(target, variant)

# SPDX-License-Identifier: Apache-2.0
"""Operators that make values from sizes and numbers."""

from chipdock.conformance.case import Variant
from chipdock.conformance.opcases import fillers
from chipdock.conformance.opcases.execute import run_operator
from chipdock.conformance.opcases.publish import family
from chipdock.conformance.target import Target


@family(fillers.cases)
def test_fillers(target: Target, variant: Variant) -> None:
    """Results are what the definition gives, within the class of the case."""
    run_operator(target, variant)

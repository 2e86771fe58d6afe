# SPDX-License-Identifier: Apache-2.0
"""Resizing of images."""

from chipdock.conformance.case import Variant
from chipdock.conformance.opcases import resize
from chipdock.conformance.opcases.execute import run_operator
from chipdock.conformance.opcases.publish import family
from chipdock.conformance.target import Target


@family(resize.cases)
def test_resize(target: Target, variant: Variant) -> None:
    """Results are what the definition gives, within the class of the case."""
    run_operator(target, variant)

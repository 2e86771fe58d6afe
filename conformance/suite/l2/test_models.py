# SPDX-License-Identifier: Apache-2.0
"""Operators that stand for whole blocks of models."""

from chipdock.conformance.case import Variant
from chipdock.conformance.opcases import models
from chipdock.conformance.opcases.execute import run_operator
from chipdock.conformance.opcases.publish import family
from chipdock.conformance.target import Target


@family(models.cases)
def test_models(target: Target, variant: Variant) -> None:
    """Results are what the definition gives, within the class of the case."""
    run_operator(target, variant)

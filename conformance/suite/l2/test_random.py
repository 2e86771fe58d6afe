# SPDX-License-Identifier: Apache-2.0
"""Random operators."""

from chipdock.conformance.case import Variant
from chipdock.conformance.opcases import random
from chipdock.conformance.opcases.publish import family
from chipdock.conformance.opcases.run_random import run_random
from chipdock.conformance.target import Target


@family(random.cases)
def test_random(target: Target, variant: Variant) -> None:
    """One seed gives the same bits twice; numbers follow their distribution at alpha 1e-6."""
    run_random(target, variant)

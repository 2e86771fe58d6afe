# SPDX-License-Identifier: Apache-2.0
"""Turns a family of operator cases into one parametrized test function of the suite."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from chipdock.conformance.case import Variant, case
from chipdock.conformance.opcases.spec import Cases

__all__ = ["family"]

_ENTRY_POINTS = ("kernel.list", "kernel.supports", "kernel.create", "kernel.launch")


def family(
    cases: Callable[[], Cases], area: str = "op", duties: Sequence[str] = ()
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a test function for all cases that a family yields.

    Args:
        cases: Of a module here; yields (operator, Variant).
        area: Second part of the ids.
        duties: Of the C headers that all of them judge.

    Raises:
        ValueError: An id is malformed or taken twice.
    """
    by_operator: dict[str, list[Variant]] = {}
    for operator, variant in cases():
        by_operator.setdefault(operator.lower(), []).append(variant)

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        # One function for all operators: `case` makes the marks of one operator at a time.
        rows: list[Any] = []
        for operator, variants in by_operator.items():
            declared = case(
                f"L2.{area}.{operator}", duties=duties, entry_points=_ENTRY_POINTS,
                variants=variants,
            )(_bare())  # fmt: skip
            rows += declared.pytestmark[-1].args[1]
        marked: Callable[..., Any] = pytest.mark.parametrize("variant", rows)(function)
        return marked

    return decorate


def _bare() -> Any:
    def nothing() -> None:
        pass

    return nothing

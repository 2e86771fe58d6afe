# SPDX-License-Identifier: Apache-2.0
"""Variants of cases in few words."""

from __future__ import annotations

from typing import Any

from chipdock.conformance.case import Variant

__all__ = ["named", "sizes"]


def named(names: str, **facts: Any) -> list[Variant]:
    """Return a variant for each word of `names`; the facts are those of all."""
    return [Variant(name=name, **facts) for name in names.split()]


def sizes(*values: int, **facts: Any) -> list[Variant]:
    """Return a variant `n<size>` for each size, with the size as the value `size`."""
    return [Variant(name=f"n{size}", size=size, **facts) for size in values]

# SPDX-License-Identifier: Apache-2.0
"""Environment variables that choose one of a few words; docs/environment.md lists them all."""

import os

from chipdock.errors import InvalidArgumentError

__all__ = ["choice"]


def choice(variable: str, *allowed: str) -> str:
    """Return the variable's value.

    Args:
        variable: Its name.
        allowed: What it may be; the first is meant where it is not set.

    Raises:
        InvalidArgumentError: It is something else.
    """
    named = os.environ.get(variable, allowed[0])
    if named not in allowed:
        words = f"{', '.join(allowed[:-1])} and {allowed[-1]}"
        text = f"INVALID_ARGUMENT: {variable} is {named!r}, allowed are {words}"
        raise InvalidArgumentError(text)
    return named

# SPDX-License-Identifier: Apache-2.0
"""The command `list`: ids of the cases, one a line."""

from __future__ import annotations

from typing import Any

import click

from chipdock.conformance._selection import chosen, selection_options

__all__ = ["list"]


@click.command("list")
@selection_options
def list(**given: Any) -> None:  # noqa: A001  named after the command
    """Print the ids of cases, one a line."""
    _, ids = chosen(given)
    click.echo("\n".join(ids))

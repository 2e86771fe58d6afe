# SPDX-License-Identifier: Apache-2.0
"""The device under test through the host runtime, with more layers than those of the run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import chipdock

if TYPE_CHECKING:
    from chipdock.conformance.target import Target

__all__ = ["fresh_device", "run_layers"]


def run_layers(*more: str) -> str:
    """Return the layers of this run and `more`, as a spec; "none" if there are none.

    A mask in `more` takes the place of the run's: a spec has one.
    """
    given = os.environ.get("CHIPDOCK_LAYERS", "")
    items = [item for item in given.split(",") if item and item != "none"]
    if any(item.startswith("mask=") for item in more):
        items = [item for item in items if not item.startswith("mask=")]
    return ",".join([*items, *more]) or "none"


@contextmanager
def fresh_device(target: Target, *layers: str) -> Iterator[chipdock.Device]:
    """Open the device in an instance of its own, and shut that down afterwards.

    Args:
        target: The fixture.
        layers: Items of a layer spec, "fault=memory.alloc:3".
    """
    plugin = chipdock.open_plugin(target.plugin_path, layers=run_layers(*layers))
    try:
        yield chipdock.Device.open(plugin, int(target.name.rpartition(":")[2]))
    finally:
        plugin.shutdown()

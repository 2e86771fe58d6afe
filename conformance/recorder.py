# SPDX-License-Identifier: Apache-2.0
"""The record file: the last ABI calls of a worker and how often each slot gave which status.

The layer `record` of the runtime and `target.raw()` write it through shared memory, so it survives
the worker, however that dies. Whoever starts a worker creates the file and reads it afterwards.
"""

from __future__ import annotations

import mmap
import struct
import threading
import time
from pathlib import Path

__all__ = ["RING_SIZE", "RUNNING", "Recorder", "create", "slot_names"]

_MAGIC = b"CDREC\0\0\1"
_VERSION = 1
RING_SIZE = 256
_STATUS_COUNT = 32
RUNNING = -(2**31)
"""Stands for the status of a call that has not returned."""

_HEADER = struct.Struct("<8sIIIIQ32x")
_RECORD = struct.Struct("<QIiQQ")
_NEXT = struct.Struct("<Q")
_NEXT_OFFSET = 24
_RING_OFFSET = _HEADER.size
_COUNTER_OFFSET = _RING_OFFSET + RING_SIZE * _RECORD.size


def slot_names() -> tuple[str, ...]:
    """Return all slots in the record file's order; () if the runtime has no recorder."""
    from chipdock import _core  # noqa: PLC0415  native code, wanted by workers only

    names = getattr(_core, "slot_names", None)
    return tuple(names()) if names is not None else ()


def create(path: Path, slot_count: int) -> None:
    """Make an empty record file."""
    size = _COUNTER_OFFSET + slot_count * _STATUS_COUNT * 8
    header = _HEADER.pack(_MAGIC, _VERSION, RING_SIZE, slot_count, _STATUS_COUNT, 0)
    path.write_bytes(header + bytes(size - len(header)))


class Recorder:
    """An open record file, for reading and for the calls that Python makes on raw tables.

    Python's writes are not atomic against those of the layer; the cases that use raw tables keep
    the runtime quiet meanwhile.
    """

    def __init__(self, path: Path, names: tuple[str, ...]) -> None:
        """Maps the file.

        Args:
            path: From `create`.
            names: Of the slots, in the file's order.

        Raises:
            ValueError: It is no record file of this version and these slots.
        """
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)
        magic, version, ring, slots, statuses, _ = _HEADER.unpack_from(self._map, 0)
        if (magic, version, ring, slots, statuses) != (
            _MAGIC, _VERSION, RING_SIZE, len(names), _STATUS_COUNT,
        ):  # fmt: skip
            raise ValueError(f"{path} is no record file of {len(names)} slots")
        self._names = names
        self._index = {name: index for index, name in enumerate(names)}
        self._lock = threading.Lock()

    def close(self) -> None:
        """Unmap the file."""
        self._map.close()

    @property
    def total(self) -> int:
        """Number of calls recorded so far."""
        return int(_NEXT.unpack_from(self._map, _NEXT_OFFSET)[0])

    def begin(self, slot: str) -> int:
        """Record that a call starts; returns what `end` takes, -1 for a name that is no slot."""
        index = self._index.get(slot, -1)
        if index < 0:
            return -1
        with self._lock:
            sequence = self.total + 1
            _NEXT.pack_into(self._map, _NEXT_OFFSET, sequence)
            at = _RING_OFFSET + (sequence - 1) % RING_SIZE * _RECORD.size
            row = (sequence, index, RUNNING, time.monotonic_ns(), threading.get_ident())
            _RECORD.pack_into(self._map, at, *row)
        return sequence

    def end(self, sequence: int, slot: str, status: int) -> None:
        """Record the status of a call."""
        if sequence < 0:
            return
        with self._lock:
            at = _RING_OFFSET + (sequence - 1) % RING_SIZE * _RECORD.size
            if _NEXT.unpack_from(self._map, at)[0] == sequence:
                struct.pack_into("<i", self._map, at + 12, status)
            column = status if 0 <= status < _STATUS_COUNT - 1 else _STATUS_COUNT - 1
            where = _COUNTER_OFFSET + (self._index[slot] * _STATUS_COUNT + column) * 8
            _NEXT.pack_into(self._map, where, _NEXT.unpack_from(self._map, where)[0] + 1)

    def calls(self, since: int, most: int, statuses: tuple[str, ...]) -> list[list[str]]:
        """Return the last calls after the first `since`, oldest first, as [slot, status name].

        Args:
            since: `total` as it was when the interesting part began.
            most: How many at most.
            statuses: Names of status codes by number.
        """
        rows = []
        for at in range(_RING_OFFSET, _COUNTER_OFFSET, _RECORD.size):
            sequence, slot, status, _, _ = _RECORD.unpack_from(self._map, at)
            if sequence > since and slot < len(self._names):
                rows.append((sequence, self._names[slot], _status(status, statuses)))
        return [[slot, status] for _, slot, status in sorted(rows)[-most:]]

    def coverage(self, statuses: tuple[str, ...]) -> dict[str, dict[str, int]]:
        """Return the number of calls by slot and status name, without zeros."""
        found: dict[str, dict[str, int]] = {}
        for index, name in enumerate(self._names):
            offset = _COUNTER_OFFSET + index * _STATUS_COUNT * 8
            counts = struct.unpack_from(f"<{_STATUS_COUNT}Q", self._map, offset)
            row = {_status(status, statuses): n for status, n in enumerate(counts) if n}
            if row:
                found[name] = row
        return found


def _status(status: int, names: tuple[str, ...]) -> str:
    if status == RUNNING:
        return "RUNNING"
    return names[status] if 0 <= status < len(names) else "UNKNOWN"

# SPDX-License-Identifier: Apache-2.0
"""A plugin's raw tables whose calls land in the record file, as the runtime's record layer does."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from chipdock import _cabi
from chipdock.conformance.recorder import Recorder

__all__ = ["RawSlot", "RawTable", "RecordedPlugin", "open_raw"]


class RawSlot:
    """A function of a table; calling it is recorded. `pointer` is cffi's."""

    def __init__(self, name: str, pointer: Any, recorder: Recorder | None) -> None:
        """Wraps the function `name`, "memory.copy"."""
        self.name = name
        self.pointer = pointer
        self._recorder = recorder

    def __call__(self, *arguments: Any) -> Any:
        """Call it and return its status."""
        if self._recorder is None:
            return self.pointer(*arguments)
        sequence = self._recorder.begin(self.name)
        status = self.pointer(*arguments)
        self._recorder.end(sequence, self.name, status)
        return status

    def __eq__(self, other: object) -> bool:
        """Compare the functions; NULL is never wrapped."""
        return bool(self.pointer == (other.pointer if isinstance(other, RawSlot) else other))

    def __hash__(self) -> int:
        """Hash of the function."""
        return hash(self.pointer)


class RawTable:
    """A table as `chipdock_<name>_api*`: `pointer`, with its functions as attributes."""

    def __init__(self, name: str, pointer: Any, raw: RecordedPlugin) -> None:
        """Wraps the table `name`, "memory"."""
        self.name = name
        self.pointer = pointer
        self._raw = raw

    def __repr__(self) -> str:
        """Return what a failure calls it."""
        return f"the table {self.name}"

    def __getattr__(self, attribute: str) -> Any:
        """Return a field; a function that is there comes as a RawSlot, NULL as it is."""
        found = getattr(self.pointer, attribute)
        if attribute == "header" or found == self._raw.ffi.NULL:
            return found
        return RawSlot(f"{self.name}.{attribute}", found, self._raw.recorder)


class RecordedPlugin(_cabi.RawPlugin):
    """One instance of a plugin whose slots record their calls."""

    def __init__(self, path: Path, library: Any, types: Any, recorder: Recorder | None) -> None:
        """Wraps an opened library; `open_raw` is the way to get one."""
        super().__init__(path, library, types)
        self.recorder = recorder

    def table(self, name: str, version: tuple[int, int] | None = None) -> RawTable:
        """Return a table, see `RawPlugin.table`."""
        return RawTable(name, super().table(name, version), self)

    def slot(self, table: Any, name: str) -> RawSlot | None:
        """Return a slot, or None if it is NULL or lies behind the table's end."""
        if isinstance(table, RawTable):
            found = super().slot(table.pointer, name)
            return None if found is None else RawSlot(f"{table.name}.{name}", found, self.recorder)
        found = super().slot(table, name)
        kind = self.ffi.typeof(table).item.cname.removeprefix("chipdock_").removesuffix("_api")
        return None if found is None else RawSlot(f"{kind}.{name}", found, self.recorder)


@functools.cache
def _library(path: Path) -> Any:
    """The library stays mapped until the process ends, as in the runtime."""
    types = _cabi.ffi()
    return types.dlopen(str(path), types.RTLD_NOW | types.RTLD_LOCAL)


def open_raw(path: str | Path, recorder: Recorder | None) -> RecordedPlugin:
    """Open a plugin's library without starting an instance.

    Raises:
        OSError: The library cannot be opened; the text is the linker's.
    """
    where = Path(path).resolve()
    return RecordedPlugin(where, _library(where), _cabi.ffi(), recorder)

# SPDX-License-Identifier: Apache-2.0
"""A plugin's raw tables for the cases: calls by slot name, statuses by name, error records checked.

`Raw` is one instance; device.py adds an opened device. No host runtime is below it, so a case makes
valid calls only, apart from what plugins check themselves: struct sizes, enums, NULL.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from chipdock._cabi import RawError
from chipdock.conformance.case import NotSupported, fail

if TYPE_CHECKING:
    from chipdock.conformance.target import Target

__all__ = ["STATUS", "Raw", "status_name"]

STATUS = {
    name: value
    for value, name in enumerate(
        (
            "OK", "NOT_READY", "UNSUPPORTED", "INVALID_ARGUMENT", "FAILED_PRECONDITION",
            "OUT_OF_MEMORY", "UNAVAILABLE", "BUSY", "TIMEOUT", "ABORTED", "DEVICE_LOST",
            "RESET_REQUIRED", "PEER_FAILED", "MISMATCH", "REVOKED", "VERSION_MISMATCH", "SHUTDOWN",
            "FORKED", "INTERNAL",
        )
    )
}  # fmt: skip
_NAMES = {value: name for name, value in STATUS.items()}


def status_name(status: int) -> str:
    """Return "OUT_OF_MEMORY" for 5, and the number itself for a status that does not exist."""
    return _NAMES.get(status, f"status {status}")


class Raw:
    """One started instance of the plugin under test.

    Attributes:
        target: The fixture.
        plugin: The `chipdock._cabi.RawPlugin`.
        ffi: Its cffi types.
        handle: `chipdock_plugin*`.
        index: Number of the device under test.
        error: Error record of the last call that got one.
    """

    def __init__(self, target: Target, plugin: Any = None) -> None:
        """Starts an instance, which `target` shuts down at the end of the case.

        Args:
            target: The fixture.
            plugin: A started `RawPlugin` to use in its stead; the case shuts it down.
        """
        self.target = target
        self.plugin = target.raw() if plugin is None else plugin
        self.ffi = self.plugin.ffi
        self.handle = self.plugin.plugin
        self.index = int(target.name.rpartition(":")[2])
        self.error: Any = None
        self.kept: list[Any] = []
        self._slots: dict[str, Any] = {}

    @property
    def null(self) -> Any:
        """A NULL pointer."""
        return self.ffi.NULL

    def new(self, name: str, **values: Any) -> Any:
        """Return a struct with struct_size and `values` set, kept until the case ends."""
        made = self.plugin.new(name, **values)
        self.kept.append(made)
        return made

    def block(self, kind: str, init: Any = None) -> Any:
        """Return `ffi.new(kind, init)`, kept until the case ends."""
        made = self.ffi.new(kind) if init is None else self.ffi.new(kind, init)
        self.kept.append(made)
        return made

    def text(self, characters: Any) -> str:
        """Return a C string as str, "" for NULL."""
        return str(self.plugin.text(characters))

    def slot(self, name: str) -> Any:
        """Return a slot by name, "memory.alloc".

        Raises:
            NotSupported: It is NULL, or its table is absent.
        """
        if name not in self._slots:
            table, _, short = name.partition(".")
            try:
                found = self.plugin.slot(self.plugin.table(table), short)
            except RawError as error:
                if error.status != STATUS["UNSUPPORTED"]:
                    raise
                found = None
            if found is None:
                raise NotSupported(f"slot:{name}")
            self._slots[name] = found
        return self._slots[name]

    def table(self, name: str) -> Any:
        """Return a table as cffi's pointer, for looks at its bytes."""
        found = self.plugin.table(name)
        return getattr(found, "pointer", found)

    def offers(self, name: str) -> bool:
        """Whether the plugin itself has a slot, whatever the run masks."""
        try:
            self.slot(name)
        except NotSupported:
            return False
        return True

    def has(self, name: str) -> bool:
        """Whether a slot is there and the run does not mask it."""
        return bool(self.target.has(f"slot:{name}"))

    def call(self, name: str, *arguments: Any, error: Any = None) -> int:
        """Call a slot and return its status.

        Args:
            name: "memory.alloc".
            arguments: All but the error record.
            error: The record to pass; None makes a fresh one, also kept as `error`.

        Raises:
            CheckError: The status does not exist, or a failure left its record empty.
        """
        self.error = self.plugin.new("chipdock_error") if error is None else error
        status = int(self.slot(name)(*arguments, self.error))
        if status not in _NAMES:
            fail(f"{name} returned {status}, which is no status [BASE-7]", got=status)
        # NOT_READY is an answer and fills nothing.
        if error is None and status > STATUS["NOT_READY"] and self.error.code != status:
            fail(
                f"{name} returned {status_name(status)} and left {self.error.code} as the code of "
                "its error record [BASE-8]",
                expected=status,
                got=int(self.error.code),
            )
        return status

    def ok(self, name: str, *arguments: Any) -> None:
        """Call a slot that must succeed.

        Raises:
            RawError: It answered UNSUPPORTED, which is a claim not kept.
            CheckError: It failed otherwise.
        """
        status = self.call(name, *arguments)
        if status == STATUS["UNSUPPORTED"]:
            raise RawError(name, status, self.message)
        if status != 0:
            fail(
                f"{name} returned {status_name(status)} for a valid call: {self.message}",
                expected="OK",
                got=status_name(status),
            )

    def refuse(self, name: str, wanted: str | Iterable[str], *arguments: Any) -> str:
        """Call a slot that must fail, and return the name of the status.

        Args:
            name: "memory.alloc".
            wanted: Name of the status, or those that are allowed.
            arguments: All but the error record.

        Raises:
            CheckError: Another status came back.
        """
        names = (wanted,) if isinstance(wanted, str) else tuple(wanted)
        got = status_name(self.call(name, *arguments))
        if got not in names:
            text = f": {self.message}" if self.message else ""
            fail(
                f"{name} returned {got}, {' or '.join(names)} was due{text}",
                expected=" or ".join(names),
                got=got,
            )
        return got

    @property
    def message(self) -> str:
        """Text of the last error record."""
        return self.text(self.error.text) if self.error is not None else ""

    def info(self, index: int | None = None) -> Any:
        """Return the filled chipdock_device_info of a device, by default the one under test."""
        made = self.new("chipdock_device_info")
        self.ok("device.info", self.handle, self.index if index is None else index, made)
        return made

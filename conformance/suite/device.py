# SPDX-License-Identifier: Apache-2.0
"""An opened device on raw tables: memory, copies, streams and events with the least of words.

What a case made and did not end is ended with the device, and a close that finds something live all
the same is a failure of the plugin [DEV-5].
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from chipdock.conformance.case import fail
from chipdock.conformance.suite.raw import STATUS, Raw, status_name

if TYPE_CHECKING:
    from chipdock.conformance.target import Target

__all__ = ["RawDevice", "pattern"]


def pattern(size: int, seed: int = 0) -> bytes:
    """Return `size` bytes in which no short stretch repeats soon, so that shifts show."""
    block = bytes((i * 167 + (i >> 8) * 59 + seed * 31 + 7) & 0xFF for i in range(min(size, 65536)))
    return (block * (size // max(1, len(block)) + 1))[:size]


class RawDevice(Raw):
    """An opened device of a fresh instance.

    Attributes:
        device: `chipdock_device*`.
        heap: `chipdock_heap` 0.
        unit: Bytes of which offsets given to copies have to be multiples.
    """

    def __init__(self, target: Target, plugin: Any = None) -> None:
        """Starts an instance, or takes a started one, and opens the device under test."""
        super().__init__(target, plugin)
        self.heap = self.info().heaps[0]
        self.unit = int(self.heap.sub_allocation_alignment or self.heap.alignment)
        self._memory: list[tuple[Any, Any]] = []
        self._streams: list[Any] = []
        self._events: list[Any] = []
        self._devices: list[Any] = []
        self.device = self.open()

    def __enter__(self) -> Self:
        """Return the device itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, at: object
    ) -> None:
        """Close; what close says counts only if the case has not failed already."""
        self.close(check=kind is None)

    def lane(self) -> RawDevice:
        """Return the same device for another thread: what it makes is its own, close ends that."""
        made = object.__new__(RawDevice)
        made.__dict__ |= self.__dict__
        made._memory, made._streams, made._events, made._devices = [], [], [], []
        made.kept, made.error = [], None
        return made

    def open(self, index: int | None = None) -> Any:
        """Open the device under test once more, or another one of the plugin."""
        out = self.ffi.new("chipdock_device**")
        self.ok(
            "device.open",
            self.handle,
            self.new("chipdock_device_open_desc", index=self.index if index is None else index),
            out,
        )
        if out[0] == self.null:
            fail("device.open returned OK and no device [BASE-8]")
        self._devices.append(out[0])
        return out[0]

    def close(self, check: bool = True) -> None:
        """End what is left and close, newest first."""
        for stream in self._streams:
            self.call("stream.destroy", stream)
        for event in self._events:
            self.call("event.destroy", event)
        for device, memory in self._memory:
            self.call("memory.free", device, memory)
        devices, self._devices = self._devices, []
        self._streams, self._events, self._memory = [], [], []
        for device in reversed(devices):
            status = self.call("device.close", device)
            if status != 0 and check:
                fail(f"device.close returned {status_name(status)}: {self.message}")

    def alloc(
        self,
        size: int,
        *,
        alignment: int = 0,
        heap: int = 0,
        usage: int = 0,
        device: Any = None,
    ) -> Any:
        """Allocate; the memory is freed with the device if the case does not do it."""
        owner = self.device if device is None else device
        out = self.ffi.new("chipdock_memory**")
        desc = self.plugin.new(
            "chipdock_alloc_desc", size=size, alignment=alignment, heap=heap, usage=usage
        )
        self.ok("memory.alloc", owner, desc, out)
        if out[0] == self.null:
            fail("memory.alloc returned OK and no memory [BASE-8]")
        self._memory.append((owner, out[0]))
        return out[0]

    def free(self, memory: Any) -> None:
        """Free memory from `alloc`."""
        owner = self.forget(memory)
        self.ok("memory.free", owner, memory)

    def forget(self, memory: Any) -> Any:
        """Take memory off the list of what close frees; return its device."""
        entry = next(pair for pair in self._memory if pair[1] == memory)
        self._memory.remove(entry)
        return entry[0]

    def place(self, memory: Any = None, offset: int = 0, host: Any = None, **more: Any) -> Any:
        """Return a chipdock_place in device memory or, with `host`, in host memory."""
        if host is not None:
            return self.new("chipdock_place", host=host, **more)
        return self.new("chipdock_place", memory=memory, offset=offset, **more)

    def copy(self, source: Any, target: Any, size: int, stream: Any = None, tag: int = 0) -> int:
        """Queue or do a copy between two places and return its status."""
        desc = self.plugin.new(
            "chipdock_copy_desc",
            source=source,
            target=target,
            size=size,
            stream=self.null if stream is None else stream,
            correlation_id=tag,
        )
        return self.call("memory.copy", self.device, desc)

    def write(
        self, memory: Any, data: bytes, offset: int = 0, stream: Any = None, tag: int = 0
    ) -> None:
        """Copy bytes to the device; with a stream they are kept until the case ends."""
        host = self.block("char[]", data)
        self._copied(
            self.copy(self.place(host=host), self.place(memory, offset), len(data), stream, tag)
        )

    def read(self, memory: Any, size: int, offset: int = 0) -> bytes:
        """Copy bytes from the device and wait."""
        host = self.ffi.new("char[]", max(1, size))
        self._copied(self.copy(self.place(memory, offset), self.place(host=host), size))
        return bytes(self.ffi.buffer(host, size))

    def read_later(self, memory: Any, size: int, stream: Any, offset: int = 0) -> Any:
        """Queue a copy to host memory and return that memory."""
        host = self.block("char[]", max(1, size))
        self._copied(self.copy(self.place(memory, offset), self.place(host=host), size, stream))
        return host

    def move(
        self,
        source: Any,
        target: Any,
        size: int,
        offsets: tuple[int, int] = (0, 0),
        stream: Any = None,
    ) -> None:
        """Copy inside the device."""
        self._copied(
            self.copy(self.place(source, offsets[0]), self.place(target, offsets[1]), size, stream)
        )

    def _copied(self, status: int) -> None:
        if status != STATUS["OK"]:
            fail(
                f"memory.copy returned {status_name(status)} for a valid call: {self.message}",
                expected="OK",
                got=status_name(status),
            )

    def stream(self, **values: Any) -> Any:
        """Make a stream; it is destroyed with the device if the case does not do it."""
        out = self.ffi.new("chipdock_stream**")
        self.ok(
            "stream.create", self.device, self.plugin.new("chipdock_stream_desc", **values), out
        )
        self._streams.append(out[0])
        return out[0]

    def event(self, flags: int = 0) -> Any:
        """Make an event; it is destroyed with the device if the case does not do it."""
        out = self.ffi.new("chipdock_event**")
        self.ok(
            "event.create", self.device, self.plugin.new("chipdock_event_desc", flags=flags), out
        )
        self._events.append(out[0])
        return out[0]

    def destroy(self, handle: Any) -> None:
        """End a stream or an event that the case made."""
        if handle in self._streams:
            self._streams.remove(handle)
            self.ok("stream.destroy", handle)
        else:
            self._events.remove(handle)
            self.ok("event.destroy", handle)

    def sync(self, stream: Any) -> None:
        """Wait for a stream that must not fail."""
        self.ok("stream.sync", stream, -1)

    def fill(
        self, memory: Any, value: bytes, size: int, offset: int = 0, stream: Any = None
    ) -> int:
        """Call fill and return its status."""
        desc = self.plugin.new(
            "chipdock_fill_desc",
            pattern_size=len(value),
            target=self.place(memory, offset),
            size=size,
            stream=self.null if stream is None else stream,
        )
        for i, byte in enumerate(value[:16]):
            desc.pattern[i] = byte
        return self.call("memory.fill", self.device, desc)

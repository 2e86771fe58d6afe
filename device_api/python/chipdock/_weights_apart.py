# SPDX-License-Identifier: Apache-2.0
"""Taking the weights out of a .onnx file before protobuf parses it.

Protobuf holds a weight in its own memory and hands it out as a copy, so a parsed file is there
twice beside what was read. Here the file's fields are walked without their contents, and protobuf
gets a model in which each large initializer says where its bytes are: it is made one with external
data whose location is OWN.

Source: protobuf.dev, "Encoding"; field numbers from onnx.proto.
"""

import os
from collections.abc import Iterator

import numpy as np

__all__ = ["OWN", "read_exactly", "weights_apart"]

OWN = "\0own"
"""Location of external data that lies in the model's own file; no path can have a NUL."""

_LEAST_FILE = 1 << 20
_LEAST_WEIGHT = 4096
_WINDOW = 4096

_MODEL_GRAPH = 7
_GRAPH_INITIALIZER = 5
_TENSOR_RAW_DATA = 9
_TENSOR_EXTERNAL_DATA = 13
_TENSOR_DATA_LOCATION = 14

_VARINT, _I64, _LEN, _I32 = 0, 1, 2, 5


class _OtherwiseError(Exception):
    """The file is not as expected; whoever parses it whole finds the words for that."""


def read_exactly(handle: int, offset: int, length: int) -> np.ndarray:
    """Return bytes of an open file, [length] of uint8; fewer if it ends before."""
    out = np.empty(length, np.uint8)
    done = 0
    while done < length:
        got = os.preadv(handle, [out[done:].data], offset + done)
        if got == 0:
            break
        done += got
    return out[:done]


class _Reader:
    """Varints of a file at any place, through a small window."""

    def __init__(self, handle: int, size: int) -> None:
        self.handle = handle
        self.size = size
        self._at = 0
        self._window = b""

    def varint(self, at: int) -> tuple[int, int]:
        """Return the number at `at`, and where the next thing is."""
        if not self._at <= at <= self._at + len(self._window) - 10:
            self._window = os.pread(self.handle, _WINDOW, at)
            self._at = at
        value = shift = 0
        for byte in self._window[at - self._at : at - self._at + 10]:
            value |= (byte & 0x7F) << shift
            at += 1
            if byte < 0x80:
                return value, at
            shift += 7
        raise _OtherwiseError

    def fields(self, begin: int, end: int) -> Iterator[tuple[int, int, int, int]]:
        """Yield number, place of the tag, of the content and of the end of each field."""
        at = begin
        while at < end:
            tag, content = self.varint(at)
            kind = tag & 7
            if tag >> 3 == 0:  # no field has it: zeros behind the model, or no model at all
                raise _OtherwiseError
            if kind == _LEN:
                length, content = self.varint(content)
                after = content + length
            elif kind == _VARINT:
                _, after = self.varint(content)
            elif kind in {_I64, _I32}:
                after = content + (8 if kind == _I64 else 4)
            else:
                raise _OtherwiseError
            if after > end:
                raise _OtherwiseError
            yield tag >> 3, at, content, after
            at = after


class _Pieces:
    """A message that is put together of ranges of the file and of bytes of our own."""

    def __init__(self, reader: _Reader) -> None:
        self._reader = reader
        self._parts: list[bytes | tuple[int, int]] = []

    def take(self, begin: int, end: int) -> None:
        last = self._parts[-1] if self._parts else b""
        if isinstance(last, tuple) and last[1] == begin:
            self._parts[-1] = (last[0], end)
        elif begin < end:
            self._parts.append((begin, end))

    def add(self, data: bytes) -> None:
        self._parts.append(data)

    def join(self) -> bytes:
        out = bytearray()
        for part in self._parts:
            if isinstance(part, tuple):
                out += read_exactly(self._reader.handle, part[0], part[1] - part[0]).data
            else:
                out += part
        return bytes(out)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | _LEN) + _varint(len(content)) + content


def _entry(key: str, value: str) -> bytes:
    return _field(_TENSOR_EXTERNAL_DATA, _field(1, key.encode()) + _field(2, value.encode()))


def _initializer(reader: _Reader, begin: int, end: int) -> bytes | None:
    """The TensorProto at [begin, end) with its bytes left in the file; None if they stay in it."""
    raw: tuple[int, int] | None = None
    pieces = _Pieces(reader)
    for number, at, content, after in reader.fields(begin, end):
        if number == _TENSOR_RAW_DATA and raw is None:
            raw = (content, after - content)
        elif number in {_TENSOR_RAW_DATA, _TENSOR_DATA_LOCATION, _TENSOR_EXTERNAL_DATA}:
            return None
        else:
            pieces.take(at, after)
    if raw is None or raw[1] < _LEAST_WEIGHT:
        return None
    pieces.add(_entry("location", OWN) + _entry("offset", str(raw[0])))
    pieces.add(_entry("length", str(raw[1])) + _varint(_TENSOR_DATA_LOCATION << 3) + b"\x01")
    return pieces.join()


def _graph(reader: _Reader, begin: int, end: int) -> bytes:
    pieces = _Pieces(reader)
    for number, at, content, after in reader.fields(begin, end):
        light = None
        if number == _GRAPH_INITIALIZER and after - content > _LEAST_WEIGHT:
            light = _initializer(reader, content, after)
        if light is None:
            pieces.take(at, after)
        else:
            pieces.add(_field(number, light))
    return pieces.join()


def weights_apart(handle: int) -> bytes | None:
    """Return the model of an open file with its large weights left there, see OWN.

    Args:
        handle: File descriptor; reads do not move its position.

    Returns:
        Bytes of a ModelProto; None if the file is small or is to be parsed as it is: damaged,
        or written in a way that nobody writes.
    """
    size = os.fstat(handle).st_size
    if size < _LEAST_FILE:
        return None
    reader = _Reader(handle, size)
    pieces = _Pieces(reader)
    graphs = 0
    try:
        for number, at, content, after in reader.fields(0, size):
            if number == _MODEL_GRAPH:
                graphs += 1
                pieces.add(_field(number, _graph(reader, content, after)))
            else:
                pieces.take(at, after)
    except _OtherwiseError:
        return None
    return pieces.join() if graphs == 1 else None

# SPDX-License-Identifier: Apache-2.0
"""Which symbols an ELF library exports and wants, read from its dynamic symbol table."""

from __future__ import annotations

import struct
from pathlib import Path

from chipdock.conformance.case import NotSupported

__all__ = ["exported", "wanted"]

_DYNSYM = 11
_SYMBOL = struct.Struct("<IBBHQQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")


def _symbols(path: Path) -> list[tuple[str, bool]]:
    """Return (name, defined) of every global dynamic symbol.

    Source: System V ABI, "Object Files", and its x86-64 and AArch64 supplements: both are 64-bit
    little endian.

    Raises:
        NotSupported: Another kind of file, such as a DLL.
    """
    data = path.read_bytes()
    if data[:6] != b"\x7fELF\x02\x01":
        raise NotSupported("an ELF library of 64 bits, little endian")
    (start,) = struct.unpack_from("<Q", data, 0x28)
    entry, count, _ = struct.unpack_from("<HHH", data, 0x3A)
    sections = [_SECTION.unpack_from(data, start + i * entry) for i in range(count)]
    found = []
    for _, kind, _, _, offset, size, link, *_ in sections:
        if kind != _DYNSYM:
            continue
        names = sections[link][4]
        for at in range(offset, offset + size, _SYMBOL.size):
            name, info, other, section, _, _ = _SYMBOL.unpack_from(data, at)
            text = data[names + name : data.index(b"\0", names + name)].decode()
            # Binding GLOBAL or WEAK; visibility DEFAULT or PROTECTED.
            if text and info >> 4 in {1, 2, 10} and other & 3 in {0, 3}:
                found.append((text, section != 0))
    return found


def exported(path: Path) -> set[str]:
    """Return the names of the global symbols that the library defines."""
    return {name for name, defined in _symbols(path) if defined}


def wanted(path: Path) -> set[str]:
    """Return the names of the global symbols that it expects of others."""
    return {name for name, defined in _symbols(path) if not defined}

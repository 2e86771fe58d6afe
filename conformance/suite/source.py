# SPDX-License-Identifier: Apache-2.0
"""Kernel text for the source door of the compile table: y[i] = x[i] * factor + OFFSET.

The texts are files of the folder `dialects`, one a dialect.
"""

from __future__ import annotations

import functools
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chipdock.conformance.case import NotSupported
from chipdock.conformance.suite.device import RawDevice

__all__ = ["BROKEN", "SourceDevice", "Text"]

BROKEN = "this is no kernel in any language {"


@dataclass(frozen=True)
class Text:
    """Kernel text of a dialect.

    Attributes:
        dialect: As the compiler names it, "c".
        prelude: Goes before it.
        body: The function `scale`.
    """

    dialect: str
    prelude: str
    body: str


@functools.cache
def _texts() -> tuple[Text, ...]:
    """Every text of the folder `dialects`: prelude, a line of dashes, the function."""
    found = []
    for path in sorted((Path(__file__).parent / "dialects").glob("*.txt")):
        prelude, _, body = path.read_text(encoding="utf-8").partition("----\n")
        found.append(Text(path.stem, prelude, body))
    return tuple(found)


class SourceDevice(RawDevice):
    """An opened device whose compiler takes one of the texts."""

    def caps(self) -> Any:
        """Return the filled chipdock_compile_caps."""
        made = self.new("chipdock_compile_caps")
        self.ok("compile.caps", self.device, made)
        return made

    def text_of_a_dialect(self) -> Text:
        """Return a text in a dialect that the compiler takes.

        Raises:
            NotSupported: None of them is offered, or the compiler is absent.
        """
        made = self.new("chipdock_compile_caps")
        if self.call("compile.caps", self.device, made) != 0:
            raise NotSupported(f"a compiler: {self.message}")
        offered = {self.text(made.dialects[i].name) for i in range(made.dialect_count)}
        for text in _texts():
            if text.dialect in offered:
                return text
        raise NotSupported(f"a dialect of {[text.dialect for text in _texts()]}")

    def version(self, dialect: str) -> int:
        """Return the newest version of a dialect that caps lists."""
        caps = self.caps()
        return next(
            int(caps.dialects[i].version)
            for i in range(caps.dialect_count)
            if self.text(caps.dialects[i].name) == dialect
        )

    def source(self, text: Text, *, offset: str = "0.0f", body: str | None = None) -> Any:
        """Return a source desc; its prelude defines OFFSET."""
        content = (text.body if body is None else body).encode()
        prelude = f"{text.prelude}\n#define OFFSET {offset}"
        return self.new(
            "chipdock_source_desc",
            dialect=self.block("char[]", text.dialect.encode()),
            dialect_version=self.version(text.dialect),
            prelude=self.block("char[]", prelude.encode()),
            text=self.block("char[]", content),
            text_size=len(content),
        )

    def compile(self, text: Text, offset: str = "0.0f") -> Any:
        """Compile, and return the module; the case ends it."""
        out = self.block("chipdock_module**")
        self.ok("compile.compile_source", self.device, self.source(text, offset=offset), out)
        assert out[0] != self.null, "compile_source returned OK and no module [BASE-8]"
        return out[0]

    def function(self, module: Any, name: str = "scale") -> Any:
        """Find a function of a module."""
        out = self.block("chipdock_function**")
        self.ok("compile.get_function", module, self.block("char[]", name.encode()), out)
        assert out[0] != self.null
        return out[0]

    def launch_desc(
        self, places: tuple[Any, Any], count: int, factor: float, stream: Any = None
    ) -> Any:
        """Return a launch of `scale` over `count` elements of (x, y), in blocks of 32."""
        (x, y), block = places, 32
        bits = int.from_bytes(struct.pack("<f", factor), "little")
        arguments = [
            self.new("chipdock_argument", kind=1, memory=x),
            self.new("chipdock_argument", kind=1, memory=y),
            self.new("chipdock_argument", kind=2, bits=count, size=8),
            self.new("chipdock_argument", kind=2, bits=bits, size=4),
        ]
        desc = self.new(
            "chipdock_function_launch_desc",
            argument_count=4,
            arguments=self.block("const chipdock_argument*[]", arguments),
            stream=self.null if stream is None else stream,
        )
        for k in range(3):
            desc.grid[k] = -(-count // block) if k == 0 else 1
            desc.block[k] = block if k == 0 else 1
        return desc

# SPDX-License-Identifier: Apache-2.0
"""Kernel text for the source door of the compile table, by dialect: y[i] = x[i] * factor + n."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from chipdock.conformance.case import NotSupported
from chipdock.conformance.suite.device import RawDevice

__all__ = ["BROKEN", "SourceDevice", "Text"]

# Dialects "c" and "c++": a call computes a block, `arguments` are pointers to buffers and scalars.
_C_PRELUDE = """
#include <stdint.h>
typedef struct {
  uint64_t grid[3], block[3], index[3];
  void* local;
  uint64_t local_bytes;
} Block;
"""
_C_BODY = """
void scale(void* const* a, const Block* b) {
  const float* x = (const float*)a[0];
  float* y = (float*)a[1];
  const int64_t n = *(const int64_t*)a[2];
  const float factor = *(const float*)a[3];
  const int64_t begin = (int64_t)(b->index[0] * b->block[0]);
  for (int64_t i = begin; i < begin + (int64_t)b->block[0] && i < n; ++i)
    y[i] = x[i] * factor + OFFSET;
}
"""
_OPENCL = """
__kernel void scale(__global const float* x, __global float* y, long n, float factor) {
  long i = get_global_id(0);
  if (i < n) y[i] = x[i] * factor + OFFSET;
}
"""
_CUDA = """
extern "C" __global__ void scale(const float* x, float* y, long long n, float factor) {
  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * factor + OFFSET;
}
"""
BROKEN = "this is no kernel in any language {"


@dataclass(frozen=True)
class Text:
    """Kernel text of a dialect.

    Attributes:
        dialect: "c", "opencl-c", ….
        prelude: Goes before it.
        body: The function `scale`.
    """

    dialect: str
    prelude: str
    body: str


_TEXTS = (
    Text("c", _C_PRELUDE, _C_BODY), Text("c++", _C_PRELUDE, f'extern "C" {_C_BODY.strip()}'),
    Text("opencl-c", "", _OPENCL), Text("cuda-c", "", _CUDA), Text("hip-c", "", _CUDA),
)  # fmt: skip


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
        for text in _TEXTS:
            if text.dialect in offered:
                return text
        raise NotSupported(f"a dialect of {[text.dialect for text in _TEXTS]}")

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

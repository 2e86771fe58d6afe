# SPDX-License-Identifier: Apache-2.0
"""Sizes at which structs were first published, and structs of other sizes than today's.

A size here never changes once its version is out; a field appended later makes today's struct
longer than its first size [BASE-4].
"""

from __future__ import annotations

from typing import Any

from chipdock.conformance.suite.l0.bench import Bench

__all__ = ["FIRST_SIZE", "cut", "lengthened"]

FIRST_SIZE = {
    # Version 1.0.
    "chipdock_query_desc": 24, "chipdock_device_info": 104, "chipdock_device_open_desc": 32,
    "chipdock_device_stats": 48, "chipdock_link_info": 40, "chipdock_health": 288,
    "chipdock_alloc_desc": 48, "chipdock_copy_desc": 48, "chipdock_copy_2d_desc": 72,
    "chipdock_fill_desc": 56, "chipdock_memory_info": 24, "chipdock_external": 48,
    "chipdock_stream_desc": 24, "chipdock_host_function_desc": 32, "chipdock_value_desc": 40,
    "chipdock_event_desc": 32, "chipdock_node": 64, "chipdock_value": 40,
    "chipdock_launch_desc": 120, "chipdock_prepack_info": 80,
    # Version 0.1.
    "chipdock_capture_desc": 16, "chipdock_graph_info": 24, "chipdock_instantiate_desc": 16,
    "chipdock_graph_update_desc": 24, "chipdock_graph_launch_desc": 24,
    "chipdock_compile_caps": 80, "chipdock_source_desc": 80, "chipdock_model": 72,
    "chipdock_compile_desc": 80, "chipdock_ccl_support": 24, "chipdock_ccl_comm_desc": 80,
    "chipdock_profiler_desc": 40, "chipdock_clock_sample": 32,
}  # fmt: skip


def lengthened(bench: Bench, struct: Any, extra: int, tail: int) -> Any:
    """Return a copy of a struct with `extra` bytes more, all of them zero but the last.

    Args:
        bench: Keeps the copy.
        struct: From `bench.new`.
        extra: Bytes.
        tail: The last byte, 0 for a tail of zeros.
    """
    kind = bench.ffi.typeof(struct)
    size = bench.ffi.sizeof(kind.item)
    block = bench.block("char[]", bytes(bench.ffi.buffer(struct, size)) + bytes(extra))
    if extra:
        block[size + extra - 1] = bytes([tail])
    made = bench.ffi.cast(kind, block)
    made.struct_size = size + extra
    return made


def cut(bench: Bench, struct: Any, size: int) -> Any:
    """Return a copy of a struct that says it has `size` bytes; what follows is no zero."""
    kind = bench.ffi.typeof(struct)
    whole = bench.ffi.sizeof(kind.item)
    data = bytes(bench.ffi.buffer(struct, min(size, whole)))
    block = bench.block("char[]", data + b"\xa5" * (whole + 64 - len(data)))
    made = bench.ffi.cast(kind, block)
    made.struct_size = size
    return made

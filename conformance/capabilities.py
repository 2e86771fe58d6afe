# SPDX-License-Identifier: Apache-2.0
"""What a plugin and its device declare, and whether that satisfies what a case needs.

The declarations are read once a run, in a worker process, and travel as plain data from there on.
"""

from __future__ import annotations

import functools
import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["Capabilities", "Kernel", "dtype_code", "dtype_name", "is_function", "missing",
           "read_capabilities"]  # fmt: skip

_NAMES = {
    (0, 2): "i2", (0, 4): "i4", (0, 8): "i8", (0, 16): "i16", (0, 32): "i32", (0, 64): "i64",
    (1, 2): "u2", (1, 4): "u4", (1, 8): "u8", (1, 16): "u16", (1, 32): "u32", (1, 64): "u64",
    (2, 16): "f16", (2, 32): "f32", (2, 64): "f64", (4, 16): "bf16", (5, 64): "c64",
    (5, 128): "c128", (6, 8): "bool", (10, 8): "f8e4m3fn", (11, 8): "f8e4m3fnuz", (12, 8): "f8e5m2",
    (13, 8): "f8e5m2fnuz", (14, 8): "f8e8m0", (15, 6): "f6e2m3", (16, 6): "f6e3m2",
    (17, 4): "f4e2m1",
}  # fmt: skip
_FLAGS = {
    "device": ("PREFERS_INLINE", "FLUSHES_DENORMALS", "READS_HOST"),
    "heap": ("HOST_VISIBLE", "COHERENT", "ADDRESSABLE"),
}
_TERM = re.compile(r"(slot|table|flag|op|devices|memory|tool):(\S+)|process")


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel that the plugin lists.

    Attributes:
        name: For people.
        domain: "" is the default ONNX domain.
        op: Operator.
        since: Oldest since version it computes.
        until: Newest one; 0 is every later one too.
        flags: CHIPDOCK_KERNEL_* bits.
        dtypes: Short dtype names by argument: input k as k, output k as -1-k. The last rule of a
            side serves what follows it. Empty: the plugin's `supports` decides alone.
    """

    name: str
    domain: str
    op: str
    since: int
    until: int
    flags: int
    dtypes: Mapping[int, tuple[str, ...]]

    def takes(self, dtype: str) -> bool:
        """Whether any of its arguments may have the dtype; True if there is none for input 0."""
        return 0 not in self.dtypes or any(dtype in names for names in self.dtypes.values())


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a device of a plugin declares, seen through the layers of the run.

    Attributes:
        slots: Slots that are there, "memory.copy".
        tables: Versions of the plugin's tables by name, (major, minor).
        flags: Of the device and its first heap, "PREFERS_INLINE", "HOST_VISIBLE", ….
        kernels: What the plugin lists; empty if the layers took the kernel table away.
        devices: How many devices the plugin has.
        memory: Bytes of the first heap; 0 if unknown.
    """

    slots: frozenset[str] = frozenset()
    tables: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    flags: frozenset[str] = frozenset()
    kernels: tuple[Kernel, ...] = ()
    devices: int = 1
    memory: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return plain data that `from_json` takes."""
        return {
            "slots": sorted(self.slots),
            "tables": {name: list(version) for name, version in sorted(self.tables.items())},
            "flags": sorted(self.flags),
            "kernels": [asdict(kernel) for kernel in self.kernels],
            "devices": self.devices,
            "memory": self.memory,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Capabilities:
        """Return what `to_json` made plain."""
        kernels = tuple(
            Kernel(**row | {"dtypes": {int(k): tuple(v) for k, v in row["dtypes"].items()}})
            for row in data["kernels"]
        )
        return cls(
            slots=frozenset(data["slots"]),
            tables={
                name: (int(major), int(minor)) for name, (major, minor) in data["tables"].items()
            },
            flags=frozenset(data["flags"]),
            kernels=kernels,
            devices=int(data["devices"]),
            memory=int(data["memory"]),
        )


def dtype_name(code: int, bits: int) -> str:
    """Return the short name of a DLPack dtype, "x3_64" for one without a name."""
    return _NAMES.get((code, bits), f"x{code}_{bits}")


def dtype_code(name: str) -> tuple[int, int]:
    """Return the DLPack code and bits of a short name, (2, 32) for "f32".

    Raises:
        KeyError: No such name.
    """
    return {short: key for key, short in _NAMES.items()}[name]


@functools.cache
def is_function(op: str) -> bool:
    """Whether ONNX, or the host in its place, defines an operator by others, in any version.

    Args:
        op: "Gelu", or "com.acme::Op" with a domain.
    """
    from onnx import defs  # noqa: PLC0415  slow, and only the workers ask

    from chipdock._bodies import has_body  # noqa: PLC0415

    domain, _, name = op.rpartition("::")
    if has_body(name, domain) or not defs.has(name, domain=domain):
        return has_body(name, domain)
    known: Any = defs.get_schema(name, domain=domain)
    return bool(known.has_function or known.has_context_dependent_function)


def missing(needs: str, capabilities: Capabilities) -> tuple[str, bool]:
    """Return the first term of `needs` that does not hold, and whether that is the chip's lack.

    Args:
        needs: Terms joined by " and ": `slot:memory.fill`, `table:graph`, `flag:HOST_VISIBLE`,
            `op:Conv:f16` (`op:com.acme::Op:f32` with a domain), `devices:2`, `memory:BYTES`,
            `tool:gdb`, `process` (may spawn processes; always holds).
        capabilities: What is there.

    Returns:
        ("", True) if all hold; else the term, and False if the host lacks it and not the plugin.

    Raises:
        ValueError: A term has another form.
    """
    for term in (part.strip() for part in needs.split(" and ") if part.strip()):
        match = _TERM.fullmatch(term)
        if match is None:
            raise ValueError(
                f"'{term}' of the needs '{needs}' is no term; see capabilities.missing"
            )
        kind, value = match.group(1) or "process", match.group(2) or ""
        if not _holds(kind, value, capabilities):
            return term, kind != "tool"
    return "", True


def _holds(kind: str, value: str, has: Capabilities) -> bool:
    if kind == "slot":
        return value in has.slots
    if kind == "table":
        return any(slot.startswith(f"{value}.") for slot in has.slots)
    if kind == "flag":
        return value.upper() in has.flags
    if kind == "op":
        name, _, dtype = value.rpartition(":")
        domain, _, op = name.rpartition("::")
        found = (k for k in has.kernels if k.op == op and k.domain == domain)
        return any(kernel.takes(dtype) for kernel in found)
    if kind == "devices":
        return has.devices >= int(value)
    if kind == "memory":
        return has.memory == 0 or has.memory >= int(value)
    return kind == "process" or shutil.which(value) is not None


def read_capabilities(raw: Any, index: int, slots: Iterable[str]) -> Capabilities:
    """Ask a plugin what it declares, below the host runtime.

    Args:
        raw: A started `chipdock._cabi.RawPlugin`.
        index: Of the device.
        slots: Names of the slots that the layers of this run leave.

    Raises:
        RawError: The plugin failed one of the questions.
    """
    left = frozenset(slots)
    tables = {}
    for name in sorted({slot.partition(".")[0] for slot in left}):
        header = raw.table(name).header
        tables[name] = (int(header.major), int(header.minor))
    device_table = raw.table("device")
    count = raw.ffi.new("int32_t*")
    raw.call("device.count", device_table.count, raw.plugin, count)
    info = raw.new("chipdock_device_info")
    raw.call("device.info", device_table.info, raw.plugin, index, info)
    heap = info.heaps[0] if info.heap_count else None
    known = {"device": int(info.flags), "heap": int(heap.flags) if heap is not None else 0}
    flags = {
        name for side, names in _FLAGS.items() for bit, name in enumerate(names)
        if known[side] >> bit & 1
    }  # fmt: skip
    return Capabilities(
        slots=left,
        tables=tables,
        flags=frozenset(flags),
        kernels=_kernels(raw, index) if "kernel.list" in left else (),
        devices=int(count[0]),
        memory=int(heap.bytes) if heap is not None else 0,
    )


def _kernels(raw: Any, index: int) -> tuple[Kernel, ...]:
    """The kernels of a device that is opened for this, as data of our own."""
    table, kernel_table = raw.table("device"), raw.table("kernel")
    device = raw.ffi.new("chipdock_device**")
    desc = raw.new("chipdock_device_open_desc", index=index)
    raw.call("device.open", table.open, raw.plugin, desc, device)
    try:
        out = raw.ffi.new("const chipdock_kernel*const**")
        count = raw.ffi.new("uint64_t*")
        raw.call("kernel.list", kernel_table.list, device[0], out, count)
        return tuple(_kernel(raw, out[0][i]) for i in range(count[0]))
    finally:
        raw.call("device.close", table.close, device[0])


def _kernel(raw: Any, found: Any) -> Kernel:
    rules = {}
    for i in range(found.dtype_rule_count):
        rule = found.dtype_rules[i]
        names = (dtype_name(rule.dtypes[k].code, rule.dtypes[k].bits) for k in range(rule.count))
        rules[int(rule.argument)] = tuple(names)
    return Kernel(
        name=raw.text(found.name),
        domain=raw.text(found.domain),
        op=raw.text(found.op),
        since=int(found.since_version),
        until=int(found.until_version),
        flags=int(found.flags),
        dtypes=rules,
    )

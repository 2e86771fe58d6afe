# SPDX-License-Identifier: Apache-2.0
"""The compile table: what the compiler says of itself, its source door, and hostile blobs."""

from __future__ import annotations

import struct
from typing import Any

from chipdock.conformance.case import Variant, case
from chipdock.conformance.suite.canary import check_bytes
from chipdock.conformance.suite.device import RawDevice
from chipdock.conformance.suite.gate import Gate
from chipdock.conformance.suite.source import BROKEN, SourceDevice
from chipdock.conformance.suite.variants import named
from chipdock.conformance.target import Target

_CAPS = "slot:compile.caps"
_SOURCE = "slot:compile.compile_source"
_SLOTS = ("compile.compile_source", "compile.get_function", "compile.launch_function",
          "compile.destroy_module")  # fmt: skip
_COMPILES_MS = 1500


@case(
    "L1.compile.caps",
    duties=("CMP-1", "CMP-13"),
    needs=_CAPS,
    entry_points=("compile.caps",),
    variants=named("doors dialects limits same two_openings"),
)
def test_caps(target: Target, variant: Variant) -> None:
    """Caps is well formed, agrees with the slots, and is the same each time."""
    with SourceDevice(target) as device:
        caps, name = device.caps(), variant.name
        if name == "doors":
            assert caps.flags & ~31 == 0
            assert not caps.flags & 1 or device.offers("compile.compile_source")
            for slot in ("claim", "compile", "io_info", "workspace_size", "execute", "destroy"):
                assert not caps.flags & 2 or device.offers(f"compile.{slot}"), slot
            assert caps.flags & 3, "a compile table without a door"
        elif name == "dialects":
            for i in range(caps.dialect_count):
                dialect = caps.dialects[i]
                assert dialect.struct_size >= 16
                assert device.text(dialect.name)
                assert dialect.version > 0
            assert caps.dialect_count or not caps.flags & 1
        elif name == "limits":
            assert all(
                caps.max_block[k] <= max(caps.max_block_threads, 1) or caps.max_block_threads == 0
                for k in range(3)
            )
            assert caps.warp_size <= max(caps.max_block_threads, caps.warp_size)
        else:
            size = device.ffi.sizeof("chipdock_compile_caps")
            first = bytes(device.ffi.buffer(caps, size))
            other = device.device if name == "same" else device.open()
            again = device.new("chipdock_compile_caps")
            device.ok("compile.caps", other, again)
            texts = [
                [device.text(c.dialects[i].name) for i in range(c.dialect_count)]
                for c in (caps, again)
            ]
            assert texts[0] == texts[1]
            if name == "same":
                assert bytes(device.ffi.buffer(again, size)) == first


def _run(
    device: SourceDevice, function: Any, count: int, factor: float, stream: Any = None
) -> bytes:
    data = struct.pack(f"<{count}f", *(i % 97 for i in range(count)))
    x, y = device.alloc(len(data)), device.alloc(len(data) + 64)
    device.write(x, data)
    device.write(y, b"\xcb" * (len(data) + 64))
    desc = device.launch_desc((x, y), count, factor, stream)
    device.ok("compile.launch_function", function, desc)
    if stream is not None:
        device.sync(stream)
    return device.read(y, len(data) + 64)


def _expected(count: int, factor: float, offset: float = 0.0) -> bytes:
    return struct.pack(f"<{count}f", *((i % 97) * factor + offset for i in range(count))) + (
        b"\xcb" * 64
    )


@case(
    "L1.compile.launch",
    duties=("CMP-4", "CMP-5"),
    needs=_SOURCE,
    entry_points=_SLOTS,
    tolerance="E",
    budget_ms=_COMPILES_MS,
    variants=[
        Variant(name="inline_n1", size=1),
        Variant(name="inline_n1000", size=1000),
        Variant(name="stream_n1000", size=1000, needs="slot:stream.create"),
    ],
)
def test_launch(target: Target, variant: Variant) -> None:
    """A compiled function computes every element and nothing beside them."""
    with SourceDevice(target) as device:
        module = device.compile(device.text_of_a_dialect())
        function = device.function(module)
        stream = device.stream() if variant.needs else None
        for factor in (2.0, -0.5):
            got = _run(device, function, variant.size, factor, stream)
            check_bytes(got, _expected(variant.size, factor), "the output")
        device.ok("compile.destroy_module", module)


@case(
    "L1.compile.prelude",
    duties=("CMP-2",),
    needs=_SOURCE,
    entry_points=_SLOTS,
    tolerance="E",
    budget_ms=_COMPILES_MS,
)
def test_prelude(target: Target, variant: object) -> None:
    """The prelude comes before the text: what it defines is what the text sees."""
    with SourceDevice(target) as device:
        text = device.text_of_a_dialect()
        for offset in ("3.0f", "-7.0f"):
            module = device.compile(text, offset)
            got = _run(device, device.function(module), 100, 1.0)
            check_bytes(got, _expected(100, 1.0, float(offset[:-1])), "the output")
            device.ok("compile.destroy_module", module)


@case(
    "L1.compile.broken",
    duties=("CMP-3", "BASE-8"),
    needs=_SOURCE,
    budget_ms=_COMPILES_MS,
    entry_points=("compile.compile_source",),
    variants=named("log cut_log no_log"),
)
def test_text_that_does_not_compile(target: Target, variant: Variant) -> None:
    """Broken text is INVALID_ARGUMENT with the compiler's words in the log, cut to its room."""
    with SourceDevice(target) as device:
        desc = device.source(device.text_of_a_dialect(), body=BROKEN)
        room = {"log": 4096, "cut_log": 8, "no_log": 0}[variant.name]
        log = device.block("unsigned char[]", b"\xa5" * (room + 16))
        if room:
            desc.log, desc.log_size = device.ffi.cast("char*", log), room
        out = device.block("chipdock_module**")
        device.refuse("compile.compile_source", "INVALID_ARGUMENT", device.device, desc, out)
        assert out[0] == device.null
        data = bytes(device.ffi.buffer(log, room + 16))
        assert set(data[room:]) == {0xA5}, "bytes behind the log were written"
        assert not room or data.index(b"\0") > 0, "the log is empty"
        assert not room or data.index(b"\0") < room, "the log is not closed by 0"


@case(
    "L1.compile.refused",
    duties=("BASE-6", "BASE-7", "BASE-8"),
    needs=_SOURCE,
    budget_ms=_COMPILES_MS,
    entry_points=("compile.compile_source",),
    variants=named("dialect version option"),
)
def test_refused(target: Target, variant: Variant) -> None:
    """Unknown dialects and versions are UNSUPPORTED, unknown options INVALID_ARGUMENT."""
    with SourceDevice(target) as device:
        desc, status = device.source(device.text_of_a_dialect()), "UNSUPPORTED"
        if variant.name == "dialect":
            desc.dialect = device.block("char[]", b"com.example.no_such_dialect")
        elif variant.name == "version":
            desc.dialect_version = 999 << 16
        else:
            status = "INVALID_ARGUMENT"
            texts = [device.block("char[]", text) for text in (b"com.example.none", b"1")]
            option = device.new("chipdock_option", key=texts[0], value=texts[1])
            desc.options = device.block("const chipdock_option*[]", [option])
            desc.option_count = 1
        out = device.block("chipdock_module**")
        device.refuse("compile.compile_source", status, device.device, desc, out)
        assert out[0] == device.null


@case(
    "L1.compile.functions",
    duties=("CMP-5", "BASE-8"),
    needs=_SOURCE,
    entry_points=_SLOTS,
    budget_ms=_COMPILES_MS,
    variants=named("same unknown info null_name"),
)
def test_functions(target: Target, variant: Variant) -> None:
    """The same function comes back each time; an unknown one is INVALID_ARGUMENT."""
    with SourceDevice(target) as device:
        module = device.compile(device.text_of_a_dialect())
        out = device.block("chipdock_function**")
        if variant.name == "same":
            assert device.function(module) == device.function(module)
        elif variant.name == "info":
            info = device.new("chipdock_function_info")
            device.ok("compile.function_info", device.function(module), info)
            assert info.flags == 0
            assert info.argument_count in {0, 4}
        else:
            text = device.block("char[]", b"no_such_function")
            name = device.null if variant.name == "null_name" else text
            device.refuse("compile.get_function", "INVALID_ARGUMENT", module, name, out)
            assert out[0] == device.null
        device.ok("compile.destroy_module", module)


@case(
    "L1.compile.arguments",
    duties=("CMP-4", "BASE-7"),
    needs=_SOURCE,
    budget_ms=_COMPILES_MS,
    entry_points=("compile.launch_function",),
    variants=named("kind grid_zero block_zero block_huge"),
)
def test_launch_refused(target: Target, variant: Variant) -> None:
    """Launches outside the limits are INVALID_ARGUMENT, unknown argument kinds UNSUPPORTED."""
    with SourceDevice(target) as device:
        module = device.compile(device.text_of_a_dialect())
        x, y = device.alloc(400), device.alloc(400)
        desc, status = device.launch_desc((x, y), 100, 1.0), "INVALID_ARGUMENT"
        if variant.name == "kind":
            bad = device.new("chipdock_argument", kind=99)
            array = [bad, *(desc.arguments[i] for i in range(1, 4))]
            desc.arguments, status = (
                device.block("const chipdock_argument*[]", array),
                "UNSUPPORTED",
            )
        elif variant.name == "grid_zero":
            desc.grid[1] = 0
        else:
            desc.block[0] = 0 if variant.name == "block_zero" else 2**31
        device.refuse("compile.launch_function", status, device.function(module), desc)
        device.ok("compile.destroy_module", module)


@case(
    "L1.compile.copied",
    duties=("CMP-5",),
    entry_points=_SLOTS,
    tolerance="E",
    needs=_SOURCE + " and slot:stream.host_function",
    budget_ms=_COMPILES_MS,
)
def test_arguments_are_copied(target: Target, variant: object) -> None:
    """Desc and arguments of a queued launch may be gone when it runs."""
    with SourceDevice(target) as device:
        module, stream = device.compile(device.text_of_a_dialect()), device.stream()
        data = struct.pack("<100f", *range(100))
        x, y = device.alloc(400), device.alloc(400)
        device.write(x, data)
        desc = device.launch_desc((x, y), 100, 2.0, stream)
        device.write(y, bytes(400))
        with Gate(device, stream) as gate:
            held = gate.held
            device.ok("compile.launch_function", device.function(module), desc)
            assert not held or device.read(y, 400) == bytes(400), "it ran before its turn"
            for i in range(4):
                size = device.ffi.sizeof("chipdock_argument")
                gone = device.ffi.cast("void*", desc.arguments[i])
                device.ffi.memmove(gone, b"\xa5" * size, size)
        device.sync(stream)
        expected = struct.pack("<100f", *(2 * i for i in range(100)))
        check_bytes(device.read(y, 400), expected, "the output")
        device.ok("compile.destroy_module", module)


@case(
    "L1.compile.modules",
    duties=("CMP-5", "CMP-3"),
    needs=_SOURCE,
    entry_points=_SLOTS,
    tolerance="E",
    budget_ms=_COMPILES_MS,
)
def test_two_modules(target: Target, variant: object) -> None:
    """Two modules with one function name are two: ending either leaves the other."""
    with SourceDevice(target) as device:
        text = device.text_of_a_dialect()
        first, second = device.compile(text, "1.0f"), device.compile(text, "2.0f")
        function = device.function(second)
        check_bytes(_run(device, device.function(first), 50, 1.0), _expected(50, 1.0, 1.0), "first")
        device.ok("compile.destroy_module", first)
        check_bytes(_run(device, function, 50, 1.0), _expected(50, 1.0, 2.0), "second")
        device.ok("compile.destroy_module", second)


@case(
    "L1.compile.hostile",
    duties=("CMP-11", "BASE-9"),
    needs="slot:compile.load",
    entry_points=("compile.load", "compile.check_compat"),
    variants=[
        Variant(name=f"{slot}_{name}", slot=f"compile.{slot}", data=name)
        for slot in ("load", "check_compat")
        for name in ("zeros", "ones", "random", "one_byte")
    ],
)
def test_hostile_blob(target: Target, variant: Variant) -> None:
    """Bytes that no serialize made are MISMATCH, and do no harm."""
    with RawDevice(target) as device:
        data = {
            "zeros": bytes(4096), "ones": b"\xff" * 4096, "random": target.rng.bytes(4096),
            "one_byte": b"\x7f",
        }[variant.data]  # fmt: skip
        blob = device.block("char[]", data)
        more = [device.block("chipdock_executable**")] if variant.slot == "compile.load" else []
        device.refuse(variant.slot, "MISMATCH", device.device, blob, len(data), *more)

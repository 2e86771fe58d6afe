# SPDX-License-Identifier: Apache-2.0
"""Enum values and flag bits that no plugin of this version can know, field by field."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chipdock.conformance.case import Variant, case
from chipdock.conformance.suite.l0.bench import Bench
from chipdock.conformance.suite.l0.signatures import signature
from chipdock.conformance.suite.variants import named
from chipdock.conformance.target import Target

_BIT = 1 << 30

# Slot and field of its desc (or of the place in it): a flag word with an unknown bit.
_FLAGS = (
    ("device.open", "flags"), ("memory.alloc", "flags"), ("memory.alloc", "usage"),
    ("memory.copy", "flags"), ("memory.copy", "source.flags"), ("memory.copy", "target.flags"),
    ("memory.alloc_async", "flags"), ("memory.alloc_async", "usage"), ("memory.copy_2d", "flags"),
    ("memory.copy_2d", "source.flags"), ("memory.copy_2d", "target.flags"),
    ("memory.fill", "target.flags"), ("stream.create", "flags"), ("stream.host_function", "flags"),
    ("event.create", "flags"), ("graph.begin_capture", "flags"), ("graph.instantiate", "flags"),
    ("graph.launch", "flags"), ("profiler.start", "kinds"), ("compile.compile_source", "flags"),
    ("ccl.init", "flags"),
)  # fmt: skip
_ENUMS = (
    ("stream.value", "operation", 99), ("stream.value", "operation", -1),
    ("memory.export_memory", "kind", 99), ("memory.export_memory", "kind", 0),
    ("memory.import_memory", "kind", 99), ("memory.import_memory", "kind", -1),
    ("kernel.launch", "math_mode", 99), ("kernel.create", "math_mode", 99),
)  # fmt: skip


def _desc(slot: str, arguments: list[Any]) -> Any:
    position = next(a.position for a in signature(slot) if a.role in {"desc", "answer"})
    return arguments[position]


def _set(desc: Any, path: str, change: Callable[[Any], Any]) -> None:
    place, _, field = path.rpartition(".")
    holder = getattr(desc, place) if place else desc
    setattr(holder, field, change(getattr(holder, field)))


@case(
    "L0.flags.unknown",
    duties=("BASE-10", "BASE-8"),
    variants=[
        Variant(
            name=f"{slot}_{path}".replace(".", "_"),
            needs=f"slot:{slot}",
            slot=slot,
            path=path,
            entry_points=(slot,),
        )
        for slot, path in _FLAGS
    ],
)
def test_unknown_flag(target: Target, variant: Variant) -> None:
    """A flag bit that the plugin does not know is UNSUPPORTED, not ignored."""
    with Bench(target) as bench:
        arguments = bench.arguments(variant.slot)
        desc = _desc(variant.slot, arguments)
        if "." in variant.path:  # Places are const in the desc; a changed copy takes their stead.
            name = variant.path.partition(".")[0]
            place = bench.new("chipdock_place")
            bench.ffi.memmove(place, getattr(desc, name), bench.ffi.sizeof("chipdock_place"))
            setattr(desc, name, place)
        _set(desc, variant.path, lambda flags: flags | _BIT)
        bench.refuse(variant.slot, "UNSUPPORTED", *arguments)
        for argument in signature(variant.slot):
            if argument.role == "output":
                assert not arguments[argument.position][0], f"{argument.name} was written"


@case(
    "L0.enum.unknown",
    duties=("BASE-7", "BASE-8"),
    variants=[
        Variant(
            name=f"{slot}_{field}_{value}".replace(".", "_").replace("-", "minus"),
            needs=f"slot:{slot}",
            slot=slot,
            field=field,
            value=value,
            entry_points=(slot,),
        )
        for slot, field, value in _ENUMS
    ],
)
def test_unknown_value(target: Target, variant: Variant) -> None:
    """A value of an enum that the plugin does not know is UNSUPPORTED."""
    with Bench(target) as bench:
        arguments = bench.arguments(variant.slot)
        _set(_desc(variant.slot, arguments), variant.field, lambda _: variant.value)
        bench.refuse(variant.slot, "UNSUPPORTED", *arguments)


@case(
    "L0.enum.graph_change",
    duties=("BASE-7", "GRA-9"),
    needs="slot:graph.update",
    entry_points=("graph.update",),
    variants=[Variant(name="n99", kind=99), Variant(name="n0", kind=0)],
)
def test_unknown_graph_change(target: Target, variant: Variant) -> None:
    """A change of an unknown kind is UNSUPPORTED."""
    with Bench(target) as bench:
        change = bench.new("chipdock_graph_change", kind=variant.kind, target=11)
        desc = bench.new(
            "chipdock_graph_update_desc",
            change_count=1,
            changes=bench.block("const chipdock_graph_change*[]", [change]),
        )
        bench.refuse("graph.update", "UNSUPPORTED", bench.exec(), desc)


@case(
    "L0.argument.pattern_size",
    duties=("MEM-7",),
    needs="slot:memory.fill",
    entry_points=("memory.fill",),
    variants=[Variant(name=f"n{size}", size=size) for size in (0, 3, 5, 12, 17, 32, 4294967295)],
)
def test_pattern_size(target: Target, variant: Variant) -> None:
    """A pattern of a size that does not exist is INVALID_ARGUMENT."""
    with Bench(target) as bench:
        desc = bench.new(
            "chipdock_fill_desc",
            pattern_size=variant.size,
            target=bench.place(bench.memory),
            size=960,
        )
        bench.refuse("memory.fill", "INVALID_ARGUMENT", bench.device, desc)


@case(
    "L0.argument.index",
    duties=("DEV-1", "BASE-8"),
    mustpass=True,
    variants=[
        Variant(
            name=f"{slot.partition('.')[2]}_{name}", slot=slot, index=index, entry_points=(slot,)
        )
        for slot in ("device.info", "device.open")
        for name, index in (
            ("minus_one", -1),
            ("count", None),
            ("most", 2**31 - 1),
            ("least", -(2**31)),
        )
    ],
)
def test_index_out_of_range(target: Target, variant: Variant) -> None:
    """An index that is no device's is INVALID_ARGUMENT."""
    with Bench(target) as bench:
        count = bench.block("int32_t*")
        bench.ok("device.count", bench.handle, count)
        index = count[0] if variant.index is None else variant.index
        if variant.slot == "device.info":
            arguments = [index, bench.new("chipdock_device_info")]
        else:
            desc = bench.new("chipdock_device_open_desc", index=index)
            arguments = [desc, bench.block("chipdock_device**")]
        bench.refuse(variant.slot, "INVALID_ARGUMENT", bench.handle, *arguments)


@case(
    "L0.argument.alloc",
    duties=("MEM-1", "BASE-8"),
    entry_points=("memory.alloc",),
    mustpass=True,
    variants=[
        Variant(name="size_zero", change={"size": 0}),
        Variant(name="heap_out_of_range", change={"heap": None}),
        Variant(name="heap_far_out_of_range", change={"heap": 2**32 - 1}),
        Variant(name="alignment_three", change={"alignment": 3}),
        Variant(name="alignment_not_a_power", change={"alignment": 96}),
    ],
)
def test_alloc(target: Target, variant: Variant) -> None:
    """Alloc of 0 bytes, of a heap that is not there, or at no power of two is INVALID_ARGUMENT."""
    with Bench(target) as bench:
        change = dict(variant.change)
        if change.get("heap", 0) is None:
            change["heap"] = bench.info().heap_count
        desc = bench.new("chipdock_alloc_desc", **({"size": 64} | change))
        out = bench.block("chipdock_memory**")
        bench.refuse("memory.alloc", "INVALID_ARGUMENT", bench.device, desc, out)
        assert out[0] == bench.null


@case(
    "L0.argument.copy",
    duties=("MEM-7", "BASE-8"),
    entry_points=("memory.copy",),
    mustpass=True,
    variants=[
        Variant(name=f"{side}_{what}", side=side, what=what)
        for side in ("source", "target")
        for what in ("null", "both", "neither", "size_zero")
    ],
)
def test_copy_places(target: Target, variant: Variant) -> None:
    """A place that is NULL, or has both or neither of memory and host, is INVALID_ARGUMENT."""
    with Bench(target) as bench:
        desc = bench.copy_desc()
        place = {
            "null": bench.null,
            "both": bench.place(bench.memory),
            "neither": bench.new("chipdock_place"),
            "size_zero": bench.new("chipdock_place"),
        }[variant.what]
        if variant.what == "both":
            place.host = bench.host
        if variant.what == "size_zero":  # Nothing to copy, but the struct is checked. [MEM-7]
            desc.size, place.struct_size = 0, 0
        setattr(desc, variant.side, place)
        bench.refuse("memory.copy", "INVALID_ARGUMENT", bench.device, desc)


@case(
    "L0.argument.option",
    duties=("BASE-6", "BASE-8"),
    entry_points=("device.open",),
    variants=named("unknown null_array null_element"),
)
def test_open_option(target: Target, variant: Variant) -> None:
    """An unknown option is INVALID_ARGUMENT and named; so is an array that is not there."""
    with Bench(target) as bench:
        key = "com.example.no_such_option"
        option = bench.new("chipdock_option", key=bench.c_text(key), value=bench.c_text("1"))
        array = [option] if variant.name == "unknown" else [bench.null]
        desc = bench.new("chipdock_device_open_desc", index=bench.index, option_count=1)
        if variant.name != "null_array":
            desc.options = bench.block("const chipdock_option*[]", array)
        out = bench.block("chipdock_device**")
        bench.refuse("device.open", "INVALID_ARGUMENT", bench.handle, desc, out)
        assert out[0] == bench.null
        assert variant.name != "unknown" or key in bench.message, bench.message


@case(
    "L0.argument.query_key",
    duties=("BASE-7", "BASE-8"),
    needs="slot:device.query",
    entry_points=("device.query",),
    variants=named("unknown null small_buffer keys each_key"),
)
def test_query_key(target: Target, variant: Variant) -> None:
    """query: the size first, then the text; a buffer too small still gets the size."""
    with Bench(target) as bench:
        size = bench.block("uint64_t*")

        def ask(key: str) -> str:
            bench.ok("device.query", bench.device, bench.c_text(key), bench.null, 0, size)
            room = bench.block("char[]", b"\xa5" * (size[0] + 8))
            bench.ok("device.query", bench.device, bench.c_text(key), room, size[0], size)
            data = bytes(bench.ffi.buffer(room, size[0] + 8))
            assert data[size[0] - 1 :] == b"\0" + b"\xa5" * 8, (
                "not closed by 0, or too much written"
            )
            return data[: size[0] - 1].decode()

        if variant.name == "unknown":
            key = bench.c_text("com.example.none")
            bench.refuse("device.query", "UNSUPPORTED", bench.device, key, bench.null, 0, size)
        elif variant.name == "null":
            bench.refuse(
                "device.query", "INVALID_ARGUMENT", bench.device, bench.null, bench.null, 0, size
            )
        elif variant.name == "small_buffer":
            need = len(ask("keys")) + 1
            size[0] = 0
            room = bench.block("char[]", need)
            key = bench.c_text("keys")
            bench.refuse(
                "device.query", "INVALID_ARGUMENT", bench.device, key, room, need - 1, size
            )
            assert size[0] == need, "out_size is set also if the buffer is too small"
        else:
            keys = ask("keys").split("\n")
            assert "keys" in keys or keys
            for key in keys if variant.name == "each_key" else []:
                ask(key)

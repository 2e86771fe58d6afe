# SPDX-License-Identifier: Apache-2.0
"""Copies of rectangles and fills: the rows and the range, and nothing between or beside them."""

from __future__ import annotations

from chipdock.conformance.case import Variant, case
from chipdock.conformance.suite.canary import Fenced, check_bytes
from chipdock.conformance.suite.device import RawDevice, pattern
from chipdock.conformance.suite.raw import status_name
from chipdock.conformance.suite.variants import named
from chipdock.conformance.target import Target

# Row bytes, rows, what is between rows of source and target.
_SHAPES = {
    "one_row": (100, 1, 0, 0),
    "one_byte_rows": (1, 37, 3, 1),
    "dense": (64, 16, 0, 0),
    "odd_dense": (33, 7, 0, 0),
    "source_gaps": (48, 9, 16, 0),
    "target_gaps": (48, 9, 0, 16),
    "both_gaps": (31, 13, 7, 29),
    "wide_gaps": (5, 21, 250, 123),
    "long_rows": (70001, 3, 5, 9),
    "many_rows": (16, 1500, 4, 12),
}
_WAYS = ("h2d", "d2h", "d2d")
_COPY_2D = ("memory.copy_2d",)


def _rows(data: bytes, row: int, rows: int, pitch: int) -> list[bytes]:
    return [data[i * pitch : i * pitch + row] for i in range(rows)]


@case(
    "L1.rectangle.copy",
    duties=("MEM-3", "MEM-5"),
    needs="slot:memory.copy_2d",
    tolerance="E",
    entry_points=_COPY_2D,
    variants=[
        Variant(name=f"{way}_{name}", way=way, shape=shape)
        for name, shape in _SHAPES.items()
        for way in _WAYS
    ],
)
def test_copy_2d(target: Target, variant: Variant) -> None:
    """Each row arrives, and what lies between the rows of the target stays."""
    row, rows, source_gap, target_gap = variant.shape
    with RawDevice(target) as device:
        source_pitch, target_pitch = row + source_gap, row + target_gap
        source_size, target_size = source_pitch * rows, target_pitch * rows
        data = pattern(source_size, seed=9)
        start = device.unit
        if variant.way == "h2d":
            source = device.place(host=device.block("unsigned char[]", data))
        else:
            memory = device.alloc(start + source_size)
            device.write(memory, data, offset=start)
            source = device.place(memory, start)
        expected = bytearray(b"\xcb" * target_size)
        for i, content in enumerate(_rows(data, row, rows, source_pitch)):
            expected[i * target_pitch : i * target_pitch + row] = content
        desc = device.new(
            "chipdock_copy_2d_desc", source=source, row_bytes=row, rows=rows,
            source_pitch=source_pitch, target_pitch=target_pitch,
        )  # fmt: skip
        if variant.way == "d2h":
            host = device.block("unsigned char[]", b"\xcb" * (target_size + 64))
            desc.target = device.place(host=host)
            device.ok("memory.copy_2d", device.device, desc)
            got = bytes(device.ffi.buffer(host, target_size + 64))
            check_bytes(got, bytes(expected) + b"\xcb" * 64, "host memory")
            return
        fenced = Fenced(device, target_size + 2 * start)
        desc.target = device.place(fenced.memory, start)
        device.ok("memory.copy_2d", device.device, desc)
        fenced.check(start, bytes(expected))


@case(
    "L1.rectangle.empty",
    duties=("MEM-7",),
    needs="slot:memory.copy_2d",
    entry_points=_COPY_2D,
    variants=named("no_rows no_bytes"),
)
def test_empty_rectangle(target: Target, variant: Variant) -> None:
    """A rectangle of no rows or of empty rows copies nothing."""
    with RawDevice(target) as device:
        fenced = Fenced(device, 4 * device.unit)
        desc = device.new(
            "chipdock_copy_2d_desc",
            source=device.place(host=device.block("char[]", 64)),
            target=device.place(fenced.memory),
            row_bytes=16 if variant.name == "no_rows" else 0,
            rows=0 if variant.name == "no_rows" else 3,
            source_pitch=16,
            target_pitch=16,
        )
        device.ok("memory.copy_2d", device.device, desc)
        fenced.check(0, b"")


@case(
    "L1.rectangle.pitch",
    duties=("MEM-3",),
    needs="slot:memory.copy_2d",
    entry_points=_COPY_2D,
    variants=named("source target"),
)
def test_pitch_under_the_row(target: Target, variant: Variant) -> None:
    """A pitch shorter than a row is INVALID_ARGUMENT and copies nothing."""
    with RawDevice(target) as device:
        fenced = Fenced(device, 1024)
        pitches = {"source_pitch": 16, "target_pitch": 16, f"{variant.name}_pitch": 15}
        desc = device.new(
            "chipdock_copy_2d_desc",
            source=device.place(host=device.block("char[]", 64)),
            target=device.place(fenced.memory),
            row_bytes=16,
            rows=3,
            **pitches,
        )
        device.refuse("memory.copy_2d", "INVALID_ARGUMENT", device.device, desc)
        fenced.check(0, b"")


@case(
    "L1.fill.pattern",
    duties=("MEM-3", "MEM-5"),
    needs="slot:memory.fill",
    tolerance="E",
    entry_points=("memory.fill",),
    variants=[
        Variant(name=f"p{width}_n{width * count}", width=width, count=count)
        for width in (1, 2, 4, 8, 16)
        for count in (1, 3, 7, 255, 4099)
    ],
)
def test_fill(target: Target, variant: Variant) -> None:
    """The pattern repeats over the whole range and touches nothing beside it."""
    with RawDevice(target) as device:
        value = pattern(variant.width, seed=11)
        size = variant.width * variant.count
        # The offset is a multiple of the pattern and of what the heap wants.
        start = max(device.unit, 16)
        fenced = Fenced(device, size + 2 * start)
        status = device.fill(fenced.memory, value, size, start)
        assert status == 0, f"{status_name(status)}: {device.message}"
        fenced.check(start, value * variant.count)


@case(
    "L1.fill.bytes",
    duties=("MEM-3",),
    needs="slot:memory.fill",
    tolerance="E",
    entry_points=("memory.fill",),
    variants=named("zero all_ones sequence"),
)
def test_fill_values(target: Target, variant: Variant) -> None:
    """The values that memset is often asked for are filled like any other."""
    with RawDevice(target) as device:
        for width in (1, 4):
            value = {
                "zero": bytes(width),
                "all_ones": b"\xff" * width,
                "sequence": bytes(range(1, width + 1)),
            }[variant.name]
            fenced = Fenced(device, 1000 + device.unit)
            assert device.fill(fenced.memory, value, 1000) == 0
            fenced.check(0, value * (1000 // width))


@case(
    "L1.fill.refused",
    duties=("MEM-7", "BASE-8"),
    needs="slot:memory.fill",
    entry_points=("memory.fill",),
    variants=named("size offset"),
)
def test_fill_that_does_not_divide(target: Target, variant: Variant) -> None:
    """A pattern that does not divide offset or size is INVALID_ARGUMENT and fills nothing."""
    with RawDevice(target) as device:
        fenced = Fenced(device, 1024)
        size, offset = (1001, 0) if variant.name == "size" else (64, 1)
        status = status_name(device.fill(fenced.memory, b"abcd", size, offset))
        assert status == "INVALID_ARGUMENT", status
        fenced.check(0, b"")


@case("L1.fill.zero", duties=("MEM-7",), needs="slot:memory.fill", entry_points=("memory.fill",))
def test_fill_of_nothing(target: Target, variant: object) -> None:
    """A fill of 0 bytes is OK and changes nothing."""
    with RawDevice(target) as device:
        fenced = Fenced(device, 256)
        assert device.fill(fenced.memory, b"\x11", 0) == 0
        fenced.check(0, b"")

# SPDX-License-Identifier: Apache-2.0
"""Copies in all directions: every byte of the range, and no byte beside it."""

from __future__ import annotations

from chipdock.conformance.case import Variant, case
from chipdock.conformance.suite.canary import Fenced, check_bytes
from chipdock.conformance.suite.device import RawDevice, pattern
from chipdock.conformance.suite.raw import status_name
from chipdock.conformance.suite.variants import named, sizes
from chipdock.conformance.target import Target

# Around the widths in which copies are unrolled, vectorised and split into pages.
_SIZES = (1, 2, 3, 7, 8, 9, 15, 17, 31, 33, 63, 64, 65, 127, 255, 257, 1023, 4095, 4097, 65537)
_LARGE = (1048577, 8388611)
_COPY = ("memory.copy",)
# Offsets of source and target in units of the heap, and bytes.
_OFFSETS = ((0, 1, 1), (1, 0, 3), (1, 2, 17), (2, 1, 63), (3, 3, 65), (5, 2, 1000), (7, 11, 4099))


def _room(device: RawDevice, size: int) -> int:
    return -(-size // device.unit) * device.unit + 2 * device.unit


@case(
    "L1.copy.h2d",
    duties=("MEM-5", "MEM-3"),
    entry_points=_COPY,
    tolerance="E",
    mustpass=True,
    variants=sizes(*_SIZES, *_LARGE),
)
def test_host_to_device(target: Target, variant: Variant) -> None:
    """Bytes copied to the device are all there, and none beside them changed."""
    with RawDevice(target) as device:
        fenced = Fenced(device, _room(device, variant.size))
        data = pattern(variant.size)
        device.write(fenced.memory, data, offset=device.unit)
        fenced.check(device.unit, data)


@case(
    "L1.copy.d2h",
    duties=("MEM-5", "MEM-4"),
    entry_points=_COPY,
    tolerance="E",
    mustpass=True,
    variants=sizes(*_SIZES, *_LARGE),
)
def test_device_to_host(target: Target, variant: Variant) -> None:
    """Bytes copied to the host are all there, and none beside them changed."""
    with RawDevice(target) as device:
        size = variant.size
        memory = device.alloc(size + device.unit)
        data = pattern(size + device.unit, seed=1)
        device.write(memory, data)
        host = device.block("unsigned char[]", b"\xcb" * (size + 32))
        status = device.copy(
            device.place(memory, device.unit),
            device.place(host=device.ffi.addressof(host, 16)),
            size,
        )
        assert status == 0, device.message
        expected = b"\xcb" * 16 + data[device.unit :] + b"\xcb" * 16
        check_bytes(bytes(device.ffi.buffer(host, size + 32)), expected, "host memory")


@case(
    "L1.copy.d2d",
    duties=("MEM-5", "MEM-3"),
    entry_points=_COPY,
    tolerance="E",
    mustpass=True,
    variants=sizes(*_SIZES, *_LARGE),
)
def test_device_to_device(target: Target, variant: Variant) -> None:
    """Bytes copied inside the device arrive, and neither source nor neighbours change."""
    with RawDevice(target) as device:
        data = pattern(variant.size, seed=2)
        source = Fenced(device, _room(device, variant.size))
        device.write(source.memory, data, offset=device.unit)
        fenced = Fenced(device, _room(device, variant.size))
        device.move(source.memory, fenced.memory, variant.size, (device.unit, device.unit))
        fenced.check(device.unit, data)
        source.check(device.unit, data, "source")


@case(
    "L1.copy.offsets",
    duties=("MEM-3",),
    entry_points=_COPY,
    tolerance="E",
    mustpass=True,
    variants=[
        Variant(name=f"{way}_{a}_{b}_n{size}", way=way, a=a, b=b, size=size)
        for way in ("h2d", "d2h", "d2d")
        for a, b, size in _OFFSETS
    ],
)
def test_offsets(target: Target, variant: Variant) -> None:
    """Offsets of source and target count from the start of each allocation."""
    with RawDevice(target) as device:
        start, end = variant.a * device.unit, variant.b * device.unit
        room = _room(device, variant.size + max(start, end))
        data = pattern(room, seed=3)
        fenced = Fenced(device, room)
        if variant.way == "h2d":
            device.write(fenced.memory, data[: variant.size], offset=end)
            fenced.check(end, data[: variant.size])
            return
        source = device.alloc(room)
        device.write(source, data)
        if variant.way == "d2h":
            check_bytes(
                device.read(source, variant.size, offset=start),
                data[start : start + variant.size],
                "host memory",
            )
            return
        device.move(source, fenced.memory, variant.size, (start, end))
        fenced.check(end, data[start : start + variant.size])


@case(
    "L1.copy.inside",
    duties=("MEM-6", "MEM-3"),
    entry_points=_COPY,
    tolerance="E",
    variants=named("forward backward touching"),
)
def test_inside_one_allocation(target: Target, variant: Variant) -> None:
    """Source and target may be parts of one allocation that do not overlap."""
    with RawDevice(target) as device:
        unit = device.unit * (-(-300 // device.unit))
        data = pattern(unit * 4, seed=4)
        memory = device.alloc(len(data))
        device.write(memory, data)
        first, second = {"forward": (0, 3), "backward": (3, 0), "touching": (1, 2)}[variant.name]
        device.move(memory, memory, unit, (first * unit, second * unit))
        expected = bytearray(data)
        expected[second * unit : (second + 1) * unit] = data[first * unit : (first + 1) * unit]
        check_bytes(device.read(memory, len(data)), bytes(expected), "the allocation")


@case(
    "L1.copy.h2h",
    duties=("MEM-4",),
    entry_points=_COPY,
    tolerance="E",
    variants=sizes(1, 17, 4097, 65537),
)
def test_host_to_host(target: Target, variant: Variant) -> None:
    """A copy between two places of the host works too."""
    with RawDevice(target) as device:
        data = pattern(variant.size, seed=5)
        source = device.block("unsigned char[]", data)
        host = device.block("unsigned char[]", b"\xcb" * (variant.size + 16))
        assert device.copy(device.place(host=source), device.place(host=host), variant.size) == 0
        got = bytes(device.ffi.buffer(host, variant.size + 16))
        check_bytes(got, data + b"\xcb" * 16, "target")


@case(
    "L1.copy.zero",
    duties=("MEM-7",),
    entry_points=_COPY,
    tolerance="E",
    mustpass=True,
    variants=named("h2d d2h d2d nowhere at_the_end"),
)
def test_size_zero(target: Target, variant: Variant) -> None:
    """A copy of 0 bytes is OK and changes nothing."""
    with RawDevice(target) as device:
        fenced = Fenced(device, 4 * device.unit)
        host = device.block("char[]", 64)
        memory, nowhere = device.place(fenced.memory), device.new("chipdock_place")
        places = {
            "h2d": (device.place(host=host), memory),
            "d2h": (memory, device.place(host=host)),
            "d2d": (memory, device.place(fenced.memory, 2 * device.unit)),
            "nowhere": (nowhere, device.new("chipdock_place")),
            "at_the_end": (device.place(host=host), device.place(fenced.memory, fenced.size)),
        }[variant.name]
        status = device.copy(*places, 0)
        assert status == 0, f"{status_name(status)}: {device.message}"
        fenced.check(0, b"")


@case(
    "L1.copy.peer",
    duties=("MEM-5", "DEV-4"),
    entry_points=_COPY,
    tolerance="E",
    variants=[
        Variant(name=f"{way}_n{size}", way=way, size=size)
        for way in ("from_peer", "to_peer")
        for size in (1, 255, 4097, 65537)
    ],
)
def test_peer(target: Target, variant: Variant) -> None:
    """A place may name another opened device as the owner of its memory."""
    with RawDevice(target) as device:
        peer = device.open()
        data = pattern(variant.size, seed=6)
        here = device.alloc(variant.size)
        there = device.alloc(variant.size, device=peer)
        zero = bytes(variant.size)
        places = [device.place(there, device=peer), device.place(here)]
        source, destination = places if variant.way == "from_peer" else reversed(places)
        host = device.block("unsigned char[]", data)
        for place, content in ((source, host), (destination, device.block("char[]", zero))):
            assert device.copy(device.place(host=content), place, variant.size) == 0
        assert device.copy(source, destination, variant.size) == 0, device.message
        back = device.block("unsigned char[]", max(1, variant.size))
        assert device.copy(destination, device.place(host=back), variant.size) == 0
        check_bytes(bytes(device.ffi.buffer(back, variant.size)), data, "the peer's copy")


@case(
    "L1.copy.two_devices",
    duties=("MEM-5",),
    entry_points=_COPY,
    needs="devices:2",
    tolerance="E",
    variants=sizes(1, 4097, 65537),
)
def test_two_devices(target: Target, variant: Variant) -> None:
    """A peer copy between two chips brings every byte."""
    with RawDevice(target) as device:
        other = device.open(index=1 if device.index == 0 else 0)
        data = pattern(variant.size, seed=7)
        here, there = device.alloc(variant.size), device.alloc(variant.size, device=other)
        device.write(here, data)
        peer = device.place(there, device=other)
        assert device.copy(device.place(here), peer, variant.size) == 0, device.message
        device.write(here, bytes(variant.size))
        assert device.copy(peer, device.place(here), variant.size) == 0, device.message
        check_bytes(device.read(here, variant.size), data, "what came back")


@case(
    "L1.copy.repeat",
    duties=("MEM-5",),
    entry_points=_COPY,
    tolerance="E",
    mustpass=True,
    variants=named("h2d_d2h chain"),
)
def test_many_copies(target: Target, variant: Variant) -> None:
    """The two hundredth copy is as right as the first."""
    with RawDevice(target) as device:
        size = 1021
        memories = [device.alloc(size) for _ in range(4)]
        for i in range(200):
            data = pattern(size, seed=i)
            device.write(memories[0], data)
            last = memories[0]
            if variant.name == "chain":
                for memory in memories[1:]:
                    device.move(last, memory, size)
                    last = memory
            check_bytes(device.read(last, size), data, f"copy {i}")


@case(
    "L1.copy.random",
    duties=("MEM-3", "MEM-5"),
    entry_points=_COPY,
    tolerance="E",
    variants=sizes(1, 2, 3, 4),
)
def test_random(target: Target, variant: Variant) -> None:
    """Random ranges, checked against a model in host memory after every few."""
    with RawDevice(target) as device:
        rng, units = target.rng, 64
        whole = units * device.unit
        blocks = [device.alloc(whole) for _ in range(2)]
        model = [bytearray(pattern(whole, seed=k)) for k in range(2)]
        for memory, bytes_ in zip(blocks, model, strict=True):
            device.write(memory, bytes(bytes_))
        for step in range(60):
            start, end = (int(rng.integers(units)) for _ in range(2))
            size = int(rng.integers(1, whole - max(start, end) * device.unit + 1))
            a, b = start * device.unit, end * device.unit
            device.move(blocks[step % 2], blocks[1 - step % 2], size, (a, b))
            model[1 - step % 2][b : b + size] = model[step % 2][a : a + size]
            if step % 15 == 14:
                for k in range(2):
                    check_bytes(device.read(blocks[k], whole), bytes(model[k]), f"step {step}")

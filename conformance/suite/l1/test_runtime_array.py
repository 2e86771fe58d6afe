# SPDX-License-Identifier: Apache-2.0
"""Arrays through the host runtime: every dtype and shape survives, memory is counted."""

from __future__ import annotations

import functools
import gc
from typing import Any

import ml_dtypes
import numpy as np

import chipdock
from chipdock.conformance.case import Variant, case
from chipdock.conformance.suite.layered import fresh_device
from chipdock.conformance.suite.threads import run_together
from chipdock.conformance.suite.variants import named, sizes
from chipdock.conformance.target import Target

_COPY = ("memory.alloc", "memory.copy")
_DTYPES = {
    "f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
    "f8e4m3fn": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2,
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "u8": np.uint8,
    "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "bool": np.bool_,
    "c64": np.complex64, "c128": np.complex128, "i4": ml_dtypes.int4, "u4": ml_dtypes.uint4,
}  # fmt: skip
_SHAPES = {"scalar": (), "empty": (3, 0, 2), "odd": (7, 3, 5), "long": (10007,), "deep": (1,) * 12}


def _values(target: Target, dtype: str, shape: tuple[int, ...]) -> Any:
    kind = np.dtype(_DTYPES[dtype])
    if dtype in {"i4", "u4"}:
        low = -8 if dtype == "i4" else 0
        return target.rng.integers(low, low + 16, shape).astype(kind)
    if dtype == "bool":
        return target.rng.integers(0, 2, shape).astype(kind)
    count = int(np.prod(shape)) * kind.itemsize
    return np.frombuffer(target.rng.bytes(max(1, count)), np.uint8, count).view(kind).reshape(shape)


@case(
    "L1.array.round_trip",
    duties=("MEM-1", "MEM-5"),
    entry_points=_COPY,
    tolerance="E",
    variants=[
        Variant(dtype=dtype, name=name, shape=shape, mustpass=dtype in {"f32", "i64", "bool"})
        for dtype in _DTYPES
        for name, shape in _SHAPES.items()
        if name in {"odd", "long"} or dtype in {"f32", "i64", "u8"}
    ],
)
def test_round_trip(target: Target, variant: Variant) -> None:
    """Any bits of any dtype come back from the device as they went."""
    values = _values(target, variant.dtype, variant.shape)
    back = chipdock.array(values, target.device).copy_to_numpy()
    assert back.dtype == values.dtype
    assert back.shape == values.shape
    if variant.dtype in {"i4", "u4"}:  # Bits above the fourth are no part of an element.
        np.testing.assert_array_equal(back.astype(np.int8), values.astype(np.int8))
    else:
        assert back.tobytes() == values.tobytes()


@case(
    "L1.array.view",
    duties=("MEM-3",),
    entry_points=_COPY,
    tolerance="E",
    variants=named("first last middle step reversed column newest"),
)
def test_views(target: Target, variant: Variant) -> None:
    """A slice of an array shows the elements that numpy shows."""
    values = np.arange(240, dtype=np.int32).reshape(12, 20)
    key: Any = {
        "first": np.s_[0], "last": np.s_[-1], "middle": np.s_[3:7], "step": np.s_[::3],
        "reversed": np.s_[::-1], "column": np.s_[:, 5], "newest": np.s_[2:4, 3:19:2],
    }[variant.name]  # fmt: skip
    array = chipdock.array(values, target.device)
    np.testing.assert_array_equal(array[key].copy_to_numpy(), values[key])


@case(
    "L1.array.copies",
    duties=("MEM-5",),
    entry_points=("memory.copy",),
    tolerance="E",
    mustpass=True,
    variants=named("to copy_from contiguous overwrite"),
)
def test_copies(target: Target, variant: Variant) -> None:
    """Copies between arrays are copies: changing one leaves the other."""
    values = target.rng.integers(0, 1000, (33, 17)).astype(np.int32)
    array = chipdock.array(values, target.device)
    if variant.name == "to":
        other = array.to(target.device)
        array.copy_from(np.zeros_like(values))
        np.testing.assert_array_equal(other.copy_to_numpy(), values)
    elif variant.name == "contiguous":
        np.testing.assert_array_equal(array[::2].contiguous().copy_to_numpy(), values[::2])
    else:
        for shift in range(3 if variant.name == "overwrite" else 1):
            array.copy_from(values + shift)
            np.testing.assert_array_equal(array.copy_to_numpy(), values + shift)


@case(
    "L1.array.many",
    duties=("MEM-1", "MEM-2"),
    entry_points=_COPY,
    tolerance="E",
    variants=sizes(10, 300),
)
def test_many(target: Target, variant: Variant) -> None:
    """Many arrays live at once, half of them are dropped, and the rest keep their elements."""
    arrays = [
        chipdock.array(np.full(1001, i, np.int32), target.device) for i in range(variant.size)
    ]
    del arrays[::2]
    gc.collect()
    more = [
        chipdock.array(np.full(1001, -i, np.int32), target.device) for i in range(variant.size // 2)
    ]
    for i, array in enumerate(arrays):
        np.testing.assert_array_equal(array.copy_to_numpy(), np.full(1001, 2 * i + 1, np.int32))
    for i, array in enumerate(more):
        np.testing.assert_array_equal(array.copy_to_numpy(), np.full(1001, -i, np.int32))


@case(
    "L1.limits.memory",
    duties=("MEM-9",),
    entry_points=_COPY,
    variants=named("limit intact raise again huge"),
)
def test_memory_limit(target: Target, variant: Variant) -> None:
    """A limit in bytes gives OUT_OF_MEMORY, leaves arrays whole, and can be raised."""
    with fresh_device(target) as device:
        kept = chipdock.array(np.arange(1000, dtype=np.int32), device)
        if variant.name == "huge":
            try:
                chipdock.empty((min(2 * device.memory_info()[1], 2**58),), np.uint8, device)
            except chipdock.errors.OutOfMemoryError as error:
                scope = error.scope
            else:
                raise AssertionError("twice the memory of the device was allocated")
            assert scope == "call"
            return
        device.set_memory_limit(1 << 20)
        for _ in range(3 if variant.name == "again" else 1):
            try:
                chipdock.empty((1 << 21,), np.uint8, device)
            except chipdock.errors.OutOfMemoryError:
                pass
            else:
                raise AssertionError("the limit was passed")
        if variant.name == "raise":
            device.set_memory_limit(0)
            assert chipdock.empty((1 << 21,), np.uint8, device).size == 1 << 21
        np.testing.assert_array_equal(kept.copy_to_numpy(), np.arange(1000, dtype=np.int32))


@case(
    "L1.limits.stats",
    duties=("MEM-2",),
    entry_points=("memory.alloc", "memory.free"),
    variants=named("used returned cached trimmed peak reset_peak view"),
)
def test_memory_stats(target: Target, variant: Variant) -> None:
    """The runtime's counters follow arrays as they come and go."""
    with fresh_device(target) as device:

        def used() -> int:
            gc.collect()
            return device.memory_stats()["used_bytes"]

        assert used() == 0
        array = chipdock.empty((100_000,), np.uint8, device)
        assert used() >= 100_000
        view = array[10:20] if variant.name == "view" else None
        del array
        if variant.name == "view":
            assert used() >= 100_000
            del view
        assert used() == 0
        stats = device.memory_stats()
        if variant.name in {"peak", "reset_peak"}:
            assert stats["peak_used_bytes"] >= 100_000
            device.reset_peak()
            assert device.memory_stats()["peak_used_bytes"] == 0
        elif variant.name in {"cached", "trimmed"}:
            assert stats["cached_bytes"] == stats["reserved_bytes"] - stats["used_bytes"]
            device.trim()
            stats = device.memory_stats()
            assert (stats["cached_bytes"], stats["reserved_bytes"]) == (0, 0)


@case(
    "L1.limits.info",
    duties=("MEM-9", "DEV-6"),
    entry_points=("memory.info",),
    variants=named("range fresh"),
)
def test_memory_info(target: Target, variant: Variant) -> None:
    """Free memory is no more than the total, and the total no less than what one holds."""
    free, total = target.device.memory_info()
    assert 0 <= free <= total
    assert total > 0
    if variant.name == "fresh":
        kept = chipdock.empty((1 << 20,), np.uint8, target.device)
        assert target.device.memory_info()[1] >= kept.nbytes


@case(
    "L1.info.device",
    duties=("DEV-3", "DEV-6"),
    entry_points=("device.info",),
    mustpass=True,
    variants=named("strings numbers heaps uuid peaks same count index"),
)
def test_device_info(target: Target, variant: Variant) -> None:
    """What the runtime says of a device is well formed and does not change."""
    device, info, name = target.device, target.device.info, variant.name
    if name == "strings":
        assert info["product"].strip()
        assert all(isinstance(info[k], str) for k in ("architecture", "driver", "pci_address"))
    elif name == "numbers":
        assert info["numa_node"] >= -1
        assert all(info[k] >= 0 for k in ("units", "memory_bandwidth", "l2_bytes"))
    elif name == "heaps":
        assert info["heaps"]
        for heap in info["heaps"]:
            assert heap["bytes"] > 0
            assert heap["alignment"] > 0 == heap["alignment"] & (heap["alignment"] - 1)
    elif name == "uuid":
        assert len(info["uuid"].replace("-", "")) == 32
    elif name == "peaks":
        assert all(peak["operations_per_second"] >= 0 for peak in info["peaks"])
    elif name == "same":
        assert device.plugin.device_info(device.index) == info
    elif name == "count":
        assert device.plugin.device_count() > device.index
    else:
        try:
            device.plugin.device_info(device.plugin.device_count())
        except chipdock.errors.InvalidArgumentError:
            return
        raise AssertionError("info of a device that is not there")


@case("L1.info.link", duties=("DEV-4",), entry_points=("device.link",))
def test_link(target: Target, variant: object) -> None:
    """The link of a device to another opening of it is told, or measured."""
    with fresh_device(target) as device:
        peer = chipdock.Device.open(device.plugin, device.index)
        link = device.link(peer)
        assert link["bandwidth"] >= 0
        assert link["reverse_bandwidth"] >= 0
        assert link["latency_ns"] >= 0


@case(
    "L1.info.health",
    duties=("BASE-5", "BASE-7"),
    needs="slot:device.health",
    entry_points=("device.health",),
    variants=named("range text same"),
)
def test_health(target: Target, variant: Variant) -> None:
    """Health is good, degraded or failed; what is not good has its cause as text."""
    from chipdock.conformance.suite.device import RawDevice  # noqa: PLC0415

    with RawDevice(target) as device:
        out = device.new("chipdock_health")
        device.ok("device.health", device.device, out)
        text = bytes(device.ffi.buffer(out.text))
        if variant.name == "text":
            assert b"\0" in text
            assert out.state == 0 or text[0] != 0, "not good, and no cause"
        else:
            assert out.state in {0, 1, 2}
            assert out.state != 2, "the device says that it has failed"
            assert -100 <= out.temperature_c <= 200


@case(
    "L1.array.threads", duties=("MEM-8",), entry_points=_COPY, tolerance="E", variants=sizes(2, 8)
)
def test_threads(target: Target, variant: Variant) -> None:
    """Arrays made and read by several threads at once are each its own."""
    device = target.device

    def work(number: int) -> None:
        for i in range(20):
            values = np.full(997, number * 1000 + i, np.int64)
            got = chipdock.array(values, device).copy_to_numpy()
            assert np.array_equal(got, values), f"thread {number}, array {i}"

    run_together([functools.partial(work, i) for i in range(variant.size)])

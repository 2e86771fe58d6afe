# SPDX-License-Identifier: Apache-2.0
"""Errors through the host runtime: the right code, the first cause, as wide as they reach."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import chipdock
from chipdock.conformance.case import Variant, case
from chipdock.conformance.suite.layered import fresh_device
from chipdock.conformance.suite.variants import named
from chipdock.conformance.target import Target


def _code(call: Callable[[], object]) -> str:
    try:
        call()
    except chipdock.ChipdockError as error:
        return error.code
    return "OK"


class Pair:
    """Two arrays of a device, and a copy from one to the other that goes through the plugin."""

    def __init__(self, device: chipdock.Device) -> None:
        """Makes the arrays."""
        self.device = device
        self.source = chipdock.array(np.arange(100, dtype=np.int32), device)
        self.target = chipdock.array(np.zeros(100, np.int32), device)

    def copy(self) -> None:
        """Copy on a fresh stream and wait."""
        stream = chipdock.Stream(self.device)
        stream.copy(self.source, self.target)
        stream.sync()


def _copies_so_far(target: Target) -> int:
    """Calls of memory.copy that two arrays take: none where the host writes in place."""
    return 0 if target.device.host_visible else 2


@case(
    "L1.errors.code",
    duties=("BASE-7", "BASE-8"),
    entry_points=("memory.alloc", "memory.copy"),
    mustpass=True,
    variants=[
        Variant(name=f"{slot}_{code}".replace(".", "_").lower(), slot=slot, code=code)
        for slot in ("memory.alloc", "memory.copy")
        for code in ("INVALID_ARGUMENT", "UNAVAILABLE", "BUSY", "INTERNAL", "DEVICE_LOST")
    ],
)
def test_code_arrives(target: Target, variant: Variant) -> None:
    """The status of a failed slot reaches the caller as the class of its error."""
    first = 1 if variant.slot == "memory.alloc" else 1 + _copies_so_far(target)
    with fresh_device(target, f"fault={variant.slot}:{first}:{variant.code}") as device:
        if variant.slot == "memory.alloc":
            assert _code(lambda: Pair(device)) == variant.code
        else:
            assert _code(Pair(device).copy) == variant.code


@case(
    "L1.errors.scope",
    duties=("DEV-7", "STR-3"),
    entry_points=("memory.copy",),
    mustpass=True,
    variants=named("call device"),
)
def test_scope(target: Target, variant: Variant) -> None:
    """An error of a call leaves the device at work; one of the device stays until it is closed."""
    code = "INTERNAL" if variant.name == "call" else "DEVICE_LOST"
    fault = f"fault=memory.copy:{2 + _copies_so_far(target)}:{code}"
    with fresh_device(target, fault) as device:
        pair = Pair(device)
        assert [_code(pair.copy) for _ in range(2)] == ["OK", code]
        again = [_code(pair.copy) for _ in range(3)]
        assert again == (["OK"] * 3 if variant.name == "call" else ["DEVICE_LOST"] * 3)
    with fresh_device(target) as device:
        pair = Pair(device)
        pair.copy()
        np.testing.assert_array_equal(pair.target.copy_to_numpy(), np.arange(100))


@case(
    "L1.errors.first_cause",
    duties=("STR-3", "DEV-7"),
    entry_points=("memory.copy",),
    variants=named("copy alloc stream"),
)
def test_first_cause(target: Target, variant: Variant) -> None:
    """Every later call on a lost device gives the first cause, word for word."""
    fault = f"fault=memory.copy:{1 + _copies_so_far(target)}:DEVICE_LOST"
    with fresh_device(target, fault) as device:
        pair, texts = Pair(device), []
        calls: dict[str, Callable[[], object]] = {
            "copy": pair.copy,
            "alloc": lambda: chipdock.empty((1 << 22,), np.uint8, device),
            "stream": lambda: chipdock.Stream(device).sync(),
        }
        for call in (pair.copy, calls[variant.name], calls[variant.name], pair.copy):
            try:
                call()
            except chipdock.errors.DeviceLostError as error:
                texts.append(f"{error.scope}: {error}")
        assert len(texts) >= 2, "a lost device answered"
        assert all(text.startswith("device: ") for text in texts), texts
        assert all("memory.copy failed on purpose" in text for text in texts), texts


@case(
    "L1.errors.stream",
    duties=("STR-3", "STR-4", "EVT-4"),
    mustpass=True,
    entry_points=("memory.copy", "stream.sync"),
    variants=named("sticky waiter event host_function"),
)
def test_failed_stream(target: Target, variant: Variant) -> None:
    """A stream whose work failed says why, each time, to its waiters too, and runs nothing more."""
    mask = "mask=stream.*+event.*"
    with fresh_device(target, mask) as device:
        first = 2 + (0 if device.host_visible else 3)
    layers = f"fault=memory.copy:{first}:INTERNAL", mask
    with fresh_device(target, *layers) as device:
        arrays = [chipdock.array(np.full(100, i, np.int32), device) for i in range(3)]
        stream, other = chipdock.Stream(device), chipdock.Stream(device)
        states: list[str] = []
        event = chipdock.Event(device)
        stream.copy(arrays[0], arrays[1])
        try:
            stream.copy(arrays[1], arrays[2])
            stream.host_function(states.append)
            event.record(stream)
            other.wait(event)
        except chipdock.errors.FailedPreconditionError:
            pass  # The copy had failed already [STR-2].
        assert [_code(stream.sync) for _ in range(3)] == ["INTERNAL"] * 3
        assert _code(lambda: stream.copy(arrays[0], arrays[1])) == "FAILED_PRECONDITION"
        if variant.name == "waiter":
            assert _code(other.sync) in {"INTERNAL", "OK"}
        elif variant.name == "event":
            assert _code(event.sync) in {"INTERNAL", "OK"}
        elif variant.name == "host_function":
            assert states in (["INTERNAL"], [])
        fresh = chipdock.Stream(device)
        fresh.copy(arrays[0], arrays[2])
        fresh.sync()
        np.testing.assert_array_equal(arrays[2].copy_to_numpy(), np.zeros(100, np.int32))


@case(
    "L1.errors.refused",
    duties=("MEM-3", "BASE-8"),
    entry_points=("memory.copy",),
    variants=named("sizes_differ strided shape dtype foreign_stream"),
)
def test_refused(target: Target, variant: Variant) -> None:
    """Calls with the wrong arrays are INVALID_ARGUMENT before anything is queued."""
    device = target.device
    array = chipdock.array(np.arange(100, dtype=np.int32), device)
    other, stream = chipdock.empty((101,), np.int32, device), chipdock.Stream(device)
    with fresh_device(target) as elsewhere:
        calls: dict[str, Callable[[], object]] = {
            "sizes_differ": lambda: stream.copy(array, other),
            "strided": lambda: stream.copy(array[::2], other[:50]),
            "shape": lambda: array.copy_from(np.zeros(99, np.int32)),
            "dtype": lambda: array.copy_from(np.zeros(100, np.int64)),
            "foreign_stream": lambda: chipdock.Event(device).record(chipdock.Stream(elsewhere)),
        }
        assert _code(calls[variant.name]) == "INVALID_ARGUMENT"
    np.testing.assert_array_equal(array.copy_to_numpy(), np.arange(100, dtype=np.int32))


@case(
    "L1.errors.shutdown",
    duties=("PLG-6",),
    entry_points=("device.close",),
    variants=named("array plugin stream"),
)
def test_after_shutdown(target: Target, variant: Variant) -> None:
    """Whatever is left of a plugin after its shutdown says SHUTDOWN."""
    with fresh_device(target) as device:
        plugin = device.plugin
        stream = chipdock.Stream(device)
    calls: dict[str, Callable[[], object]] = {
        "array": lambda: chipdock.array(np.arange(3), device),
        "plugin": plugin.device_count,
        "stream": stream.sync,
    }
    assert _code(calls[variant.name]) == "SHUTDOWN"
    plugin.shutdown()

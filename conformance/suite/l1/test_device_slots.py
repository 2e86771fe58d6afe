# SPDX-License-Identifier: Apache-2.0
"""Optional slots of the device table: access to peers, reset, and an abort inside a graph."""

from __future__ import annotations

from chipdock.conformance.case import NotSupported, Variant, case
from chipdock.conformance.suite.canary import check_bytes
from chipdock.conformance.suite.capture import GraphDevice
from chipdock.conformance.suite.device import RawDevice, pattern
from chipdock.conformance.suite.gate import Gate
from chipdock.conformance.suite.raw import STATUS, status_name
from chipdock.conformance.suite.variants import named
from chipdock.conformance.target import Target


@case(
    "L1.peer.access",
    duties=("DEV-4", "BASE-8"),
    needs="slot:device.peer_access",
    entry_points=("device.peer_access",),
    variants=named("allow allow_twice end same null"),
)
def test_peer_access(target: Target, variant: Variant) -> None:
    """Access to a peer is allowed and ended any number of times; not to oneself or to nobody."""
    with RawDevice(target) as device:
        if variant.name in {"same", "null"}:
            peer = device.device if variant.name == "same" else device.null
            device.refuse("device.peer_access", "INVALID_ARGUMENT", device.device, peer, 1)
            return
        peer, memory = device.open(), device.alloc(4097)
        for enable in {"allow": (1,), "allow_twice": (1, 1), "end": (1, 0, 0)}[variant.name]:
            status = device.call("device.peer_access", device.device, peer, enable)
            if status == STATUS["UNSUPPORTED"]:
                raise NotSupported("access between two openings of this chip")
            assert status == 0, f"{status_name(status)}: {device.message}"
        there = device.alloc(4097, device=peer)
        device.write(memory, pattern(4097))
        place = device.place(there, device=peer)
        assert device.copy(device.place(memory), place, 4097) == 0, device.message
        device.write(memory, bytes(4097))
        assert device.copy(place, device.place(memory), 4097) == 0, device.message
        check_bytes(device.read(memory, 4097), pattern(4097), "the copy by way of the peer")


@case(
    "L1.device.reset",
    duties=("DEV-5",),
    needs="slot:device.reset",
    entry_points=("device.reset",),
    variants=named("works old_handles"),
)
def test_reset(target: Target, variant: Variant) -> None:
    """After a reset the device works anew, and handles from before still have to be ended."""
    with RawDevice(target) as device:
        memory = device.alloc(4096)
        status = device.call("device.reset", device.device)
        if status == STATUS["UNAVAILABLE"]:
            raise NotSupported(f"a reset: {device.message}")
        assert status == 0, f"{status_name(status)}: {device.message}"
        if variant.name == "old_handles":
            device.free(memory)
            return
        fresh = device.alloc(4096)
        device.write(fresh, pattern(4096))
        check_bytes(device.read(fresh, 4096), pattern(4096), "memory after the reset")


@case(
    "L1.failed.graph",
    duties=("GRA-10", "STR-3"),
    entry_points=("graph.launch", "stream.abort"),
    needs="slot:graph.launch and slot:stream.abort and slot:stream.host_function",
)
def test_abort_of_a_launch(target: Target, variant: object) -> None:
    """What ends a graph launch early fails its stream; the exec works on another stream."""
    with GraphDevice(target) as device:
        stream, other, memory = device.stream(), device.stream(), device.alloc(4097)
        device.write(memory, bytes(4097))
        device.begin(stream)
        device.write(memory, pattern(4097), stream=stream, tag=61)
        exec_ = device.finish(stream)
        gate = Gate(device, stream)
        device.launch(exec_, stream, tag=62)
        held = gate.held
        device.ok("stream.abort", stream)
        gate.open()
        device.refuse("stream.sync", "ABORTED", stream, -1)
        if held:
            check_bytes(device.read(memory, 4097), bytes(4097), "memory of the aborted launch")
        device.launch(exec_, other)
        device.sync(other)
        check_bytes(device.read(memory, 4097), pattern(4097), "memory of the next launch")

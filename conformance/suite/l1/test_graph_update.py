# SPDX-License-Identifier: Apache-2.0
"""Changes to instantiated graphs: for later launches, all of them or none."""

from __future__ import annotations

from contextlib import nullcontext

from chipdock.conformance.case import Variant, case
from chipdock.conformance.suite.canary import check_bytes
from chipdock.conformance.suite.capture import GraphDevice
from chipdock.conformance.suite.device import pattern
from chipdock.conformance.suite.gate import Gate
from chipdock.conformance.suite.raw import status_name
from chipdock.conformance.suite.variants import named
from chipdock.conformance.target import Target

_SIZE = 3001


@case(
    "L1.graph.update",
    duties=("GRA-9", "GRA-7"),
    needs="slot:graph.update",
    tolerance="E",
    entry_points=("graph.update",),
    variants=named("source target both offset later_only"),
)
def test_update(target: Target, variant: Variant) -> None:
    """Update changes the places of a captured copy, for later launches only."""
    with GraphDevice(target) as device:
        stream = device.stream()
        unit = device.unit
        blocks = [device.alloc(_SIZE + unit) for _ in range(4)]
        for i, block in enumerate(blocks):
            device.write(block, pattern(_SIZE + unit, seed=i))
        device.begin(stream)
        copied = device.copy(device.place(blocks[0]), device.place(blocks[2]), _SIZE, stream, 77)
        assert copied == 0
        exec_ = device.finish(stream)
        source, destination, offset = 0, 2, 0
        changes = []
        if variant.name in {"source", "both", "later_only"}:
            changes.append(device.change(77, 0, blocks[1]))
            source = 1
        if variant.name in {"target", "both"}:
            changes.append(device.change(77, -1, blocks[3]))
            destination = 3
        if variant.name == "offset":
            changes.append(device.change(77, 0, blocks[1], unit))
            source, offset = 1, unit
        if variant.name == "later_only":
            with Gate(device, stream) if device.has("stream.host_function") else nullcontext():
                device.launch(exec_, stream)
                assert device.update(exec_, *changes) == 0, device.message
            device.sync(stream)
            check_bytes(device.read(blocks[2], _SIZE), pattern(_SIZE + unit, seed=0)[:_SIZE], "old")
        else:
            assert device.update(exec_, *changes) == 0, device.message
        device.launch(exec_, stream)
        device.sync(stream)
        expected = pattern(_SIZE + unit, seed=source)[offset : offset + _SIZE]
        check_bytes(device.read(blocks[destination], _SIZE), expected, "the launch's target")


@case(
    "L1.graph.update_refused",
    duties=("GRA-9", "GRA-7", "BASE-8"),
    needs="slot:graph.update",
    entry_points=("graph.update",),
    tolerance="E",
    variants=named("no_such_enqueue no_such_argument second_is_bad"),
)
def test_update_is_all_or_nothing(target: Target, variant: Variant) -> None:
    """A change that cannot be made is INVALID_ARGUMENT, and none of its set is made."""
    with GraphDevice(target) as device:
        stream = device.stream()
        blocks = [device.alloc(_SIZE) for _ in range(3)]
        for i, block in enumerate(blocks):
            device.write(block, pattern(_SIZE, seed=i))
        device.begin(stream)
        assert device.copy(device.place(blocks[0]), device.place(blocks[2]), _SIZE, stream, 78) == 0
        exec_ = device.finish(stream)
        bad = {
            "no_such_enqueue": [device.change(9999, 0, blocks[1])],
            "no_such_argument": [device.change(78, 5, blocks[1])],
            "second_is_bad": [device.change(78, 0, blocks[1]), device.change(9999, 0, blocks[1])],
        }[variant.name]
        assert status_name(device.update(exec_, *bad)) == "INVALID_ARGUMENT"
        device.launch(exec_)
        check_bytes(device.read(blocks[2], _SIZE), pattern(_SIZE, seed=0), "the old source's bytes")

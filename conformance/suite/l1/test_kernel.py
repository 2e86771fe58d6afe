# SPDX-License-Identifier: Apache-2.0
"""The kernel table by one simple kernel: what it says, its instances, its launches."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import numpy as np

from chipdock.conformance.case import NotSupported, Variant, case
from chipdock.conformance.suite.canary import Fenced, check_bytes
from chipdock.conformance.suite.device import RawDevice, pattern
from chipdock.conformance.suite.gate import Gate
from chipdock.conformance.suite.node import KernelBench
from chipdock.conformance.suite.variants import named, sizes
from chipdock.conformance.target import Target

_KERNEL = "slot:kernel.launch"
_LAUNCH = ("kernel.create", "kernel.launch", "kernel.destroy")


class Launches(RawDevice):
    """An opened device with an instance of one kernel."""

    def __init__(self, target: Target, length: int = 16) -> None:
        """Opens the device and makes the instance."""
        super().__init__(target)
        self.bench = KernelBench(self, length)
        self.instance = self.bench.create()

    def launch(self, desc: Any) -> None:
        """Launch with the workspace that the instance wants."""
        self.ok("kernel.launch", self.instance, self.bench.with_workspace(self.instance, desc))

    def close(self, check: bool = True) -> None:
        """End the instance, then as RawDevice."""
        if hasattr(self, "instance"):
            self.call("kernel.destroy", self.instance)
        super().close(check)


@case(
    "L1.kernel.launch",
    duties=("KRN-4", "KRN-6"),
    needs=_KERNEL,
    entry_points=_LAUNCH,
    tolerance="E",
    variants=sizes(1, 2, 3, 7, 15, 17, 31, 33, 63, 65, 255, 1000, 4097, 100003),
)
def test_launch(target: Target, variant: Variant) -> None:
    """A launch without a stream has written every element of its output, and nothing else."""
    with Launches(target, variant.size) as device:
        fenced = Fenced(device, 4 * variant.size + 512)
        device.launch(device.bench.launch(fenced.memory))
        fenced.check(0, device.bench.expected(), "the output")


@case(
    "L1.kernel.inputs",
    duties=("KRN-4",),
    needs=_KERNEL,
    entry_points=_LAUNCH,
    tolerance="E",
    variants=sizes(16, 4097),
)
def test_inputs_stay(target: Target, variant: Variant) -> None:
    """A launch leaves its inputs as they were."""
    with Launches(target, variant.size) as device:
        desc = device.bench.launch()
        device.launch(desc)
        data = struct.pack("<f", 1.5) * variant.size
        for i in range(desc.input_count):
            check_bytes(device.read(desc.inputs[i].memory, len(data)), data, f"input {i}")


@case(
    "L1.kernel.stream",
    duties=("KRN-6", "STR-1"),
    needs=_KERNEL + " and slot:stream.create",
    entry_points=_LAUNCH,
    tolerance="E",
    variants=[
        Variant(name="in_order"),
        Variant(name="desc_gone", needs="slot:stream.host_function"),
        Variant(name="many"),
    ],
)
def test_stream(target: Target, variant: Variant) -> None:
    """A launch on a stream takes effect in its order, when the desc may be long gone."""
    with Launches(target, 1000) as device:
        stream, output = device.stream(), device.alloc(4000)
        desc = device.bench.with_workspace(
            device.instance, device.bench.launch(output, stream=stream)
        )
        if variant.name == "desc_gone":
            with Gate(device, stream):
                device.ok("kernel.launch", device.instance, desc)
                tensor = device.ffi.cast("chipdock_tensor*", desc.outputs[0])
                for gone, kind in ((tensor, "chipdock_tensor"), (desc, "chipdock_launch_desc")):
                    size = device.ffi.sizeof(kind)
                    device.ffi.memmove(gone, b"\xa5" * size, size)
        else:
            for i in range(50 if variant.name == "many" else 1):
                device.write(output, pattern(4000, seed=i), stream=stream)
                device.ok("kernel.launch", device.instance, desc)
        host = device.read_later(output, 4000, stream)
        device.write(output, bytes(4000), stream=stream)
        device.sync(stream)
        check_bytes(bytes(device.ffi.buffer(host, 4000)), device.bench.expected(), "the output")


@case(
    "L1.kernel.offset",
    duties=("KRN-4", "MEM-3"),
    needs=_KERNEL,
    entry_points=_LAUNCH,
    tolerance="E",
)
def test_offset(target: Target, variant: object) -> None:
    """Tensors start at their offset in an allocation."""
    with Launches(target, 100) as device:
        fenced = Fenced(device, 400 + 4 * device.unit)
        desc = device.bench.launch(fenced.memory)
        device.ffi.cast("chipdock_tensor*", desc.outputs[0]).offset = 2 * device.unit
        device.launch(desc)
        fenced.check(2 * device.unit, device.bench.expected())


@case(
    "L1.kernel.instances",
    duties=("KRN-3",),
    needs=_KERNEL,
    entry_points=_LAUNCH,
    tolerance="E",
    variants=named("two after_the_other_ended many"),
)
def test_instances(target: Target, variant: Variant) -> None:
    """Instances are independent, and one serves many launches."""
    with Launches(target, 64) as device:
        others = [device.bench.create() for _ in range(100 if variant.name == "many" else 1)]
        if variant.name == "after_the_other_ended":
            device.ok("kernel.destroy", others.pop())
        output = device.alloc(256)
        for instance in [device.instance, *others]:
            device.write(output, bytes(256))
            desc = device.bench.with_workspace(instance, device.bench.launch(output))
            device.ok("kernel.launch", instance, desc)
            check_bytes(device.read(output, 256), device.bench.expected(), "the output")
        for instance in others:
            device.ok("kernel.destroy", instance)


@case("L1.kernel.empty", duties=("KRN-10",), needs=_KERNEL, entry_points=_LAUNCH)
def test_empty_tensors(target: Target, variant: object) -> None:
    """Tensors with a zero in their shape need no memory."""
    with Launches(target, 0) as device:
        # Nothing to write means nothing to look at: the launch has to say OK.
        empty = device.bench.tensor(device.null)
        desc = device.new(
            "chipdock_launch_desc", input_count=device.bench.inputs, output_count=1,
            inputs=device.block("const chipdock_tensor*[]", [empty] * device.bench.inputs),
            outputs=device.block("const chipdock_tensor*[]", [device.bench.tensor(device.null)]),
        )  # fmt: skip
        device.launch(desc)


@case(
    "L1.kernel.deterministic",
    duties=("KRN-11",),
    needs=_KERNEL,
    entry_points=_LAUNCH,
    tolerance="E",
)
def test_deterministic(target: Target, variant: object) -> None:
    """The same inputs give the same bits each time."""
    with Launches(target, 4097) as device:
        output, seen = device.alloc(4 * 4097), set()
        for _ in range(5):
            device.launch(device.bench.launch(output, deterministic=1))
            seen.add(device.read(output, 4 * 4097))
        assert len(seen) == 1


@case(
    "L1.kernel.in_place",
    duties=("KRN-9",),
    needs=_KERNEL,
    entry_points=_LAUNCH,
    tolerance="E",
    variants=sizes(1, 33, 4097),
)
def test_in_place(target: Target, variant: Variant) -> None:
    """An output may be the memory of an input that the kernel lists as its alias."""
    with Launches(target, variant.size) as device:
        kernel = device.bench.kernel
        pairs = [kernel.aliases[i] for i in range(kernel.alias_count)]
        pair = next((p for p in pairs if p.output == 0), None)
        if pair is None:
            raise NotSupported("an alias of the kernel")
        desc = device.bench.launch()
        output = device.ffi.cast("chipdock_tensor*", desc.outputs[0])
        output.memory = desc.inputs[pair.input].memory
        device.launch(desc)
        got = device.read(output.memory, 4 * variant.size)
        check_bytes(got, device.bench.expected(), "the output")


@case(
    "L1.kernel.answers",
    duties=("KRN-2",),
    needs=_KERNEL,
    entry_points=("kernel.supports", "kernel.score"),
    variants=[
        Variant(name="supports"),
        Variant(name="score", needs="slot:kernel.score"),
        Variant(name="workspace", needs="slot:kernel.workspace_size"),
    ],
)
def test_same_answer(target: Target, variant: Variant) -> None:
    """The same question has the same answer, before and after work was done."""
    with Launches(target) as device:
        bench = device.bench
        slot = f"kernel.{'workspace_size' if variant.name == 'workspace' else variant.name}"
        kind = {"supports": "int32_t*", "score": "double*"}.get(variant.name, "uint64_t*")
        answers = set()
        for _ in range(4):
            out = device.block(kind, -3) if variant.name != "workspace" else device.block(kind)
            if variant.name == "workspace":
                device.ok(slot, device.instance, bench.launch(), out)
            else:
                device.ok(slot, device.device, bench.kernel, bench.node(), out)
            answers.add(out[0])
            device.launch(bench.launch())
        assert len(answers) == 1


@case(
    "L1.kernel.refused",
    duties=("BASE-8",),
    needs=_KERNEL,
    entry_points=("kernel.launch",),
    variants=named("too_few_inputs no_output output_count null_output_array"),
)
def test_wrong_counts(target: Target, variant: Variant) -> None:
    """A launch with tensors missing is INVALID_ARGUMENT and runs nothing."""
    with Launches(target) as device:
        fenced = Fenced(device, 1024)
        desc = device.bench.launch(fenced.memory)
        if variant.name == "too_few_inputs":
            desc.input_count = 0
        elif variant.name == "output_count":
            desc.output_count = 7
            desc.outputs = device.block("const chipdock_tensor*[]", [desc.outputs[0]] * 7)
        elif variant.name == "no_output":
            desc.output_count = 0
        else:
            desc.outputs = device.null
        device.refuse("kernel.launch", "INVALID_ARGUMENT", device.instance, desc)
        fenced.check(0, b"")


@case(
    "L1.kernel.pressure",
    duties=("KRN-4", "MEM-9"),
    needs=_KERNEL + " and memory:268435456",
    entry_points=_LAUNCH,
    tolerance="E",
    budget_ms=500,
    variants=[Variant(name=op.lower(), op=op) for op in ("Add", "Mul", "Neg")],
)
def test_much_memory_in_use(target: Target, variant: Variant) -> None:
    """Results do not hang on how much memory is in use."""
    with RawDevice(target) as device:
        bench = KernelBench(device, 4097, only=variant.op)
        instance, output = bench.create(), device.alloc(4 * 4097)
        desc = bench.with_workspace(instance, bench.launch(output))
        for used_mib in (0, 48, 96):
            for _ in range(6 if used_mib else 0):
                device.alloc(8 << 20)
            device.write(output, bytes(4 * 4097))
            device.ok("kernel.launch", instance, desc)
            got = device.read(output, 4 * 4097)
            check_bytes(got, bench.expected(), f"with {used_mib} MiB in use")
        device.ok("kernel.destroy", instance)


@case(
    "L1.kernel.float_mode",
    duties=("BASE-9",),
    needs=_KERNEL + " and slot:stream.create",
    entry_points=_LAUNCH,
    variants=named("inline stream"),
)
def test_float_mode_stays(target: Target, variant: Variant) -> None:
    """A launch leaves its caller's rounding and denormals as they were."""
    library = ctypes.CDLL(None)
    with Launches(target, 1000) as device:
        stream = device.stream() if variant.name == "stream" else None
        before = library.fegetround()
        device.launch(device.bench.launch(stream=stream))
        if stream is not None:
            device.sync(stream)
        after = library.fegetround()
        library.fesetround(before)
        tiny = np.float64(2.0**-1060) * np.float64(1.0)
        assert after == before, "the rounding mode was changed"
        assert tiny != 0, "denormals are taken as zero"


@case(
    "L1.kernel.allocates",
    duties=("KRN-5",),
    tolerance="E",
    entry_points=("kernel.launch",),
    needs=_KERNEL + " and slot:device.stats",
)
def test_no_allocation(target: Target, variant: object) -> None:
    """A launch leaves the device's allocations as they were."""
    with Launches(target, 4097) as device:
        desc = device.bench.with_workspace(device.instance, device.bench.launch())
        stats = [device.new("chipdock_device_stats") for _ in range(2)]
        device.ok("device.stats", device.device, stats[0])
        for _ in range(3):
            device.ok("kernel.launch", device.instance, desc)
        device.ok("device.stats", device.device, stats[1])
        assert stats[1].allocation_count == stats[0].allocation_count
        assert stats[1].peak_bytes == stats[0].peak_bytes
        assert stats[1].launch_count - stats[0].launch_count == 3

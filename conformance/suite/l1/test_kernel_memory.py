# SPDX-License-Identifier: Apache-2.0
"""What a kernel does with memory beside its tensors: packed forms, scratch; and how one fails."""

from __future__ import annotations

from typing import Any

import numpy as np

from chipdock.conformance.case import NotSupported, Variant, case
from chipdock.conformance.suite.canary import Fenced, check_bytes
from chipdock.conformance.suite.device import RawDevice, pattern
from chipdock.conformance.suite.raw import STATUS
from chipdock.conformance.suite.raw_node import RawNode, Side
from chipdock.conformance.suite.variants import named
from chipdock.conformance.target import Target

_KERNEL = "slot:kernel.launch"
_MARK = b"\xcb"


def _product(k: int, n: int, dtype: Any = np.float32) -> tuple[Side, Side, Side]:
    """Small whole numbers: every order of the sums gives the same bits."""
    a = (np.arange(5 * k).reshape(5, k) % 7 - 3).astype(dtype)
    b = (np.arange(k * n).reshape(k, n) % 5 - 2).astype(dtype)
    exact = (a.astype(np.float64) @ b.astype(np.float64)).astype(dtype)
    return Side(a), Side(b, constant=True), Side(exact)


@case(
    "L1.kernel.packed",
    duties=("KRN-12", "KRN-4"),
    needs=_KERNEL + " and slot:kernel.prepack and slot:kernel.prepack_size",
    entry_points=("kernel.prepack_size", "kernel.prepack", "kernel.launch"),
    tolerance="E",
    variants=[
        Variant(name=f"{op.lower()}_{k}x{n}", op=op, k=k, n=n)
        for op in ("MatMul", "Gemm")
        for k, n in ((3, 5), (33, 17), (64, 64))
    ],
)
def test_packed_form(target: Target, variant: Variant) -> None:
    """Packing fits the size it asked for, has a name, and launch reads the form alone."""
    with RawDevice(target) as device:
        a, b, y = _product(variant.k, variant.n)
        node = RawNode(device, variant.op, 13, [a, b], y)
        try:
            _packed(device, node, a, b, y)
        finally:
            node.destroy()


def _packed(device: RawDevice, node: RawNode, a: Side, b: Side, y: Side) -> None:
    info = device.new("chipdock_prepack_info")
    device.ok("kernel.prepack_size", node.instance, 1, node.value(b), info)
    if info.size == 0:
        raise NotSupported("a packed form of the second input")
    layout = bytes(device.ffi.buffer(info.layout))
    assert b"\0" in layout, "the name of the layout is not closed with 0"
    assert layout[0], "the layout has no name"
    source, fenced = node.placed(b), Fenced(device, info.size + 512)
    desc = device.new("chipdock_prepack_desc", input=1, source=source, target=fenced.memory)
    device.ok("kernel.prepack", node.instance, desc)
    behind = device.read(fenced.memory, 512, info.size)
    check_bytes(behind, _MARK * 512, "memory behind the packed form")
    if not info.keep_source:
        device.write(source.memory, _MARK * b.values.nbytes)
    form = device.new("chipdock_tensor", rank=1, memory=fenced.memory)
    form.shape = device.block("int64_t[]", [info.size])
    form.dtype.code, form.dtype.bits, form.dtype.lanes = 1, 8, 1
    output = node.placed(Side(np.zeros_like(y.values)))
    launch = node.launch([node.placed(a), source], output)
    launch.packed = device.block("const chipdock_tensor*[]", [device.null, form])
    size = node.workspace_size(launch)
    if size:
        launch.workspace, launch.workspace_size = device.alloc(size), size
    device.ok("kernel.launch", node.instance, launch)
    check_bytes(device.read(output.memory, y.values.nbytes), y.values.tobytes(), "the product")


@case(
    "L1.kernel.scratch",
    duties=("KRN-5", "KRN-4"),
    needs=_KERNEL + " and slot:kernel.workspace_size",
    entry_points=("kernel.workspace_size", "kernel.launch"),
    tolerance="E",
    variants=[
        Variant(name=f"matmul_{dtype}_{k}x{n}", dtype_name=dtype, k=k, n=n)
        for dtype in ("float32", "float64", "float16")
        for k, n in ((3, 5), (64, 48), (130, 70))
    ],
)
def test_scratch(target: Target, variant: Variant) -> None:
    """A launch with the scratch that it asked for, and no byte more, writes nothing behind it."""
    with RawDevice(target) as device:
        a, b, y = _product(variant.k, variant.n, np.dtype(variant.dtype_name))
        node = RawNode(device, "MatMul", 13, [a, Side(b.values)], y)
        try:
            output = node.placed(Side(np.zeros_like(y.values)))
            launch = node.launch([node.placed(a), node.placed(b)], output)
            size = node.workspace_size(launch)
            if not size:
                raise NotSupported("a kernel that wants scratch for these shapes")
            offset = -(-512 // device.unit) * device.unit
            fenced = Fenced(device, offset + size + 4096)
            launch.workspace, launch.workspace_size = fenced.memory, size
            launch.workspace_offset = offset
            device.ok("kernel.launch", node.instance, launch)
            got = device.read(output.memory, y.values.nbytes)
            check_bytes(got, y.values.tobytes(), "the product")
            check_bytes(device.read(fenced.memory, offset), _MARK * offset, "ahead of the scratch")
            behind = device.read(fenced.memory, 4096, offset + size)
            check_bytes(behind, _MARK * 4096, "behind the scratch")
        finally:
            node.destroy()


@case(
    "L1.failed.correlation",
    duties=("STR-3",),
    needs=_KERNEL + " and slot:stream.create",
    entry_points=("kernel.launch", "stream.sync"),
    variants=named("sync sync_again work_behind"),
)
def test_first_cause_names_its_work(target: Target, variant: Variant) -> None:
    """Sync of a failed stream gives the correlation id of what failed, each time."""
    with RawDevice(target) as device:
        data = Side(np.arange(8, dtype=np.float32))
        index = Side(np.array([1 << 20], np.int64))
        node = RawNode(device, "Gather", 13, [data, index], Side(np.zeros(1, np.float32)))
        stream, memory = device.stream(), device.alloc(64)
        device.write(memory, pattern(64), stream=stream, tag=41)
        desc = node.launch(
            [node.placed(data), node.placed(index)], node.placed(data), stream=stream,
            correlation_id=42,
        )  # fmt: skip
        desc.outputs[0].shape[0] = 1
        size = node.workspace_size(desc)
        if size:
            desc.workspace, desc.workspace_size = device.alloc(size), size
        status = device.call("kernel.launch", node.instance, desc)
        if status == STATUS["OK"] and variant.name == "work_behind":
            # It is refused if the stream has failed by now, and never runs in either case.
            host = device.block("char[]", 64)
            device.copy(device.place(memory), device.place(host=host), 64, stream, 43)
        failed = status == STATUS["OK"] and device.call("stream.sync", stream, -1) != STATUS["OK"]
        if failed:
            cause = device.error.code
            for _ in range(2 if variant.name == "sync_again" else 1):
                assert device.error.correlation_id == 42, "the cause is another operation"
                assert device.call("stream.sync", stream, -1) == cause
            assert device.error.correlation_id == 42, "the cause is another operation"
        node.destroy()
        if not failed:
            raise NotSupported("work that fails on a stream: an index out of range is not noticed")

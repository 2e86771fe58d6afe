# SPDX-License-Identifier: Apache-2.0
"""Runs an operator in every private layout in which a kernel takes it, and judges what comes back.

Kernels are asked as the host asks them: all arguments that may be in the layout, the inputs alone,
the outputs alone. Each that says yes is run, not only the best.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from chipdock.conformance.case import NotSupported, Variant
from chipdock.conformance.opcases.execute import exact_outputs, judge_all, judge_for, need_opset
from chipdock.conformance.opcases.fills import make_array
from chipdock.conformance.opcases.node import Call
from chipdock.conformance.suite.device import RawDevice
from chipdock.conformance.suite.layout import LayoutTensor, Reorders, layouts_of
from chipdock.conformance.suite.layout_node import Argument, LayoutNode, admitted, listed_kernels

if TYPE_CHECKING:
    from chipdock.conformance.target import Target

__all__ = ["run_in_layouts"]

_Array = NDArray[Any]


def run_in_layouts(target: Target, variant: Variant) -> None:
    """Run an operator in all layouts.

    Args:
        target: The device under test.
        variant: Made by opcases.layout; `host` are the inputs that steer shapes.

    Raises:
        CheckError: An output is not close enough, or there is more than zeros beside its elements.
        NotSupported: No kernel takes this node in a layout.
    """
    call = Call(variant.op, variant.inputs, variant.attributes, variant.opset, variant.outputs)
    need_opset(call)
    arrays = [None if i is None else make_array(i, target.rng) for i in call.inputs]
    expected = exact_outputs(call, arrays, flushes=target.has("flag:FLUSHES_DENORMALS"))
    verdict = judge_for(target, variant)
    host = variant.values.get("host", ())
    given = [
        None if array is None or wanted is None
        else Argument(array, 0, wanted.constant, i in host)
        for i, (wanted, array) in enumerate(zip(call.inputs, arrays, strict=True))
    ]  # fmt: skip
    kind = next(a.dtype for a in arrays if a is not None)
    made = [Argument(np.zeros(row.value.shape, kind)) for row in expected]
    ran = []
    with RawDevice(target) as device:
        for layout in layouts_of(device):
            for node in _nodes(device, call, given, made, layout):
                for kernel in node.willing():
                    if kernel.host_outputs:
                        continue  # what is written on the host is in no layout
                    results = _run(device, node, kernel)
                    judge_all(target, verdict, results, expected, None)
                    target.digest(*results)
                    ran.append(f"{device.text(kernel.name)}: {_described(node)}")
    if not ran:
        raise NotSupported(f"a kernel that computes this {call.name} in a layout")
    target.record(in_layouts=ran)


def _nodes(
    device: RawDevice, call: Call, given: list[Argument | None], made: list[Argument], layout: int
) -> Iterator[LayoutNode]:  # fmt: skip
    """The node in each form that rules of some kernel admit."""
    from onnx import AttributeProto, defs, helper  # noqa: PLC0415  slow to import

    schema = defs.get_schema(call.name, call.opset, call.domain)
    attributes = {
        name: helper.get_attribute_value(fact.default_value)
        for name, fact in schema.attributes.items()
        if fact.default_value.type != AttributeProto.UNDEFINED
    } | dict(call.attributes)
    forms: dict[tuple[tuple[bool, ...], tuple[bool, ...]], None] = {}
    for kernel in listed_kernels(device):
        if device.text(kernel.op) != call.name or device.text(kernel.domain) != call.domain:
            continue
        inside = tuple(
            a is not None and not a.constant and not a.on_host and layout in admitted(kernel, i)
            for i, a in enumerate(given)
        )
        outside = tuple(layout in admitted(kernel, -1 - i) for i in range(len(made)))
        none_in, none_out = (False,) * len(inside), (False,) * len(outside)
        forms |= {(inside, outside): None, (inside, none_out): None, (none_in, outside): None}
    for inside, outside in forms:
        if any(inside) or any(outside):
            yield LayoutNode(
                device, call.name, schema.since_version,
                [a and a._replace(layout=layout * i) for a, i in zip(given, inside, strict=True)],
                [a._replace(layout=layout * i) for a, i in zip(made, outside, strict=True)],
                domain=call.domain, attributes=attributes,
            )  # fmt: skip


def _run(device: RawDevice, node: LayoutNode, kernel: Any) -> list[_Array]:
    alignment = max(2 * device.unit, int(kernel.min_alignment))
    instance, results = node.create(kernel), []
    try:
        given = [a and _entered(device, a, alignment) for a in node.inputs]
        made = [_room(device, a, alignment) for a in node.outputs]
        before = [t and t.read("an input") for t in given]
        places = [None if t is None else t.place for t in given]
        node.launch(instance, places, [t.place for t in made], host_inputs=int(kernel.host_inputs))
        for tensor, data in zip(given, before, strict=True):
            assert tensor is None or tensor.read("an input") == data, "an input was written"
        for argument, tensor in zip(node.outputs, made, strict=True):
            data = _left(device, argument, tensor)
            shape, kind = argument.values.shape, argument.values.dtype
            results.append(np.frombuffer(data, kind).reshape(shape))
    finally:
        node.destroy(instance)
    return results


def _entered(device: RawDevice, argument: Argument, alignment: int) -> LayoutTensor:
    values = argument.values
    if argument.layout:
        with Reorders(device, values, argument.layout) as reorders:
            return reorders.entered(values)
    data = np.ascontiguousarray(values).tobytes()
    return LayoutTensor(device, len(data), alignment).write(data)


def _room(device: RawDevice, argument: Argument, alignment: int) -> LayoutTensor:
    if argument.layout:
        with Reorders(device, argument.values, argument.layout) as reorders:
            return reorders.inner()
    return LayoutTensor(device, argument.values.nbytes, alignment)


def _left(device: RawDevice, argument: Argument, tensor: LayoutTensor) -> bytes:
    if not argument.layout:
        return tensor.read("the output")
    with Reorders(device, argument.values, argument.layout) as reorders:
        return reorders.left(tensor, "the output")


def _described(node: LayoutNode) -> str:
    inputs, outputs = (
        "".join("-" if a is None else str(a.layout) for a in side)
        for side in (node.inputs, node.outputs)
    )
    return f"{inputs} -> {outputs}"

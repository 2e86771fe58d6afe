# SPDX-License-Identifier: Apache-2.0
"""Nodes with private layouts by raw slots: who computes them, and launches between fences.

layout.py has what is known of the layouts themselves; raw_node.py is for nodes without them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chipdock.conformance.capabilities import dtype_code
from chipdock.conformance.numerics.dtypes import short_name

if TYPE_CHECKING:
    from chipdock.conformance.suite.device import RawDevice

__all__ = ["Argument", "LayoutNode", "Placed", "admitted", "listed_kernels"]

_YES = 1


class Argument(NamedTuple):
    """An input or output of a node.

    Attributes:
        values: Its elements; for an output its shape and dtype are meant.
        layout: 0 or one of the plugin's.
        constant: The plugin gets to know the elements when it is asked.
        on_host: At launch the elements are in host memory.
    """

    values: NDArray[Any]
    layout: int = 0
    constant: bool = False
    on_host: bool = False


class Placed(NamedTuple):
    """Where the elements of an argument are at launch.

    Attributes:
        memory: `chipdock_memory*`.
        offset: Bytes from its start.
    """

    memory: Any
    offset: int = 0


def listed_kernels(device: RawDevice) -> list[Any]:
    """Return all descriptors of a device."""
    out, count = device.block("const chipdock_kernel*const**"), device.block("uint64_t*")
    device.ok("kernel.list", device.device, out, count)
    return [out[0][i] for i in range(count[0])]


def _rule(rules: Sequence[Any], argument: int) -> Any:
    """The rule for an argument: its own, else the last before it on its side; None if none is."""
    near = [r for r in rules if (r.argument >= 0) == (argument >= 0)]
    near = [r for r in near if abs(r.argument) <= abs(argument)]
    return max(near, key=lambda r: abs(r.argument), default=None)


def admitted(kernel: Any, argument: int) -> list[int]:
    """Return the layouts that a kernel's rules let an argument have, beside 0.

    Args:
        kernel: `chipdock_kernel*`.
        argument: Input k as k, output k as -1-k.
    """
    on_host = kernel.host_inputs >> argument if argument >= 0 else kernel.host_outputs >> ~argument
    rule = _rule([kernel.layout_rules[i] for i in range(kernel.layout_rule_count)], argument)
    return [] if rule is None or on_host & 1 else [rule.layouts[k] for k in range(rule.count)]


class LayoutNode:
    """A node whose arguments have layouts.

    Attributes:
        inputs: As given; None is an optional one that is left out.
        outputs: As given.
        node: `chipdock_node*`.
    """

    def __init__(
        self, device: RawDevice, op: str, since: int, inputs: Sequence[Argument | None],
        outputs: Sequence[Argument], *, domain: str = "",
        attributes: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        """Makes the node; no kernel is asked yet.

        Args:
            device: An opened device.
            op: Operator.
            since: Version of its definition.
            inputs: What goes in.
            outputs: What comes out.
            domain: Of the operator.
            attributes: All that the definition has, with defaults filled in.
        """
        self._device, self._op, self._domain, self._since = device, op, domain, since
        self.inputs, self.outputs = list(inputs), list(outputs)
        block = device.block
        made = [self._attribute(name, value) for name, value in (attributes or {}).items()]
        self.node = device.new(
            "chipdock_node",
            since_version=since,
            domain=block("char[]", domain.encode()),
            op=block("char[]", op.encode()),
            attribute_count=len(made),
            attributes=block("const chipdock_attribute*[]", made or 1),
            input_count=len(self.inputs),
            output_count=len(self.outputs),
            inputs=block("const chipdock_value*[]", [self.value(a) for a in self.inputs]),
            outputs=block("const chipdock_value*[]", [self.value(a) for a in self.outputs]),
        )

    def value(self, argument: Argument | None) -> Any:
        """A chipdock_value of an argument; NULL for one that is left out."""
        if argument is None:
            return self._device.null
        made = self._typed("chipdock_value", argument)
        if argument.constant:
            data = np.ascontiguousarray(argument.values).tobytes()
            made.constant = self._device.block("char[]", data)
            made.constant_size = len(data)
        return made

    def willing(self) -> Iterator[Any]:
        """Yield the kernels whose versions, dtypes and layouts fit and that support the node."""
        device, answer = self._device, self._device.block("int32_t*")
        for kernel in listed_kernels(device):
            last = kernel.until_version or self._since
            if not kernel.since_version <= self._since <= last or not self._fits(kernel):
                continue
            device.ok("kernel.supports", device.device, kernel, self.node, answer)
            if answer[0] == _YES:
                yield kernel

    def create(self, kernel: Any) -> Any:
        """Make an instance, which `destroy` ends."""
        out = self._device.block("chipdock_kernel_instance**")
        self._device.ok("kernel.create", self._device.device, kernel, self.node, out)
        return out[0]

    def destroy(self, instance: Any) -> None:
        """End an instance."""
        self._device.ok("kernel.destroy", instance)

    def launch(
        self, instance: Any, inputs: Sequence[Placed | None], outputs: Sequence[Placed],
        stream: Any = None, *, host_inputs: int = 0,
    ) -> None:  # fmt: skip
        """Launch with the scratch that the instance asks for.

        Args:
            instance: From `create`.
            inputs: Where they are; those on the host and those left out are not looked at.
            outputs: Where they go.
            stream: Where to queue it; None waits.
            host_inputs: Of the kernel, added to those that are on the host anyway.
        """
        device = self._device
        given = [
            self._tensor(a and a._replace(on_host=a.on_host or bool(host_inputs >> i & 1)), at)
            for i, (a, at) in enumerate(zip(self.inputs, inputs, strict=True))
        ]
        made = [self._tensor(a, at) for a, at in zip(self.outputs, outputs, strict=True)]
        desc = device.new(
            "chipdock_launch_desc",
            input_count=len(given),
            output_count=len(made),
            inputs=device.block("const chipdock_tensor*[]", given),
            outputs=device.block("const chipdock_tensor*[]", made),
            stream=device.null if stream is None else stream,
        )
        if device.has("kernel.workspace_size"):
            size = device.block("uint64_t*")
            device.ok("kernel.workspace_size", instance, desc, size)
            if size[0]:
                desc.workspace, desc.workspace_size = device.alloc(size[0]), size[0]
        device.ok("kernel.launch", instance, desc)

    def _tensor(self, argument: Argument | None, at: Placed | None) -> Any:
        if argument is None:
            return self._device.null
        made = self._typed("chipdock_tensor", argument)
        if argument.on_host:
            made.host = self._device.block(
                "char[]", np.ascontiguousarray(argument.values).tobytes() or 1
            )
        elif at is not None:
            made.memory, made.offset = at.memory, at.offset
        return made

    def _typed(self, kind: str, argument: Argument) -> Any:
        values = argument.values
        shape = self._device.block("int64_t[]", list(values.shape) or 1)
        field = "dims" if kind == "chipdock_value" else "shape"
        made = self._device.new(kind, rank=values.ndim, layout=argument.layout, **{field: shape})
        made.dtype.code, made.dtype.bits = dtype_code(short_name(values.dtype))
        made.dtype.lanes = 1
        return made

    def _fits(self, kernel: Any) -> bool:
        device = self._device
        if device.text(kernel.op) != self._op or device.text(kernel.domain) != self._domain:
            return False
        sides = dict(enumerate(self.inputs)) | {-1 - k: a for k, a in enumerate(self.outputs)}
        rules = [kernel.dtype_rules[i] for i in range(kernel.dtype_rule_count)]
        for at, argument in sides.items():
            if argument is None:
                continue
            if argument.layout and argument.layout not in admitted(kernel, at):
                return False
            rule = _rule(rules, at)
            kinds = [] if rule is None else [rule.dtypes[k] for k in range(rule.count)]
            wanted = dtype_code(short_name(argument.values.dtype))
            if kinds and wanted not in [(k.code, k.bits) for k in kinds]:
                return False
        return True

    def _attribute(self, name: str, value: Any) -> Any:
        """A chipdock_attribute of a number, a text, or a list of them."""
        from onnx import helper  # noqa: PLC0415

        block, proto = self._device.block, helper.make_attribute(name, value)
        made = self._device.new("chipdock_attribute", kind=proto.type)
        made.name = block("char[]", name.encode())
        if proto.type == proto.FLOAT:
            made.number = proto.f
        elif proto.type == proto.INT:
            made.integer = proto.i
        elif proto.type == proto.STRING:
            made.text, made.count = block("char[]", proto.s), len(proto.s)
        elif proto.type == proto.INTS:
            made.integers, made.count = block("int64_t[]", list(proto.ints)), len(proto.ints)
        elif proto.type == proto.FLOATS:
            made.numbers, made.count = block("double[]", list(proto.floats)), len(proto.floats)
        else:
            raise ValueError(f"the attribute '{name}' is {value!r}, which no case had before")
        return made

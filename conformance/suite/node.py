# SPDX-License-Identifier: Apache-2.0
"""One kernel of the plugin for the cases of the kernel table: its node, tensors and launches.

It is the first that the plugin has of a few simple operators on f32 vectors.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from chipdock.conformance.case import NotSupported, fail

if TYPE_CHECKING:
    from chipdock.conformance.suite.device import RawDevice

__all__ = ["KernelBench"]

_LENGTH = 16
_ANSWERS = (0, 1, 2)
_FLOAT32 = (2, 32, 1)
# Operator, newest since version of its definition, number of inputs, result if all are x.
_OPERATORS: tuple[tuple[str, int, int, Callable[[float], float]], ...] = (
    ("Neg", 13, 1, lambda x: -x), ("Relu", 14, 1, lambda x: max(x, 0.0)), ("Abs", 13, 1, abs),
    ("Add", 14, 2, lambda x: x + x), ("Mul", 14, 2, lambda x: x * x),
    ("Identity", 25, 1, lambda x: x), ("Sub", 14, 2, lambda _: 0.0),
)  # fmt: skip


class KernelBench:
    """A kernel, and valid arguments for the slots that take it.

    Attributes:
        kernel: `chipdock_kernel*` from list.
        op: Its operator.
        inputs: How many inputs.
        input: What each element of an input is.
        result: What each element of an output is.
    """

    def __init__(
        self, device: RawDevice, length: int = _LENGTH, value: float = 1.5, only: str = ""
    ) -> None:
        """Looks for the first simple operator that the plugin computes in f32.

        Args:
            device: Of which kernels are asked for.
            length: Elements of a vector.
            value: Each element of an input; a small multiple of 1/8 stays exact.
            only: The operator to look for; by default any of them.

        Raises:
            NotSupported: It computes none of them.
        """
        self._device = device
        self.length, self.input = length, value
        for op, since, inputs, result in _OPERATORS:
            if only not in {"", op}:
                continue
            self.op, self.inputs, self.result, self._since = op, inputs, result(value), since
            for kernel in self._listed():
                if self._takes(kernel):
                    self.kernel = kernel
                    return
        raise NotSupported(f"op:{only or 'Neg'}:f32" + ("" if only else ", or another simple one"))

    def _listed(self) -> list[Any]:
        device = self._device
        out, count = device.block("const chipdock_kernel*const**"), device.block("uint64_t*")
        device.ok("kernel.list", device.device, out, count)
        text = device.text
        return [
            kernel
            for kernel in (out[0][i] for i in range(count[0]))
            if text(kernel.op) == self.op
            and text(kernel.domain) == ""
            and kernel.since_version <= self._since
            and (kernel.until_version == 0 or self._since <= kernel.until_version)
        ]

    def _takes(self, kernel: Any) -> bool:
        for i in range(kernel.dtype_rule_count):
            rule = kernel.dtype_rules[i]
            kinds = [rule.dtypes[k] for k in range(rule.count)]
            if not any((kind.code, kind.bits, kind.lanes) == _FLOAT32 for kind in kinds):
                return False
        answer = self._device.block("int32_t*")
        self._device.ok("kernel.supports", self._device.device, kernel, self.node(), answer)
        if answer[0] not in _ANSWERS:
            fail(
                f"kernel.supports answered {answer[0]}, which is no CHIPDOCK_SUPPORTS_* [KRN-2]",
                expected=str(_ANSWERS),
                got=int(answer[0]),
            )
        return bool(answer[0] == 1)

    def _dtype(self, struct_: Any) -> Any:
        struct_.dtype.code, struct_.dtype.bits, struct_.dtype.lanes = _FLOAT32
        return struct_

    def value(self) -> Any:
        """A chipdock_value of a vector."""
        dims = self._device.block("int64_t[]", [self.length])
        return self._dtype(self._device.new("chipdock_value", rank=1, dims=dims))

    def node(self, **more: Any) -> Any:
        """A chipdock_node of the operator on vectors."""
        new, block = self._device.new, self._device.block
        values = [self.value() for _ in range(self.inputs)]
        return new(
            "chipdock_node",
            since_version=self._since,
            domain=block("char[]", b""),
            op=block("char[]", self.op.encode()),
            input_count=self.inputs,
            output_count=1,
            inputs=block("const chipdock_value*[]", values),
            outputs=block("const chipdock_value*[]", [self.value()]),
            **more,
        )

    def create(self) -> Any:
        """Make an instance, which the caller destroys."""
        out = self._device.block("chipdock_kernel_instance**")
        self._device.ok("kernel.create", self._device.device, self.kernel, self.node(), out)
        return out[0]

    def tensor(self, memory: Any = None) -> Any:
        """A tensor of a vector in device memory; None allocates it with `input`."""
        device = self._device
        if memory is None:
            memory = device.alloc(4 * self.length)
            device.write(memory, struct.pack("<f", self.input) * self.length)
        shape = device.block("int64_t[]", [self.length])
        return self._dtype(device.new("chipdock_tensor", rank=1, shape=shape, memory=memory))

    def launch(self, output: Any = None, stream: Any = None, **more: Any) -> Any:
        """A launch desc with memory, and with the workspace that the kernel wants.

        Args:
            output: Memory to write to; None allocates it.
            stream: Where to queue it.
            more: Fields of the desc.
        """
        device = self._device
        target = device.alloc(4 * self.length) if output is None else output
        tensors = [self.tensor() for _ in range(self.inputs)]
        return device.new(
            "chipdock_launch_desc",
            input_count=self.inputs,
            output_count=1,
            inputs=device.block("const chipdock_tensor*[]", tensors),
            outputs=device.block("const chipdock_tensor*[]", [self.tensor(target)]),
            stream=device.null if stream is None else stream,
            **more,
        )

    def with_workspace(self, instance: Any, desc: Any) -> Any:
        """Give a launch desc the scratch that the instance asks for."""
        device = self._device
        size = device.block("uint64_t*")
        if device.has("kernel.workspace_size"):
            device.ok("kernel.workspace_size", instance, desc, size)
        if size[0]:
            desc.workspace = device.alloc(size[0])
            desc.workspace_size = size[0]
        return desc

    def expected(self) -> bytes:
        """Bytes of a right output."""
        return struct.pack("<f", self.result) * self.length

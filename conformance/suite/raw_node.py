# SPDX-License-Identifier: Apache-2.0
"""Any operator by raw slots: its node, an instance, tensors in memory that the case looks after.

node.py has the simple operators that most cases need; this is for those that need one operator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chipdock.conformance.case import NotSupported

if TYPE_CHECKING:
    from chipdock.conformance.suite.device import RawDevice

__all__ = ["RawNode", "Side"]

_CODES = {"i": 0, "u": 1, "f": 2}


class Side(NamedTuple):
    """An input or output.

    Attributes:
        values: Its elements; for an output its shape and dtype are meant.
        constant: Never changes, so that a plugin may pack it.
    """

    values: NDArray[Any]
    constant: bool = False


class RawNode:
    """An operator that the plugin computes.

    Attributes:
        kernel: `chipdock_kernel*`.
        instance: `chipdock_kernel_instance*`; `destroy` ends it.
    """

    def __init__(
        self, device: RawDevice, op: str, since: int, inputs: list[Side], output: Side
    ) -> None:
        """Looks for a kernel of the default domain and makes an instance.

        Args:
            device: An opened device.
            op: ONNX operator, without attributes.
            since: Version of its definition.
            inputs: What goes in.
            output: What comes out.

        Raises:
            NotSupported: The plugin has none for these types and shapes.
        """
        self._device, self._op, self._since = device, op, since
        self._inputs, self._output = inputs, output
        self._node = self._made_node()
        out, count = device.block("const chipdock_kernel*const**"), device.block("uint64_t*")
        device.ok("kernel.list", device.device, out, count)
        answer = device.block("int32_t*")
        for kernel in (out[0][i] for i in range(count[0])):
            if not self._fits(kernel):
                continue
            device.ok("kernel.supports", device.device, kernel, self._node, answer)
            if answer[0] == 1:
                self.kernel = kernel
                made = device.block("chipdock_kernel_instance**")
                device.ok("kernel.create", device.device, kernel, self._node, made)
                self.instance = made[0]
                return
        raise NotSupported(f"op:{op}:{output.values.dtype}")

    def destroy(self) -> None:
        """End the instance."""
        self._device.ok("kernel.destroy", self.instance)

    def _fits(self, kernel: Any) -> bool:
        device, last = self._device, kernel.until_version or self._since
        if device.text(kernel.op) != self._op or device.text(kernel.domain):
            return False
        if not kernel.since_version <= self._since <= last or kernel.host_inputs:
            return False
        rules: dict[int, set[tuple[int, int]]] = {}
        for i in range(kernel.dtype_rule_count):
            rule = kernel.dtype_rules[i]
            rules[rule.argument] = {
                (rule.dtypes[k].code, rule.dtypes[k].bits) for k in range(rule.count)
            }
        sides = dict(enumerate(self._inputs)) | {-1: self._output}
        return all(
            at not in rules or self._type(side.values) in rules[at] for at, side in sides.items()
        )

    @staticmethod
    def _type(values: NDArray[Any]) -> tuple[int, int]:
        return _CODES[values.dtype.kind], values.dtype.itemsize * 8

    def _typed(self, struct_: Any, values: NDArray[Any]) -> Any:
        struct_.dtype.code, struct_.dtype.bits = self._type(values)
        struct_.dtype.lanes = 1
        return struct_

    def value(self, side: Side) -> Any:
        """A chipdock_value of an input or output."""
        device, values = self._device, side.values
        more: dict[str, Any] = {}
        if side.constant:
            data = np.ascontiguousarray(values).tobytes()
            more = {"constant": device.block("char[]", data), "constant_size": len(data)}
        dims = device.block("int64_t[]", list(values.shape) or 1)
        return self._typed(
            device.new("chipdock_value", rank=values.ndim, dims=dims, **more), values
        )

    def _made_node(self) -> Any:
        device = self._device
        inputs = [self.value(side) for side in self._inputs]
        return device.new(
            "chipdock_node",
            since_version=self._since,
            domain=device.block("char[]", b""),
            op=device.block("char[]", self._op.encode()),
            input_count=len(inputs),
            output_count=1,
            inputs=device.block("const chipdock_value*[]", inputs),
            outputs=device.block("const chipdock_value*[]", [self.value(self._output)]),
        )

    def tensor(self, side: Side, memory: Any) -> Any:
        """A tensor of this shape and type at the start of `memory`."""
        shape = self._device.block("int64_t[]", list(side.values.shape) or 1)
        made = self._device.new(
            "chipdock_tensor", rank=side.values.ndim, shape=shape, memory=memory
        )
        return self._typed(made, side.values)

    def placed(self, side: Side) -> Any:
        """A tensor in memory of its own that holds the values."""
        data = np.ascontiguousarray(side.values).tobytes()
        memory = self._device.alloc(len(data))
        self._device.write(memory, data)
        return self.tensor(side, memory)

    def launch(self, inputs: list[Any], output: Any, **more: Any) -> Any:
        """A launch desc of these tensors, without workspace."""
        block = self._device.block
        return self._device.new(
            "chipdock_launch_desc",
            input_count=len(inputs),
            output_count=1,
            inputs=block("const chipdock_tensor*[]", inputs),
            outputs=block("const chipdock_tensor*[]", [output]),
            **more,
        )

    def workspace_size(self, desc: Any) -> int:
        """Bytes of scratch that a launch asks for."""
        size = self._device.block("uint64_t*")
        if self._device.has("kernel.workspace_size"):
            self._device.ok("kernel.workspace_size", self.instance, desc, size)
        return int(size[0])

# SPDX-License-Identifier: Apache-2.0
"""The private layouts of a plugin by raw slots: which there are, sizes, Reorder there and back.

What a layout looks like is the plugin's own: judged is that all elements come back, and that what
lies beside them is zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from chipdock.conformance.case import NotSupported, fail
from chipdock.conformance.suite.canary import check_bytes
from chipdock.conformance.suite.layout_node import (
    Argument,
    LayoutNode,
    Placed,
    admitted,
    listed_kernels,
)

if TYPE_CHECKING:
    from chipdock.conformance.suite.device import RawDevice

__all__ = ["MARGIN", "MARK", "LayoutTensor", "Reorders", "check_elements", "layouts_of",
           "reorder_lists"]  # fmt: skip

MARK = b"\xcb"
MARGIN = 512
"""Bytes of marks behind what may be written."""
_Array = NDArray[Any]


def layouts_of(device: RawDevice) -> list[int]:
    """Return the layouts that any kernel lists, in the order in which they are first listed.

    Raises:
        NotSupported: None lists one.
    """
    found: dict[int, None] = {}
    for kernel in listed_kernels(device):
        for i in range(kernel.layout_rule_count):
            rule = kernel.layout_rules[i]
            found |= dict.fromkeys(rule.layouts[k] for k in range(rule.count))
    if not found:
        raise NotSupported("a kernel with layout rules")
    return list(found)


def reorder_lists(device: RawDevice, layout: int) -> bool:
    """Say whether Reorders are listed that write and read a layout."""
    named = [k for k in listed_kernels(device) if device.text(k.domain) == "ai.chipdock"]
    found = [k for k in named if device.text(k.op) == "Reorder"]
    return all(any(layout in admitted(k, side) for k in found) for side in (0, -1))


def check_elements(body: bytes, plain: bytes, what: str) -> None:
    """Fail if bytes in a layout are not those of the elements and zeros, in whatever order."""
    counts = [np.bincount(np.frombuffer(b, np.uint8), minlength=256)[1:] for b in (body, plain)]
    beside = int(np.abs(counts[0] - counts[1]).sum())
    if beside:
        fail(
            f"{what}: {beside} bytes are neither those of the elements nor zero [KRN-4]",
            metric="bytes", value=beside, limit=0,
        )  # fmt: skip


class LayoutTensor:
    """Memory for a tensor, in a layout or in none, with marks around it.

    Attributes:
        place: Where the tensor is.
        size: Bytes of it.
    """

    def __init__(self, device: RawDevice, size: int, alignment: int) -> None:
        """Allocates and marks it."""
        step = max(1, alignment)
        self._device, self.size = device, size
        self.place = Placed(device.alloc(step + size + MARGIN), step)
        device.write(self.place.memory, MARK * (step + size + MARGIN))

    def write(self, data: bytes) -> Self:
        """Put bytes where the tensor is; return itself."""
        if data:
            self._device.write(self.place.memory, data, self.place.offset)
        return self

    def read(self, what: str) -> bytes:
        """Return the tensor's bytes; fail if the marks around it are damaged."""
        front = self.place.offset
        whole = self._device.read(self.place.memory, front + self.size + MARGIN)
        check_bytes(whole[:front], MARK * front, f"memory ahead of {what}")
        check_bytes(whole[front + self.size :], MARK * MARGIN, f"memory behind {what}")
        return whole[front : front + self.size]


class Reorders:
    """Brings tensors of one dtype and shape into a layout and back.

    Attributes:
        size: What layout_size said; 0 for a tensor without elements.
    """

    def __init__(self, device: RawDevice, like: _Array, layout: int) -> None:
        """Looks for the kernels and makes an instance of each.

        Args:
            device: An opened device.
            like: An array of the dtype and shape.
            layout: Not 0.

        Raises:
            NotSupported: No Reorder takes such tensors there or back.
        """
        self._device, self._like, self._layout = device, like, layout
        self._nodes: list[LayoutNode] = []
        self._instances: list[Any] = []
        alignment = 2 * device.unit
        for source, goal in ((0, layout), (layout, 0)):
            node = LayoutNode(
                device, "Reorder", 1, [Argument(like, source)], [Argument(like, goal)],
                domain="ai.chipdock",
            )  # fmt: skip
            kernel = next(node.willing(), None)
            if kernel is None:
                self.close()
                raise NotSupported(f"a Reorder of {like.dtype.name}{list(like.shape)}")
            alignment = max(alignment, int(kernel.min_alignment))
            self._nodes.append(node)
            self._instances.append(node.create(kernel))
        self.alignment = alignment
        self.size = self._asked_size() if like.size else 0

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the instances."""
        self.close()

    def close(self) -> None:
        """End the instances."""
        for node, instance in zip(self._nodes, self._instances, strict=False):
            node.destroy(instance)
        self._instances = []

    def _asked_size(self) -> int:
        device, out = self._device, self._device.block("uint64_t*")
        device.ok("kernel.layout_size", device.device, self.value(), out)
        if out[0] < self._like.nbytes:
            fail(
                f"layout_size of {self._like.dtype.name}{list(self._like.shape)} is {out[0]}, its "
                f"elements are {self._like.nbytes} bytes",
                metric="bytes", value=int(out[0]), limit=self._like.nbytes,
            )  # fmt: skip
        return int(out[0])

    def value(self) -> Any:
        """A chipdock_value of such a tensor in the layout."""
        return self._nodes[0].value(Argument(self._like, self._layout))

    def plain(self, data: bytes | None = None) -> LayoutTensor:
        """Memory for a tensor of this shape in layout 0, with these bytes if they are given."""
        made = LayoutTensor(self._device, self._like.nbytes, self.alignment)
        return made if data is None else made.write(data)

    def inner(self) -> LayoutTensor:
        """Memory for a tensor of this shape in the layout."""
        return LayoutTensor(self._device, self.size, self.alignment)

    def forth(self, source: LayoutTensor, goal: LayoutTensor, stream: Any = None) -> None:
        """Bring a tensor into the layout."""
        self._nodes[0].launch(self._instances[0], [source.place], [goal.place], stream)

    def back(self, source: LayoutTensor, goal: LayoutTensor, stream: Any = None) -> None:
        """Bring a tensor out of the layout."""
        self._nodes[1].launch(self._instances[1], [source.place], [goal.place], stream)

    def empty(self) -> None:
        """Launch both on tensors without memory."""
        for node, instance in zip(self._nodes, self._instances, strict=True):
            node.launch(instance, [None], [Placed(self._device.null)])

    def entered(self, values: _Array) -> LayoutTensor:
        """Return these values in the layout."""
        made = self.inner()
        self.forth(self.plain(np.ascontiguousarray(values).tobytes()), made)
        return made

    def left(self, tensor: LayoutTensor, what: str) -> bytes:
        """Return a tensor's elements; fail if what lies beside them is not zero."""
        body, goal = tensor.read(what), self.plain()
        self.back(tensor, goal)
        plain = goal.read(f"{what}, brought back")
        check_elements(body, plain, what)
        return plain

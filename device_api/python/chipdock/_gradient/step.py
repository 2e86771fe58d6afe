# SPDX-License-Identifier: Apache-2.0
"""A node on the way from xs to y as rules see it: inputs, outputs, attributes, gradients."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx
from onnx import AttributeProto, defs

from chipdock._gradient.values import Builder, Value
from chipdock._onnx_graph import label
from chipdock.errors import UnsupportedError

__all__ = ["Parts", "Rule", "Rules", "Step"]


class Step:
    """One node of the forward pass with the gradients of its outputs.

    Attributes:
        b: Writes the backward pass.
        node: The node; `output()` may add an output to it.
        inputs: None where one is not given.
        outputs: Those that the node has.
        gradients: Of the outputs, None where y does not hang on one.
    """

    def __init__(
        self, b: Builder, node: onnx.NodeProto, opset: int, gradients: Sequence[Value | None]
    ) -> None:
        """See the node; `opset` is the version of its domain."""
        self.b = b
        self.node = node
        self.op = node.op_type
        self.inputs = [b.value(n) if n else None for n in node.input]
        self.outputs = [b.value(n) if n else None for n in node.output]
        self.gradients = list(gradients)
        self._opset = opset

    @property
    def x(self) -> Value:
        """The first input."""
        return self.required(0)

    @property
    def y(self) -> Value:
        """The first output."""
        return self.output(0)

    @property
    def dy(self) -> Value:
        """Gradient of the first output, which has one."""
        found = self.gradients[0]
        assert found is not None
        return found

    def required(self, index: int) -> Value:
        """An input that the operator cannot be without."""
        found = self.input(index)
        if found is None:
            raise self.refused(f"input {index} is not given")
        return found

    def input(self, index: int) -> Value | None:
        """An input, None if it is not given."""
        return self.inputs[index] if index < len(self.inputs) else None

    def output(self, index: int) -> Value:
        """An output; an optional one that the node leaves out is asked of it."""
        while len(self.outputs) <= index:
            self.outputs.append(None)
            self.node.output.append("")
        found = self.outputs[index]
        if found is None:
            self.node.output[index] = self.b.name(f"{self.op}/output{index}/")
            found = self.outputs[index] = self.b.value(self.node.output[index])
        return found

    def attribute(self, name: str) -> Any:  # noqa: ANN401  as onnx's get_attribute_value
        """Value of an attribute, else the schema's default, None without one; text as str."""
        given = next((a for a in self.node.attribute if a.name == name), None)
        if given is None:
            domain = "" if self.node.domain == "ai.onnx" else self.node.domain
            known = defs.get_schema(self.op, self._opset, domain).attributes.get(name)
            if known is None or known.default_value.type == AttributeProto.UNDEFINED:
                return None
            given = known.default_value
        value = onnx.helper.get_attribute_value(given)
        return value.decode() if isinstance(value, bytes) else value

    def attributes(self) -> dict[str, Any]:
        """Those that are given, to write a node like this one."""
        return {a.name: onnx.helper.get_attribute_value(a) for a in self.node.attribute}

    def rank(self, x: Value) -> int:
        """Rank of an input or output.

        Raises:
            UnsupportedError: It is not known at load.
        """
        if x.dims is None:
            raise self.refused(f"the rank of {x.name!r} is not known; declare its shape")
        return len(x.dims)

    def refused(self, why: str) -> UnsupportedError:
        """Make the error for a node that cannot be differentiated."""
        text = f"the gradient of {self.op} {label(self.node)} is not known"
        return UnsupportedError(f"UNSUPPORTED: {text}: {why}")


Parts = Sequence[Value | None]  # gradients of the inputs in order; what is left out has none
Rule = Callable[[Step], Parts]
Rules = Mapping[str, Rule]

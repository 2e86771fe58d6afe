# SPDX-License-Identifier: Apache-2.0
"""One operator as a model, and its inputs as they are to lie on the device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from chipdock.conformance.numerics.dtypes import ONNX_TYPES, float_format, short_name
from chipdock.conformance.opcases.fills import make_array
from chipdock.conformance.opcases.spec import In

if TYPE_CHECKING:
    import onnx

    import chipdock

__all__ = ["Call", "flush", "make_model", "modern", "set_view"]

_Array = NDArray[Any]


@dataclass(frozen=True)
class Call:
    """One node: what of a variant makes the model.

    Attributes:
        op: Operator with its domain, "com.microsoft::FastGelu".
        inputs: As the variant says.
        attributes: As the variant says.
        opset: Version of the domain's operator set.
        outputs: How many.
    """

    op: str
    inputs: tuple[In | None, ...]
    attributes: Mapping[str, Any]
    opset: int
    outputs: int

    @property
    def domain(self) -> str:
        """Domain alone; "" is ONNX's."""
        return self.op.rpartition("::")[0]

    @property
    def name(self) -> str:
        """Operator alone."""
        return self.op.rpartition("::")[2]


def make_model(call: Call, arrays: Sequence[_Array | None]) -> onnx.ModelProto:
    """Make the model of one node, with inputs x0, x1, … and outputs y0, ….

    Args:
        call: The node.
        arrays: Values of the inputs; those that are constants go into the model.
    """
    from onnx import ValueInfoProto, helper, numpy_helper  # noqa: PLC0415

    names = ["" if array is None else f"x{i}" for i, array in enumerate(arrays)]
    node = helper.make_node(
        call.name, names, [f"y{i}" for i in range(call.outputs)], domain=call.domain
    )
    node.attribute.extend(_attribute(key, value) for key, value in sorted(call.attributes.items()))
    given, kept = [], []
    for name, wanted, array in zip(names, call.inputs, arrays, strict=True):
        if wanted is None or array is None:
            continue
        if wanted.constant:
            kept.append(numpy_helper.from_array(array, name))
        else:
            given.append(helper.make_tensor_value_info(name, ONNX_TYPES[wanted.dtype], None))
    results = [ValueInfoProto(name=name) for name in node.output]
    graph = helper.make_graph([node], call.name, given, results, initializer=kept)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(call.domain, call.opset)])


def _attribute(key: str, value: Any) -> onnx.AttributeProto:
    from onnx import AttributeProto, helper  # noqa: PLC0415

    if isinstance(value, tuple) and value and value[0] == "tensor":
        _, dtype, shape, values = value
        made = make_array(In(dtype, shape, "values", values=values), np.random.default_rng(0))
        return helper.make_attribute(key, helper.make_tensor(
            key, ONNX_TYPES[dtype], shape, made.tobytes(), raw=True))  # fmt: skip
    if isinstance(value, list | tuple) and not value:
        return helper.make_attribute(key, [], attr_type=AttributeProto.INTS)
    return helper.make_attribute(key, value)


def modern(call: Call, arrays: list[_Array | None]) -> tuple[Call, list[_Array | None]]:
    """Say what Upsample and Resize-10 mean in the words of Resize-22."""
    if call.name != "Upsample" and (call.name != "Resize" or call.opset > 10):
        return call, arrays
    attributes = dict(call.attributes)
    scales = attributes.pop("scales", None)
    factors = arrays[1] if scales is None else np.array(scales, np.float32)
    attributes |= {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    given = (
        call.inputs[0],
        None,
        In("f32", (len(arrays[0].shape if arrays[0] is not None else ()),)),
    )
    return Call("Resize", given, attributes, 22, 1), [arrays[0], None, factors]


def set_view(array: _Array, view: str, device: chipdock.Device) -> chipdock.Array:
    """Put values on the device so that they lie there as `In.view` says."""
    import chipdock  # noqa: PLC0415

    if not view or not array.ndim:
        return chipdock.array(array, device)
    if view == "back":
        return chipdock.array(np.ascontiguousarray(array[::-1]), device)[::-1]
    if view == "step":
        whole = np.zeros((*array.shape[:-1], array.shape[-1] * 2), array.dtype)
        whole[..., ::2] = array
        return chipdock.array(whole, device)[..., ::2]
    whole = np.zeros(tuple(extent + 2 for extent in array.shape), array.dtype)
    middle = tuple(slice(1, extent + 1) for extent in array.shape)
    whole[middle] = array
    return chipdock.array(whole, device)[middle]


def flush(array: _Array | None) -> _Array | None:
    """Return the array with denormals as zeros of their sign; itself if there are none."""
    if array is None or short_name(array.dtype) not in {"f32", "f64", "f16", "bf16"}:
        return array
    least = 2.0 ** float_format(short_name(array.dtype)).least_exponent
    with np.errstate(all="ignore"):
        size = np.abs(array.astype(np.float64))
    small = (size < least) & (size > 0)
    return np.where(small, np.copysign(array.dtype.type(0), array), array) if small.any() else array

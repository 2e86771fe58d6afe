# SPDX-License-Identifier: Apache-2.0
"""Types of ONNX values as the text that operator schemas use: "seq(tensor(float))" and the like."""

from dataclasses import dataclass

import numpy as np
import onnx

from chipdock.errors import InvalidArgumentError, UnsupportedError

__all__ = [
    "ValueInfo",
    "element_type",
    "inner_type",
    "is_tensor",
    "numpy_dtype",
    "shape_advice",
    "tensor_type",
    "type_proto",
    "type_text",
    "value_info",
    "value_shape",
]

_STRING = "tensor(string)"


@dataclass(frozen=True)
class ValueInfo:
    """A graph input or output.

    Attributes:
        name: As in the model.
        dtype: numpy or ml_dtypes type of its elements; object for strings.
        shape: Extents; a str is a symbolic dim, None is unknown. None if even the rank is unknown,
            and for sequences and optionals.
        type: As ONNX writes it: "tensor(float)", "seq(tensor(int64))", "optional(tensor(string))".
    """

    name: str
    dtype: np.dtype
    shape: tuple[int | str | None, ...] | None
    type: str = ""


def tensor_type(data_type: int) -> str:
    """Text for a tensor of this TensorProto.DataType."""
    try:
        return f"tensor({onnx.TensorProto.DataType.Name(data_type).lower()})"
    except ValueError:
        raise InvalidArgumentError(
            f"INVALID_ARGUMENT: data type {data_type} is not known to onnx {onnx.__version__}"
        ) from None


def type_text(proto: onnx.TypeProto) -> str | None:
    """Text of a type, None if it says nothing.

    Raises:
        UnsupportedError: A map, a sparse tensor or an opaque value.
    """
    kind = proto.WhichOneof("value")
    if kind is None:
        return None
    if kind == "tensor_type":
        elem = proto.tensor_type.elem_type
        return tensor_type(elem) if elem else None
    if kind in {"sequence_type", "optional_type"}:
        inner = type_text(getattr(proto, kind).elem_type)
        name = "seq" if kind == "sequence_type" else "optional"
        return f"{name}({inner})" if inner else None
    raise UnsupportedError(
        f"UNSUPPORTED: a value is a {kind.removesuffix('_type')}; tensors, sequences and optionals "
        "are supported"
    )


def is_tensor(text: str) -> bool:
    """True for a dense tensor, of strings too."""
    return text.startswith("tensor(")


def inner_type(text: str) -> str:
    """What a sequence or an optional holds; any other type is its own."""
    for head in ("seq(", "optional("):
        if text.startswith(head):
            return text[len(head) : -1]
    return text


def element_type(text: str) -> int:
    """TensorProto.DataType of the tensors inside a type, however deep."""
    while not is_tensor(text):
        text = inner_type(text)
    return int(onnx.TensorProto.DataType.Value(text[7:-1].upper()))


def type_proto(text: str, shape: list[int] | None = None) -> onnx.TypeProto:
    """The type as onnx's own message; `shape` is that of a tensor, -1 for an unknown extent."""
    proto = onnx.TypeProto()
    if text.startswith("seq("):
        proto.sequence_type.elem_type.CopyFrom(type_proto(inner_type(text)))
    elif text.startswith("optional("):
        proto.optional_type.elem_type.CopyFrom(type_proto(inner_type(text)))
    else:
        proto.tensor_type.elem_type = element_type(text)
        if shape is not None:
            proto.tensor_type.shape.SetInParent()
        for extent in shape or ():
            dim = proto.tensor_type.shape.dim.add()
            if extent >= 0:
                dim.dim_value = extent
    return proto


def numpy_dtype(text: str, name: str) -> np.dtype:
    """Type of the elements; object for strings."""
    data_type = element_type(text)
    if data_type == onnx.TensorProto.STRING:
        return np.dtype(object)
    try:
        return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(data_type))
    except KeyError:
        raise InvalidArgumentError(
            f"INVALID_ARGUMENT: value {name!r} is {text}, which onnx {onnx.__version__} does not "
            "know"
        ) from None


def value_shape(proto: onnx.TypeProto) -> tuple[int | str | None, ...] | None:
    """Extents of a tensor's type: numbers, symbols, or None for what is not said.

    Exporters write "?", "-1" or "None" on every dim that they do not know; only an identifier
    names one.
    """
    if proto.WhichOneof("value") != "tensor_type" or not proto.tensor_type.HasField("shape"):
        return None
    out: list[int | str | None] = []
    for dim in proto.tensor_type.shape.dim:
        if dim.HasField("dim_value") and dim.dim_value >= 0:
            out.append(int(dim.dim_value))
        else:
            named = dim.dim_param.isidentifier() and dim.dim_param != "None"
            out.append(dim.dim_param if named else None)
    return tuple(out)


def shape_advice(shape: tuple[int | str | None, ...] | None) -> list[int] | None:
    """Extents for the executor: -1 for what is not a number."""
    return None if shape is None else [d if isinstance(d, int) else -1 for d in shape]


def value_info(value: onnx.ValueInfoProto, text: str) -> ValueInfo:
    """Describe an input or output of this type."""
    return ValueInfo(value.name, numpy_dtype(text, value.name), value_shape(value.type), text)

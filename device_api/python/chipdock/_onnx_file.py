# SPDX-License-Identifier: Apache-2.0
"""Reading an ONNX model: bytes, path or ModelProto; weights in external files are mapped, not read.

Large weights of a .onnx file itself are read straight into their arrays, see _weights_apart.py.

Everything that can be wrong with a file ends here, as an InvalidArgumentError that names it.
"""

import contextlib
import os
from pathlib import Path
from typing import Any, BinaryIO

import ml_dtypes
import numpy as np
import onnx
from google.protobuf.message import DecodeError

from chipdock._weights_apart import OWN, read_exactly, weights_apart
from chipdock.errors import InvalidArgumentError

__all__ = ["ModelFile", "read_model", "sparse_array", "tensor_array"]

_STRING = onnx.TensorProto.STRING

_MOST_PARSED = 2**31 - 1  # bytes of a message, weights left out
_MOST_SPARSE = 2**31  # elements of the dense form: a small file must not take all memory

# ml_dtypes' names where numpy has no type of its own; the rest comes from onnx.helper.
_NUMPY: dict[int, np.dtype] = {
    onnx.TensorProto.BFLOAT16: np.dtype(ml_dtypes.bfloat16),
    onnx.TensorProto.FLOAT8E4M3FN: np.dtype(ml_dtypes.float8_e4m3fn),
    onnx.TensorProto.FLOAT8E4M3FNUZ: np.dtype(ml_dtypes.float8_e4m3fnuz),
    onnx.TensorProto.FLOAT8E5M2: np.dtype(ml_dtypes.float8_e5m2),
    onnx.TensorProto.FLOAT8E5M2FNUZ: np.dtype(ml_dtypes.float8_e5m2fnuz),
    onnx.TensorProto.INT4: np.dtype(ml_dtypes.int4),
    onnx.TensorProto.UINT4: np.dtype(ml_dtypes.uint4),
}
# Elements below a byte share bytes in ONNX files, low part first, and onnx unpacks them; Source:
# onnx.proto, TensorProto.raw_data. Here by their bits; onnx has 2 since 1.20 and 6 since 1.23.
_PACKED: dict[int, int] = {
    getattr(onnx.TensorProto, name): bits
    for name, bits in {
        "INT4": 4, "UINT4": 4, "FLOAT4E2M1": 4, "INT2": 2, "UINT2": 2, "FLOAT6E2M3": 6,
        "FLOAT6E3M2": 6,
    }.items()
    if hasattr(onnx.TensorProto, name)
}  # fmt: skip


class ModelFile:
    """A parsed model, the folder that its external data is relative to, and its own file.

    A context manager: at its end the model's own file is closed, and no weight can be read.
    """

    def __init__(
        self,
        proto: onnx.ModelProto,
        folder: Path | None,
        name: str,
        own: BinaryIO | None = None,
    ) -> None:
        """Keep what was read; `folder` is None for models that came as bytes.

        `own` is the model's file where weights were left in it: open, for one that is written in
        its place must not be mixed with it.
        """
        self.proto = proto
        self.folder = folder
        self.name = name
        self._own = own
        self._maps: dict[Path, Any] = {}

    def __enter__(self) -> "ModelFile":
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the model's file."""
        self.close()

    def close(self) -> None:
        """Close the model's file: no weight can be read from it any more."""
        if self._own is not None:
            self._own.close()

    def kept(self) -> "ModelFile":
        """Return a copy that stays open when this one is closed, or its model is changed.

        Raises:
            InvalidArgumentError: This process has as many files open as it may.
        """
        try:
            own = None if self._own is None else os.fdopen(os.dup(self._own.fileno()), "rb")
        except OSError as error:
            raise _bad(f"the file of {self.name} cannot be kept open: {error.strerror}") from error
        proto = onnx.ModelProto()
        proto.CopyFrom(self.proto)
        out = ModelFile(proto, self.folder, self.name, own)
        out._maps |= self._maps
        return out

    def with_proto(self, proto: onnx.ModelProto) -> "ModelFile":
        """Return the same file with another reading of it."""
        out = ModelFile(proto, self.folder, self.name, self._own)
        out._maps = self._maps
        return out

    def mapped(self, location: str, offset: int, length: int | None, tensor: str) -> np.ndarray:
        """Bytes of an external file as a read-only map, or of the model's own file as an array.

        Raises:
            InvalidArgumentError: The file is outside the model's folder, missing or too short.
        """
        if location == OWN and self._own is not None and length is not None:
            own = read_exactly(self._own.fileno(), offset, length)
            if own.size < length:
                raise _bad(f"tensor {tensor!r} wants bytes {offset} to {offset + length} of the "
                           f"model's file, which ends at {offset + own.size} by now")  # fmt: skip
            return own
        if self.folder is None:
            raise _bad(
                f"tensor {tensor!r} is in the external file {location!r}, but the model came as "
                "bytes; load it by its path"
            )
        folder = self.folder.resolve()
        path = (folder / location).resolve()
        if not path.is_relative_to(folder):
            raise _bad(f"tensor {tensor!r} points to {location!r}, outside the model's folder "
                       f"{folder}; external data must lie beside the model")  # fmt: skip
        if path not in self._maps:
            if not path.is_file():
                why = "is no file" if path.exists() else "does not exist"
                raise _bad(f"tensor {tensor!r} needs the external file {path}, which {why}")
            empty = path.stat().st_size == 0
            self._maps[path] = np.empty(0, np.uint8) if empty else np.memmap(path, np.uint8, "r")
        data = self._maps[path]
        end = data.size if length is None else offset + length
        if offset < 0 or end > data.size:
            raise _bad(f"tensor {tensor!r} wants bytes {offset} to {end} of {path}, which has "
                       f"{data.size}; the file is truncated")  # fmt: skip
        part: np.ndarray = data[offset:end]
        return part


def _bad(text: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"INVALID_ARGUMENT: {text}")


def read_model(source: "str | os.PathLike[str] | bytes | onnx.ModelProto") -> ModelFile:
    """Read a model without its external data.

    Args:
        source: Path of a .onnx file, the bytes of one, or a ModelProto (not changed).

    Raises:
        InvalidArgumentError: Not there, not an ONNX model, truncated, or without a graph.
    """
    if isinstance(source, onnx.ModelProto):
        return _checked(ModelFile(source, None, "model"))
    if isinstance(source, bytes | bytearray | memoryview):
        return _checked(ModelFile(_parse(bytes(source), "the given bytes"), None, "model"))
    try:
        path = Path(source)
    except TypeError:
        raise _bad(
            f"a model is a path, bytes or a ModelProto, got {type(source).__name__}"
        ) from None
    if path.is_dir():
        raise _bad(f"{path} is a folder; give the .onnx file in it")
    try:
        if not path.is_file() and path.exists():
            raise _bad(f"{path} is not a file")
        own = path.open("rb")
        with contextlib.ExitStack() as failed:
            failed.callback(own.close)
            light = weights_apart(own.fileno())
            proto = _parse_light(light) if light is not None else None
            if proto is None:  # small, or damaged: what protobuf says of it all is what counts
                size = os.fstat(own.fileno()).st_size
                if size > _MOST_PARSED:
                    raise _bad(f"{path} ({size} bytes) is not an ONNX model: protobuf ends at "
                               f"{_MOST_PARSED} bytes, and the file is damaged")  # fmt: skip
                proto = _parse(own.read(), str(path))
            file = _checked(ModelFile(proto, path.parent, path.stem, own))
            failed.pop_all()
    except InvalidArgumentError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        why = (isinstance(error, OSError) and error.strerror) or error
        raise _bad(f"{str(path)!r} cannot be read: {why}") from error
    return file


def _parse_light(data: bytes) -> onnx.ModelProto | None:
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError:
        return None
    return model


def _parse(data: bytes, what: str) -> onnx.ModelProto:
    if not data:
        raise _bad(f"{what} has 0 bytes, which is not an ONNX model; was it written to the end?")
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError as error:
        raise _bad(
            f"{what} ({len(data)} bytes) is not an ONNX model or is truncated: {error}"
        ) from error
    return model


def _checked(file: ModelFile) -> ModelFile:
    model = file.proto
    if not model.HasField("graph") or not model.opset_import:
        raise _bad(f"{file.name} is not an ONNX model: it has no graph or no opset_import")
    if not model.graph.output:
        raise _bad(f"{file.name} has no outputs")
    _check_texts(model.graph)
    return file


def _check_texts(graph: onnx.GraphProto) -> None:
    """Refuse names that are not UTF-8: protobuf hands those out as bytes."""
    values = (*graph.input, *graph.output, *graph.initializer, *graph.value_info)
    texts: list[object] = [v.name for v in values]
    for node in graph.node:
        texts += (node.name, node.op_type, node.domain, *node.input, *node.output)
        for attribute in node.attribute:
            texts.append(attribute.name)
            if attribute.type == onnx.AttributeProto.GRAPH:
                _check_texts(attribute.g)
    wrong = next((t for t in texts if not isinstance(t, str)), None)
    if wrong is not None:
        raise _bad(f"the name {wrong!r} is not UTF-8 text; the file is damaged")


def tensor_array(tensor: onnx.TensorProto, file: ModelFile) -> np.ndarray:
    """Elements of a TensorProto, shape `tensor.dims`; a view of the file where that is possible.

    Raises:
        InvalidArgumentError: An unknown dtype, or data that does not fill the shape.
    """
    shape = tuple(tensor.dims)
    if any(d < 0 for d in shape):
        raise _bad(f"tensor {tensor.name!r} has shape {shape} with a negative extent")
    if tensor.data_type == _STRING:
        return _strings(tensor, shape)
    external = tensor.data_location == onnx.TensorProto.EXTERNAL
    if tensor.data_type in _PACKED or not (external or tensor.HasField("raw_data")):
        return _by_helper(tensor, file)
    try:
        dtype = _NUMPY.get(tensor.data_type) or np.dtype(
            onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
        )
    except KeyError:
        raise _bad(
            f"tensor {tensor.name!r} has data_type {tensor.data_type}, which is unknown"
        ) from None
    raw = _external(tensor, file) if external else np.frombuffer(tensor.raw_data, np.uint8)
    _check_bytes(tensor, dtype.itemsize * int(np.prod(shape, dtype=object)), raw.size)
    if raw.ctypes.data % dtype.itemsize != 0:
        raw = raw.copy()
    return raw.view(dtype).reshape(shape)


def _check_bytes(tensor: onnx.TensorProto, wanted: int, found: int) -> None:
    if found != wanted:
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
        raise _bad(f"tensor {tensor.name!r} of shape {tuple(tensor.dims)} and {dtype} needs "
                   f"{wanted} bytes, the model has {found}")  # fmt: skip


def _strings(tensor: onnx.TensorProto, shape: tuple[int, ...]) -> np.ndarray:
    """Object array of str; bytes that are not UTF-8 become surrogate escapes."""
    texts = [bytes(s).decode(errors="surrogateescape") for s in tensor.string_data]
    if len(texts) != int(np.prod(shape, dtype=object)):
        raise _bad(f"tensor {tensor.name!r} of shape {shape} holds {len(texts)} strings")
    array = np.empty(len(texts), object)
    array[:] = texts
    return array.reshape(shape)


def sparse_array(tensor: onnx.SparseTensorProto, file: ModelFile) -> np.ndarray:
    """The dense form of a sparse tensor, shape `tensor.dims`; what is not listed is zero.

    Source: onnx.proto, SparseTensorProto: indices are [NNZ], linear, or [NNZ, rank].

    Raises:
        InvalidArgumentError: An index is out of range, or the counts differ.
    """
    name = tensor.values.name
    shape = tuple(tensor.dims)
    values = tensor_array(tensor.values, file)
    indices = tensor_array(tensor.indices, file).astype(np.int64)
    size = int(np.prod(shape, dtype=object))
    if any(d < 0 for d in shape) or size > _MOST_SPARSE:
        raise _bad(f"sparse tensor {name!r} has shape {shape}, at most 2^31 elements are allowed")
    if indices.ndim == 2 and indices.shape == (values.size, len(shape)):
        limit = np.array(shape, np.int64)
        if ((indices < 0) | (indices >= limit)).any():
            raise _bad(f"sparse tensor {name!r} has indices outside of its shape {shape}")
        indices = np.ravel_multi_index(tuple(indices.T), shape) if size else indices[:, 0]
    if values.ndim != 1 or indices.shape != values.shape:
        raise _bad(
            f"sparse tensor {name!r} has values {values.shape} and indices {indices.shape} for "
            f"shape {shape}"
        )
    if indices.size and not 0 <= int(indices.min()) <= int(indices.max()) < size:
        raise _bad(f"sparse tensor {name!r} has indices outside of its shape {shape}")
    dense = np.zeros(size, values.dtype)
    dense[indices] = values
    return dense.reshape(shape)


def _external(tensor: onnx.TensorProto, file: ModelFile) -> np.ndarray:
    entries = {e.key: e.value for e in tensor.external_data}
    try:
        offset = int(entries.get("offset", "0"))
        length = int(entries["length"]) if "length" in entries else None
    except ValueError as error:
        raise _bad(
            f"tensor {tensor.name!r} has a bad external offset or length: {error}"
        ) from error
    if length is not None and length < 0:
        raise _bad(
            f"tensor {tensor.name!r} has the external length {length}, it must be at least 0"
        )
    return file.mapped(entries.get("location", ""), offset, length, tensor.name)


def _by_helper(tensor: onnx.TensorProto, file: ModelFile) -> np.ndarray:
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        raw = _external(tensor, file).tobytes()
        copy = onnx.TensorProto(
            name=tensor.name, data_type=tensor.data_type, dims=tensor.dims, raw_data=raw
        )
        tensor = copy
    if tensor.HasField("raw_data"):  # onnx takes what is too long
        bits = _PACKED[tensor.data_type] * int(np.prod(tensor.dims, dtype=object))
        _check_bytes(tensor, (bits + 7) // 8, len(tensor.raw_data))
    try:
        return np.ascontiguousarray(onnx.numpy_helper.to_array(tensor)).reshape(tuple(tensor.dims))
    except (ValueError, TypeError, KeyError) as error:
        raise _bad(f"tensor {tensor.name!r} cannot be read: {error}") from error

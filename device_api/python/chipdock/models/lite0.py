# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: PLC0415  optional and slow packages are imported where they are used
"""Turns the published EfficientNet-lite0 checkpoint into an ONNX file, without PyTorch.

The checkpoint is a pickle of the format before 2020; a reader that knows three names and nothing
else takes the tensors out, so nothing of the file is executed. Batch normalisation is folded into
the convolutions. Finding the checkpoint and checking its digest is left to fetch.py.
"""

import collections
import pickle
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["REVISION", "convert"]

REVISION = 1
"""Raised when the conversion changes, so that a cached file of an older one is not used."""

_EPSILON = 1e-3
_OPSET = 18
_IR_VERSION = 10
_SIDE = 224
# (repeats, kernel, stride of the first, expansion, output channels) per stage.
_STAGES = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)
_Arrays = dict[str, NDArray[Any]]


class _Storage:
    """Stands for a storage whose bytes follow the pickle."""

    def __init__(self, key: str, dtype: str) -> None:
        self.key = key
        self.dtype = np.dtype(dtype)


class _Reader(pickle.Unpickler):
    """Reads names, shapes and strides; every other name in the pickle is refused."""

    def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401  as the base class has it
        known = {
            ("collections", "OrderedDict"): collections.OrderedDict,
            ("torch._utils", "_rebuild_tensor_v2"): lambda *parts: parts[:4],
            ("torch", "FloatStorage"): "<f4",
            ("torch", "LongStorage"): "<i8",
        }
        if (module, name) not in known:
            raise pickle.UnpicklingError(
                f"the checkpoint asks for {module}.{name}, which is unknown"
            )
        return known[module, name]

    def persistent_load(self, pid: Any) -> _Storage:  # noqa: ANN401  as the base class has it
        return _Storage(pid[2], pid[1])


def _read(file: IO[bytes]) -> _Arrays:
    """Return every tensor of the checkpoint by name."""
    for _ in range(3):  # magic number, protocol version, sizes of the machine
        _Reader(file).load()
    tensors = _Reader(file).load()
    keys = _Reader(file).load()
    dtypes = {parts[0].key: parts[0].dtype for parts in tensors.values()}
    storages: _Arrays = {}
    for key in keys:
        count = int.from_bytes(file.read(8), "little")
        data = file.read(count * dtypes[key].itemsize)
        storages[key] = np.frombuffer(data, dtypes[key], count)
    arrays: _Arrays = {}
    for name, (storage, offset, shape, strides) in tensors.items():
        flat = storages[storage.key][offset:]
        steps = tuple(step * flat.itemsize for step in strides)
        view = np.lib.stride_tricks.as_strided(flat, shape, steps, writeable=False)
        arrays[name] = np.ascontiguousarray(view)
    return arrays


class _Builder:
    """Collects nodes and weights; each method returns the name of its output."""

    def __init__(self, arrays: _Arrays) -> None:
        import onnx

        self._onnx = onnx
        self._arrays = arrays
        self._side = _SIDE
        self.nodes: list[Any] = []
        self.weights: _Arrays = {"low": np.float32(0.0), "high": np.float32(6.0)}  # type: ignore[dict-item]

    def add(self, op: str, inputs: list[str], **attributes: Any) -> str:  # noqa: ANN401
        name = f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(self._onnx.helper.make_node(op, inputs, [name], name, **attributes))
        return name

    def conv(
        self, x: str, conv: str, norm: str, *, stride: int = 1, group: int = 1, clip: bool = True
    ) -> str:
        """Convolution with the folded normalisation; pads are those of "same" at this size."""
        weight = self._arrays[f"{conv}.weight"]
        scale = self._arrays[f"{norm}.weight"] / np.sqrt(
            self._arrays[f"{norm}.running_var"] + np.float32(_EPSILON)
        )
        self.weights[f"{conv}.weight"] = weight * scale[:, None, None, None]
        self.weights[f"{conv}.bias"] = (
            self._arrays[f"{norm}.bias"] - self._arrays[f"{norm}.running_mean"] * scale
        )
        kernel = int(weight.shape[2])
        out = -(-self._side // stride)
        pad = max((out - 1) * stride + kernel - self._side, 0)
        self._side = out
        y = self.add(
            "Conv",
            [x, f"{conv}.weight", f"{conv}.bias"],
            kernel_shape=[kernel, kernel],
            strides=[stride, stride],
            pads=[pad // 2, pad // 2, pad - pad // 2, pad - pad // 2],
            group=group,
        )
        return self.add("Clip", [y, "low", "high"]) if clip else y

    def block(self, x: str, prefix: str, *, stride: int, expansion: int, channels: int) -> str:
        """Inverted residual block with `channels` input channels."""
        wide = channels * expansion
        y = x
        if expansion != 1:
            y = self.conv(y, f"{prefix}._expand_conv", f"{prefix}._bn0")
        y = self.conv(y, f"{prefix}._depthwise_conv", f"{prefix}._bn1", stride=stride, group=wide)
        return self.conv(y, f"{prefix}._project_conv", f"{prefix}._bn2", clip=False)


def convert(source: Path) -> bytes:
    """Return the serialised ONNX model (opset 18, input `x` ?x3x224x224, output `logits` ?x1000).

    Args:
        source: The checkpoint efficientnet-lite0-57934424.pth.

    Raises:
        pickle.UnpicklingError: The file is no such checkpoint.

    Source:
        M. Tan, Q. Le, EfficientNet, arXiv:1905.11946, table 1; the lite variant has no
        squeeze-and-excitation, uses ReLU6 and leaves stem and head unscaled.
    """
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    with source.open("rb") as file:
        arrays = _read(file)
    build = _Builder(arrays)
    x = build.conv("x", "_conv_stem", "_bn0", stride=2)
    channels, index = 32, 0
    for repeats, _kernel, first_stride, expansion, out in _STAGES:
        for repeat in range(repeats):
            stride = first_stride if repeat == 0 else 1
            y = build.block(
                x, f"_blocks.{index}", stride=stride, expansion=expansion, channels=channels
            )
            x = build.add("Add", [y, x]) if stride == 1 and channels == out else y
            channels, index = out, index + 1
    x = build.conv(x, "_conv_head", "_bn1")
    build.weights["axes"] = np.array([2, 3], np.int64)
    build.weights["flat"] = np.array([-1, 1280], np.int64)
    x = build.add("ReduceMean", [x, "axes"], keepdims=1)
    x = build.add("Reshape", [x, "flat"])
    build.weights |= {name: arrays[name] for name in ("_fc.weight", "_fc.bias")}
    build.nodes.append(
        helper.make_node("Gemm", [x, "_fc.weight", "_fc.bias"], ["logits"], "gemm", transB=1)
    )
    graph = helper.make_graph(
        build.nodes,
        "efficientnet_lite0",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3, _SIDE, _SIDE])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 1000])],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in build.weights.items()],
    )
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", _OPSET)],
        ir_version=_IR_VERSION,
        producer_name="chipdock",
    )
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString(deterministic=True))

# SPDX-License-Identifier: Apache-2.0
"""What the tests of operators that move elements share: comparison bit for bit, and inputs."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

import chipdock

WIDTHS = [np.uint8, np.float16, np.float32, np.int64, np.complex128]
DTYPES = [
    np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64,
    np.float16, np.float32, np.float64, np.complex64, np.complex128, ml_dtypes.bfloat16,
]  # fmt: skip


def reference(op: str, *inputs: Any, opset: int = 21, outputs: int = 1, **attributes: Any) -> list:
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    node = helper.make_node(op, names, [f"y{i}" for i in range(outputs)], **attributes)
    feeds = {n: x for n, x in zip(names, inputs, strict=True) if n}

    def info(name: str, x: np.ndarray | None) -> onnx.ValueInfoProto:
        elem = 1 if x is None else helper.np_dtype_to_tensor_dtype(x.dtype)
        return helper.make_tensor_value_info(name, elem, None if x is None else x.shape)

    graph = helper.make_graph(
        [node], "g", [info(n, x) for n, x in feeds.items()],
        [info(n, None) for n in node.output],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    return ReferenceEvaluator(model).run(None, feeds)


def check(op: str, *inputs: Any, opset: int = 21, outputs: int = 1, **attributes: Any) -> None:
    expected = reference(op, *inputs, opset=opset, outputs=outputs, **attributes)
    got = chipdock.run_op(op, *inputs, opset=opset, outputs=outputs, **attributes)
    for have, raw in zip((got,) if outputs == 1 else got, expected, strict=True):
        array, want = have.numpy(), np.asarray(raw)
        where = f"{op}-{opset} {attributes}"
        assert array.dtype == want.dtype, where
        assert array.shape == want.shape, where
        assert array.tobytes() == np.ascontiguousarray(want).tobytes(), where


def data(shape: tuple[int, ...], dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    values = np.random.default_rng(seed).integers(0, 120, size=shape)
    return values.astype(dtype)


def ints(*values: int, dtype: Any = np.int64) -> np.ndarray:
    return np.array(values, dtype=dtype)


def refuses(match: str, op: str, *inputs: Any, **attributes: Any) -> None:
    with pytest.raises(chipdock.ChipdockError, match=match) as caught:
        chipdock.run_op(op, *inputs, **attributes)
    assert str(caught.value).startswith("INVALID_ARGUMENT")

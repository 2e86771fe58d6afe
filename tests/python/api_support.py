# SPDX-License-Identifier: Apache-2.0
"""What the tests of the Python API share: small models, the reference, fakes, child processes."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

import chipdock

FLOAT, INT64, BOOL = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.BOOL
Shape = Sequence[int | str | None] | None

# Those that numpy has itself.
PLAIN_DTYPES = [
    np.bool_,
    np.int8,
    np.int16,
    np.int32,
    np.int64,
    np.uint8,
    np.uint16,
    np.uint32,
    np.uint64,
    np.float16,
    np.float32,
    np.float64,
    np.complex64,
    np.complex128,
]

# Taken out of the environment of child processes: what the developer or a CI job has set.
_OURS = "CHIPDOCK_"


def value(name: str, dtype: int = FLOAT, shape: Shape = None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    constants: Mapping[str, np.ndarray] | None = None,
    opset: int = 21,
    **more: Any,
) -> onnx.ModelProto:
    weights = [onnx.numpy_helper.from_array(a, n) for n, a in (constants or {}).items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    opsets = more.pop("opsets", [helper.make_opsetid("", opset)])
    return helper.make_model(graph, opset_imports=opsets, ir_version=10, **more)


def mlp(seed: int = 0, width: int = 8) -> onnx.ModelProto:
    """y = Softmax(Relu(x W1 + b1) W2); x [N, width]."""
    rng = np.random.default_rng(seed)
    node = helper.make_node
    return model(
        [
            node("MatMul", ["x", "w1"], ["a"]),
            node("Add", ["a", "b1"], ["b"]),
            node("Relu", ["b"], ["c"]),
            node("MatMul", ["c", "w2"], ["d"]),
            node("Softmax", ["d"], ["y"], axis=-1),
        ],
        [value("x", shape=["N", width])],
        [value("y", shape=["N", 4])],
        {
            "w1": rng.standard_normal((width, 16), np.float32),
            "b1": rng.standard_normal(16, np.float32),
            "w2": rng.standard_normal((16, 4), np.float32),
        },
    )


def chain(length: int, op: str = "Neg", shape: Shape = ("N",)) -> onnx.ModelProto:
    """`length` unary operators one after another, from x to y."""
    names = ["x", *(f"t{i}" for i in range(length - 1)), "y"]
    nodes = [helper.make_node(op, [a], [b]) for a, b in itertools.pairwise(names)]
    return model(nodes, [value("x", shape=shape)], [value("y", shape=shape)])


def reference(proto: onnx.ModelProto, feeds: Mapping[str, Any]) -> dict[str, np.ndarray]:
    results = ReferenceEvaluator(proto).run(None, dict(feeds))
    return {o.name: np.asarray(r) for o, r in zip(proto.graph.output, results, strict=True)}


def same(
    got: Mapping[str, chipdock.Array], want: Mapping[str, np.ndarray], tolerance: float = 1e-5
) -> None:
    """Names, order, dtypes, shapes and values are those wanted."""
    assert list(got) == list(want)
    for name, expected in want.items():
        array = got[name].numpy()
        assert array.dtype == expected.dtype, name
        assert array.shape == expected.shape, name
        if expected.dtype.kind in "biu":
            np.testing.assert_array_equal(array, expected, err_msg=name)
        else:
            np.testing.assert_allclose(
                array.astype(np.float64),
                expected.astype(np.float64),
                rtol=tolerance,
                atol=tolerance,
                err_msg=name,
            )


def agrees(
    proto: onnx.ModelProto, feeds: Mapping[str, Any], device: Any = "cpu:0", **load: Any
) -> chipdock.Model:
    """Load, run, and compare with onnx's reference. Returns the loaded model."""
    loaded = chipdock.load(proto, device, **load)
    same(loaded.run(feeds), reference(proto, feeds))
    return loaded


def fake(name: str) -> str:
    """Path of a pretended plugin of tests/fakes."""
    folder = os.environ.get("CHIPDOCK_TEST_LIBDIR")
    if not folder:
        pytest.fail(
            "CHIPDOCK_TEST_LIBDIR must name the folder with the built fakes (./dev sets it)"
        )
    path = Path(folder) / f"lib{name}.so"
    if not path.is_file():
        pytest.fail(f"{path} is not there; build the fakes")
    return str(path)


def open_fake(name: str, layers: str = "none") -> chipdock.Device:
    """Device 0 of a fresh instance of a fake."""
    return chipdock.Device.open(chipdock.open_plugin(fake(name), layers=layers), 0)


def cpu_path() -> str:
    """The library of the embedded plugin."""
    return next(r.manifest for r in chipdock.plugins() if r.id == "chipdock.cpu").path.as_posix()


def open_cpu(layers: str = "none", **options: str) -> chipdock.Device:
    """Device 0 of a fresh instance of the cpu plugin; `options` are the plugin's."""
    return chipdock.Device.open(chipdock.open_plugin(cpu_path(), layers=layers, **options), 0)


def python(code: str, timeout: float = 60, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh interpreter without the caller's CHIPDOCK_ settings."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(_OURS)}
    here = os.pathsep.join(filter(None, [str(Path(__file__).parent), clean.get("PYTHONPATH", "")]))
    libdir = os.environ.get("CHIPDOCK_TEST_LIBDIR", "")
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**clean, "PYTHONPATH": here, "CHIPDOCK_TEST_LIBDIR": libdir, **environment},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def python_json(code: str, timeout: float = 60, **environment: str) -> Any:
    """What `code` printed as JSON on its last line; fails the test if the child failed."""
    done = python(code, timeout, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def negated(values: list[float]) -> list[float]:
    """For workers of another process."""
    return chipdock.run_op("Neg", np.float32(values)).numpy().tolist()

# SPDX-License-Identifier: Apache-2.0
"""The peers, with as many threads as chipdock has; None where one is not installed."""

from collections.abc import Callable, Mapping
from importlib import util
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

# Inputs by name to outputs in the model's order.
Runner = Callable[[Mapping[str, "np.ndarray"]], "list[np.ndarray]"]


def torch(threads: int) -> ModuleType | None:
    """Return torch without gradients and with `threads` threads."""
    if util.find_spec("torch") is None:
        return None
    import torch as module

    module.set_num_threads(threads)
    module.set_grad_enabled(False)
    return module


def session(model: "bytes | Path", threads: int, *, optimised: bool = True) -> Any | None:
    """Return an onnxruntime session on the CPU.

    Args:
        model: ONNX file or its bytes.
        threads: Threads inside an operator; operators run one after the other.
        optimised: False runs the graph node by node as it stands.
    """
    if util.find_spec("onnxruntime") is None:
        return None
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    if not optimised:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    source = model if isinstance(model, bytes) else str(model)
    return ort.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def openvino_model(path: Path, threads: int, requests: int = 1, precision: str = "f32") -> Any:
    """Return a model that OpenVINO compiled for the CPU, in `precision` whatever the CPU prefers.

    Args:
        path: ONNX file.
        threads: Threads in all.
        requests: How many are to run at once.
        precision: "f32" or "bf16".
    """
    import openvino as ov

    core = ov.Core()
    config = {
        "INFERENCE_PRECISION_HINT": precision,
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": requests,
        "PERFORMANCE_HINT": "LATENCY",
    }
    return core.compile_model(core.read_model(path), "CPU", config)


RUNTIMES = ("chipdock", "onnxruntime", "openvino")


def present(runtime: str) -> bool:
    """Whether a runtime is installed."""
    return util.find_spec(runtime) is not None


def warm_imports(runtime: str) -> None:
    """Import what a load of the runtime imports, so that it is not charged to the load."""
    import onnx  # noqa: F401

    __import__(runtime)


def runner(runtime: str, path: Path, threads: int) -> Runner:
    """Return what `runners` does for one thread."""
    return runners(runtime, path, threads, 1)[0]


def runners(runtime: str, path: Path, threads: int, count: int) -> list[Runner]:
    """Load a file in one of RUNTIMES, which is installed; for `count` threads that run it at once.

    All take numpy arrays where they lie, and give numpy arrays that the caller may keep.

    Raises:
        Exception: What the runtime throws over a model that it cannot load.
    """
    if runtime == "chipdock":
        import chipdock

        model = chipdock.load(path, threads=threads)
        return [lambda feeds: [array.numpy() for array in model.run(feeds).values()]] * count
    if runtime == "onnxruntime":
        ort = session(path, threads)
        assert ort is not None
        return [lambda feeds: ort.run(None, feeds)] * count
    compiled = openvino_model(path, threads, count)
    return [_openvino_runner(compiled.create_infer_request()) for _ in range(count)]


def _openvino_runner(request: Any) -> Runner:
    return lambda feeds: list(request.infer(feeds, share_inputs=True).values())


def openvino_request(path: Path, threads: int, precision: str) -> Runner:
    """Return what `runner` does for OpenVINO, computing in `precision`."""
    return _openvino_runner(
        openvino_model(path, threads, precision=precision).create_infer_request()
    )


def rms_norm_session(side: int, epsilon: float, threads: int) -> Any | None:
    """Return a session of one RMSNormalization with the inputs x and scale."""
    from onnx import TensorProto, helper

    node = helper.make_node("RMSNormalization", ["x", "scale"], ["y"], epsilon=epsilon)
    shapes = {"x": [side, side], "scale": [side]}
    inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in shapes.items()]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [side, side])
    model = helper.make_model(
        helper.make_graph([node], "rms_norm", inputs, [output]),
        opset_imports=[helper.make_opsetid("", 23)],
        ir_version=10,
    )
    return session(model.SerializeToString(), threads)

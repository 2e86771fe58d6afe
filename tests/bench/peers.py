# SPDX-License-Identifier: Apache-2.0
"""The peers, with as many threads as chipdock has; None where one is not installed."""

from importlib import util
from pathlib import Path
from types import ModuleType
from typing import Any


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

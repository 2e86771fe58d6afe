# SPDX-License-Identifier: Apache-2.0
"""Models older than opset 7, brought up to it: broadcasting was an attribute before.

The work is that of onnx's version converter; what it leaves out is added here.
"""

import onnx
import onnx.shape_inference
import onnx.version_converter

from chipdock.errors import UnsupportedError

__all__ = ["upgraded"]

_OLDEST = 7


def upgraded(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model itself, or an equal one of opset 7.

    Raises:
        UnsupportedError: onnx cannot convert it.
    """
    version = next((o.version for o in model.opset_import if o.domain in {"", "ai.onnx"}), _OLDEST)
    if version >= _OLDEST:
        return model
    try:
        converted = onnx.version_converter.convert_version(model, _OLDEST)
    except Exception as error:  # whatever its C++ side throws
        raise UnsupportedError(
            f"UNSUPPORTED: the model has opset {version}; {_OLDEST} and newer are run as they are, "
            f"and onnx cannot convert it: {error}"
        ) from error
    _spread_slopes(converted)
    return converted


def _spread_slopes(model: onnx.ModelProto) -> None:
    """Slopes of PRelu were one per channel, they broadcast from the last axis since opset 7."""
    slopes = {n.input[1]: n.input[0] for n in model.graph.node if n.op_type == "PRelu"}
    if not slopes:
        return
    graph = onnx.shape_inference.infer_shapes(model).graph
    ranks = {v.name: len(v.type.tensor_type.shape.dim) for v in (*graph.value_info, *graph.input)}
    for tensor in model.graph.initializer:
        rank = ranks.get(slopes.get(tensor.name, ""), 0)
        if len(tensor.dims) == 1 and rank > 2:  # more than batch and channel
            tensor.dims.extend([1] * (rank - 2))
    for value in model.graph.input:
        if value.name in slopes and len(value.type.tensor_type.shape.dim) == 1:
            value.type.tensor_type.ClearField("shape")  # said before the weight was reshaped

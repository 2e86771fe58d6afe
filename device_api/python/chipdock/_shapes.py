# SPDX-License-Identifier: Apache-2.0
"""onnx's shape inference, fed with a model but for its weights: it serialises all it is given."""

import onnx
import onnx.shape_inference

__all__ = ["inferred", "without_weights"]

# Inference looks into constants only for shapes, axes and the like, which are small.
_INFERENCE_BYTES = 1024


def without_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """Copy a model; large initializers keep name, dtype and extents alone."""
    light = onnx.ModelProto(ir_version=model.ir_version)
    light.opset_import.extend(model.opset_import)
    graph = model.graph
    light.graph.name = graph.name
    for field_name in ("node", "input", "output", "value_info"):
        getattr(light.graph, field_name).extend(getattr(graph, field_name))
    for tensor in graph.initializer:
        inside = tensor.data_location != onnx.TensorProto.EXTERNAL
        if inside and tensor.ByteSize() <= _INFERENCE_BYTES:
            light.graph.initializer.append(tensor)
        else:
            light.graph.initializer.add(
                name=tensor.name, data_type=tensor.data_type, dims=tensor.dims
            )
    return light


def inferred(light: onnx.ModelProto) -> onnx.GraphProto | None:
    """The graph of a model without weights with what onnx infers; None if onnx fails over it."""
    try:
        found = onnx.shape_inference.infer_shapes(light, strict_mode=False, data_prop=True)
    except Exception:  # advice only: any failure of the inference leaves shapes unknown
        return None
    return found.graph

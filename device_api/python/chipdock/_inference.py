# SPDX-License-Identifier: Apache-2.0
"""What onnx itself can say of a model: local functions inlined, shapes inferred.

Advice only: what onnx cannot infer, or fails over, stays unknown.
"""

import onnx
import onnx.inliner
import onnx.shape_inference

from chipdock._legacy import upgraded
from chipdock._onnx_file import ModelFile

__all__ = ["prepared"]

# Inference looks into constants only for shapes, axes and the like, which are small.
_INFERENCE_BYTES = 1024


def _without_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """Copy a model but for its weights: onnx's inference serialises all it is given."""
    light = onnx.ModelProto(ir_version=model.ir_version)
    light.opset_import.extend(model.opset_import)
    graph = model.graph
    light.graph.name = graph.name
    for field_name in ("node", "input", "output", "value_info"):
        getattr(light.graph, field_name).extend(getattr(graph, field_name))
    for tensor in graph.initializer:
        if tensor.ByteSize() <= _INFERENCE_BYTES:
            light.graph.initializer.append(tensor)
        else:
            light.graph.initializer.add(
                name=tensor.name, data_type=tensor.data_type, dims=tensor.dims
            )
    return light


def _with_defaults(model: onnx.ModelProto) -> onnx.ModelProto:
    """Give calls of local functions the defaults of attributes they leave out.

    onnx's inliner forgets them (1.23).
    """
    defaults = {
        (f.domain, f.name, f.overload): f.attribute_proto
        for f in model.functions
        if f.attribute_proto
    }
    if not defaults:
        return model
    filled = onnx.ModelProto()
    filled.CopyFrom(model)
    waiting = [filled.graph.node, *(f.node for f in filled.functions)]
    while waiting:
        for node in waiting.pop():
            waiting += [a.g.node for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]
            given = {a.name for a in node.attribute}
            for default in defaults.get((node.domain, node.op_type, node.overload), ()):
                if default.name not in given:
                    node.attribute.append(default)
    return filled


def prepared(file: ModelFile) -> tuple[onnx.ModelProto, onnx.GraphProto]:
    """Inline local functions, and infer shapes and dtypes where onnx can.

    Returns:
        The model with its weights, and its graph with what was inferred, without them.
    """
    model = upgraded(file.proto)
    if model.functions:
        model = onnx.inliner.inline_local_functions(_with_defaults(model))
    try:
        light = _without_weights(model)
        return model, onnx.shape_inference.infer_shapes(
            light, strict_mode=False, data_prop=True
        ).graph
    except Exception:  # advice only: any failure of the inference leaves shapes unknown
        return model, model.graph

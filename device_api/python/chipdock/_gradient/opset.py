# SPDX-License-Identifier: Apache-2.0
"""Models with Gradient nodes brought to an opset that the rules can write for.

A backward pass adds into what it scatters and finds axes when it runs, which older opsets cannot
say. The work is that of onnx's version converter.
"""

import onnx
import onnx.version_converter

from chipdock._shapes import without_weights
from chipdock.errors import UnsupportedError

__all__ = ["own_opset", "raised"]

_OLDEST = 18


def own_opset(model: onnx.ModelProto) -> int:
    """Version of ONNX's own domain; the oldest that is run if the model names none."""
    return next((o.version for o in model.opset_import if o.domain in {"", "ai.onnx"}), _OLDEST)


def raised(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy of a model, of opset 18 at least.

    Raises:
        UnsupportedError: onnx cannot convert it.
    """
    if own_opset(model) >= _OLDEST:
        out = onnx.ModelProto()
        out.CopyFrom(model)
        return out
    try:
        if model.graph.sparse_initializer:
            raise ValueError("it has sparse initializers")
        out = onnx.version_converter.convert_version(without_weights(model), _OLDEST)
    except Exception as error:  # whatever its C++ side throws
        why = " ".join(str(error).split()).rstrip(".")
        raise UnsupportedError(
            f"UNSUPPORTED: a model with Gradient nodes is run in opset {_OLDEST} or newer, this "
            f"one has {own_opset(model)} and onnx cannot convert it: {why}; export it anew"
        ) from error
    weights = {t.name: t for t in model.graph.initializer}
    for tensor in out.graph.initializer:
        if tensor.name in weights:
            tensor.CopyFrom(weights[tensor.name])
    return out

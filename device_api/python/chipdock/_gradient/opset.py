# SPDX-License-Identifier: Apache-2.0
"""Models with Gradient nodes brought to an opset that the rules can write for.

A backward pass adds into what it scatters and finds axes when it runs, which older opsets cannot
say. The work is that of onnx's version converter.
"""

import onnx
import onnx.version_converter

from chipdock._bodies import has_body
from chipdock._shapes import without_weights
from chipdock.errors import UnsupportedError

__all__ = ["TRAINING", "raised"]

TRAINING = "ai.onnx.preview.training"

_OLDEST = 18
_BODIES = 21  # what chipdock's own bodies of other domains' operators are written in


def _own_opset(model: onnx.ModelProto) -> int:
    """Version of ONNX's own domain; the oldest that is run if the model names none."""
    return next((o.version for o in model.opset_import if o.domain in {"", "ai.onnx"}), _OLDEST)


def _wanted(model: onnx.ModelProto) -> int:
    others = (n for n in model.graph.node if n.domain not in {"", "ai.onnx", TRAINING})
    return _BODIES if any(has_body(n.op_type, n.domain) for n in others) else _OLDEST


def raised(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy of a model, of opset 18 at least; 21 where bodies may have to be put into it.

    Raises:
        UnsupportedError: onnx cannot convert it.
    """
    wanted = _wanted(model)
    if _own_opset(model) >= wanted:
        out = onnx.ModelProto()
        out.CopyFrom(model)
        return out
    try:
        if model.graph.sparse_initializer:
            raise ValueError("it has sparse initializers")
        out = onnx.version_converter.convert_version(without_weights(model), wanted)
    except Exception as error:  # whatever its C++ side throws
        why = " ".join(str(error).split()).rstrip(".")
        raise UnsupportedError(
            f"UNSUPPORTED: a model with Gradient nodes is run in opset {wanted} or newer, this "
            f"one has {_own_opset(model)} and onnx cannot convert it: {why}; export it anew"
        ) from error
    weights = {t.name: t for t in model.graph.initializer}
    for tensor in out.graph.initializer:
        if tensor.name in weights:
            tensor.CopyFrom(weights[tensor.name])
    return out

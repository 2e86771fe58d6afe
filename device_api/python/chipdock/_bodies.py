# SPDX-License-Identifier: Apache-2.0
"""Bodies of chipdock's own: for operators that ONNX defines by words alone, or by steps that fail.

A device without a kernel for one of them runs its body. Source: the operators' texts in ONNX.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from chipdock._onnx_graph import label
from chipdock.errors import UnsupportedError

__all__ = ["has_body", "own_body"]

_OPSET = 21


class _Builder:
    """Collects the nodes of a body; values are names, numbers become constants."""

    def __init__(self, node: onnx.NodeProto, types: Sequence[onnx.TypeProto | None]) -> None:
        self.node = node
        self.types = types
        self.nodes: list[onnx.NodeProto] = []
        self._numbers = itertools.count()
        self.inputs = [f"i{k}" for k in range(len(node.input))]

    def __call__(self, op: str, *inputs: str, **attributes: Any) -> str:  # noqa: ANN401  as make_node
        return self.many(1, op, *inputs, **attributes)[0]

    def many(self, outputs: int, op: str, *inputs: str, **attributes: Any) -> list[str]:  # noqa: ANN401  as make_node
        """Add a node with several outputs."""
        names = [f"v{next(self._numbers)}" for _ in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, **attributes))
        return names

    def constant(self, values: object, dtype: type = np.int64) -> str:
        array: np.ndarray = np.asarray(values, dtype)
        return self("Constant", value=onnx.numpy_helper.from_array(array))

    def cast(self, value: str, to: int) -> str:
        return self("Cast", value, to=to)

    def given(self, index: int) -> str | None:
        """Name of an input, None if it is not given."""
        there = index < len(self.node.input) and self.node.input[index]
        return self.inputs[index] if there else None

    def rank(self, index: int) -> int | None:
        """Rank of an input, None if it is unknown."""
        proto = self.types[index] if index < len(self.types) else None
        if proto is None or not proto.tensor_type.HasField("shape"):
            return None
        return len(proto.tensor_type.shape.dim)

    def transposed(self, index: int) -> str:
        """Input `index` with its last two axes exchanged."""
        rank = self.rank(index)
        if rank is None:
            raise UnsupportedError(
                f"UNSUPPORTED: {self.node.op_type} {label(self.node)} transposes "
                f"{self.node.input[index]!r}, whose rank is not known"
            )
        return self("Transpose", self.inputs[index], perm=[*range(rank - 2), rank - 1, rank - 2])

    def number(self, name: str, otherwise: float) -> float:
        return next((a.f for a in self.node.attribute if a.name == name), otherwise)

    def like(self, value: float, other: str) -> str:
        """A number in the dtype of a value."""
        return self("CastLike", self.constant(value, np.float64), other)

    def centred(self, index: int, zero: int, to: int, axis: int | None = None) -> str:
        """Input `index` without its zero point, whose entries lie along `axis` if there are many.

        Axes count from the last if negative; None: they lie along the last.
        """
        value = self.cast(self.inputs[index], to)
        point = self.given(zero)
        if point is None:
            return value
        return self("Sub", value, self.along(self.cast(point, to), zero, index, axis))

    def along(self, value: str, its: int, index: int, axis: int | None) -> str:
        """A vector brought to an axis of input `index`; what is known to be none stays."""
        rank = self.rank(index)
        if axis is None or self.rank(its) not in {1, None if axis >= 0 else 1}:
            return value
        if axis >= 0 and rank is None:
            behind = self("Sub", self("Shape", self("Shape", self.inputs[index])),
                          self.constant([1 + axis]))  # fmt: skip
            one = onnx.numpy_helper.from_array(np.ones(1, np.int64))
            ones = self("ConstantOfShape", behind, value=one)
            return self("Reshape", value, self("Concat", self.constant([-1]), ones, axis=0))
        count = rank - 1 - axis if rank is not None and axis >= 0 else -1 - axis
        return self("Reshape", value, self.constant([-1] + [1] * count)) if count else value


def _attributes(b: _Builder) -> dict[str, Any]:
    return {a.name: helper.get_attribute_value(a) for a in b.node.attribute}


def _matmul_integer(b: _Builder) -> list[str]:
    left = b.centred(0, 2, TensorProto.INT32, -2)
    return [b("MatMul", left, b.centred(1, 3, TensorProto.INT32))]


def _conv_integer(b: _Builder) -> list[str]:
    # Sums of products of bytes are exact in float64.
    image = b.centred(0, 2, TensorProto.DOUBLE)
    weight = b.centred(1, 3, TensorProto.DOUBLE, 0)
    return [b.cast(b("Conv", image, weight, **_attributes(b)), TensorProto.INT32)]


def _qlinear_matmul(b: _Builder) -> list[str]:
    elem = b.types[0].tensor_type.elem_type if b.types[0] is not None else 0
    whole = elem in {TensorProto.INT8, TensorProto.UINT8}
    to = TensorProto.INT32 if whole else TensorProto.FLOAT
    product = b("MatMul", b.centred(0, 2, to, -2), b.centred(3, 5, to))
    left = b.along(b.cast(b.inputs[1], TensorProto.FLOAT), 1, 0, -2)
    right = b.cast(b.inputs[4], TensorProto.FLOAT)
    value = b("Mul", b("Mul", b.cast(product, TensorProto.FLOAT), left), right)
    scale = b.cast(b.inputs[6], TensorProto.FLOAT)
    return [b("QuantizeLinear", value, scale, b.inputs[7], axis=-2)]


def _qlinear_conv(b: _Builder) -> list[str]:
    image = b.centred(0, 2, TensorProto.DOUBLE)
    weight = b.centred(3, 5, TensorProto.DOUBLE, 0)
    value = b("Conv", image, weight, **_attributes(b))
    bias = b.given(8)
    if bias is not None:
        value = b("Add", value, b.along(b.cast(bias, TensorProto.DOUBLE), 8, 0, 1))
    scale = b("Mul", b.cast(b.inputs[1], TensorProto.DOUBLE),
              b.along(b.cast(b.inputs[4], TensorProto.DOUBLE), 4, 0, 1))  # fmt: skip
    value = b.cast(b("Mul", value, scale), TensorProto.FLOAT)
    return [b("QuantizeLinear", value, b.inputs[6], b.inputs[7])]


def _groups(b: _Builder, count: int) -> list[tuple[str, ...]]:
    """Inputs behind rate and step, which come in `count` equal groups, as one tuple per tensor."""
    rest = b.inputs[2:]
    size = len(rest) // count
    return list(zip(*(rest[k * size : (k + 1) * size] for k in range(count)), strict=True))


def _regular(b: _Builder, x: str, gradient: str) -> str:
    return b("Add", b("Mul", b.like(b.number("norm_coefficient", 0.0), x), x), gradient)


def _adagrad(b: _Builder) -> list[str]:
    rate, step = b.inputs[:2]
    decay = b("Mul", b("CastLike", step, rate), b.like(b.number("decay_factor", 0.0), rate))
    rate = b("Div", rate, b("Add", b.like(1.0, rate), decay))
    new, sums = [], []
    for x, gradient, total in _groups(b, 3):
        regular = _regular(b, x, gradient)
        sums.append(b("Add", total, b("Mul", regular, regular)))
        least = b.like(b.number("epsilon", 1e-6), x)
        scaled = b("Div", b("Mul", rate, regular), b("Add", b("Sqrt", sums[-1]), least))
        new.append(b("Sub", x, scaled))
    return new + sums


def _adam(b: _Builder) -> list[str]:
    rate, step = b.inputs[:2]
    alpha, beta = b.number("alpha", 0.9), b.number("beta", 0.999)
    time = b("CastLike", step, rate)
    one = b.like(1.0, rate)
    grown = b("Div", b("Sqrt", b("Sub", one, b("Pow", b.like(beta, rate), time))),
              b("Sub", one, b("Pow", b.like(alpha, rate), time)))  # fmt: skip
    rate = b("Where", b("Greater", step, b.constant(0)), b("Mul", rate, grown), rate)
    new, firsts, seconds = [], [], []
    for x, gradient, first, second in _groups(b, 4):
        regular = _regular(b, x, gradient)
        firsts.append(_blend(b, alpha, first, regular))
        seconds.append(_blend(b, beta, second, b("Mul", regular, regular)))
        least = b.like(b.number("epsilon", 1e-6), x)
        scaled = b("Div", b("Mul", rate, firsts[-1]), b("Add", b("Sqrt", seconds[-1]), least))
        kept = b.like(1.0 - b.number("norm_coefficient_post", 0.0), x)
        new.append(b("Mul", kept, b("Sub", x, scaled)))
    return new + firsts + seconds


def _blend(b: _Builder, part: float, old: str, new: str) -> str:
    return b("Add", b("Mul", b.like(part, old), old), b("Mul", b.like(1.0 - part, new), new))


def _momentum(b: _Builder) -> list[str]:
    rate, step = b.inputs[:2]
    texts = {a.name: a.s for a in b.node.attribute}
    new, speeds = [], []
    for x, gradient, speed in _groups(b, 3):
        regular = _regular(b, x, gradient)
        later = b("Greater", step, b.constant(0))
        beta = b("Where", later, b.like(b.number("beta", 1.0), x), b.like(1.0, x))
        alpha = b.like(b.number("alpha", 0.9), x)
        speeds.append(b("Add", b("Mul", alpha, speed), b("Mul", beta, regular)))
        move = speeds[-1]
        if texts.get("mode") == b"nesterov":
            move = b("Add", regular, b("Mul", alpha, move))
        new.append(b("Sub", x, b("Mul", rate, move)))
    return new + speeds


def _mean_variance(b: _Builder) -> list[str]:
    # onnx's own body mixes float32 constants into the other dtypes.
    axes = next((list(a.ints) for a in b.node.attribute if a.name == "axes"), [0, 2, 3])
    elem = b.types[0].tensor_type.elem_type if b.types[0] is not None else 0
    wide = TensorProto.DOUBLE if elem == TensorProto.DOUBLE else TensorProto.FLOAT
    x, over = b.cast(b.inputs[0], wide), b.constant(axes)
    centred = b("Sub", x, b("ReduceMean", x, over))
    deviation = b("Sqrt", b("ReduceMean", b("Mul", centred, centred), over))
    value = b("Div", centred, b("Add", deviation, b.like(1e-9, x)))
    return [b("CastLike", value, b.inputs[0])]


def _array_feature_extractor(b: _Builder) -> list[str]:
    picked = b("Gather", b.inputs[0], b("Reshape", b.inputs[1], b.constant([-1])), axis=-1)
    return [b("Unsqueeze", picked, b.constant([0])) if b.rank(0) == 1 else picked]


def _binarizer(b: _Builder) -> list[str]:
    x = b.inputs[0]
    return [b("CastLike", b("Greater", x, b.like(b.number("threshold", 0.0), x)), x)]


def _fast_gelu(b: _Builder) -> list[str]:
    bias = b.given(1)
    x = b.inputs[0] if bias is None else b("Add", b.inputs[0], bias)
    return [b("Gelu", x, approximate="tanh")]


def _gelu(b: _Builder) -> list[str]:
    bias = b.given(1)  # of BiasGelu
    return [b("Gelu", b.inputs[0] if bias is None else b("Add", b.inputs[0], bias))]


def _fused_matmul(b: _Builder) -> list[str]:
    flags = {a.name: a.i for a in b.node.attribute}
    if flags.get("transBatchA") or flags.get("transBatchB"):
        raise UnsupportedError("UNSUPPORTED: FusedMatMul with transBatchA or transBatchB")
    factors = [
        b.transposed(index) if flags.get(name) else b.inputs[index]
        for index, name in enumerate(("transA", "transB"))
    ]
    product = b("MatMul", *factors)
    alpha = b.number("alpha", 1.0)
    return [product if alpha == 1 else b("Mul", product, b.like(alpha, product))]


def _skip_layer_norm(b: _Builder) -> list[str]:
    total = b("Add", b.inputs[0], b.inputs[1])
    bias = b.given(4)
    if bias is not None:
        total = b("Add", total, bias)
    scale = [b.inputs[2]] + ([b.inputs[3]] if b.given(3) else [])
    norm = {"axis": -1, "epsilon": b.number("epsilon", 1e-12)}
    return [*b.many(3, "LayerNormalization", total, *scale, **norm), total]


def _dynamic_quantize_lstm(b: _Builder) -> list[str]:
    # Activations stay floats: what onnxruntime rounds to bytes on the way is not rounded here.
    weights = []
    for index, scale, zero in ((1, 8, 9), (2, 10, 11)):
        value = b.cast(b.inputs[index], TensorProto.FLOAT)
        point = b.cast(b.inputs[zero], TensorProto.FLOAT)
        factor = b.inputs[scale]
        if b.rank(scale) == 1:  # one per direction, else one per column too
            last = b.constant([-1, 1, 1])
            point, factor = b("Reshape", point, last), b("Reshape", factor, last)
        else:
            point, factor = (b("Unsqueeze", v, b.constant([1])) for v in (point, factor))
        real = b("Mul", b("Sub", value, point), factor)
        weights.append(b("Transpose", real, perm=[0, 2, 1]))
    rest = [b.given(k) or "" for k in range(3, 8)]
    return b.many(3, "LSTM", b.inputs[0], *weights, *rest, **_attributes(b))


def _bernoulli(b: _Builder) -> list[str]:
    # The body in onnx draws 1 with the chance of 0. In float32, where no draw is rounded up to 1.
    given = _attributes(b)
    own = b.types[0].tensor_type.elem_type if b.types[0] is not None else TensorProto.FLOAT
    seed = {name: value for name, value in given.items() if name == "seed"}
    drawn = b("RandomUniformLike", b.inputs[0], dtype=TensorProto.FLOAT, **seed)
    chosen = b("Less", drawn, b.cast(b.inputs[0], TensorProto.FLOAT))
    return [b.cast(chosen, given.get("dtype", own))]


# Bodies in place of onnx's where these overflow, or lose digits by constants and casts of float32.


def _softplus(b: _Builder) -> list[str]:
    x = b.inputs[0]
    small = b("Exp", b("Neg", b("Abs", x)))
    return [b("Add", b("Max", x, b.like(0.0, x)), b("Log", b("Add", small, b.like(1.0, x))))]


def _whole_gelu(b: _Builder) -> list[str]:
    x = b.inputs[0]
    if _attributes(b).get("approximate", b"none") == b"none":
        inner = b("Erf", b("Mul", x, b.like(math.sqrt(0.5), x)))
    else:
        cube = b("Mul", b("Mul", b("Mul", x, x), x), b.like(0.044715, x))
        inner = b("Tanh", b("Mul", b("Add", x, cube), b.like(math.sqrt(2 / math.pi), x)))
    half = b("Mul", x, b.like(0.5, x))
    return [b("Mul", half, b("Add", inner, b.like(1.0, x)))]


def _reduced(b: _Builder) -> tuple[str, int, Callable[..., str]]:
    """The input in a type that holds its sums, its own type, and what reduces as the node says."""
    given = _attributes(b)
    own = b.types[0].tensor_type.elem_type if b.types[0] is not None else TensorProto.FLOAT
    halves = {TensorProto.FLOAT16, TensorProto.BFLOAT16}
    wide = TensorProto.FLOAT if own in {*halves, TensorProto.FLOAT} else TensorProto.DOUBLE
    axes = b.constant(given["axes"]) if "axes" in given else b.given(1)
    flags = {key: given[key] for key in ("keepdims", "noop_with_empty_axes") if key in given}

    def reduce(op: str, value: str, **more: int) -> str:
        return b(op, value, *([axes] if axes else []), **flags | more)

    return b.cast(b.inputs[0], wide), own, reduce


def _reduce_l2(b: _Builder) -> list[str]:
    x, own, reduce = _reduced(b)
    return [b.cast(b("Sqrt", reduce("ReduceSum", b("Mul", x, x))), own)]


def _reduce_log_sum_exp(b: _Builder) -> list[str]:
    x, own, reduce = _reduced(b)
    largest = reduce("ReduceMax", x, keepdims=1)
    shift = b("Where", b("IsInf", largest), b.like(0.0, x), largest)
    total = b("Log", reduce("ReduceSum", b("Exp", b("Sub", x, shift))))
    return [b.cast(b("Add", total, reduce("ReduceMax", shift)), own)]


_MICROSOFT = "com.microsoft"
_TRAINING = "ai.onnx.preview.training"
_BODIES: dict[tuple[str, str], Callable[[_Builder], list[str]]] = {
    ("", "Bernoulli"): _bernoulli,
    ("", "Gelu"): _whole_gelu,
    ("", "MatMulInteger"): _matmul_integer,
    ("", "MeanVarianceNormalization"): _mean_variance,
    ("", "ConvInteger"): _conv_integer,
    ("", "QLinearMatMul"): _qlinear_matmul,
    ("", "QLinearConv"): _qlinear_conv,
    ("", "ReduceL2"): _reduce_l2,
    ("", "ReduceLogSumExp"): _reduce_log_sum_exp,
    ("", "Softplus"): _softplus,
    (_TRAINING, "Adagrad"): _adagrad,
    (_TRAINING, "Adam"): _adam,
    (_TRAINING, "Momentum"): _momentum,
    ("ai.onnx.ml", "ArrayFeatureExtractor"): _array_feature_extractor,
    ("ai.onnx.ml", "Binarizer"): _binarizer,
    (_MICROSOFT, "FastGelu"): _fast_gelu,
    (_MICROSOFT, "Gelu"): _gelu,
    (_MICROSOFT, "BiasGelu"): _gelu,
    (_MICROSOFT, "FusedMatMul"): _fused_matmul,
    (_MICROSOFT, "SkipLayerNormalization"): _skip_layer_norm,
    (_MICROSOFT, "DynamicQuantizeLSTM"): _dynamic_quantize_lstm,
}


def has_body(op: str, domain: str) -> bool:
    """Whether there is a body here for an operator of a domain, "" for ONNX's own."""
    return (domain, op) in _BODIES


def own_body(
    node: onnx.NodeProto, domain: str, types: Sequence[onnx.TypeProto | None]
) -> onnx.FunctionProto | None:
    """Body of an operator, None if there is none here.

    Args:
        node: The node.
        domain: Its domain, "" for ONNX's own.
        types: Of its inputs, with shapes as far as they are known; None where one is not given.
    """
    make = _BODIES.get((domain, node.op_type))
    if make is None:
        return None
    builder = _Builder(node, types)
    outputs = make(builder)
    return helper.make_function(
        domain or "chipdock",
        node.op_type,
        builder.inputs,
        outputs,
        builder.nodes,
        [helper.make_opsetid("", _OPSET)],
    )

# SPDX-License-Identifier: Apache-2.0
"""Rules for what models write out between DequantizeLinear and QuantizeLinear.

What has bytes on both sides is computed on bytes. Scales and zero points must be constants; those
of activations are one for the whole tensor, those of weights may be one for each output channel.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from chipdock._fusion.graph import Node
from chipdock._fusion.rewrite import Given, Match, Rule

__all__ = ["RULES"]

_BYTES: dict[int, np.dtype] = {
    int(TensorProto.INT8): np.dtype(np.int8),
    int(TensorProto.UINT8): np.dtype(np.uint8),
}
_MOST = 1 << 20  # output channels


@dataclass(frozen=True)
class _Linear:
    """Scale and zero point of a QuantizeLinear or DequantizeLinear of bytes."""

    scale: np.ndarray
    zero: np.ndarray

    @property
    def single(self) -> bool:
        return self.scale.size == 1

    def one(self) -> "_Linear":
        return _Linear(self.scale.reshape(()), self.zero.reshape(()))


def _linear(match: Match, name: str, dtype: np.dtype | None) -> _Linear | None:
    """Of the node `name`; `dtype` is that of the bytes if there is no zero point."""
    node = match.node(name)
    given = node.proto.input[1:]
    scale = match.graph.array(given[0], _MOST)
    if scale is None or scale.dtype != np.float32 or scale.ndim > 1 or node.attribute("block_size"):
        return None
    if len(given) > 1 and given[1]:
        zero = match.graph.array(given[1], _MOST)
        if zero is None or zero.shape != scale.shape:
            return None
    elif dtype is not None:
        zero = np.zeros(scale.shape, dtype)
    else:
        return None
    if zero.dtype not in _BYTES.values() or not (scale > 0).all() or not np.isfinite(scale).all():
        return None
    return _Linear(scale, zero)


def _read(match: Match, node: str, value: str) -> _Linear | None:
    return _linear(match, node, _BYTES.get(match.dtype(value)))


def _written(match: Match) -> _Linear | None:
    """Of the QuantizeLinear at the end; bytes of one scale."""
    number = match.node("quantize").attribute("output_dtype")
    assert number is None or isinstance(number, int)
    linear = _linear(match, "quantize", _BYTES.get(number or TensorProto.UINT8))
    return linear.one() if linear is not None and linear.single else None


def _sides(match: Match, axis: int) -> Given | None:
    """Constants of image or left factor, weights and result; weights have channels along `axis`."""
    left, result = _read(match, "dx", "x"), _written(match)
    right, shape = _read(match, "dw", _weights(match)), match.shape(_weights(match))
    if left is None or right is None or result is None or shape is None or not left.single:
        return None
    if right.single:
        right = right.one()
    else:
        along = match.node("dw").attribute("axis")
        assert isinstance(along, int)
        if along % len(shape) != axis % len(shape):
            return None
    if not _absorbed(match, result):
        return None
    left = left.one()
    return {
        "xs": left.scale, "xz": left.zero, "ws": right.scale, "wz": right.zero,
        "ys": result.scale, "yz": result.zero,
    }  # fmt: skip


def _weights(match: Match) -> str:
    """Its name in the pattern: in capitals where they are turned at load."""
    return "W" if "W" in match.binding.values else "w"


def _absorbed(match: Match, result: _Linear) -> bool:
    """Whether an activation before the end does only what saturation does anyway."""
    node = match.binding.named.get("act")
    if node is None:
        return True
    info = np.iinfo(result.zero.dtype)
    low, high = (0.0, None) if node.proto.op_type == "Relu" else _limits(match, node)
    scale, zero = float(result.scale), int(result.zero)
    below = low is None or np.rint(low / scale) + zero <= info.min
    above = high is None or np.rint(high / scale) + zero >= info.max
    return bool(below and above)


def _limits(match: Match, node: Node) -> tuple[float | None, float | None]:
    bounds: list[float | None] = []
    for at, name in enumerate(("min", "max")):
        attribute = node.attribute(name)
        given = node.proto.input[at + 1] if len(node.proto.input) > at + 1 else ""
        if given:
            array = match.graph.array(given)
            unknown = (np.inf, -np.inf)[at]  # Never absorbed.
            bounds.append(float(array.reshape(-1)[0]) if array is not None else unknown)
        else:
            bounds.append(float(attribute) if isinstance(attribute, float) else None)
    return bounds[0], bounds[1]


def _with_bias(match: Match, given: Given | None, axis: int) -> Given | None:
    """Adds the bias, if there is one, as integers of the product's scale."""
    if given is None or "b" not in match.binding.values:
        return given
    shape, real = match.shape(_weights(match)), match.graph.array(match.binding.values["b"], _MOST)
    if shape is None or real is None or real.shape != (shape[axis],):
        return None
    scale = np.float64(given["xs"]) * np.asarray(given["ws"], np.float64)  # type: ignore[arg-type]
    if "db" in match.binding.named:
        node = match.node("db")
        own = match.graph.array(node.proto.input[1], _MOST)
        zero = node.proto.input[2] if len(node.proto.input) > 2 else ""
        point = match.graph.array(zero, _MOST) if zero else np.zeros(1)
        if own is None or point is None or point.any() or node.attribute("block_size"):
            return None
        real = real.astype(np.float64) * own.astype(np.float64)
    whole = np.rint(real / scale)
    if not (np.abs(whole) < 2**31).all():
        return None
    return {**given, "bias": whole.astype(np.int32)}


def _conv(match: Match) -> Given | None:
    return _with_bias(match, _sides(match, axis=0), axis=0)


def _product(match: Match) -> Given | None:
    return _with_bias(match, _sides(match, axis=-1), axis=-1)


def _gemm(match: Match) -> Given | None:
    gemm = match.node("gemm")
    if gemm.attribute("transA") or gemm.attribute("alpha") != 1 or gemm.attribute("beta") != 1:
        return None
    columns = 0 if gemm.attribute("transB") else 1
    given = _with_bias(match, _sides(match, columns), columns)
    return None if given is None else {**given, "order": [1 - columns, columns]}


def _same(match: Match) -> Given | None:
    """Scale and zero point before and after are the same: bytes only move."""
    before, after = _read(match, "dx", "x"), _written(match)
    if before is None or after is None or not before.single:
        return None
    same = before.one().scale == after.scale and before.one().zero == after.zero
    return {} if same and before.zero.dtype == after.zero.dtype else None


_X = "(dx := DequantizeLinear(x, *sx))"
_FACTORS = f"{_X}, (dw := DequantizeLinear(w, *sw))"
_CONSTANT = f"{_X}, (dw := DequantizeLinear(W, *sw))"
_BIASES = ("(db := DequantizeLinear(b, *sb))", "b")
_ENDS = ("{}", "(act := Relu({}))", "(act := Clip({}, *limits))")
_SIDES = "x, xs, xz, {}, ws, wz, ys, yz"
_CALL = _SIDES.format("w")
_TURNED = _SIDES.format("Transpose(W, perm=order)")


def _between(inner: str, replacement: str, where: Callable[[Match], Given | None]) -> list[Rule]:
    """Rules for what lies between the two, with and without an activation that saturation does."""
    patterns = (f"(quantize := QuantizeLinear({end.format(inner)}, *sy))" for end in _ENDS)
    return [Rule(pattern, replacement, where) for pattern in patterns]


RULES = (
    *_between(f"(conv := Conv({_FACTORS}))", f"QLinearConv({_CALL}, **conv)", _conv),
    *_between(f"MatMul({_FACTORS})", f"QLinearMatMul({_CALL})", _product),
    *_between(f"(gemm := Gemm({_CONSTANT}))", f"QLinearMatMul({_TURNED})", _gemm),
    *(
        rule
        for bias in _BIASES
        for rule in (
            *_between(f"(conv := Conv({_FACTORS}, {bias}))",
                      f"QLinearConv({_CALL}, bias, **conv)", _conv),
            *_between(f"Add(MatMul({_FACTORS}), {bias})",
                      f"chipdock.QLinearGemm({_CALL}, bias)", _product),
            *_between(f"(gemm := Gemm({_CONSTANT}, {bias}))",
                      f"chipdock.QLinearGemm({_TURNED}, bias)", _gemm),
        )
    ),
    *(
        Rule(f"(quantize := QuantizeLinear((op := {op}({_X}, *rest)), *sy))",
             f"{op}(x, *rest, **op)", _same)
        for op in ("Reshape", "Transpose", "Flatten", "MaxPool")
    ),
)  # fmt: skip

# SPDX-License-Identifier: Apache-2.0
"""Operators in private layouts: with channels that fill blocks of 4 to 32, and with others.

They are those that nets of images are made of. Which of them a plugin computes in a layout its
kernels say; the rest is UNSUPPORTED. How tensors get into a layout is suite/layout.py's matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chipdock.conformance.opcases import binary, unary
from chipdock.conformance.opcases.spec import Cases, In, const, ints, variant

__all__ = ["cases"]

_FULL, _RAGGED = (2, 32, 6, 5), (3, 17, 7, 5)
_IMAGES = {"full": _FULL, "ragged": _RAGGED, "one_image": (1, 40, 3, 3)}
_COMMON = ("f32", "f16")
_UNARY = frozenset({
    "Abs", "Neg", "Sign", "Ceil", "Floor", "Round", "Relu", "Sqrt", "Reciprocal", "Exp", "Log",
    "Sin", "Cos", "Tanh", "Erf", "Sigmoid", "Softplus", "Softsign", "Elu", "Selu", "Celu", "Gelu",
    "Mish", "HardSwish", "Swish", "HardSigmoid", "LeakyRelu", "ThresholdedRelu", "Shrink", "Tan",
    "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh",
})  # fmt: skip
_BINARY = frozenset({"Add", "Sub", "Mul", "Div", "Pow", "Max", "Min"})


def cases() -> Cases:
    """Yield the cases."""
    yield from _convolutions()
    yield from _elementwise()
    yield from _pools()
    yield from _moves()
    yield from _norms()


def _one(
    op: str, dtype: str, name: str, given: list[Any], attributes: dict[str, Any] | None = None,
    tolerance: str = "R", **extra: Any,
) -> Any:  # fmt: skip
    return variant(op, dtype, name, given, attributes, shape_class="nd", tolerance=tolerance,
                   **{"factor": 2.0} | extra)  # fmt: skip


def _convolutions() -> Cases:
    """x, filters, attributes; the bias has an element for each filter."""
    same = {"pads": [1, 1, 1, 1]}
    rows: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
        "full": ((2, 32, 7, 5), (64, 32, 3, 3), same),
        "ragged": ((3, 17, 7, 9), (24, 17, 3, 3), same),
        "ragged_in": ((1, 24, 9, 7), (32, 24, 3, 3), same | {"strides": [2, 2]}),
        "ragged_out": ((1, 32, 9, 7), (40, 32, 3, 3), {"dilations": [2, 2]}),
        "pointwise": ((2, 40, 5, 7), (17, 40, 1, 1), {}),
        "pointwise_stride2": ((1, 16, 9, 7), (32, 16, 1, 1), {"strides": [2, 2]}),
        "depthwise": ((1, 40, 9, 7), (40, 1, 3, 3), same | {"group": 40}),
        "depthwise_k5_stride2": ((2, 17, 11, 9), (17, 1, 5, 5), {
            "group": 17, "strides": [2, 2], "pads": [2, 2, 2, 2]}),
        "group2": ((1, 64, 7, 5), (64, 32, 3, 3), same | {"group": 2}),
        "group3_ragged": ((1, 36, 7, 5), (24, 12, 3, 3), same | {"group": 3}),
        "first": ((2, 3, 19, 21), (24, 3, 3, 3), same | {"strides": [2, 2]}),
        "first_k7": ((1, 3, 23, 17), (64, 3, 7, 7), {"strides": [2, 2], "pads": [3, 3, 3, 3]}),
        "grey": ((1, 1, 15, 13), (17, 1, 5, 5), {}),
        "one_filter": ((1, 24, 5, 7), (1, 24, 3, 3), same),
        "line": ((2, 24, 31), (40, 24, 3), {"pads": [1, 1]}),
        "volume": ((1, 17, 3, 4, 5), (24, 17, 3, 3, 3), {"pads": [1] * 6}),
        "asymmetric": ((1, 17, 7, 9), (33, 17, 3, 2), {"pads": [0, 1, 2, 0]}),
        "no_bias": ((1, 17, 7, 5), (33, 17, 3, 3), same),
    }  # fmt: skip
    for name, (x, w, attributes) in rows.items():
        for dtype in _COMMON if name in {"full", "ragged"} else ("f32",):
            given = [In(dtype, x), In(dtype, w, constant=True)]
            if name != "no_bias":
                given.append(In(dtype, w[:1], constant=True))
            shape = {"kernel_shape": list(w[2:])}
            yield _one("Conv", dtype, name, given, shape | attributes, factor=1.0)
    for name, channels, filters in (("full", 32, 64), ("ragged", 17, 24)):
        given = [In("f32", (2, channels, 5, 7)),
                 In("f32", (channels, filters, 2, 2), constant=True),
                 In("f32", (filters,), constant=True)]  # fmt: skip
        attributes = {"kernel_shape": [2, 2], "strides": [2, 2]}
        yield _one("ConvTranspose", "f32", name, given, attributes, factor=1.0)


def _shaped(found: Cases, wanted: frozenset[str], count: int) -> Iterator[tuple[str, Any]]:
    """The first plain f32 case of each operator with so many inputs."""
    seen = set()
    for op, case in found:
        plain = len(case.inputs) == count and case.shape_class in {"nd", "odd", "scalar"}
        if op not in wanted or op in seen or case.dtype != "f32" or not plain:
            continue
        if case.attributes or "v" in case.name[:1]:
            continue
        seen.add(op)
        yield op, case


def _elementwise() -> Cases:
    for op, like in _shaped(unary.cases(), _UNARY, 1):
        facts = {"tolerance": like.tolerance, "opset": like.opset,
                 "zero_sign": like.values.get("zero_sign", False)}  # fmt: skip
        for dtype in _COMMON if op == "Relu" else ("f32",):
            for name in ("full", "ragged"):
                given = [like.inputs[0]._replace(dtype=dtype, shape=_IMAGES[name])]
                yield _one(op, dtype, name, given, {}, **facts)
    for op, like in _shaped(binary.cases(), _BINARY, 2):
        facts = {"tolerance": like.tolerance, "opset": like.opset}
        for dtype in _COMMON if op == "Add" else ("f32",):
            for name, shape in _IMAGES.items():
                given = [side._replace(dtype=dtype, shape=shape) for side in like.inputs]
                yield _one(op, dtype, name, given, {}, **facts)
        left, right = (side._replace(shape=_RAGGED) for side in like.inputs)
        gate = (*_RAGGED[:2], 1, 1)
        yield _one(op, "f32", "gate", [left, right._replace(shape=gate)], {}, **facts)
        sizes: dict[str, tuple[int, ...]] = {"channel": (17, 1, 1), "number": ()}
        for name, size in sizes.items():
            kept = right._replace(shape=size, constant=True)
            yield _one(op, "f32", name, [left, kept], {}, **facts)
        # Zero times this has a sign, which is none of the bytes that lie beside the elements.
        below = const("f32", (), -1.5)._replace(constant=True)
        if op != "Pow":
            yield _one(op, "f32", "number_below_zero", [left, below], {}, **facts)
        kept = left._replace(shape=(), constant=True)
        yield _one(op, "f32", "number_left", [kept, right], {}, **facts)
    for name in ("full", "ragged"):
        image = In("f32", _IMAGES[name])
        limits = [const("f32", (), value)._replace(constant=True) for value in (-0.5, 0.75)]
        yield _one("Clip", "f32", name, [image, *limits], {}, "E")
        # A lower limit above zero would fill what lies beside the elements.
        above = [const("f32", (), value)._replace(constant=True) for value in (0.25, 0.75)]
        yield _one("Clip", "f32", f"{name}_above_zero", [image, *above], {}, "E")
        slope = In("f32", (_IMAGES[name][1], 1, 1), constant=True)
        yield _one("PRelu", "f32", name, [image, slope], {}, "U")
        for count in (2, 3):
            yield _one("Sum", "f32", f"{name}_{count}", [image] * count, {})


def _pools() -> Cases:
    window: dict[str, Any] = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    settings = {"k3": window, "k2": {"kernel_shape": [2, 2], "strides": [2, 2]},
                "ceil": window | {"ceil_mode": 1}}  # fmt: skip
    for op in ("MaxPool", "AveragePool"):
        exact: dict[str, Any] = {"tolerance": "E"} if op == "MaxPool" else {}
        for name, shape in _IMAGES.items():
            for setting, attributes in settings.items():
                for dtype in _COMMON if (name, setting) == ("ragged", "k3") else ("f32",):
                    fill = "distinct" if op == "MaxPool" and dtype == "f32" else "normal"
                    yield _one(op, dtype, f"{name}_{setting}", [In(dtype, shape, fill)],
                               attributes, **exact)  # fmt: skip
    yield _one("AveragePool", "f32", "padding_counts", [In("f32", _RAGGED)],
               window | {"count_include_pad": 1})  # fmt: skip
    below = [In("f32", _RAGGED, "uniform:-9:-1")]
    yield _one("MaxPool", "f32", "below_zero", below, window, "E")
    for op in ("GlobalAveragePool", "GlobalMaxPool"):
        exact = {"tolerance": "E"} if "Max" in op else {}
        for name, shape in _IMAGES.items():
            for dtype in _COMMON if name == "ragged" else ("f32",):
                yield _one(op, dtype, name, [In(dtype, shape)], **exact)
    for op in ("ReduceMean", "ReduceSum", "ReduceMax"):
        exact = {"tolerance": "E"} if "Max" in op else {}
        for name, shape in _IMAGES.items():
            for kept in (0, 1):
                axes = ints(2, 3)._replace(constant=True)
                yield _one(op, "f32", f"{name}_{'kept' if kept else 'gone'}",
                           [In("f32", shape), axes], {"keepdims": kept}, host=(1,),
                           **exact)  # fmt: skip


def _moves() -> Cases:
    for name, channels in (("full", (32, 16)), ("ragged", (17, 24)), ("mixed", (32, 17, 40))):
        for dtype in _COMMON if name == "ragged" else ("f32",):
            given = [In(dtype, (2, c, 5, 7)) for c in channels]
            yield _one("Concat", dtype, name, given, {"axis": 1}, "E")
    yield _one("Concat", "f32", "rows", [In("f32", (1, 17, h, 5)) for h in (3, 4)], {"axis": 2},
               "E")  # fmt: skip
    scales = const("f32", (4,), 1, 1, 2, 2)._replace(constant=True)
    for name in ("full", "ragged"):
        image = In("f32", _IMAGES[name])
        pads = ints(0, 0, 1, 2, 0, 0, 0, 1)._replace(constant=True)
        yield _one("Pad", "f32", name, [image, pads], {"mode": "constant"}, "E", opset=19,
                   host=(1, 3))  # fmt: skip
        for mode, exact in (("nearest", "E"), ("linear", "R")):
            attributes = {"mode": mode, "coordinate_transformation_mode": "asymmetric"}
            if mode == "nearest":
                attributes["nearest_mode"] = "floor"
            yield _one("Resize", "f32", f"{name}_{mode}", [image, None, scales], attributes, exact,
                       opset=19, host=(1, 2, 3), factor=4.0)  # fmt: skip
        yield _one("Identity", "f32", name, [image], {}, "E")


def _norms() -> Cases:
    for name in ("full", "ragged"):
        shape = _IMAGES[name]
        image, channels = In("f32", shape), shape[1:2]
        rows = [In("f32", channels, constant=True) for _ in range(3)]
        spread = In("f32", channels, "positive", constant=True)
        yield _one("BatchNormalization", "f32", name, [image, *rows, spread], {}, factor=8.0)
        yield _one("InstanceNormalization", "f32", name, [image, *rows[:2]], {}, factor=8.0)
        yield _one("Softmax", "f32", name, [image], {"axis": 1})
        yield _one("LRN", "f32", name, [image],
                   {"size": 5, "alpha": 0.0002, "beta": 0.5, "bias": 2.0})  # fmt: skip

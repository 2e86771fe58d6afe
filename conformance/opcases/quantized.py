# SPDX-License-Identifier: Apache-2.0
"""Quantization to and from integers and small floats, and sums of quantized values.

Scales are powers of two where a case wants exact results: the only rounding is then the last one.
"""

from __future__ import annotations

from typing import Any

from chipdock.conformance.numerics.dtypes import ONNX_TYPES
from chipdock.conformance.opcases.spec import FLOAT6, Cases, In, const, pick, variant

__all__ = ["cases"]

_WHOLE = ("i8", "u8", "i16", "u16", "i4", "u4")
_F8 = ("f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz")
_OPSETS = {"f4e2m1": 23, "f6e2m3": 28, "f6e3m2": 28}
_PAIRS = (("u8", "u8"), ("u8", "i8"), ("i8", "i8"), ("i8", "u8"))


def cases() -> Cases:
    """Yield the cases."""
    yield from _quantize()
    yield from _dequantize()
    yield from _integer()
    yield from _qlinear()


def _case(op: str, dtype: str, name: str, given: list[Any], attributes: dict[str, Any],
          shape_class: str = "nd", tolerance: str = "Q", **extra: Any) -> Any:  # fmt: skip
    return variant(op, dtype, name, given, attributes, shape_class=shape_class,
                   tolerance=tolerance, **extra)  # fmt: skip


def _zero(dtype: str, shape: tuple[int, ...] = ()) -> In:
    return In(dtype, shape, "ints:0:1" if dtype[0] == "f" or dtype == "i32" else "ints:0:4")


def _quantize() -> Cases:
    op = "QuantizeLinear"
    for goal in (*_WHOLE, *_F8, "f4e2m1", *FLOAT6):
        small = goal[0] == "f"
        tolerance = "E" if small else "Q"
        opset = _OPSETS.get(goal, 22)
        for source in ("f32", *pick(("f16", "bf16"), goal)):
            given = [In(source, (32, 40), "normal:2"), const(source, (), 0.25), _zero(goal)]
            yield _case(op, source, f"to_{goal}", given, {}, tolerance=tolerance, opset=opset)
        given = [In("f32", (3, 4, 50), "normal:2"), const("f32", (4,), 0.25, 0.5, 2.0, 0.125),
                 _zero(goal, (4,))]  # fmt: skip
        yield _case(op, "f32", f"to_{goal}_axis", given, {"axis": -2}, "negative_axis", tolerance,
                    opset=opset)  # fmt: skip
        given = [In("f32", (4, 64), "normal:2"), In("f32", (4, 2), "values", "", False,
                 (0.25, 0.5, 1.0, 2.0, 0.125, 0.25, 0.5, 0.25)), _zero(goal, (4, 2))]  # fmt: skip
        yield _case(op, "f32", f"to_{goal}_blocked", given, {"axis": 1, "block_size": 32}, "real",
                    tolerance, opset=opset)  # fmt: skip
    for goal in ("i8", "u8"):
        given = [In("f32", (40, 40), "normal:100"), const("f32", (), 0.5), _zero(goal)]
        yield _case(op, "f32", f"to_{goal}_saturates", given, {}, "special", opset=13)
        ties = [const("f32", (8,), 0.5, 1.5, 2.5, -0.5, -1.5, 3.5, 100.5, -2.5),
                const("f32", (), 1.0), _zero(goal)]  # fmt: skip
        yield _case(op, "f32", f"to_{goal}_ties", ties, {}, "special", "E", opset=13)
    given = [In("f32", (40, 40), "normal:2"), const("f32", (), 0.25)]
    yield _case(op, "f32", "no_zero_point", given, {}, opset=10)
    yield _case(op, "f32", "output_dtype", given, {"output_dtype": ONNX_TYPES["i8"]}, opset=21)
    yield _case(op, "f32", "empty", [In("f32", (0, 3)), const("f32", (), 0.25)], {}, "empty",
                opset=13)  # fmt: skip
    for op_opset, shape in ((11, (40, 50)), (11, (3,))):
        yield _case("DynamicQuantizeLinear", "f32", f"n{shape[0]}", [In("f32", shape)], {}, "odd",
                    outputs=3, opset=op_opset)  # fmt: skip
    yield _case("DynamicQuantizeLinear", "f32", "positive", [In("f32", (40, 50), "positive")], {},
                "real", outputs=3, opset=11)  # fmt: skip


def _dequantize() -> Cases:
    op = "DequantizeLinear"
    for source in (*_WHOLE, "i32", *_F8, "f4e2m1", *FLOAT6):
        opset = _OPSETS.get(source, 22)
        fill = "full" if source[0] in "iu" else "normal"
        for goal in ("f32", *pick(("f16", "bf16"), source)):
            wide = source in {"i32", "i16", "u16"} and goal != "f32"
            zero = [] if source == "i32" else [_zero(source)]
            given = [In(source, (5, 17), "ints:-9:9" if wide and source[0] == "i" else
                     "ints:0:9" if wide else fill), const(goal, (), 0.375), *zero]  # fmt: skip
            yield _case(op, source, f"to_{goal}", given, {}, "odd", "U", opset=opset)
        given = [In(source, (3, 4, 5), fill), const("f32", (4,), 0.25, 0.3, 2.0, 0.7),
                 _zero(source, (4,))]  # fmt: skip
        yield _case(op, source, "axis", given, {"axis": 1}, "real", "U", opset=opset)
        given = [In(source, (4, 64), fill), In("f32", (4, 2), "positive"), _zero(source, (4, 2))]
        yield _case(op, source, "blocked", given, {"axis": 1, "block_size": 32}, "real", "U",
                    opset=opset)  # fmt: skip
    yield _case(op, "u8", "v10", [In("u8", (5, 7), "full"), const("f32", (), 0.1), _zero("u8")], {},
                "old_version", "U", opset=10)  # fmt: skip


def _integer() -> Cases:
    for left, right in _PAIRS:
        a, b = In(left, (5, 37), "full"), In(right, (37, 6), "full", "", True)
        name = f"by_{right}"
        yield _case("MatMulInteger", left, name, [a, b], {}, tolerance="E", opset=10)
        yield _case("MatMulInteger", left, f"{name}_zeros", [a, b, const(left, (), 3),
                    const(right, (), 5)], {}, tolerance="E", opset=10)  # fmt: skip
        yield _case("MatMulInteger", left, f"{name}_columns", [a, b, const(left, (), 3),
                    In(right, (6,), "ints:0:9")], {}, tolerance="E", opset=10)  # fmt: skip
        batch = [In(left, (2, 3, 16), "full"), In(right, (2, 16, 4), "full")]
        yield _case("MatMulInteger", left, f"{name}_batch", batch, {}, tolerance="E", opset=10)
        long = [In(left, (2, 4096), "full"), In(right, (4096, 3), "full", "", True)]
        yield _case("MatMulInteger", left, f"{name}_k4096", long, {}, "large_k", "E", opset=10)
        image = [In(left, (1, 3, 7, 8), "full"), In(right, (4, 3, 3, 3), "full", "", True)]
        pads = {"pads": [1, 1, 1, 1]}
        yield _case("ConvInteger", left, name, image, pads, "real", "E", opset=10)
        yield _case("ConvInteger", left, f"{name}_zeros", [*image, const(left, (), 2),
                    In(right, (4,), "ints:0:5") if right == "i8" else const(right, (), 7)], {},
                    "real", "E", opset=10)  # fmt: skip
        deep = [In(left, (1, 4, 9, 9), "full"), In(right, (4, 1, 3, 3), "full", "", True)]
        yield _case("ConvInteger", left, f"{name}_depthwise", deep, pads | {"group": 4}, "real",
                    "E", opset=10)  # fmt: skip


def _qlinear() -> Cases:
    for left, right in _PAIRS[:3]:
        for goal in pick(("u8", "i8"), left, right):
            a, b = In(left, (40, 33), "full"), In(right, (33, 40), "full", "", True)
            given = [a, const("f32", (), 0.0078125), const(left, (), 2),
                     b, const("f32", (), 0.015625), const(right, (), 1),
                     const("f32", (), 0.25), const(goal, (), 4)]  # fmt: skip
            yield _case("QLinearMatMul", left, f"by_{right}_to_{goal}", given, {}, "real",
                        opset=21)  # fmt: skip
            for name, w, attributes, scales in (
                ("k3", (8, 3, 3, 3), {"pads": [1, 1, 1, 1]}, 1), ("k1", (8, 3, 1, 1), {}, 8),
                ("stride2", (8, 3, 3, 3), {"strides": [2, 2]}, 8),
            ):  # fmt: skip
                steps = (0.015625,) if scales == 1 else tuple(2.0**-k for k in range(4, 12))
                given = [In(left, (1, 3, 24, 24), "full"), const("f32", (), 0.0078125),
                         const(left, (), 2), In(right, w, "full", "", True),
                         const("f32", (scales,) if scales > 1 else (), *steps),
                         In(right, (scales,) if scales > 1 else (), "ints:0:1"),
                         const("f32", (), 0.5), const(goal, (), 4),
                         In("i32", (8,), "ints:-500:500", "", True)]  # fmt: skip
                yield _case("QLinearConv", left, f"{name}_by_{right}_to_{goal}", given, attributes,
                            "real", opset=10)  # fmt: skip

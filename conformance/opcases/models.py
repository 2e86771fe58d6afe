# SPDX-License-Identifier: Apache-2.0
"""Operators that stand for whole blocks of models: attention, spectra, sampling, losses.

Their definitions are made of steps in the tensor's own type, so half types are judged by that
type's roundings. Where the reference has the digits of float32 only there is no f64 case.
"""

from __future__ import annotations

from typing import Any

from chipdock.conformance.opcases.spec import HALVES, Cases, In, const, ints, pick, variant

__all__ = ["cases"]


def cases() -> Cases:
    """Yield the cases."""
    yield from _attention()
    yield from _rotary()
    yield from _spectra()
    yield from _sampling()
    yield from _losses()
    yield from _windows()


def _case(op: str, dtype: str, name: str, given: list[Any], attributes: dict[str, Any],
          shape_class: str = "real", tolerance: str = "R", **extra: Any) -> Any:  # fmt: skip
    return variant(op, dtype, name, given, attributes, shape_class=shape_class,
                   tolerance=tolerance, own_unit=dtype in HALVES,
                   factor=1.0 if dtype in HALVES else 8.0, **extra)  # fmt: skip


def _attention() -> Cases:
    q, k = (2, 4, 5, 8), (2, 4, 7, 8)
    for dtype in ("f32", "f16", "bf16"):
        plain = [In(dtype, q), In(dtype, k), In(dtype, k)]
        rows: dict[str, tuple[list[Any], dict[str, Any]]] = {
            "heads": (plain, {}), "causal": (plain, {"is_causal": 1}),
            "scaled": (plain, {"scale": 0.25}), "softcap": (plain, {"softcap": 2.0}),
            "grouped": ([In(dtype, q), In(dtype, (2, 2, 7, 8)), In(dtype, (2, 2, 7, 8))], {}),
            "other_width": ([*plain[:2], In(dtype, (2, 4, 7, 6))], {}),
            "bias": ([*plain, In(dtype, (5, 7))], {}),
            "mask": ([*plain, In("bool", (2, 1, 5, 7), "values", values=tuple(
                int(i % 7 <= i // 7 % 5 + 1) for i in range(70)))], {}),
            "flat": ([In(dtype, (2, 5, 32)), In(dtype, (2, 7, 32)), In(dtype, (2, 7, 32))],
                     {"q_num_heads": 4, "kv_num_heads": 4}),
            "flat_grouped": ([In(dtype, (2, 5, 32)), In(dtype, (2, 7, 16)), In(dtype, (2, 7, 16))],
                             {"q_num_heads": 4, "kv_num_heads": 2}),
            "one_token": ([In(dtype, (1, 4, 1, 16)), In(dtype, (1, 4, 33, 16)),
                           In(dtype, (1, 4, 33, 16))], {}),
        }  # fmt: skip
        for name in tuple(rows) if dtype == "f32" else pick(tuple(rows), dtype, count=4):
            yield _case("Attention", dtype, name, *rows[name], opset=23)
        past: list[Any] = [*plain, None, In(dtype, (2, 4, 3, 8)), In(dtype, (2, 4, 3, 8))]
        yield _case("Attention", dtype, "cache", past, {}, opset=23, outputs=3)


def _rotary() -> Cases:
    for dtype in ("f32", "f16", "bf16"):
        rows: dict[str, tuple[list[Any], dict[str, Any]]] = {
            "heads": ([In(dtype, (2, 4, 5, 8)), In(dtype, (2, 5, 4)), In(dtype, (2, 5, 4))], {}),
            "interleaved": ([In(dtype, (2, 4, 5, 8)), In(dtype, (2, 5, 4)), In(dtype, (2, 5, 4))],
                            {"interleaved": 1}),
            "positions": ([In(dtype, (2, 4, 3, 8)), In(dtype, (9, 4)), In(dtype, (9, 4)),
                           ints(0, 3, 8, 1, 1, 2)._replace(shape=(2, 3))], {}),
            "flat": ([In(dtype, (2, 5, 32)), In(dtype, (2, 5, 4)), In(dtype, (2, 5, 4))],
                     {"num_heads": 4}),
            "part": ([In(dtype, (1, 2, 3, 8)), In(dtype, (1, 3, 2)), In(dtype, (1, 3, 2))],
                     {"rotary_embedding_dim": 4}),
        }  # fmt: skip
        for name, row in rows.items():
            yield _case("RotaryEmbedding", dtype, name, *row, opset=23)


def _spectra() -> Cases:
    for dtype in ("f32", "f64"):
        for name, shape, attributes, others in (
            ("real16", (2, 16, 1), {}, []), ("complex16", (2, 16, 2), {}, []),
            ("onesided", (2, 16, 1), {"onesided": 1}, []),
            ("inverse", (2, 16, 2), {"inverse": 1}, []), ("odd", (1, 15, 1), {}, []),
            ("padded", (1, 12, 1), {}, [ints(16, scalar=True)]),
        ):  # fmt: skip
            length: list[Any] = list(others) if others else [None]
            given: list[Any] = [In(dtype, shape), *length, ints(1, scalar=True)]
            yield _case("DFT", dtype, name, given, attributes, opset=20)
        yield _case("DFT", dtype, "v17", [In(dtype, (2, 16, 1))], {"axis": 1}, "old_version",
                    opset=17)  # fmt: skip
        for name, onesided in (("onesided", 1), ("twosided", 0)):
            given = [In(dtype, (1, 128, 1)), ints(8, scalar=True), In(dtype, (16,), "positive"),
                     ints(16, scalar=True)]  # fmt: skip
            yield _case("STFT", dtype, name, given, {"onesided": onesided}, opset=17)
        given = [In(dtype, (2, 64, 1)), ints(16, scalar=True), None, ints(32, scalar=True)]
        yield _case("STFT", dtype, "no_window", given, {}, opset=17)


def _sampling() -> Cases:
    for dtype in ("f32", "f16"):
        grid = In(dtype, (1, 4, 3, 2), "uniform:-1.2:1.2")
        for mode in ("linear", "nearest", "cubic"):
            for padding in ("zeros", "border", "reflection"):
                # Whether the place or each tap is moved to the border is read in two ways.
                if (mode, padding) == ("cubic", "border"):
                    continue
                for corners in (0, 1) if dtype == "f32" else pick((0, 1), mode, padding, dtype):
                    if mode == "nearest" and dtype == "f16":
                        continue
                    yield _case("GridSample", dtype, f"{mode}_{padding}_{corners}", [
                        In(dtype, (1, 2, 5, 6)), grid], {"mode": mode, "padding_mode": padding,
                        "align_corners": corners}, opset=20)  # fmt: skip
        for corners in (0, 1):
            yield _case("AffineGrid", dtype, f"plane_{corners}", [In(dtype, (2, 2, 3)),
                        ints(2, 3, 4, 5)], {"align_corners": corners}, opset=20)  # fmt: skip
            # The body in ONNX squeezes a batch of one away, so that nothing but a kernel can do it.
            for name, theta, size in (("plane", (1, 2, 3), (1, 3, 4, 5)),
                                      ("volume", (1, 3, 4), (1, 2, 3, 4, 5))):  # fmt: skip
                yield _case("AffineGrid", dtype, f"{name}_one_image_{corners}", [
                    In(dtype, theta), ints(*size)], {"align_corners": corners}, opset=20,
                    own_kernel=True)  # fmt: skip
        for mode in ("avg", "max"):
            given = [In(dtype, (1, 2, 9, 9)), const(dtype, (2, 4), 0, 0, 5, 5, 2, 1, 7, 8),
                     ints(0, 0)]  # fmt: skip
            yield _case("RoiAlign", dtype, mode, given, {"mode": mode, "output_height": 3,
                        "output_width": 3, "sampling_ratio": 2}, opset=16)  # fmt: skip


def _losses() -> Cases:
    for dtype in ("f32", "f64", "f16"):
        for reduction in ("mean", "sum", "none"):
            classes = ints(0, 2, 4, 1)
            scores = In(dtype, (4, 5))
            for op, opset in (("NegativeLogLikelihoodLoss", 22), ("SoftmaxCrossEntropyLoss", 13)):
                yield _case(op, dtype, reduction, [scores, classes], {"reduction": reduction},
                            opset=opset)  # fmt: skip
                given = [scores, classes, In(dtype, (5,), "positive")]
                yield _case(op, dtype, f"{reduction}_weighted", given, {"reduction": reduction,
                            "ignore_index": 2}, opset=opset)  # fmt: skip


def _windows() -> Cases:
    for dtype in ("f32", "f64", "i32"):
        given = [In(dtype, (1, 12, 9), "ints:-4:5"), ints(5, 5), ints(2, 2)]
        attributes = {"strides": [2, 2], "pads": [1, 1, 1, 1]}
        yield _case("Col2Im", dtype, "k2", [given[0], ints(4, 4), given[2]], attributes, "nd", "E",
                    opset=18)  # fmt: skip
    for dtype in ("f32", "f16", "i64"):
        for name, size in (("crop", (4, 5)), ("pad", (9, 10)), ("both", (4, 10))):
            yield _case("CenterCropPad", dtype, name, [In(dtype, (6, 7)), ints(*size)], {}, "nd",
                        "E", opset=18)  # fmt: skip
    for dtype in ("f32", "f16"):
        given = [In(dtype, (1, 2, 6, 6)), In(dtype, (3, 2, 3, 3)),
                 In(dtype, (1, 18, 4, 4), "normal:0.3"), In(dtype, (3,))]  # fmt: skip
        yield _case("DeformConv", dtype, "k3", given, {"kernel_shape": [3, 3]}, opset=19)
    for source, goal, number in (("f32", "i32", 6), ("f16", "u16", 4), ("u64", "f64", 11)):
        yield _case("BitCast", source, f"to_{goal}", [In(source, (3, 5))], {"to": number}, "nd",
                    "E", opset=26)  # fmt: skip

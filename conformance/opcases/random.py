# SPDX-License-Identifier: Apache-2.0
"""Random operators: the same seed gives the same bits, and numbers follow their distribution."""

from __future__ import annotations

from typing import Any

from chipdock.conformance.numerics.dtypes import ONNX_TYPES
from chipdock.conformance.opcases.spec import Cases, In, const, ints, variant

__all__ = ["LOGITS", "cases"]

_FLOATS = ("f32", "f64", "f16")
_COUNT = 20000
LOGITS = (0.1, -1.2, 0.5, 1.4, 0.0, -2.25)
"""What Multinomial draws from: logarithms of chances that need not sum to one."""


def cases() -> Cases:
    """Yield the cases."""
    normal: dict[str, Any] = {"mean": 1.5, "scale": 2.0}
    uniform: dict[str, Any] = {"low": -1.0, "high": 3.0}
    for dtype in _FLOATS:
        kind = {"dtype": ONNX_TYPES[dtype]}
        for name, numbers in (("default", {}), ("moved", normal)):
            yield _one("RandomNormal", dtype, name, [], numbers | kind | {"shape": [100, 200]})
            yield _one("RandomNormalLike", dtype, name, [In(dtype, (_COUNT,))], numbers)
        for name, numbers in (("default", {}), ("moved", uniform)):
            yield _one("RandomUniform", dtype, name, [], numbers | kind | {"shape": [100, 200]})
            yield _one("RandomUniformLike", dtype, name, [In(dtype, (_COUNT,))], numbers)
        yield _one("Bernoulli", dtype, "half", [const(dtype, (_COUNT,), 0.5)], {})
        yield _one("Bernoulli", dtype, "rare", [const(dtype, (_COUNT,), 0.125)], {})
        yield _one("Bernoulli", dtype, "never", [const(dtype, (_COUNT,), 0.0)], {})
        yield _one("Bernoulli", dtype, "always", [const(dtype, (_COUNT,), 1.0)], {})
        for ratio in (0.25, 0.75):
            given = [const(dtype, (_COUNT,), 1.0), const("f32", (), ratio), const("bool", (), 1)]
            yield _one("Dropout", dtype, f"training_{int(ratio * 100)}", given, {}, outputs=2)
        given = [const(dtype, (64,), 1.0), const("f32", (), 0.0), const("bool", (), 1)]
        yield _one("Dropout", dtype, "training_0", given, {}, outputs=2)
    for number in ("i32", "i64"):
        yield _one("Bernoulli", "f32", f"as_{number}", [const("f32", (_COUNT,), 0.25)],
                   {"dtype": ONNX_TYPES[number]})  # fmt: skip
        rows = In("f32", (1, 6), "values", values=LOGITS)
        yield _one("Multinomial", "f32", f"as_{number}", [rows], {
            "dtype": ONNX_TYPES[number], "sample_size": _COUNT})  # fmt: skip
    like = {"dtype": ONNX_TYPES["f64"]}
    yield _one("RandomUniformLike", "f32", "as_f64", [ints(*[0] * 2)._replace(
        dtype="f32", shape=(_COUNT,), values=(0,))], like)  # fmt: skip


def _one(
    op: str, dtype: str, name: str, given: list[Any], attributes: dict[str, Any], **extra: Any
) -> Any:  # fmt: skip
    return variant(op, dtype, name, given, attributes, shape_class="random", tolerance="D",
                   budget_ms=40, opset=22, **extra)  # fmt: skip

# SPDX-License-Identifier: Apache-2.0
"""The exact result of one operator: own functions first, onnx.reference for the rest."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipdock.conformance.numerics.dtypes import short_name, wide
from chipdock.conformance.numerics.judge import Expected
from chipdock.conformance.numerics.reference import by_onnx
from chipdock.conformance.numerics.reference.elementwise import ELEMENTWISE
from chipdock.conformance.numerics.reference.linear import LINEAR
from chipdock.conformance.numerics.reference.moves import OWN_MOVES
from chipdock.conformance.numerics.reference.quantized import QUANTIZED
from chipdock.conformance.numerics.reference.resample import resize
from chipdock.conformance.numerics.reference.rnn import recur

__all__ = ["reference", "source_digest"]

_RECURRENT = ("RNN", "GRU", "LSTM")


def reference(
    op: str,
    inputs: Sequence[NDArray[Any] | None],
    attributes: dict[str, Any],
    opset: int,
    outputs: int,
    model: Callable[[], Any],
) -> list[Expected]:
    """Compute one operator exactly.

    Args:
        op: ONNX operator.
        inputs: As the device gets them; None for those that are not given.
        attributes: Plain values; those not given have the defaults.
        opset: Version of the operator set.
        outputs: How many outputs are wanted.
        model: Makes the one-node ModelProto, for operators without a function here; its inputs
            are named x0, x1, ….

    Returns:
        One for each output.
    """
    with np.errstate(all="ignore"):
        return _reference(op, inputs, attributes, opset, outputs, model)


def _reference(
    op: str, inputs: Sequence[NDArray[Any] | None], attributes: dict[str, Any], opset: int,
    outputs: int, model: Callable[[], Any],
) -> list[Expected]:  # fmt: skip
    if op in ELEMENTWISE:
        made = ELEMENTWISE[op](*[None if x is None else wide(x) for x in inputs], **attributes)
        value, size = made if isinstance(made, tuple) else (made, None)
        terms = len(inputs) if op in {"Sum", "Mean"} else 1
        return [Expected(np.asarray(value), None if size is None else np.asarray(size), terms)]
    if op in LINEAR or op in _RECURRENT:
        exact = [None if x is None else wide(x) for x in inputs]
        made = LINEAR[op](exact, attributes, opset) if op in LINEAR else None
        values, sizes, terms = made if made is not None else recur(op, exact, attributes)
        rows = list(zip(values, sizes, strict=False))[:outputs]
        return [Expected(np.asarray(v), s, terms) for v, s in rows]
    if op == "Resize":
        value, size, terms = resize([None if x is None else wide(x) for x in inputs], attributes)
        return [Expected(value, size, terms)]
    if op in QUANTIZED:
        return [Expected(value) for value in QUANTIZED[op](list(inputs), attributes)[:outputs]]
    if op in OWN_MOVES:
        return [Expected(np.asarray(OWN_MOVES[op](list(inputs), attributes, opset)))]
    how = "bits" if op in by_onnx.MOVES else "native" if op in by_onnx.NATIVE else "double"
    if attributes.get("reduction", "none") != "none" or attributes.get("mode") == "linear":
        how = "double"
    named = {f"x{i}": x for i, x in enumerate(inputs) if x is not None}
    results = by_onnx.evaluate(model(), named, how)
    floats = [np.abs(wide(x)).max(initial=0) for x in named.values() if _is_float(x)]
    floats += [1.0] if op.endswith("Window") else []
    return [_by_range(value, floats) for value in results[:outputs]]


def _is_float(x: NDArray[Any]) -> bool:
    return (
        short_name(x.dtype)[0] in "fb" and x.dtype.kind != "b" and bool(np.isfinite(wide(x)).all())
    )


def _by_range(value: NDArray[Any], inputs: list[Any]) -> Expected:
    """Without a formula for the terms: no term is larger than the largest input or output."""
    if value.dtype.kind not in "fc" or not value.size:
        return Expected(value)
    largest = float(np.nanmax(np.where(np.isfinite(value), np.abs(value), 0), initial=0.0))
    size = max(largest, *[float(x) for x in inputs], 0.0) if inputs else largest
    return Expected(value, np.full(value.shape, size), 16)


@cache
def source_digest() -> str:
    """Return a hash of the code that computes references; cached ones are of no use after it."""
    folder = Path(__file__).parent
    files = [*sorted(folder.glob("*.py")), folder.parent / "dtypes.py"]
    digest = hashlib.sha256(np.__version__.encode())
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()

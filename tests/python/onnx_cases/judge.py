# SPDX-License-Identifier: Apache-2.0
"""Runs one case on a device and compares, with the tolerances that the case itself asks for."""

from __future__ import annotations

from typing import Any

import numpy as np

import chipdock
from onnx_cases.cases import Case

# onnx's own allowance for bfloat16: two units in the last place.
_BFLOAT16_RTOL = 2.0**-6


def failure(case: Case, device: str = "cpu:0") -> str | None:
    """Run a case; None if every output of every data set agrees, else one line on what does not."""
    try:
        proto = case.model()
        model = chipdock.load(proto, device)
        compared = 0
        for inputs, expected in case.data(proto):
            if len(inputs) != len(model.inputs):
                return f"{len(inputs)} inputs are stored, the model has {len(model.inputs)}"
            feeds = {info.name: value for info, value in zip(model.inputs, inputs, strict=True)}
            outputs = list(model.run(feeds).values())
            if len(outputs) != len(expected):
                return f"{len(outputs)} outputs, expected are {len(expected)}"
            for index, (got, wanted) in enumerate(zip(outputs, expected, strict=True)):
                text = _difference(got, wanted, case.source.rtol, case.source.atol)
                if text is not None:
                    return f"output {index}: {text}"
                compared += 1
    except chipdock.ChipdockError as error:
        return str(error)
    return None if compared else "no output was compared"


def _difference(got: Any, wanted: Any, rtol: float, atol: float) -> str | None:
    if wanted is None or isinstance(wanted, list):
        if got is None or wanted is None:
            return None if got is wanted else f"is {type(got).__name__}, expected {wanted!r}"
        if not isinstance(got, list) or len(got) != len(wanted):
            return f"is {got!r}, expected a sequence of {len(wanted)}"
        texts = (_difference(g, w, rtol, atol) for g, w in zip(got, wanted, strict=True))
        return next((t for t in texts if t is not None), None)
    if not isinstance(got, np.ndarray | chipdock.Array):
        return f"is {type(got).__name__}, expected an array"
    array = got if isinstance(got, np.ndarray) else got.numpy()
    wanted = np.asarray(wanted)
    if array.shape != wanted.shape:
        return f"has shape {array.shape}, expected {wanted.shape}"
    if wanted.dtype.kind in "OUST":
        same = array.dtype == object and array.tolist() == wanted.astype(object).tolist()
        return None if same else f"is {array.tolist()!r}, expected {wanted.tolist()!r}"
    if array.dtype != wanted.dtype:
        return f"has dtype {array.dtype}, expected {wanted.dtype}"
    if array.dtype.name == "bfloat16":
        rtol = max(rtol, _BFLOAT16_RTOL)
    if array.dtype.kind not in "biufc" or array.dtype.itemsize < 4:
        array, wanted = (a.astype(np.float32) for a in (array, wanted))
    try:
        np.testing.assert_allclose(array, wanted, rtol=rtol, atol=atol)
    except AssertionError as error:
        return " ".join(str(error).split())[:300]
    return None

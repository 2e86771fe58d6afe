# SPDX-License-Identifier: Apache-2.0
"""RNN, GRU and LSTM with all that their definitions offer."""

from __future__ import annotations

from typing import Any

from chipdock.conformance.opcases.spec import Cases, In, ints, pick, variant

__all__ = ["cases"]

_FLOATS = ("f32", "f64", "f16", "bf16")
_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
_STEPS, _BATCH, _WIDTH, _HIDDEN = 6, 3, 5, 4


def cases() -> Cases:
    """Yield the cases."""
    for op in _GATES:
        rows: dict[str, dict[str, Any]] = {
            "plain": {}, "no_bias": {"bias": False}, "all_inputs": {"lengths": True, "state": True},
            "state": {"state": True}, "lengths": {"lengths": True},
            "reverse": {"direction": "reverse"}, "both": {"direction": "bidirectional"},
            "reverse_lengths": {"direction": "reverse", "lengths": True},
            "both_all": {"direction": "bidirectional", "lengths": True, "state": True},
            "clip": {"more": {"clip": 0.5}}, "layout": {"layout": 1},
            "layout_both": {"layout": 1, "direction": "bidirectional", "state": True},
            "one_step": {"steps": 1}, "one": {"steps": 1, "batch": 1}, "packed": {"packed": True},
            "long": {"steps": 40, "packed": True}, "step": {"view": "step"},
            "v7": {"opset": 7}, "v14": {"opset": 14},
        }  # fmt: skip
        rows["last_only"] = {"outputs": 2}
        if op == "GRU":
            rows["before_reset"] = {"more": {"linear_before_reset": 1}}
            rows["before_reset_both"] = {"more": {"linear_before_reset": 1},
                                         "direction": "bidirectional"}  # fmt: skip
        if op == "LSTM":
            rows["peepholes"] = {"peepholes": True, "state": True}
            rows["input_forget"] = {"more": {"input_forget": 1}}
            rows["peepholes_both"] = {"peepholes": True, "direction": "bidirectional"}
        names = {"RNN": ["Relu"], "GRU": ["HardSigmoid", "Softsign"],
                 "LSTM": ["HardSigmoid", "Tanh", "Softsign"]}  # fmt: skip
        rows["activations"] = {"more": {"activations": names[op]}}
        if op != "RNN":
            rows["alphas"] = {"more": {"activations": ["HardSigmoid", *names[op][1:]],
                "activation_alpha": [0.3], "activation_beta": [0.4]}}  # fmt: skip
        for dtype in _FLOATS:
            old = {"v7", "v14"}
            usable = tuple(name for name in rows if dtype == "f32" or name not in old)
            for name in usable if dtype == "f32" else pick(usable, op, dtype, count=6):
                yield _one(op, dtype, name, **rows[name])


def _one(
    op: str, dtype: str, name: str, *, bias: bool = True, lengths: bool = False,
    state: bool = False, direction: str = "forward", layout: int = 0, steps: int = _STEPS,
    batch: int = _BATCH, packed: bool = False, view: str = "", peepholes: bool = False,
    opset: int = 22, outputs: int = 0, more: dict[str, Any] | None = None,
) -> Any:  # fmt: skip
    ways = 2 if direction == "bidirectional" else 1
    gates = _GATES[op]

    def weight(*shape: int) -> In:
        return In(dtype, shape, "normal:0.5", "", packed)

    def first(*shape: int) -> tuple[int, ...]:
        return (shape[1], shape[0], *shape[2:]) if layout else shape

    given: list[In | None] = [
        In(dtype, first(steps, batch, _WIDTH), "normal", view),
        weight(ways, gates * _HIDDEN, _WIDTH), weight(ways, gates * _HIDDEN, _HIDDEN),
        weight(ways, 2 * gates * _HIDDEN) if bias else None,
        ints(*[steps, 1, max(steps - 2, 1)][:batch], dtype="i32") if lengths else None,
        In(dtype, first(ways, batch, _HIDDEN)) if state else None,
    ]  # fmt: skip
    if op == "LSTM":
        given += [In(dtype, first(ways, batch, _HIDDEN)) if state else None,
                  weight(ways, 3 * _HIDDEN) if peepholes else None]  # fmt: skip
    while given[-1] is None:
        given.pop()
    attributes: dict[str, Any] = {"hidden_size": _HIDDEN, "direction": direction} | (more or {})
    if layout:
        attributes["layout"] = 1
    if "activations" in attributes and ways == 2:
        attributes["activations"] = attributes["activations"] * 2
    shape_class = "packed" if packed else "strided" if view else "real"
    return variant(
        op,
        dtype,
        name,
        given,
        attributes,
        shape_class=shape_class,
        tolerance="R",
        opset=opset,
        outputs=outputs or (3 if op == "LSTM" else 2),
        factor=4.0,
    )

# SPDX-License-Identifier: Apache-2.0
"""Judges Gradient nodes by central differences of the same graph in float64."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx
from api_support import model, value
from onnx import helper

import chipdock

TRAINING = "ai.onnx.preview.training"
DOUBLE = onnx.TensorProto.DOUBLE
STEP = 1e-5


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return rng(seed).standard_normal(shape)


def gradient(
    xs: Sequence[str],
    y: str,
    outputs: Sequence[str] | None = None,
    *,
    inputs: Sequence[str] | None = None,
    name: str = "grad",
    **more: Sequence[str],
) -> onnx.NodeProto:
    """A Gradient node at the values that xs and zs have anyhow."""
    outputs = [f"d{x}" for x in xs] if outputs is None else outputs
    inputs = [*xs, *more.get("zs", ())] if inputs is None else inputs
    more = {k: v for k, v in more.items() if v}
    return helper.make_node(
        "Gradient", inputs, outputs, name, domain=TRAINING, xs=list(xs), y=y, **more
    )


def training_model(
    nodes: Sequence[onnx.NodeProto],
    feeds: Mapping[str, np.ndarray],
    outputs: Sequence[str],
    *,
    constants: Mapping[str, np.ndarray] | None = None,
    dynamic: bool = False,
    ranks: bool = True,
    opset: int = 21,
) -> onnx.ModelProto:
    """A model with inputs as the feeds are, of fixed or of unknown extents or even ranks."""

    def shape(array: np.ndarray) -> list[int | None] | None:
        if not ranks:
            return None
        return [None] * array.ndim if dynamic else list(array.shape)

    opsets = [
        helper.make_opsetid("", opset),
        helper.make_opsetid(TRAINING, 1),
        helper.make_opsetid("com.microsoft", 1),
    ]
    inputs = [
        value(n, helper.np_dtype_to_tensor_dtype(a.dtype), shape(a)) for n, a in feeds.items()
    ]
    kinds = [onnx.ValueInfoProto(name=n) for n in outputs]
    return model(nodes, inputs, kinds, constants, opsets=opsets)


def numeric(
    run: Callable[[Mapping[str, np.ndarray]], float], feeds: Mapping[str, np.ndarray], name: str
) -> np.ndarray:
    """Central differences of a number with respect to one feed."""
    found = np.zeros_like(feeds[name])
    for index in np.ndindex(found.shape):
        ends = []
        for sign in (1, -1):
            moved = feeds[name].copy()
            moved[index] += sign * STEP
            ends.append(run({**feeds, name: moved}))
        found[index] = (ends[0] - ends[1]) / (2 * STEP)
    return found


def check_gradients(
    nodes: Sequence[onnx.NodeProto],
    feeds: Mapping[str, np.ndarray],
    *,
    xs: Sequence[str] | None = None,
    y: str = "y",
    tolerance: float = 1e-6,
    **kind: object,
) -> None:
    """Compare the gradients of a weighted sum of y with differences, for float64 feeds.

    Args:
        nodes: Compute y.
        feeds: Values of all inputs; those of float64 are differentiated by.
        xs: Others than all of float64.
        y: The value.
        tolerance: Largest difference relative to the largest gradient, or to 1.
        kind: Of training_model().
    """
    xs = [n for n, a in feeds.items() if a.dtype == np.float64] if xs is None else xs
    plain = chipdock.load(training_model(nodes, feeds, [y], **kind))
    result = plain.run(feeds)[y].numpy()
    weights = rng(7).uniform(0.5, 1.5, result.shape)
    scaled = [*nodes, helper.make_node("Mul", [y, "weights"], ["scaled"])]
    feeds = {**feeds, "weights": weights}
    net = chipdock.load(
        training_model([*scaled, gradient(xs, "scaled")], feeds, [f"d{x}" for x in xs], **kind)
    )
    found = net.run(feeds)

    def total(at: Mapping[str, np.ndarray]) -> float:
        inputs = {n: a for n, a in at.items() if n != "weights"}
        return float((plain.run(inputs)[y].numpy() * weights).sum())

    for x in xs:
        wanted, got = numeric(total, feeds, x), found[f"d{x}"].numpy()
        assert got.dtype == feeds[x].dtype
        assert got.shape == wanted.shape
        scale = max(1.0, float(np.abs(wanted).max(initial=0.0)))
        np.testing.assert_allclose(got, wanted, rtol=0, atol=tolerance * scale, err_msg=f"d{x}")

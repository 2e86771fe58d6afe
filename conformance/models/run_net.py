# SPDX-License-Identifier: Apache-2.0
"""Runs the small networks on the device under test and judges them against fp64."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from chipdock.conformance.case import Variant, fail
from chipdock.conformance.models.net import Network, outputs_of
from chipdock.conformance.models.nets import NETS, decoder
from chipdock.conformance.numerics.cache import cached, key_of
from chipdock.conformance.numerics.dtypes import numpy_dtype, wide
from chipdock.conformance.numerics.judge import Expected, Judge
from chipdock.conformance.opcases.execute import explained, guarded_run, judge_all, load_on

if TYPE_CHECKING:
    from chipdock.conformance.target import Target

__all__ = ["agreement", "check_top", "expected_of", "run_decoder", "run_net"]

_Array = NDArray[Any]


def expected_of(network: Network, feeds: Mapping[str, _Array]) -> list[Expected]:
    """Return what a network gives in fp64, kept on disk."""
    key = key_of([network.key, *feeds], list(feeds.values()))
    return cached(key, lambda: [Expected(v) for v in outputs_of(network.double, feeds)])


def agreement(got: _Array, exact: _Array, slack: float) -> float:
    """Return the share of rows whose largest element is the right one.

    Args:
        got: Any shape; rows are along the last axis.
        exact: The same shape.
        slack: Rows whose two largest exact values are closer than this count as right: either
            may win within the tolerance.
    """
    rows = wide(exact).astype(np.float64).reshape(-1, exact.shape[-1])
    if rows.shape[-1] < 2 or not rows.size:
        return 1.0
    best = np.sort(rows, axis=-1)
    undecided = best[:, -1] - best[:, -2] <= slack
    chosen = wide(got).astype(np.float64).reshape(rows.shape).argmax(axis=-1)
    return float(np.mean((chosen == rows.argmax(axis=-1)) | undecided))


def check_top(got: _Array, exact: _Array, *, half: bool) -> None:
    """Judge which element of each row is the largest.

    Raises:
        CheckError: In too many rows it is another one.
    """
    least, unit = (0.99, 2e-2) if half else (0.999, 1e-4)
    share = agreement(got, exact, unit * float(np.abs(exact).max(initial=0.0)))
    if share < least:
        fail(f"the largest element is the right one in {share:.2%} of the rows",
             metric="top1", value=share, limit=least)  # fmt: skip


def _feeds(target: Target, shapes: Mapping[str, tuple[int, ...]], dtype: str) -> dict[str, _Array]:
    return {
        name: target.rng.integers(0, 100, shape) if name == "tokens"
        else target.rng.standard_normal(shape).astype(numpy_dtype(dtype))
        for name, shape in shapes.items()
    }  # fmt: skip


def run_net(target: Target, variant: Variant) -> None:
    """Load a network once and run it with every set of inputs.

    Raises:
        CheckError: An output is not close enough.
        NotSupported: The plugin lists no kernel for a node.
    """
    build, sets = NETS[variant.name]
    network = build(variant.dtype)
    loaded = load_on(target, network.model)
    half = variant.dtype in {"f16", "bf16"}
    for shapes in sets:
        feeds = _feeds(target, shapes, variant.dtype)
        expected = expected_of(network, feeds)
        with explained(target, network.model):
            results = guarded_run(loaded, feeds, expected, dynamic=False)
        target.digest(*results)
        judge_all(target, Judge("M"), results, expected, None)
        check_top(results[0], expected[0].value, half=half)


def run_decoder(target: Target, variant: Variant) -> None:
    """Decode tokens one by one; the caches of keys and values are written where they lie.

    Args:
        target: The device under test.
        variant: `aliased`: outputs lie in the memory of the inputs, else in two sets by turns.

    Raises:
        CheckError: A step is not close enough, or the caches are not.
        NotSupported: The plugin lists no kernel for a node.
    """
    import chipdock  # noqa: PLC0415

    network = decoder(variant.dtype)
    loaded = load_on(target, network.model)
    half = variant.dtype in {"f16", "bf16"}
    empty = np.zeros((1, 4, 16, 8), numpy_dtype(variant.dtype))
    names = ("keys", "values")
    sets = [{name: chipdock.array(empty, target.device) for name in names}
            for _ in range(1 if variant.aliased else 2)]  # fmt: skip
    exact: dict[str, _Array] = {name: empty.astype(np.float64) for name in names}
    for place, token in enumerate(target.rng.integers(0, 50, 12)):
        feeds = {"token": np.full((1, 1), token), "place": np.array([place])}
        binding = loaded.bind()
        for name, value in feeds.items():
            binding.input(name, value)
        source, goal = sets[place % len(sets)], sets[(place + 1) % len(sets)]
        for name in names:
            binding.input(name, source[name]).output(f"{name}_out", goal[name])
        with explained(target, network.model):
            results = [array.numpy() for array in binding.run().values()]
        expected = expected_of(network, feeds | exact)
        exact = {name: row.value for name, row in zip(names, expected[1:], strict=True)}
        target.digest(*results)
        # The caches are empty at first, so that zeros in them say nothing.
        judge_all(target, Judge("M"), results[:1], expected[:1], None)
        check_top(results[0], expected[0].value, half=half)
        for name, row in zip(names, expected[1:], strict=True):
            Judge("M").check(goal[name].numpy(), row, f"the cache of {name}")

# SPDX-License-Identifier: Apache-2.0
"""The goldens of real models: what they hold, and how an output is compared with one.

A golden of an output holds its extents and type, some 2,000 elements, its norm, and the sums of
all elements under two patterns of signs, which notice an error between the sampled elements. They
were computed by an independent runtime; goldens.py makes them. Values are in golden/<model>.npz,
where they come from is in golden/index.json.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipdock.conformance.case import fail
from chipdock.conformance.numerics.judge import Expected, Judge

__all__ = ["FOLDER", "SAMPLES", "Golden", "check_output", "digest_of", "read_golden", "read_index",
           "summarize"]  # fmt: skip

FOLDER = Path(__file__).parent / "golden"
SAMPLES = 2000
_LIMIT = 1e-4
_Array = NDArray[Any]
Golden = Mapping[str, _Array]
"""shape, kind (name of the numpy type), samples, norm, signed [2]; of one output."""


def digest_of(arrays: Mapping[str, _Array]) -> str:
    """Return the sha256 of inputs: names, types, extents, bytes."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name}\0{array.dtype.name}{array.shape}\0".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _mixed(count: int, salt: int) -> NDArray[np.uint64]:
    """Well mixed numbers that no version of numpy changes.

    Source: splitmix64, Steele, Lea and Flood, OOPSLA 2014.
    """
    with np.errstate(over="ignore"):
        z = (np.arange(count, dtype=np.uint64) + np.uint64(salt << 40)) * np.uint64(
            0x9E3779B97F4A7C15
        )
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


def _places(size: int) -> NDArray[np.int64]:
    """Which elements are sampled: all, or one of each stretch of equal length."""
    if size <= SAMPLES:
        return np.arange(size)
    edges = np.linspace(0, size, SAMPLES + 1).astype(np.int64)
    return edges[:-1] + (_mixed(SAMPLES, 1) % np.diff(edges).astype(np.uint64)).astype(np.int64)


def summarize(output: _Array) -> dict[str, _Array]:
    """Return the golden of an output."""
    flat = output.reshape(-1)
    wide = flat.astype(np.float64)
    signs = [1.0 - 2.0 * (_mixed(flat.size, salt) & np.uint64(1)) for salt in (2, 3)]
    return {
        "shape": np.array(output.shape, np.int64),
        "kind": np.array(output.dtype.name),
        "samples": flat[_places(flat.size)],
        "norm": np.array(np.linalg.norm(wide)),
        "signed": np.array([wide @ sign for sign in signs]),
    }


def check_output(got: _Array, golden: Golden, name: str) -> dict[str, Any]:
    """Judge an output of float32 or integers by class M.

    Args:
        got: What the device computed.
        golden: Of this output.
        name: For the texts.

    Returns:
        Evidence.

    Raises:
        CheckError: It is too far from the golden.
    """
    have = summarize(got)
    for part in ("shape", "kind"):
        if have[part].tolist() != golden[part].tolist():
            fail(
                f"{name} has the {part} {have[part].tolist()}, the golden {golden[part].tolist()}",
                metric=part,
                value=str(have[part].tolist()),
                limit=str(golden[part].tolist()),
            )
    evidence = Judge("M").check(have["samples"], Expected(golden["samples"]), name)
    norm = float(golden["norm"])
    # A sum of errors with random signs is about the norm of the errors; five times is never.
    rows = [("norm", float(abs(have["norm"] - norm)), _LIMIT * norm)]
    rows += [("signed_sum", float(off), 5 * _LIMIT * norm)
             for off in np.abs(have["signed"] - golden["signed"])]  # fmt: skip
    for metric, off, limit in rows:
        if not off <= limit + 1e-12:
            fail(f"{name}: the {metric} over all elements is off by {off:.3g}",
                 metric=metric, value=off, limit=limit)  # fmt: skip
    return evidence


@functools.cache
def read_index(folder: Path = FOLDER) -> dict[str, Any]:
    """Return index.json: tool, and for each model its sha256 and its cases with their inputs'."""
    loaded: dict[str, Any] = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    return loaded


def read_golden(model: str, case: str, outputs: int, folder: Path = FOLDER) -> list[
    Golden
]:  # fmt: skip
    """Return the goldens of a case, one for each output.

    Raises:
        ValueError: The file is not the one that the index names.
    """
    path = folder / f"{model}.npz"
    wanted = read_index(folder)["models"][model]["data"]
    if hashlib.sha256(path.read_bytes()).hexdigest() != wanted:
        raise ValueError(f"{path} has another sha256 than {wanted[:16]}… in index.json")
    with np.load(path, allow_pickle=False) as arrays:
        parts = ("shape", "kind", "samples", "norm", "signed")
        return [{p: arrays[f"{case}/{i}/{p}"] for p in parts} for i in range(outputs)]

# SPDX-License-Identifier: Apache-2.0
"""Writes what goes into and comes out of operators and models, and what was expected.

For one case in one process (solo.py): the public functions of chipdock are wrapped before the case
imports them. Inputs are on disk before the call, so that they outlive a crash in it.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["install"]

_done = False


class _Writer:
    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._number = itertools.count()

    def begin(self, what: str) -> str:
        """Return the start of the file names of one call."""
        return f"{next(self._number):03}_{re.sub(r'[^A-Za-z0-9_]+', '_', what)}"

    def array(self, stem: str, name: str, value: Any) -> None:
        """Write one tensor. Types that .npy lacks become their bits; the dtype is in the name."""
        if value is None:
            return
        made = np.asarray(value.numpy() if hasattr(value, "copy_to_numpy") else value)
        safe = re.sub(r"[^A-Za-z0-9_]+", "_", name)
        kept = made
        if made.dtype.hasobject:
            kept = made.astype(str)
        elif made.dtype.isbuiltin != 1 and made.dtype.kind not in "US":
            kept = made.copy(order="C").view(f"u{made.dtype.itemsize}")
        np.save(self._folder / f"{stem}.{safe}.{made.dtype.name}.npy", kept)

    def model(self, stem: str, source: Any) -> None:
        """Write a model that was given as a proto or as bytes; a path is its own file."""
        data = source.SerializeToString() if hasattr(source, "SerializeToString") else source
        if isinstance(data, bytes | bytearray | memoryview):
            (self._folder / f"{stem}.model.onnx").write_bytes(data)


def install(folder: Path) -> None:
    """Wrap load, run_op, Model.run, Binding and the suite's judge so that all tensors are written.

    Args:
        folder: Made if it is not there. Files are NNN_what.name.dtype.npy and NNN_load.model.onnx,
            numbered in the order of the calls.

    Raises:
        RuntimeError: It was done before in this process.
    """
    global _done  # noqa: PLW0603  what is wrapped is the process's
    if _done:
        raise RuntimeError("tensors are already written in this process")
    _done = True
    import chipdock  # noqa: PLC0415  the runtime is loaded when a case is run
    from chipdock import model as models  # noqa: PLC0415
    from chipdock.conformance.numerics.judge import Expected, Judge  # noqa: PLC0415

    writer = _Writer(folder)
    load, run_op = chipdock.load, chipdock.run_op
    run, bound_run, bound_input = models.Model.run, models.Binding.run, models.Binding.input

    @functools.wraps(load)
    def load_too(model: Any, *args: Any, **kwargs: Any) -> Any:
        writer.model(writer.begin("load"), model)
        return load(model, *args, **kwargs)

    @functools.wraps(run_op)
    def run_op_too(op: str, *inputs: Any, **kwargs: Any) -> Any:
        stem = writer.begin(op)
        for number, value in enumerate(inputs):
            writer.array(stem, f"in{number}", value)
        result = run_op(op, *inputs, **kwargs)
        for number, value in enumerate(result if isinstance(result, tuple) else (result,)):
            writer.array(stem, f"out{number}", value)
        return result

    @functools.wraps(run)
    def run_too(self: models.Model, inputs: Mapping[str, Any], **kwargs: Any) -> Any:
        stem = writer.begin("run")
        for name, value in inputs.items():
            writer.array(stem, f"in_{name}", value)
        results = run(self, inputs, **kwargs)
        for name, value in results.items():
            writer.array(stem, f"out_{name}", value)
        return results

    @functools.wraps(bound_input)
    def bound_input_too(self: models.Binding, name: str, value: Any) -> Any:
        writer.array(writer.begin("bind"), f"in_{name}", value)
        return bound_input(self, name, value)

    @functools.wraps(bound_run)
    def bound_run_too(self: models.Binding, *args: Any, **kwargs: Any) -> Any:
        stem = writer.begin("run")
        results = bound_run(self, *args, **kwargs)
        for name, value in results.items():
            writer.array(stem, f"out_{name}", value)
        return results

    check = Judge.check

    @functools.wraps(check)
    def check_too(
        self: Judge, got: Any, expected: Expected, name: str = "the output", **kwargs: Any
    ) -> Any:
        stem = writer.begin("judge")
        writer.array(stem, f"{name}_got", got)
        writer.array(stem, f"{name}_expected", expected.value)
        return check(self, got, expected, name, **kwargs)

    for owner, name, made in (
        (Judge, "check", check_too),
        (chipdock, "load", load_too),
        (chipdock, "run_op", run_op_too),
        (models.Model, "run", run_too),
        (models.Binding, "input", bound_input_too),
        (models.Binding, "run", bound_run_too),
    ):
        setattr(owner, name, made)

# SPDX-License-Identifier: Apache-2.0
"""Reads the cases that the onnx package ships: model, inputs and expected outputs of each."""

from __future__ import annotations

import functools
import re
import tomllib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx.backend.test.loader import load_model_tests

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator", "real")
_KNOWN = Path(__file__).with_name("known.toml")
_DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"


@dataclass(frozen=True)
class Case:
    """One case.

    Attributes:
        name: As onnx names it, without "test_".
        kind: One of KINDS.
        operator: What it is about: the first node's operator; of "..._expanded" cases, that of the
            case which they expand.
        source: onnx's own description.
    """

    name: str
    kind: str
    operator: str
    source: Any

    def model(self) -> onnx.ModelProto:
        """The model; read from its file for all kinds but node."""
        if self.source.model is not None:
            return self.source.model
        return onnx.load(_model_path(self.source))

    def data(self, model: onnx.ModelProto) -> Iterator[tuple[list[Any], list[Any]]]:
        """Inputs in the model's order and expected outputs: arrays, lists of arrays, or None."""
        if self.source.data_sets is not None:
            for inputs, outputs in self.source.data_sets:
                yield [_plain(v) for v in inputs], [_plain(v) for v in outputs]
        elif self.kind == "real":
            yield _ramp(model), [_tensor(p) for p in _outputs_beside(_model_path(self.source))]
        else:
            for folder in sorted(Path(self.source.model_dir).glob("test_data_set_*")):
                yield (
                    _read(folder, "input", list(model.graph.input)),
                    _read(folder, "output", list(model.graph.output)),
                )


def _model_path(source: Any) -> Path:
    if source.model_dir is not None:
        return Path(source.model_dir) / "model.onnx"
    return _DATA / "light" / Path(source.url).name


def _outputs_beside(path: Path) -> list[Path]:
    return sorted(path.parent.glob(f"{path.stem}_output_*.pb"))


def _ramp(model: onnx.ModelProto) -> list[Any]:
    """0 to 1 over all elements: the input that onnx computed the stored outputs of "real" from."""
    weights = {t.name for t in model.graph.initializer}
    out = []
    for value in model.graph.input:
        if value.name in weights:
            continue
        shape = [d.dim_value if d.HasField("dim_value") else 1 for d in _dims(value)]
        count = int(np.prod(shape))
        out.append((np.arange(count).reshape(shape) / count).astype(np.float32))
    return out


def _dims(value: onnx.ValueInfoProto) -> Any:
    return value.type.tensor_type.shape.dim


def _plain(value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    return value


def _tensor(path: Path) -> np.ndarray:
    return onnx.numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes()))


def _read(folder: Path, what: str, values: list[onnx.ValueInfoProto]) -> list[Any]:
    count = len(list(folder.glob(f"{what}_*.pb")))
    out: list[Any] = []
    for value, index in zip(values, range(count), strict=False):
        path = folder / f"{what}_{index}.pb"
        kind = value.type.WhichOneof("value")
        if kind == "sequence_type":
            sequence = onnx.SequenceProto.FromString(path.read_bytes())
            out.append(onnx.numpy_helper.to_list(sequence))
        elif kind == "optional_type":
            optional = onnx.OptionalProto.FromString(path.read_bytes())
            out.append(onnx.numpy_helper.to_optional(optional))
        else:
            out.append(_tensor(path))
    return out


def _name(source: Any) -> str:
    return str(source.name).removeprefix("test_")


@functools.cache
def all_cases() -> tuple[Case, ...]:
    """Every case of every kind; takes some seconds, for onnx computes the node cases anew."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of the cases' own arithmetic
        loaded = {kind: load_model_tests(kind=kind) for kind in KINDS}
    nodes = {_name(s): s for s in loaded["node"]}
    out = []
    for kind in KINDS:
        for source in sorted(loaded[kind], key=_name):
            operator = kind
            if kind == "node":
                base = nodes.get(re.sub(r"_expanded.*", "", _name(source)), source)
                operator = base.model.graph.node[0].op_type
            out.append(Case(_name(source), kind, operator, source))
    return tuple(out)


@dataclass(frozen=True)
class Known:
    """Why a case cannot pass.

    Attributes:
        reason: In words.
        random: Its outputs are random numbers: it must run, and differ in their values at most.
    """

    reason: str
    random: bool

    def holds(self, failure: str | None) -> bool:
        """True if the outcome is the known one."""
        if self.random:
            return failure is None or "Not equal to tolerance" in failure
        return failure is not None


@functools.cache
def known() -> dict[tuple[str, str], Known]:
    """Cases that cannot pass, by kind and name; see known.toml."""
    entries = tomllib.loads(_KNOWN.read_text())["expected"]
    return {
        (e["kind"], name): Known(e["reason"], e.get("random", False))
        for e in entries
        for name in e["cases"]
    }

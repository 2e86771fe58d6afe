# SPDX-License-Identifier: Apache-2.0
"""What is measured of a model: its file, its sizes and its inputs; public and built ones alike."""

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from bench.harness import Settings
from bench.models import transformers, vision
from bench.models.net import Net, saved
from chipdock.models.catalogue import Entry, entry
from chipdock.models.fetch import fetch

_PUBLIC = Path(__file__).with_name("public.toml")
QUICK = ("ppocr-cls-mobile-v2", "tiny")


@dataclass(frozen=True)
class Point:
    """One size of a model's inputs.

    Attributes:
        batch: What "N" is.
        length: What "L" is, 0 if the model has none.
        text: For reports.
    """

    batch: int
    length: int
    text: str


@dataclass(frozen=True)
class Subject:
    """A model of the benchmark.

    Attributes:
        name: Unique.
        source: Finds or builds the file, in a folder for what is built.
        inputs: Rows as public.toml explains.
        batches, lengths, unit: Sizes that are measured.
        essential: Part of a short run.
        rough: Runtimes differ in their numbers by design (int8).
    """

    name: str
    source: Callable[[Settings, Path], Path]
    inputs: Sequence[Sequence[Any]]
    batches: Sequence[int] = (1, 8)
    lengths: Sequence[int] = ()
    unit: str = ""
    essential: bool = False
    rough: bool = False

    def points(self, settings: Settings) -> list[Point]:
        """The sizes that these settings ask for, the middle length of the first batch first."""
        lengths = list(self.lengths) or [0]
        if settings.essential or settings.quick:
            lengths = [lengths[len(lengths) // 2]]
        batches = self.batches[:1] if settings.quick else self.batches
        return [
            Point(n, k, f"batch {n}" + (f", {k} {self.unit}" if k else ""))
            for n in batches
            for k in lengths
        ]

    def first_point(self) -> Point:
        """The size that load, first run and memory are measured with."""
        length = self.lengths[len(self.lengths) // 2] if self.lengths else 0
        return Point(self.batches[0], length, f"{length} {self.unit}" if length else "")

    def feeds(self, point: Point) -> dict[str, np.ndarray]:
        """Inputs of one size; the same in every run."""
        rng = np.random.default_rng(5)
        sizes = {"N": point.batch, "L": point.length}
        out = {}
        for name, dtype, shape, low, high in self.inputs:
            extents = [sizes.get(extent, extent) for extent in shape]
            if isinstance(low, list):
                out[name] = np.asarray(low, dtype)
                continue
            first, last = sizes.get(low, low), sizes.get(high, high)
            if np.dtype(dtype).kind == "f":
                out[name] = rng.uniform(first, last, extents).astype(dtype)
            else:
                out[name] = rng.integers(first, last, extents, dtype, endpoint=True)
        return out


_FIELDS = {"inputs", "batches", "lengths", "unit", "essential", "rough"}


def _public() -> list[Subject]:
    found = []
    for item in tomllib.loads(_PUBLIC.read_text(encoding="utf-8"))["model"]:
        mine = {key: value for key, value in item.items() if key in _FIELDS}
        rest = {key: value for key, value in item.items() if key not in _FIELDS}
        file = Entry(**rest) if "package" in rest else entry(rest["name"])
        found.append(
            Subject(
                name=file.name,
                source=lambda settings, _, file=file: fetch(file, download=settings.download),
                **mine,
            )
        )
    return found


def _built(name: str, make: Callable[[Net], None], **sizes: Any) -> Subject:
    def source(_: Settings, folder: Path) -> Path:
        path = folder / f"{name}.onnx"
        return path if path.is_file() else saved(make, folder, name)

    return Subject(name=name, source=source, essential=True, **sizes)


def _tokens(below: int) -> list[list[Any]]:
    return [["input_ids", "int64", ["N", "L"], 0, below - 1]]


def subjects(settings: Settings) -> list[Subject]:
    """Return the models that these settings ask for: public ones first."""
    pictures = [["x", "float32", ["N", 3, 224, 224], -1, 1]]
    built = [
        _built("resnet50", vision.resnet50, inputs=pictures),
        _built("vit-b16", transformers.vit_b16, inputs=pictures),
        _built("bert-base", transformers.bert_base, lengths=(16, 128, 512), unit="tokens",
               inputs=[*_tokens(30522), ["attention_mask", "int64", ["N", "L"], 1, 1]]),
        _built("llama-stack", transformers.llama_stack, lengths=(16, 128, 512), unit="tokens",
               inputs=_tokens(transformers.LLAMA_VOCABULARY)),
        _built("unet", vision.unet, lengths=(32, 64, 96), unit="px",
               inputs=[["x", "float32", ["N", 4, "L", "L"], -1, 1],
                       ["time", "float32", ["N", vision.UNET_TIME], -1, 1]]),
    ]  # fmt: skip
    if settings.quick:
        tiny = _built("tiny", vision.tiny, inputs=[["x", "float32", ["N", 3, 16, 16], -1, 1]])
        return [s for s in (*_public(), tiny) if s.name in QUICK]
    return [
        s
        for s in (*_public(), *built)
        if (s.essential or not settings.essential)
        and (not settings.models or any(fnmatchcase(s.name, m) for m in settings.models))
    ]

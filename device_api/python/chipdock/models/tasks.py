# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: PLC0415  optional and slow packages are imported where they are used
"""The cases of each model: inputs, how its answer is read, and the answer that is right.

A model with free dimensions gets several shapes, so that one load has to serve them all. Comparing
numbers with a reference is left to check.py.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from chipdock.models import catalogue, decode, inputs, wordpiece
from chipdock.models.catalogue import Entry
from chipdock.models.fetch import fetch

if TYPE_CHECKING:
    from PIL import Image

__all__ = ["Arrays", "Case", "cases"]

Arrays = Mapping[str, NDArray[Any]]

_PAGE = (
    "The quick brown fox jumps",
    "over the lazy dog 0123456789",
    "chipdock runs real models",
    "Shapes may change every call",
    "and the answer stays right",
)
_LINES = ("Hello chipdock 2026", "One plugin, many chips", "Zero copies 1 GiB")
_PAIRS = (
    "A man is playing a guitar.",
    "Someone plays music on a guitar.",
    "The cat sleeps on the sofa.",
    "A kitten is sleeping on the couch.",
    "The stock market fell today.",
    "Share prices dropped this morning.",
)
_PARAGRAPHS = (
    "The old bridge over the river was closed in the spring because the water had damaged one of "
    "its stone pillars. Engineers now say that the repair will take until the end of the year. "
    "Until then all cars must use the new road in the north of the city, and people who walk can "
    "take a small boat every ten minutes. ",
    "In spring the stone bridge across the river had to be closed, since one pillar was hurt by "
    "the high water. The work to repair it goes on for the rest of the year, the engineers say. "
    "Drivers have to take the road in the north of the town, while walkers are carried over by a "
    "boat that leaves six times an hour. ",
)


@dataclass(frozen=True)
class Case:
    """One call of a model.

    Attributes:
        name: Short name, unique within the model.
        feeds: Input arrays by input name.
        decode: Reads the answer out of the outputs.
        expected: The right answer.
    """

    name: str
    feeds: Arrays
    decode: Callable[[Arrays], str]
    expected: str

    @property
    def shapes(self) -> str:
        """The input shapes, such as "1x3x480x640"."""
        return ", ".join(
            dict.fromkeys("x".join(map(str, array.shape)) for array in self.feeds.values())
        )


def _only(outputs: Arrays) -> NDArray[Any]:
    (array,) = outputs.values()
    return array


def _overlap(a: inputs.Box, b: inputs.Box) -> float:
    """Return the shared area of two boxes divided by the area of the smaller one."""
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
    return max(width, 0) * max(height, 0) / max(min(areas), 1)


def _found_lines(maps: NDArray[Any], pages: Sequence[inputs.Page]) -> str:
    """Count lines that exactly one box covers over most of their length, and boxes elsewhere."""
    found = total = others = 0
    for probability, page in zip(maps[:, 0], pages, strict=True):
        boxes = decode.text_boxes(probability)
        used = 0
        for line in page.boxes:
            hits = [box for box in boxes if _overlap(box, line) > 0.5]
            wide = len(hits) == 1 and hits[0][2] - hits[0][0] > 0.8 * (line[2] - line[0])
            found += wide
            used += len(hits)
        total += len(page.boxes)
        others += len(boxes) - used
    return f"{found} of {total} lines" + (f", {others} more boxes" if others else "")


def _detector(_: Path) -> list[Case]:
    full = [inputs.draw_page(_PAGE, 640, 480, 32)]
    small = [inputs.draw_page(_PAGE[:3], 416, 224, 22)]
    batch = [inputs.draw_page(_PAGE[i : i + 2], 384, 128, 20) for i in (1, 3)]
    result = []
    for name, pages in (("page", full), ("small", small), ("batch", batch)):
        x = np.concatenate([inputs.to_nchw(page.image, inputs.half_range) for page in pages])
        lines = sum(len(page.boxes) for page in pages)
        result.append(
            Case(
                name,
                {"x": x},
                lambda outputs, pages=pages: _found_lines(_only(outputs), pages),  # type: ignore[misc]
                f"{lines} of {lines} lines",
            )
        )
    return result


def _padded(images: Sequence["Image.Image"], width: int) -> NDArray[np.float32]:
    """Stack lines of text of one height; the right is filled with the middle value, 0."""
    stack = np.zeros((len(images), 3, images[0].height, width), np.float32)
    for row, image in enumerate(images):
        stack[row, :, :, : image.width] = inputs.to_nchw(image, inputs.half_range)[0]
    return stack


def _recogniser(model: Path) -> list[Case]:
    import onnx

    loaded = onnx.load(model)
    (text,) = (item.value for item in loaded.metadata_props if item.key == "character")
    characters = text.split("\n")
    images = [inputs.draw_line(line) for line in _LINES]
    widest = max(image.width for image in images)

    def read(outputs: Arrays) -> str:
        return " | ".join(decode.read_text(_only(outputs), characters))

    single = [
        Case(f"line{i}", {"x": _padded([image], -(-image.width // 8) * 8)}, read, _LINES[i])
        for i, image in enumerate(images[:2])
    ]
    batch = Case("batch", {"x": _padded(images, -(-widest // 32) * 32)}, read, " | ".join(_LINES))
    return [*single, batch]


def _direction(_: Path) -> list[Case]:
    from PIL import Image

    def read(outputs: Arrays) -> str:
        return " ".join(("0°", "180°")[index] for index in _only(outputs).argmax(axis=1))

    image = inputs.draw_line(_LINES[0]).resize((192, 48), Image.Resampling.BILINEAR)
    upright = inputs.to_nchw(image, inputs.half_range)
    turned = inputs.to_nchw(image.transpose(Image.Transpose.ROTATE_180), inputs.half_range)
    both = np.concatenate([turned, upright])
    return [
        Case("upright", {"x": upright}, read, "0°"),
        Case("turned", {"x": turned}, read, "180°"),
        Case("batch", {"x": both}, read, "180° 0°"),
    ]


def _classifier(_: Path) -> list[Case]:
    def read(outputs: Arrays) -> str:
        return " ".join(map(str, _only(outputs).argmax(axis=1)))

    names = ("grace_hopper", "china", "flower")
    classes = ("652", "698", "985")  # military uniform, palace, daisy
    pictures = [
        inputs.to_nchw(inputs.square(inputs.photo(name), 224), lambda p: (p - 127.0) / 128.0)
        for name in names
    ]
    single = [
        Case(name, {"x": picture}, read, answer)
        for name, picture, answer in zip(names, pictures, classes, strict=True)
    ]
    return [*single, Case("batch", {"x": np.concatenate(pictures)}, read, " ".join(classes))]


def _file_type(_: Path) -> list[Case]:
    config = json.loads(fetch(catalogue.asset("magika-config")).read_text(encoding="utf-8"))
    labels: list[str] = config["target_labels_space"]

    def read(outputs: Arrays) -> str:
        return " ".join(labels[index] for index in _only(outputs).argmax(axis=1))

    kinds = ("python", "c", "toml", "jpeg", "ttf", "zip")
    rows = np.stack([inputs.file_features(inputs.sample_file(kind)) for kind in kinds])
    return [
        Case("source", {"bytes": rows[:1]}, read, kinds[0]),
        Case("batch", {"bytes": rows}, read, " ".join(kinds)),
    ]


def _sentences(_: Path) -> list[Case]:
    def embeddings(outputs: Arrays) -> NDArray[Any]:
        (array,) = (a for a in outputs.values() if a.ndim == 2 and a.dtype == np.float32)
        return array

    def pairs(outputs: Arrays) -> str:
        return " ".join(f"{i}~{j}" for i, j in enumerate(decode.closest(embeddings(outputs))))

    def alike(outputs: Arrays) -> str:
        return "alike" if decode.cosine(embeddings(outputs))[0, 1] > 0.5 else "different"

    return [
        Case("pairs", dict(wordpiece.encode(_PAIRS)), pairs, "0~1 1~0 2~3 3~2 4~5 5~4"),
        Case("alike", dict(wordpiece.encode(_PARAGRAPHS)), alike, "alike"),
        Case("different", dict(wordpiece.encode((_PAIRS[0], _PAIRS[4]))), alike, "different"),
    ]


def _portraits(side: int) -> list[NDArray[np.float32]]:
    """Return a face and a piece of sky, each (side, side, 3) from 0 to 255."""
    face = inputs.photo("grace_hopper").crop((150, 60, 370, 280))
    sky = inputs.photo("china").crop((0, 0, 200, 200))
    return [np.asarray(image.resize((side, side)), np.float32) for image in (face, sky)]


def _words(scores: Sequence[float], threshold: float) -> str:
    return " ".join("face" if score > threshold else "none" for score in scores)


def _face_grid(side: int) -> Callable[[Path], list[Case]]:
    """Detectors with a fixed batch of one; the last output has a logit per anchor."""

    def build(_: Path) -> list[Case]:
        def read(outputs: Arrays) -> str:
            return _words([max(a.max() for a in outputs.values() if a.shape[-1] == 1)], 0.0)

        whole = np.asarray(inputs.square(inputs.photo("grace_hopper"), side), np.float32)
        pictures = (("portrait", whole, "face"), ("sky", _portraits(side)[1], "none"))
        return [
            Case(name, {"input": (pixels / 127.5 - 1.0)[None]}, read, answer)
            for name, pixels, answer in pictures
        ]

    return build


def _face_crops(sides: Sequence[int], threshold: float) -> Callable[[Path], list[Case]]:
    """Networks of a cascade, which say for each crop how likely it is a face."""

    def build(_: Path) -> list[Case]:
        def read(outputs: Arrays) -> str:
            chance = outputs["prob"][:, 1]
            return _words([float(item.max()) for item in chance], threshold)

        result = []
        for side in sides:
            x = np.stack([(item.transpose(2, 0, 1) - 127.5) / 128.0 for item in _portraits(side)])
            result.append(Case(f"side{side}", {"x": x}, read, "face none"))
        result.append(Case("single", {"x": x[1:]}, read, "none"))
        return result

    return build


_TASKS: Mapping[str, Callable[[Path], list[Case]]] = {
    "pp-ocrv6-det-small": _detector,
    "pp-ocrv6-rec-small": _recogniser,
    "ppocr-cls-mobile-v2": _direction,
    "efficientnet-lite0": _classifier,
    "magika": _file_type,
    "minilm-l3": _sentences,
    "blazeface-back": _face_grid(256),
    "blazeface-full-range": _face_grid(192),
    "mtcnn-pnet": _face_crops((12, 20), 0.6),
    "mtcnn-rnet": _face_crops((24,), 0.7),
    "mtcnn-onet": _face_crops((48,), 0.7),
}


def cases(item: Entry, model: Path) -> list[Case]:
    """Return the cases of a model, the one that is timed first.

    Args:
        item: The model's entry.
        model: Its file, which may hold labels that the answers need.

    Raises:
        ModelUnavailable: An input cannot be had here.
        KeyError: The catalogue has no such model.
    """
    return _TASKS[item.name](model)

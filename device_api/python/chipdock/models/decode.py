# SPDX-License-Identifier: Apache-2.0
"""Reads an answer that a person can judge out of a model's outputs.

Each function takes raw outputs and returns plain values. Which input belongs to which answer is
left to tasks.py.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from chipdock.models.inputs import Box

__all__ = ["Floats", "closest", "cosine", "read_text", "text_boxes"]

Floats = NDArray[np.float32]


def read_text(scores: Floats, characters: Sequence[str]) -> list[str]:
    """Read lines of text out of a recogniser's scores (connectionist temporal classification).

    Args:
        scores: float32, shape (lines, steps, classes); class 0 is the blank, the last the space.
        characters: The characters of classes 1 to classes - 2.

    Returns:
        One string a line: repeats merged, then blanks dropped.

    Source:
        A. Graves et al., Connectionist Temporal Classification, ICML 2006, section 3.
    """
    table = ["", *characters, " "]
    lines = []
    for row in scores.argmax(axis=2):
        changed = np.append(True, row[1:] != row[:-1])
        lines.append("".join(table[index] for index in row[changed]).strip())
    return lines


def _components(mask: NDArray[np.bool_]) -> list[Box]:
    """Return the bounding boxes of the 8-connected parts of a mask, shape (height, width)."""
    parent: list[int] = []
    spans: list[list[int]] = []  # left, top, right, bottom of each horizontal run

    def root(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    above: list[int] = []
    for y, row in enumerate(mask):
        edges = np.flatnonzero(np.diff(np.concatenate(([0], row.astype(np.int8), [0]))))
        here = []
        for left, right in zip(edges[::2], edges[1::2], strict=True):
            index = len(parent)
            parent.append(index)
            spans.append([int(left), y, int(right), y + 1])
            for other in above:
                if spans[other][0] <= right and spans[other][2] >= left:
                    parent[root(other)] = root(index)
            here.append(index)
        above = here
    boxes: dict[int, list[int]] = {}
    for index, (left, top, right, bottom) in enumerate(spans):
        box = boxes.setdefault(root(index), [left, top, right, bottom])
        box[:] = [min(box[0], left), min(box[1], top), max(box[2], right), max(box[3], bottom)]
    return sorted((left, top, right, bottom) for left, top, right, bottom in boxes.values())


def text_boxes(probability: Floats, threshold: float = 0.3, score: float = 0.5) -> list[Box]:
    """Return upright boxes of text in a detector's probability map.

    Args:
        probability: float32, shape (height, width), 0 to 1.
        threshold: A pixel above it belongs to text.
        score: A box whose text pixels have a smaller mean is dropped, as is one under 4 pixels.

    Source:
        M. Liao et al., Real-time Scene Text Detection with Differentiable Binarization,
        arXiv:1911.08947, section 3.4. Upright boxes replace the polygons.
    """
    mask = probability > threshold
    boxes = []
    for left, top, right, bottom in _components(mask):
        inside = mask[top:bottom, left:right]
        if min(inside.shape) < 4:
            continue
        if probability[top:bottom, left:right][inside].mean() >= score:
            boxes.append((left, top, right, bottom))
    return boxes


def cosine(vectors: Floats) -> NDArray[np.float64]:
    """Return the cosine of each pair of rows: shape (n, width) gives (n, n)."""
    wide = vectors.astype(np.float64)
    unit = wide / np.linalg.norm(wide, axis=1, keepdims=True)
    return np.asarray(unit @ unit.T)


def closest(vectors: Floats) -> list[int]:
    """Return, for each row, the number of the other row with the largest cosine."""
    alike = cosine(vectors)
    np.fill_diagonal(alike, -np.inf)
    return [int(index) for index in alike.argmax(axis=1)]

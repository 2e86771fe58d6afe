# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: PLC0415  optional and slow packages are imported where they are used
"""Inputs that mean something: drawn text, photos, files and their preprocessing.

Random noise leaves most real models with outputs that are all alike, so a wrong kernel would not
show. What the models answer to these inputs is left to tasks.py.
"""

import io
import math
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import util
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from chipdock.models import catalogue
from chipdock.models.fetch import ModelUnavailable, fetch

if TYPE_CHECKING:
    from PIL import Image

__all__ = [
    "Box",
    "Floats",
    "Page",
    "draw_line",
    "draw_page",
    "file_features",
    "half_range",
    "photo",
    "sample_file",
    "square",
    "to_nchw",
]

Floats = NDArray[np.float32]
Box = tuple[int, int, int, int]
"""Left, top, right, bottom in pixels; right and bottom are outside."""

_WHITESPACE = b" \t\n\r\v\f"
_PADDING_TOKEN = 256


def _matplotlib_data(*parts: str) -> Path:
    """Return a data file of matplotlib without importing matplotlib.

    Raises:
        ModelUnavailable: matplotlib is not installed or lacks the file.
    """
    spec = util.find_spec("matplotlib")
    path = Path(spec.origin).parent.joinpath("mpl-data", *parts) if spec and spec.origin else None
    if path is None or not path.is_file():
        raise ModelUnavailable(parts[-1], ["matplotlib is not installed or lacks the file"])
    return path


def _pillow() -> None:
    if util.find_spec("PIL") is None:
        raise ModelUnavailable("an input picture", ["pillow is not installed"])


@dataclass(frozen=True)
class Page:
    """A drawn page: the picture and where each line of text stands."""

    image: "Image.Image"
    boxes: tuple[Box, ...]


def draw_page(lines: Sequence[str], width: int, height: int, size: int) -> Page:
    """Draw lines of text, evenly spread and black on white, in matplotlib's DejaVu Sans.

    Args:
        lines: The text, one string a line; a line must fit into `width`.
        width: Width of the picture in pixels.
        height: Height of the picture in pixels.
        size: Height of the font in pixels.

    Raises:
        ModelUnavailable: Pillow or the font is missing.
    """
    _pillow()
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.truetype(_matplotlib_data("fonts", "ttf", "DejaVuSans.ttf"), size)
    image = Image.new("RGB", (width, height), "white")
    draw = ImageDraw.Draw(image)
    boxes = []
    for index, line in enumerate(lines):
        middle = (index + 0.5) * height / len(lines)
        place = (width / 16, middle)
        draw.text(place, line, fill="black", font=font, anchor="lm")
        left, top, right, bottom = draw.textbbox(place, line, font=font, anchor="lm")
        boxes.append((math.floor(left), math.floor(top), math.ceil(right), math.ceil(bottom)))
    return Page(image, tuple(boxes))


def draw_line(text: str, height: int = 48) -> "Image.Image":
    """Draw one line of text that fills the height, as a detector would cut it out.

    Args:
        text: The text.
        height: Height of the picture in pixels; the width follows from the text.

    Raises:
        ModelUnavailable: Pillow or the font is missing.
    """
    _pillow()
    from PIL import Image, ImageDraw, ImageFont

    path = _matplotlib_data("fonts", "ttf", "DejaVuSans.ttf")
    font = ImageFont.truetype(path, round(height * 0.7))
    left, top, right, bottom = font.getbbox(text, anchor="lm")
    margin = height // 4
    image = Image.new("RGB", (math.ceil(right - left) + 2 * margin, height), "white")
    place = (margin - left, height / 2 - (top + bottom) / 2)
    ImageDraw.Draw(image).text(place, text, fill="black", font=font, anchor="lm")
    return image


def photo(name: str) -> "Image.Image":
    """Return a photo: "grace_hopper" of matplotlib, "china" or "flower" of scikit-learn.

    Raises:
        ModelUnavailable: Pillow or the photo cannot be had.
    """
    _pillow()
    from PIL import Image

    if name == "grace_hopper":
        path = _matplotlib_data("sample_data", "grace_hopper.jpg")
    else:
        path = fetch(catalogue.asset(name))
    return Image.open(path).convert("RGB")


def square(image: "Image.Image", side: int) -> "Image.Image":
    """Return the largest square around the centre, scaled to `side` pixels."""
    from PIL import Image

    edge = min(image.size)
    left, top = (image.width - edge) // 2, (image.height - edge) // 2
    cut = image.crop((left, top, left + edge, top + edge))
    return cut.resize((side, side), Image.Resampling.BICUBIC)


def to_nchw(image: "Image.Image", scale: Callable[[Floats], Floats]) -> Floats:
    """Return pixels (0 to 255, RGB) after `scale` as float32, shape (1, 3, height, width)."""
    pixels = scale(np.asarray(image, dtype=np.float32))
    return np.ascontiguousarray(pixels.transpose(2, 0, 1)[None], dtype=np.float32)


def half_range(pixels: Floats) -> Floats:
    """Map 0..255 to -1..1, what the text models were trained with."""
    return (pixels / 255.0 - 0.5) / 0.5


def sample_file(kind: str) -> bytes:
    """Return the bytes of a real file of one kind.

    Args:
        kind: "python" and "c" are source files of CPython and NumPy, "jpeg" and "ttf" come from
            matplotlib, "toml" from this package; "zip" is packed on the spot.

    Raises:
        ModelUnavailable: The package that ships the file is missing.
        KeyError: Another kind.
    """
    if kind == "python":
        return Path(zipfile.__file__).read_bytes()
    if kind == "c":
        return Path(np.get_include(), "numpy", "ndarraytypes.h").read_bytes()
    if kind == "toml":
        return Path(__file__).with_name("catalogue.toml").read_bytes()
    if kind == "zip":
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(zipfile.ZipInfo("catalogue.toml"), sample_file("toml"))
        return buffer.getvalue()
    places = {
        "jpeg": ("sample_data", "grace_hopper.jpg"),
        "ttf": ("fonts", "ttf", "DejaVuSans.ttf"),
    }
    return _matplotlib_data(*places[kind]).read_bytes()


def file_features(content: bytes) -> NDArray[np.int32]:
    """Return what the file-type model sees of a file: its stripped first and last 1,024 bytes.

    Args:
        content: The file.

    Returns:
        Byte values and 256 for padding, int32, shape (2048,).

    Source:
        magika 1.0.3, config of standard_v3_3: beg_size and end_size 1024, block_size 4096.
    """
    first = content[:4096].lstrip(_WHITESPACE)
    last = content[-4096:].rstrip(_WHITESPACE)
    if len(content) <= 4096:
        first = last = content.strip(_WHITESPACE)
    features = np.full(2048, _PADDING_TOKEN, np.int32)
    head, tail = first[:1024], last[-1024:]
    features[: len(head)] = np.frombuffer(head, np.uint8)
    features[2048 - len(tail) :] = np.frombuffer(tail, np.uint8)
    return features

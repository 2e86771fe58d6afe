# SPDX-License-Identifier: Apache-2.0
"""Decoding image files for the operator ImageDecoder, by Pillow: the extra `chipdock[image]`.

The runtime calls `decode` (bindings/images.cpp), which imports this module at the first image.
"""

import io
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["FORMATS", "decode"]

FORMATS = ("BMP", "JPEG", "JPEG2000", "PNG", "PPM", "TIFF", "WEBP")
"""Pillow's names of the formats that ONNX lists; no other reader of Pillow sees a file."""

_SIXTEEN_BITS = ("I", "I;16", "I;16L", "I;16B", "I;16N")
_EIGHT_BITS = ("1", "L", "LA", "La", "P", "PA", "RGB", "RGBA", "RGBa", "RGBX", "CMYK", "YCbCr")


def decode(file: bytes, pixel_format: str) -> NDArray[np.uint8]:
    """Decode the first picture of a file, as it lies there: EXIF does not turn it.

    Args:
        file: Bytes of a file in one of `FORMATS`.
        pixel_format: "RGB", "BGR" or "Grayscale".

    Returns:
        Shape (height, width, 3), or (height, width, 1) for "Grayscale"; C-contiguous. Transparency
        is dropped; of 16 bits the upper 8 are kept.

    Raises:
        ImportError: Pillow is not installed.
        ValueError: The bytes are no such image, are damaged, or claim more pixels than
            `PIL.Image.MAX_IMAGE_PIXELS`.

    Source: ONNX ImageDecoder-20; the pixels of onnx's reference evaluator.
    """
    try:
        import PIL.Image  # noqa: PLC0415  an extra
    except ImportError as error:
        text = "ImageDecoder needs Pillow, which is missing; pip install 'chipdock[image]'"
        raise ImportError(text) from error
    try:
        with PIL.Image.open(io.BytesIO(file), formats=FORMATS) as image:
            _check_size(image, PIL.Image.MAX_IMAGE_PIXELS)
            pixels = _pixels(image, "L" if pixel_format == "Grayscale" else "RGB")
    except MemoryError as error:
        raise MemoryError(f"an image of {len(file)} bytes does not fit, decoded") from error
    except PIL.UnidentifiedImageError:
        text = f"{len(file)} bytes are no image; allowed are files of {', '.join(FORMATS)}"
        raise ValueError(text) from None
    except Exception as error:  # readers of damaged files raise whatever they stumble over
        text = f"{len(file)} bytes cannot be decoded as an image: {str(error) or repr(error)}"
        raise ValueError(text) from error
    if pixel_format == "BGR":
        pixels = pixels[:, :, ::-1]
    return np.ascontiguousarray(pixels if pixels.ndim == 3 else pixels[:, :, np.newaxis])


def _check_size(image: "Image", most: int | None) -> None:
    """Refuse a size before memory is taken for it: a file of a few bytes may claim any."""
    width, height = image.size
    if most is not None and width * height > most:
        raise ValueError(f"it claims {width} x {height} pixels, at most {most} are allowed; "
                         "PIL.Image.MAX_IMAGE_PIXELS is the limit")  # fmt: skip


def _pixels(image: "Image", mode: str) -> NDArray[np.uint8]:
    """The pixels in Pillow's mode "L" or "RGB"."""
    if image.mode in _SIXTEEN_BITS:
        wide = np.asarray(image)
        if wide.size and not 0 <= int(wide.min()) <= int(wide.max()) < 2**16:
            raise ValueError("its pixels have 32 bits, allowed are 1 to 16")
        gray = (wide >> 8).astype(np.uint8)
        return gray if mode == "L" else np.stack([gray] * 3, axis=2)
    if image.mode not in _EIGHT_BITS:
        raise ValueError(f"its pixels are {image.mode!r}, allowed are gray, RGB, CMYK, YCbCr and "
                         "palettes of up to 16 bits")  # fmt: skip
    # Pillow warns of a palette with transparency unless that is kept first.
    opaque = image.convert("RGBA") if "transparency" in image.info else image
    return np.asarray(opaque.convert(mode), np.uint8)

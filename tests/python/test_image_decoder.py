# SPDX-License-Identifier: Apache-2.0
"""ImageDecoder: files of every format that ONNX lists become pixels, others are refused by name."""

import builtins
import io
import struct
import threading
import zlib

import numpy as np
import PIL.Image
import pytest
from api_support import model, value
from onnx import TensorProto, helper

import chipdock
from chipdock.errors import InvalidArgumentError, OutOfMemoryError, UnavailableError

UINT8 = TensorProto.UINT8
# Pillow's name of each format, and whether it keeps pixels as they are.
FORMATS = {
    "BMP": True, "JPEG": False, "JPEG2000": True, "PNG": True, "PPM": True, "TIFF": True,
    "WEBP": False,
}  # fmt: skip


def decoder(pixel_format="RGB", name="eye"):
    node = helper.make_node("ImageDecoder", ["file"], ["y"], name=name, pixel_format=pixel_format)
    return model([node], [value("file", UINT8, ["n"])], [value("y", UINT8)])


def decode(data, pixel_format="RGB"):
    loaded = chipdock.load(decoder(pixel_format))
    return loaded.run({"file": np.frombuffer(data, np.uint8)})["y"].numpy()


def picture(shape=(24, 33, 3)):
    """Smooth, so that lossy formats keep it."""
    at = np.add.outer(np.arange(shape[0]) * 5, np.arange(shape[1]) * 2)
    return np.stack([at, 255 - at, at // 2], axis=2).astype(np.uint8)[..., : shape[2]]


def written(image, form, **options):
    file = io.BytesIO()
    PIL.Image.fromarray(image).save(file, format=form, **options)
    return file.getvalue()


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_is_read(form):
    image = picture()
    got = decode(written(image, form))
    assert got.shape == (24, 33, 3)
    assert got.dtype == np.uint8
    off = np.abs(got.astype(int) - image)
    assert off.max() == 0 if FORMATS[form] else off.mean() < 3


def test_channels_are_as_the_pixel_format_says():
    data = written(picture(), "PNG")
    rgb = decode(data)
    np.testing.assert_array_equal(decode(data, "BGR"), rgb[:, :, ::-1])
    gray = decode(data, "Grayscale")
    assert gray.shape == (24, 33, 1)
    weights = np.array([0.299, 0.587, 0.114])  # ITU-R 601-2
    assert np.abs(gray[..., 0] - rgb @ weights).max() <= 1


def test_gray_palette_transparent_and_deep_files_become_eight_bits_of_rgb():
    ramp = np.arange(256, dtype=np.uint8).reshape(16, 16)
    same = np.stack([ramp] * 3, axis=2)
    np.testing.assert_array_equal(decode(written(ramp, "PNG")), same)
    for form in ("PNG", "TIFF", "PPM"):
        deep = ramp.astype(np.uint16) * 256 + 77
        np.testing.assert_array_equal(decode(written(deep, form)), same)
        np.testing.assert_array_equal(decode(written(deep, form), "Grayscale"), same[..., :1])
    clear = np.concatenate([picture(), picture()[..., :1]], axis=2)
    np.testing.assert_array_equal(decode(written(clear, "PNG")), picture())
    file = io.BytesIO()
    palette = PIL.Image.fromarray(ramp).convert("P")
    palette.save(file, "PNG", transparency=bytes(range(256)))
    np.testing.assert_array_equal(decode(file.getvalue()), same)


def test_pixels_go_on_into_the_model():
    nodes = [
        helper.make_node("ImageDecoder", ["file"], ["image"]),
        helper.make_node("Cast", ["image"], ["float"], to=1),
        helper.make_node("ReduceMean", ["float"], ["y"], keepdims=0),
        helper.make_node("Shape", ["image"], ["s"]),
    ]
    outputs = [value("y"), value("s", TensorProto.INT64)]
    loaded = chipdock.load(model(nodes, [value("file", UINT8, ["n"])], outputs))
    for shape in ((24, 33, 3), (7, 5, 3)):
        data = np.frombuffer(written(picture(shape), "PNG"), np.uint8)
        got = loaded.run({"file": data})
        assert got["y"].numpy() == pytest.approx(picture(shape).mean(), rel=1e-6)
        assert got["s"].numpy().tolist() == list(shape)
    placed = {n.op: n.placement for n in loaded.explain().nodes}
    assert placed["ImageDecoder"] == "host"


def huge_png():
    """A file of 45 bytes that claims 2^32 pixels."""
    head = struct.pack(">IIBBBBB", 1 << 16, 1 << 16, 8, 2, 0, 0, 0)
    chunk = lambda kind, body: (  # noqa: E731
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    )
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", r"0 bytes are no image; allowed are files of BMP, JPEG"),
        (b"GIF89a\x01\x00\x01\x00\x00\x00\x00;", "14 bytes are no image"),
        (b"P6 2 2 255\n123", "cannot be decoded as an image: image file is truncated"),
        (huge_png(), r"4294967296 pixels\) exceeds limit"),
        (b"P6 13000 13000 255\n", "169000000 pixels|claims 13000 x 13000 pixels"),
        (b"Pf 1 1 -1\n\0\0\0\0", "its pixels are 'F', allowed are gray"),
    ],
    ids=["empty", "gif", "truncated", "bomb", "large", "floats"],
)
@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_what_cannot_be_decoded_is_refused_with_the_node_and_the_reason(data, why):
    with pytest.raises(InvalidArgumentError, match=why) as caught:
        decode(data)
    assert "'eye'" in str(caught.value)


def test_inputs_and_formats_that_fit_nothing_are_refused():
    data = np.frombuffer(written(picture(), "PNG"), np.uint8)
    with pytest.raises(InvalidArgumentError, match="'CMYK', allowed are RGB, BGR and Grayscale"):
        chipdock.load(decoder("CMYK")).run({"file": data})
    proto = decoder()
    proto.graph.input[0].type.tensor_type.shape.dim.add().dim_param = "m"
    with pytest.raises(InvalidArgumentError, match="uint8 of shape"):
        chipdock.load(proto).run({"file": data[None]})


def test_without_pillow_the_extra_is_named(monkeypatch):
    real = builtins.__import__

    def absent(name, *rest):
        if name.partition(".")[0] == "PIL":
            raise ModuleNotFoundError("No module named 'PIL'", name="PIL")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(UnavailableError, match=r"pip install 'chipdock\[image\]'.*'eye'"):
        decode(b"whatever")


def test_an_interrupt_inside_the_decoder_comes_out_as_it_is(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("chipdock._images.decode", interrupted)
    with pytest.raises(KeyboardInterrupt):
        decode(b"whatever")


def test_memory_that_runs_out_in_the_decoder_is_said_to():
    def full(*_, **__):
        raise MemoryError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("PIL.Image.open", full)
        with pytest.raises(OutOfMemoryError, match=r"an image of 8 bytes does not fit.*'eye'"):
            decode(b"whatever")


def test_threads_decode_side_by_side():
    loaded = chipdock.load(decoder())
    files = [np.frombuffer(written(picture((24, 20 + i, 3)), "PNG"), np.uint8) for i in range(4)]
    shapes = [[] for _ in files]

    def work(i):
        for _ in range(5):
            shapes[i].append(loaded.run({"file": files[i]})["y"].shape)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(files))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert shapes == [[(24, 20 + i, 3)] * 5 for i in range(4)]

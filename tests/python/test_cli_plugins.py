# SPDX-License-Identifier: Apache-2.0
"""Plugins that are wrong on purpose: shown with their cause, and no harm to the others."""

import json
import os
import shutil
from pathlib import Path

import jsonschema
import onnx
import pytest
from click.testing import CliRunner
from onnx import parser

from chipdock.cli._app import cli
from chipdock.cli._output import load_schema

FAKES = Path(os.environ["CHIPDOCK_TEST_LIBDIR"])
MODEL = """<ir_version: 10, opset_import: ["" : 21]>
g (float[n, 4] x) => (float[n, 4] y) { s = Add(x, x)  y = Relu(s) }"""


def call(*words, env=None):
    return CliRunner().invoke(cli, list(words), env=env)


def fake(name):
    path = FAKES / f"lib{name}.so"
    assert path.is_file(), f"{path} is not built"
    return str(path)


def document(name, *words, code=0):
    result = call(*words, "--json")
    assert result.exit_code == code, result.stderr
    data = json.loads(result.stdout)
    jsonschema.validate(data, load_schema(name))
    return data


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "g.onnx"
    onnx.save(parser.parse_model(MODEL), path)
    return str(path)


BROKEN = {
    "too_new": "VERSION_MISMATCH",
    "lies_short": "",
    "not_a_plugin": "",
    "undefined_symbol": "undefined symbol",
    "half_stream": "stream",
    "bad_id": "",
}


@pytest.mark.parametrize(("name", "part"), BROKEN.items())
def test_a_broken_plugin_shows_its_cause_and_the_others_work(name, part):
    path = fake(name)
    data = document("devices", "devices", "--all", "--plugin", path)
    state = next(plugin for plugin in data["plugins"] if plugin["path"] == path)
    assert state["state"] == "broken"
    assert part in state["cause"]
    assert state["cause"].split(":")[0].isupper()
    assert "cpu:0" in [device["name"] for device in data["devices"]]
    shown = call("devices", "--all", "--plugin", path).stdout
    assert state["cause"] in shown


def test_doctor_ends_with_4_for_a_broken_plugin():
    path = fake("half_stream")
    data = document("doctor", "doctor", "--plugin", path, code=4)
    failed = [check for check in data["checks"] if check["status"] == "fail"]
    (plugin,) = (plugin for plugin in data["plugins"] if plugin["path"] == path)
    assert [check["detail"] for check in failed] == [plugin["cause"]]
    assert data["exit_code"] == 4
    assert {c["status"] for c in data["checks"] if c["name"] == "cpu:0"} == {"ok"}


@pytest.mark.parametrize("name", ["fails_open", "null_with_ok"])
def test_doctor_ends_with_4_when_a_device_does_not_open(name):
    data = document("doctor", "doctor", "--plugin", fake(name), code=4)
    assert "fail" in {check["status"] for check in data["checks"]}


def test_plugins_shows_a_device_that_does_not_open():
    path = fake("fails_open")
    data = document("plugins", "plugins", "--plugin", path)
    state = next(plugin for plugin in data["plugins"] if plugin["path"] == path)
    assert state["state"] == "unavailable"
    assert "exclusive mode" in state["cause"]
    assert state["cause"] in call("plugins", "--plugin", path).stdout


def test_devices_points_to_what_is_not_ready():
    result = call("devices", "--plugin", fake("too_new"))
    assert result.exit_code == 0
    assert result.stderr == "1 plugin is not ready: chipdock devices --all says why\n"


def test_a_device_of_a_broken_plugin_is_exit_code_4(model, tmp_path):
    folder = tmp_path / "p"
    folder.mkdir()
    lines = [
        "[plugin]",
        'id = "acme.half"',
        'name = "half"',
        'library = "half.so"',
    ]
    shutil.copy(fake("half_stream"), folder / "half.so")
    (folder / "plugin.toml").write_text("\n".join(lines))
    result = call("run", model, "--device", "half:0", "--plugin", str(folder))
    assert result.exit_code == 4
    assert result.stderr.startswith("error: UNAVAILABLE: half:0 cannot be used: ")


@pytest.mark.parametrize("command", ["run", "explain"])
@pytest.mark.parametrize("device", ["cpu:0", "acme:0"])
def test_a_plugin_that_was_asked_for_must_load(model, tmp_path, command, device):
    """Also where the device is of another one: nobody names a plugin to do without it."""
    (tmp_path / "empty").mkdir()
    for given, cause in [
        (model, "invalid ELF header"),
        (fake("undefined_symbol"), "undefined symbol"),
        (str(tmp_path / "empty"), "holds no plugin"),
    ]:
        result = call(command, model, "--device", device, "--plugin", given)
        assert result.exit_code == 4, result.stderr
        assert result.stderr.startswith(f"error: UNAVAILABLE: --plugin {given} ")
        assert cause in result.stderr
        assert result.stdout == ""


def test_a_manifest_that_is_wrong_is_listed(tmp_path):
    (tmp_path / "plugin.toml").write_text("[plugin]\nid = 3\n")
    data = document("plugins", "plugins", "--scan", "--plugin", str(tmp_path))
    wrong = next(p for p in data["plugins"] if p["path"].startswith(str(tmp_path)))
    assert wrong["state"] == "broken"
    assert "id is 3" in wrong["cause"]


def test_the_environment_is_as_before(monkeypatch):
    monkeypatch.setenv("CHIPDOCK_PLUGIN_PATH", "/before")
    assert call("plugins", "--scan", "--plugin", fake("nano")).exit_code == 0
    assert os.environ["CHIPDOCK_PLUGIN_PATH"] == "/before"
    monkeypatch.delenv("CHIPDOCK_PLUGIN_PATH")
    assert call("plugins", "--scan", "--plugin", fake("nano")).exit_code == 0
    assert "CHIPDOCK_PLUGIN_PATH" not in os.environ


def test_seven_functions_run_a_model_on_the_host_when_allowed(model):
    nano = ["--plugin", fake("nano"), "--device", "nano:0"]
    refused = call("run", model, *nano)
    assert refused.exit_code == 3
    assert refused.stderr.startswith("error: UNSUPPORTED: ")
    assert "Add" in refused.stderr
    assert "; give --fallback allow to run nodes without a kernel on the CPU" in refused.stderr
    assert "fallback=" not in refused.stderr
    data = document("run", "run", model, *nano, "--fallback", "allow", "--compare-ort")
    assert data["device"] == "nano:0"
    assert {node["device"] for node in data["nodes"]} == {"cpu:0"}
    assert "device" not in data["placement"]
    assert data["cases"][0]["difference"]["cause"] == ""
    warned = call("run", model, *nano, "--fallback", "warn")
    assert warned.exit_code == 0
    assert "warning: " in warned.stderr
    assert "no kernel for Add" in warned.stderr


def test_info_of_seven_functions():
    data = document("info", "info", "nano:0", "--ops", "--plugin", fake("nano"))["device"]
    offered = [name for name, there in data["slots"].items() if there]
    assert offered == [
        "device.count", "device.info", "device.open", "device.close",
        "memory.alloc", "memory.free", "memory.copy",
    ]  # fmt: skip
    assert data["kernels"] == []
    data = document("doctor", "doctor", "--plugin", fake("nano"))
    check = next(check for check in data["checks"] if check["name"] == "nano:0")
    assert check["status"] == "ok"
    assert "--fallback allow" in check["detail"]

# SPDX-License-Identifier: Apache-2.0
"""Commands on the CPU plugin: JSON against its schema, and what people see."""

import json
from pathlib import Path

import jsonschema
import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper, parser

import chipdock
from chipdock.cli import _progress
from chipdock.cli._app import cli
from chipdock.cli._output import load_schema, plain, size

TEXT = """<ir_version: 10, opset_import: ["" : 21]>
two (float[n, 4] x, float[n, 4] b) => (float[n, 4] y) { s = Add(x, b)  y = Relu(s) }"""


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    path = tmp_path_factory.mktemp("cli") / "two.onnx"
    onnx.save(parser.parse_model(TEXT), path)
    return str(path)


def call(*words):
    return CliRunner().invoke(cli, list(words))


def document(name, *words, code=0):
    result = call(*words, "--json")
    assert result.exit_code == code, result.stderr
    data = json.loads(result.stdout)
    jsonschema.validate(data, load_schema(name))
    assert data["schema"] == f"chipdock.{name}/1"
    return data


def test_schemas_are_schemas_and_closed():
    folder = Path(chipdock.__file__).parent / "cli" / "schemas"
    names = sorted(path.stem for path in folder.glob("*.json"))
    assert names == ["bench", "devices", "doctor", "explain", "info", "path", "plugins", "run"]
    for name in names:
        schema = load_schema(name)
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["additionalProperties"] is False
        assert set(schema["required"]) == set(schema["properties"])


def test_an_input_with_a_default_keeps_it_unless_it_is_named(tmp_path):
    model = parser.parse_model(TEXT)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((1, 4), np.float32), "b"))
    path = str(tmp_path / "default.onnx")
    onnx.save(model, path)
    (case,) = document("run", "run", path, "--shape", "3,4")["cases"]
    assert [given["name"] for given in case["inputs"]] == ["x"]
    (case,) = document("run", "run", path, "--shape", "x=3,4", "--input", "b=3,4")["cases"]
    assert [given["name"] for given in case["inputs"]] == ["x", "b"]
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((1, 4), np.float32), "x"))
    onnx.save(model, path)
    result = call("run", path, "--input", "ones")
    assert result.exit_code == 2  # both may be left out: which one is meant?
    del model.graph.node[:], model.graph.input[1:], model.graph.initializer[:1]
    model.graph.node.append(onnx.helper.make_node("Neg", ["x"], [model.graph.output[0].name]))
    onnx.save(model, path)
    (case,) = document("run", "run", path, "--input", "zeros")["cases"]
    assert [given["name"] for given in case["inputs"]] == ["x"]
    result = call("run", path, "--input", "c=ones")
    assert result.exit_code == 2
    assert "names no input of the model: 'c'" in result.stderr


def test_devices():
    data = document("devices", "devices")
    assert data["plugins"] == []
    assert "cpu:0" in [device["name"] for device in data["devices"]]
    for device in data["devices"]:
        assert chipdock.device(device["name"]).name == device["name"]


def test_devices_all_lists_plugins():
    data = document("devices", "devices", "--all")
    cpu = next(plugin for plugin in data["plugins"] if plugin["id"] == "chipdock.cpu")
    assert (cpu["state"], cpu["cause"], cpu["abi"]) == ("ready", "", [1, 0])
    shown = call("devices", "--all").stdout
    assert "chipdock.cpu" in shown
    assert "ready" in shown


def test_plugins_and_scan():
    loaded = document("plugins", "plugins")["plugins"]
    scanned = document("plugins", "plugins", "--scan")["plugins"]
    assert [p["path"] for p in loaded] == [p["path"] for p in scanned]
    assert {p["state"] for p in scanned} <= {"found", "broken"}
    assert {p["state"] for p in loaded if p["id"] == "chipdock.cpu"} == {"ready"}


def test_info():
    data = document("info", "info")["device"]
    assert data["name"] == "cpu:0"
    assert data["slots"]["memory.copy"] is True
    assert data["kernels"] is None
    assert data["memory_total"] > 0
    shown = call("info", "cpu:0").stdout
    assert "chipdock.cpu" in shown
    assert "copy" in shown


def test_info_ops():
    data = document("info", "info", "cpu", "--ops")["device"]
    assert "Add" in {kernel["op"] for kernel in data["kernels"]}
    assert len(data["kernels"]) == data["kernel_count"]
    assert "Add" in call("info", "--ops").stdout


def test_doctor():
    data = document("doctor", "doctor")
    by_name = {check["name"]: check for check in data["checks"]}
    assert data["exit_code"] == 0
    assert by_name["cpu:0"]["status"] == "ok"
    assert "Add are right" in by_name["cpu:0"]["detail"]
    assert by_name["numpy"]["detail"] == np.__version__
    assert {"python", "chipdock", "onnx", "instruction sets", "huge pages"} <= set(by_name)
    assert "0 failed" in call("doctor").stdout


@pytest.mark.parametrize(
    ("name", "file"), [("include-dir", "chipdock/chipdock.h"), ("cmake-dir", "")]
)
def test_folders(name, file):
    path = document("path", name)["path"]
    assert call(name).stdout == f"{path}\n"
    if file:
        assert (Path(path) / file).is_file()


def test_run(two):
    data = document("run", "run", two, "--shape", "x=3,4", "--shape", "b=3x4", "--repeat", "2")
    assert data["placement"] == {"device": 2}
    assert data["warm"]["runs"] == 2
    assert {entry["name"] for entry in data["operators"]} >= {"Add", "Relu"}
    (case,) = data["cases"]
    assert case["outputs"][0]["shape"] == [3, 4]
    assert case["outputs"][0]["min"] >= 0
    assert case["answer"] is None
    assert data["reference"] is None


def test_run_compares_when_asked(two):
    data = document("run", "run", two, "--compare-ort")
    assert data["reference"] == "onnxruntime"
    assert data["cases"][0]["difference"]["relative"] <= 1e-6
    assert data["notes"] == [f"{name}: n taken as 1, --shape says otherwise" for name in "xb"]


def test_run_reads_npy_and_makes_inputs(two, tmp_path):
    x = np.arange(8, dtype=np.float32).reshape(2, 4) - 4
    np.save(tmp_path / "x.npy", x)
    words = ["--input", f"x={tmp_path / 'x.npy'}", "--input", "b=ones", "--shape", "b=2,4"]
    (case,) = document("run", "run", two, *words)["cases"]
    want = np.maximum(x + 1, 0)
    assert case["outputs"][0]["max"] == want.max()
    assert case["outputs"][0]["mean"] == want.mean()


def test_run_for_people(two):
    result = call("run", two, "-vv")
    assert result.exit_code == 0
    for word in ("two on cpu:0", "2 on cpu:0", "first run", "Add", "Relu", "output", "float32 1x4"):
        assert word in result.stdout


def test_run_is_the_same_every_time(two):
    first, second = (document("run", "run", two)["cases"] for _ in range(2))
    assert first == second


def test_trace(two, tmp_path):
    trace = tmp_path / "trace.json"
    assert call("run", two, "--profile", str(trace)).exit_code == 0
    events = json.loads(trace.read_text())
    events = events["traceEvents"] if isinstance(events, dict) else events
    assert "Relu" in {event["name"] for event in events}


def test_trace_that_cannot_be_written(two, tmp_path):
    result = call("run", two, "--profile", str(tmp_path / "no" / "trace.json"))
    assert result.exit_code == 2
    assert "error: INVALID_ARGUMENT: " in result.stderr


def test_explain_memory(two):
    data = document("explain", "explain", two, "--memory", "--shape", "x=8,4", "--shape", "b=8,4")
    assert data["memory"]["shapes"] == {"x": [8, 4], "b": [8, 4]}
    memory = data["memory"]
    assert memory["activation_lower_bound"] == 8 * 4 * 4  # of Add, which Relu reads
    assert memory["padding_bytes"] == memory["activation_bytes"] - 8 * 4 * 4
    assert [node["op"] for node in data["nodes"]] == ["Add", "Relu"]
    shown = call("explain", two, "--memory").stdout
    assert all(word in shown for word in ("activations", "least", "padding", "workspace"))
    assert "Relu" in shown


def test_bench(two):
    data = document("bench", "bench", two, "--seconds", "0")
    assert data["chipdock"]["runs"] == data["onnxruntime"]["runs"] == 3
    assert data["ratio"]["p10"] <= data["ratio"]["median"] <= data["ratio"]["p90"]
    alone = document("bench", "bench", two, "--seconds", "0", "--no-compare-ort")
    assert (alone["onnxruntime"], alone["ratio"]) == (None, None)
    assert "of onnxruntime's time" in call("bench", two, "--seconds", "0").stdout


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--input", "z=ones"], "'z'"),
        (["--input", "ones"], "names no input"),
        (["--input", "x=funny"], "it must be a .npy file, random, ones, zeros or a shape"),
        (["--input", "x=/nowhere.npy"], "no .npy file"),
        (["--shape", "x=1,-4"], "wants a shape such as"),
        (["--shape", "x=1,5"], "INVALID_ARGUMENT"),
    ],
)
def test_bad_inputs_are_usage_errors(two, words, part):
    result = call("run", two, *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert part in result.stderr
    assert "Traceback" not in result.stderr


def test_what_is_no_model(tmp_path):
    junk = tmp_path / "junk.onnx"
    junk.write_bytes(b"\x00not a model")
    for words in (["run", str(junk)], ["explain", str(tmp_path)], ["bench", str(junk)]):
        result = call(*words)
        assert result.exit_code == 2
        assert result.stderr.startswith("error: INVALID_ARGUMENT: ")


def test_similar_files_are_suggested(two):
    result = call("run", two.replace("two.onnx", "twoo.onnx"))
    assert f"did you mean {two!r}" in result.stderr


def test_a_wrong_answer_is_a_failure_and_still_shown(two, monkeypatch):
    from chipdock.models import check

    monkeypatch.setattr(
        check, "reference_runner", lambda *_: lambda feeds: {"y": feeds["x"] - np.float32(9)}
    )
    data = document("run", "run", two, "--compare-ort", code=1)
    assert "off by" in data["cases"][0]["cause"]
    result = call("run", two, "--compare-ort")
    assert "FAIL" in result.stdout
    assert result.stderr.startswith("error: MISMATCH: ")


def test_nan_and_scalars_in_json(tmp_path):
    graph = helper.make_graph(
        [helper.make_node("Log", ["x"], ["y"])],
        "nan",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [])],
    )
    path = tmp_path / "nan.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), path)
    np.save(tmp_path / "x.npy", np.float32(-1))
    (case,) = document("run", "run", str(path), "--input", str(tmp_path / "x.npy"))["cases"]
    output = case["outputs"][0]
    assert (output["shape"], output["nan"]) == ([], 1)
    assert [output[key] for key in ("min", "max", "mean")] == [None] * 3


def test_plain_and_size():
    assert plain({"a": (np.float32(1), float("inf"), None, True)}) == {"a": [1.0, None, None, True]}
    assert [size(n) for n in (0, 1023, 1536, 1 << 30, 1 << 41)] == [
        "0 B", "1023 B", "1.5 KiB", "1.0 GiB", "2048.0 GiB"
    ]  # fmt: skip


def test_heartbeat_where_there_is_no_terminal(monkeypatch):
    import threading

    beaten = threading.Event()
    lines = []

    def echo(line, err):
        lines.append((line, err))
        beaten.set()

    monkeypatch.setattr(_progress, "HEARTBEAT_S", 0.001)
    monkeypatch.setattr(_progress.click, "echo", echo)
    with _progress.working("thinking"):
        assert beaten.wait(10)
    assert lines[0] == ("thinking: still at it after 0 s", True)

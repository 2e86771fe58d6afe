# SPDX-License-Identifier: Apache-2.0
"""Private layouts of a device, as load, explain, memory, profiles and the command line show them.

The device is that of tests/fakes/layouts.c; where Reorders go and what they compute is
tests/cpp/test_plan_layouts.cpp's matter.
"""

import json

import jsonschema
import numpy as np
import onnx
import pytest
from api_support import fake, model, open_fake, value
from click.testing import CliRunner
from onnx import helper

import chipdock
from chipdock.cli._app import cli
from chipdock.cli._output import load_schema
from chipdock.errors import InvalidArgumentError

node = helper.make_node
X = np.arange(-6, 6, dtype=np.float32).reshape(3, 4)


@pytest.fixture(scope="module", params=["none", "validate"])
def device(request):
    return open_fake("layouts", request.param)


def negated() -> onnx.ModelProto:
    """y = -Relu(-x); x [N, 4]."""
    return model(
        [node("Neg", ["x"], ["a"]), node("Relu", ["a"], ["b"]), node("Neg", ["b"], ["y"], "last")],
        [value("x", shape=["N", 4])],
        [value("y", shape=["N", 4])],
    )


def test_explain_names_reorders_and_layouts(device):
    loaded = chipdock.load(negated(), device)
    nodes = loaded.explain().nodes
    assert [(n.op, n.layout) for n in nodes] == [
        ("ai.chipdock.Reorder", 7),
        ("Neg", 7),
        ("Relu", 7),
        ("Neg", 7),
        ("ai.chipdock.Reorder", 7),
    ]
    assert [nodes[0].name, nodes[-1].name] == ["x into layout 7", "y out of layout 7"]
    assert nodes[1].reason.startswith("works in layout 7\n")
    assert str(loaded.explain()).count("(layout 7)") == 5
    for rows in (3, 1, 0):
        out = loaded.run({"x": X[:rows]})["y"].numpy()
        np.testing.assert_array_equal(out, np.minimum(X[:rows], 0))


def test_the_variable_switches_layouts_off(device, monkeypatch):
    monkeypatch.setenv("CHIPDOCK_LAYOUTS", "off")
    loaded = chipdock.load(negated(), device)
    assert [n.op for n in loaded.explain().nodes] == ["Neg", "Relu", "Neg"]
    assert not any(n.layout for n in loaded.explain().nodes)
    np.testing.assert_array_equal(loaded(X).numpy(), np.minimum(X, 0))


def test_another_value_of_the_variable_is_refused(device, monkeypatch):
    monkeypatch.setenv("CHIPDOCK_LAYOUTS", "maybe")
    with pytest.raises(InvalidArgumentError, match="CHIPDOCK_LAYOUTS is 'maybe', allowed are on"):
        chipdock.load(negated(), device)


def test_padding_is_told_apart(device):
    taken = chipdock.load(negated(), device).memory({"x": [3, 4]})
    assert taken["activation_lower_bound"] == 2 * (12 * 4 + 8)  # what Relu reads and writes
    assert taken["layout_padding_bytes"] == 16
    plain = chipdock.load(model([node("Exp", ["x"], ["y"])], [value("x")], [value("y")]), device)
    assert plain.memory({"x": [3, 4]})["layout_padding_bytes"] == 0


def test_constants_have_no_layout(device):
    proto = model(
        [node("Neg", ["x"], ["a"]), node("Add", ["a", "c"], ["b"]), node("Neg", ["b"], ["y"])],
        [value("x", shape=["N", 4])],
        [value("y", shape=["N", 4])],
        {"c": X},
    )
    loaded = chipdock.load(proto, device)
    # Add's rules admit a layout for both of its inputs; with one alone it refuses.
    assert [(n.op, n.layout) for n in loaded.explain().nodes] == [
        ("Neg", 0),
        ("Add", 0),
        ("Neg", 0),
    ]
    np.testing.assert_array_equal(loaded(X).numpy(), X - X)


def test_bound_outputs_and_streams(device):
    loaded = chipdock.load(negated(), device)
    out = chipdock.empty((3, 4), np.float32, device)
    loaded.bind().input("x", X).output("y", out).run()
    np.testing.assert_array_equal(out.numpy(), np.minimum(X, 0))
    found = loaded.run({"x": X}, stream=chipdock.Stream(device))["y"]
    np.testing.assert_array_equal(found.numpy(), np.minimum(X, 0))


def test_a_profile_shows_reorders_and_the_layout_of_what_was_written(device):
    loaded = chipdock.load(negated(), device)
    with chipdock.profile() as seen:
        loaded(X)
    nodes = [r for r in seen.records if r["category"] == "node"]
    assert [r["name"] for r in nodes] == ["Reorder", "Neg", "Relu", "Neg", "Reorder"]
    shown = [r["args"]["output 0"] for r in nodes]
    assert shown == ["float32[3,4] layout 7"] * 4 + ["float32[3,4]"]


def test_run_op_uses_none(device):
    np.testing.assert_array_equal(chipdock.run_op("Neg", X, device=device).numpy(), -X)


def test_the_command_line_shows_them(tmp_path, monkeypatch):
    monkeypatch.setenv("CHIPDOCK_PLUGIN_PATH", fake("layouts"))
    path = tmp_path / "negated.onnx"
    onnx.save(negated(), path)
    words = ["explain", str(path), "--device", "layouts:0", "--memory", "--shape", "x=3,4"]
    shown = CliRunner().invoke(cli, words)
    assert shown.exit_code == 0, shown.stderr
    assert "Reorder" in shown.stdout
    assert "(layout 7)" in shown.stdout
    assert "16 B of it pad private layouts" in shown.stdout
    data = json.loads(CliRunner().invoke(cli, [*words, "--json"]).stdout)
    jsonschema.validate(data, load_schema("explain"))
    assert [n["layout"] for n in data["nodes"]] == [7] * 5
    assert data["memory"]["layout_padding_bytes"] == 16

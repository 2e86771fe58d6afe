# SPDX-License-Identifier: Apache-2.0
"""Bad models and bad inputs: a clear error each, and nothing is lost by it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from api_support import BOOL, FLOAT, INT64, agrees, chain, mlp, model, open_cpu, open_fake, value
from onnx import helper
from onnx.external_data_helper import convert_model_to_external_data

import chipdock

node = helper.make_node
invalid = chipdock.errors.InvalidArgumentError


def refuses(source, match, error=invalid):
    with pytest.raises(error, match=match) as caught:
        chipdock.load(source)
    assert str(caught.value).startswith(error.code + ": ")
    assert not str(caught.value).endswith(".")
    return str(caught.value)


# Files


def test_not_there(tmp_path):
    refuses(tmp_path / "gone.onnx", r"gone\.onnx cannot be read: No such file")
    refuses(tmp_path, "is a folder")
    (tmp_path / "secret.onnx").write_bytes(b"x")
    refuses("", "folder|cannot be read")
    refuses("a\0b", "null")


@pytest.mark.parametrize("bad", [None, 3, 2.5, object(), ["x"]], ids=lambda b: type(b).__name__)
def test_not_a_source(bad):
    refuses(bad, "a path, bytes or a ModelProto")


@pytest.mark.parametrize(
    "data", [b"", b"\0" * 64, b"hello, this is text", b"\x89PNG\r\n\x1a\n", b"\xff" * 100, b"PK\x03\x04"],
    ids=["empty", "zeros", "text", "png", "ones", "zip"],
)  # fmt: skip
def test_not_an_onnx_file(tmp_path, data):
    path = tmp_path / "m.onnx"
    path.write_bytes(data)
    assert "m" in refuses(path, "not an ONNX model")
    refuses(data, "not an ONNX model")


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
        try:
            chipdock.load(bytes(broken))(x)
        except chipdock.ChipdockError:
            pass


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
    [("offset", "-8", "truncated|offset"), ("offset", "x", "bad external offset"),
     ("length", "4", "needs 512 bytes"), ("length", "-1", "length|truncated"),
     ("offset", "999999999999999999999", "truncated"), ("location", "", "weights|folder|exist")],
)  # fmt: skip
def test_external_data_with_bad_numbers(external, key, text, match):
    change(external, key, text)
    refuses(external, match)


def test_external_data_without_a_folder(external):
    refuses(external.read_bytes(), r"weights\.bin.* load it by its path")


def test_external_data_in_a_folder_of_a_symlinked_model(external, tmp_path):
    (tmp_path / "link.onnx").symlink_to(external)
    with pytest.raises(invalid, match="does not exist"):
        chipdock.load(tmp_path / "link.onnx")


# Graphs


def test_unknown_operator_and_domain():
    text = refuses(model([node("Rellu", ["x"], ["y"], name="n7")], [value("x")], [value("y")]),
                   "operator Rellu of node 'n7'", chipdock.errors.UnsupportedError)  # fmt: skip
    assert "opset 21" in text
    refuses(model([node("Neg", ["x"], ["y"], domain="acme")], [value("x")], [value("y")]),
            "domain 'acme', which the model's opset_import does not list")  # fmt: skip
    refuses(
        model([node("Frob", ["x"], ["y"], domain="acme")], [value("x")], [value("y")],
              opsets=[helper.make_opsetid("", 21), helper.make_opsetid("acme", 1)]),
        r"acme\.Frob", chipdock.errors.UnsupportedError,
    )  # fmt: skip
    for fallback in ("allow", "warn"):
        with pytest.raises(chipdock.errors.UnsupportedError, match="Rellu"):
            chipdock.load(model([node("Rellu", ["x"], ["y"])], [value("x")], [value("y")]),
                          fallback=fallback)  # fmt: skip


def test_an_opset_of_the_future():
    refuses(model([node("Neg", ["x"], ["y"])], [value("x")], [value("y")], opset=999), "opset 999",
            chipdock.errors.UnsupportedError)  # fmt: skip


@pytest.mark.parametrize(
    ("nodes", "match"),
    [
        ([("Neg", "b", "a"), ("Neg", "a", "b"), ("Neg", "x", "y")], "cycle"),
        ([("Neg", "y", "y")], "cycle"),
        ([("Neg", "nothing", "y")], "reads 'nothing', which nothing computes"),
        ([("Neg", "x", "y"), ("Exp", "x", "y")], "'y' is computed twice"),
        ([("Neg", "x", "x"), ("Exp", "x", "y")], "'x' is computed twice"),
        ([("Neg", "x", "w"), ("Exp", "x", "y")], "'w' is computed twice"),
        ([("Neg", "x", "z")], "output 'y' is computed by no node"),
        ([("Neg", "x,x", "y")], "has 2 inputs, 1 to 1 are allowed"),
        ([("Add", "x", "y")], "has 1 inputs, 2 to 2"),
        ([("Neg", "", "y")], "Neg"),
        ([("Neg", "x", "y,z")], "outputs"),
        ([("Cast", "x", "y")], "lacks the attribute 'to'"),
    ],
)
def test_malformed_graphs(nodes, match):
    proto = model(
        [node(op, i.split(","), o.split(",")) for op, i, o in nodes], [value("x")], [value("y")],
        {"w": np.float32([1])},
    )  # fmt: skip
    refuses(proto, match)


def test_duplicate_names_of_inputs_and_initializers():
    twice = model([node("Neg", ["x"], ["y"])], [value("x"), value("x")], [value("y")])
    refuses(twice, "input 'x' is declared twice")
    weights = model([node("Add", ["x", "w"], ["y"])], [value("x")], [value("y")], {"w": np.float32([1])})
    weights.graph.initializer.append(onnx.numpy_helper.from_array(np.float32([2]), "w"))
    refuses(weights, "'w' is declared twice")


def test_a_cycle_through_a_branch():
    branch = helper.make_graph([node("Neg", ["y"], ["r"])], "b", [], [value("r")])
    proto = model(
        [node("If", ["c"], ["z"], then_branch=branch, else_branch=branch), node("Neg", ["z"], ["y"])],
        [value("c", BOOL, [])], [value("y")],
    )  # fmt: skip
    refuses(proto, "cycle")


def test_no_graph_no_outputs():
    refuses(onnx.ModelProto(), "no graph or no opset_import")
    refuses(model([], [value("x")], []), "no outputs")


@pytest.mark.parametrize(
    ("name", "attributes", "match"),
    [("Softmax", {"axis": "one"}, "axis"), ("Transpose", {"perm": [0, 0]}, "Transpose|perm"),
     ("Transpose", {"perm": [0, 1, 2]}, "Transpose|perm"), ("Concat", {"axis": 9}, "Concat|axis"),
     ("Softmax", {"axis": 5}, "Softmax|axis"), ("Cast", {"to": 77}, "77"),
     ("LeakyRelu", {"alpha": [1, 2]}, "alpha")],
)  # fmt: skip
def test_bad_attributes(name, attributes, match):
    proto = model([node(name, ["x"], ["y"], **attributes)], [value("x")], [value("y")])
    with pytest.raises(chipdock.ChipdockError, match=match):
        chipdock.load(proto)(np.zeros((2, 3), np.float32))


def test_weights_that_do_not_fill_their_shape():
    proto = mlp()
    proto.graph.initializer[0].raw_data = b"\0" * 7
    refuses(proto, "'w1' of shape .* needs 512 bytes, the model has 7")
    proto.graph.initializer[0].dims[0] = -3
    refuses(proto, "negative extent")
    proto.graph.initializer[0].dims[0] = 2**62
    refuses(proto, "needs")
    proto.graph.initializer[0].data_type = 99
    refuses(proto, "data_type 99")


def test_weights_of_typed_fields_that_do_not_fill_their_shape():
    proto = model([node("Add", ["x", "w"], ["y"])], [value("x")], [value("y")])
    proto.graph.initializer.append(onnx.TensorProto(name="w", data_type=FLOAT, dims=[3], float_data=[1, 2]))
    refuses(proto, "'w' cannot be read")


# Inputs of a run


@pytest.fixture(scope="module")
def loaded():
    return chipdock.load(mlp())


@pytest.mark.parametrize(
    ("x", "match"),
    [(np.zeros((2, 8)), "input 'x' is float64, the model wants float32"),
     (np.zeros((2, 8), np.int32), "int32"), (np.zeros((2, 8), ">f4"), "input 'x'"),
     (np.zeros((2, 7), np.float32), r"input 'x' has shape \[2,7\], the model wants \[\?,8\]"),
     (np.zeros(8, np.float32), r"has shape \[8\]"), (np.zeros((1, 2, 8), np.float32), "has shape"),
     (np.float32(1), r"has shape \[\]"), ("text", "input 'x'"), (None, "input 'x'"),
     ([[1, 2], [3]], "input 'x'"), ({}, "input 'x'"), (np.array([["a"] * 8]), "input 'x'"),
     (object(), "input 'x'")],
    ids=lambda v: getattr(v, "shape", None) and f"{v.dtype}{v.shape}" or type(v).__name__,
)  # fmt: skip
def test_wrong_inputs(loaded, x, match):
    with pytest.raises(invalid, match=match):
        loaded.run({"x": x})
    assert loaded.run({"x": np.zeros((2, 8), np.float32)})["y"].shape == (2, 4)


def test_missing_and_unknown_names(loaded):
    x = np.zeros((1, 8), np.float32)
    with pytest.raises(invalid, match=r"missing: \['x'\], unknown: \[\]"):
        loaded.run({})
    with pytest.raises(invalid, match=r"missing: \['x'\], unknown: \['X'\]"):
        loaded.run({"X": x})
    with pytest.raises(invalid, match=r"missing: \[\], unknown: \['z'\]"):
        loaded.run({"x": x, "z": x})
    for bad in ([x], x, "x", None):
        with pytest.raises(invalid, match="takes a mapping"):
            loaded.run(bad)


def test_shapes_that_do_not_fit_name_the_node():
    proto = model([node("Add", ["a", "b"], ["y"], name="sum")], [value("a"), value("b")], [value("y")])
    loaded = chipdock.load(proto)
    for a, b in (((2,), (3,)), ((2, 3), (3, 2)), ((0,), (2,))):
        with pytest.raises(invalid, match="Add node 'sum'"):
            loaded(np.zeros(a, np.float32), np.zeros(b, np.float32))
    assert loaded(np.float32([1]), np.float32([2])).numpy() == 3


def test_shape_overflow():
    proto = model(
        [node("Expand", ["x", "s"], ["y"], name="grow")], [value("x"), value("s", INT64, ["R"])],
        [value("y")],
    )  # fmt: skip
    loaded = chipdock.load(proto)
    for shape in ([2**62, 4], [2**40, 2**40], [2**31, 2**31, 2**31], [2**63 - 1]):
        with pytest.raises((invalid, chipdock.errors.OutOfMemoryError)):
            loaded(np.float32([1]), np.int64(shape))
    with pytest.raises(invalid):
        loaded(np.float32([1]), np.int64([-5]))
    np.testing.assert_array_equal(loaded(np.float32([1]), np.int64([2])).numpy(), [1, 1])


def test_reshape_to_impossible_shapes():
    proto = model([node("Reshape", ["x", "s"], ["y"])], [value("x"), value("s", INT64, ["R"])], [value("y")])
    loaded = chipdock.load(proto)
    x = np.zeros(6, np.float32)
    for shape in ([4], [-1, 4], [-1, -1], [-2, 3], [2**62, 2**62]):
        with pytest.raises(invalid, match="Reshape"):
            loaded(x, np.int64(shape))
    assert loaded(x, np.int64([-1, 2])).shape == (3, 2)


def test_indices_outside_are_refused():
    proto = model([node("Gather", ["x", "i"], ["y"])], [value("x"), value("i", INT64)], [value("y")])
    loaded = chipdock.load(proto)
    for bad in (3, -4, 2**40):
        with pytest.raises(chipdock.ChipdockError, match="Gather"):
            loaded(np.zeros(3, np.float32), np.int64([bad]))
    np.testing.assert_array_equal(loaded(np.float32([1, 2, 3]), np.int64([-1])).numpy(), [3])


def test_division_by_zero_of_integers_is_no_crash():
    proto = model([node("Div", ["x", "z"], ["y"])], [value("x", INT64), value("z", INT64)],
                  [value("y", INT64)])  # fmt: skip
    loaded = chipdock.load(proto)
    try:
        loaded(np.int64([1, -(2**63)]), np.int64([0, -1]))
    except chipdock.ChipdockError:
        pass
    assert loaded(np.int64([6]), np.int64([2])).numpy() == 3


# Memory


def test_out_of_memory_in_a_run_and_the_model_runs_again():
    device = open_fake("small_heap")
    loaded = chipdock.load(chain(4), device, fallback="allow")
    small, large = np.ones(100, np.float32), np.ones(1 << 19, np.float32)
    for _ in range(3):
        with pytest.raises(chipdock.errors.OutOfMemoryError):
            loaded(large)
        np.testing.assert_array_equal(loaded(small).numpy(), small)
    assert device.memory_stats()["used_bytes"] == 0


def test_out_of_memory_at_load():
    proto = model([node("Add", ["x", "w"], ["y"])], [value("x")], [value("y")],
                  {"w": np.ones(1 << 19, np.float32)})  # fmt: skip
    device = open_fake("small_heap")
    with pytest.raises(chipdock.errors.OutOfMemoryError):
        chipdock.load(model([node("Identity", ["w"], ["y"])], [], [value("y")],
                            {"w": np.ones(1 << 19, np.float32)}), device, fallback="allow").run({})  # fmt: skip
    assert device.memory_stats()["used_bytes"] == 0
    agrees(proto, {"x": np.float32([1])})


def test_a_memory_limit_of_the_model():
    loaded = chipdock.load(chain(4), memory_limit=10_000)
    assert loaded(np.ones(100, np.float32)).shape == (100,)
    with pytest.raises(chipdock.errors.OutOfMemoryError, match="memory_limit allows 10000"):
        loaded(np.ones(100_000, np.float32))
    assert loaded(np.ones(100, np.float32)).shape == (100,)


def test_a_memory_limit_counts_weights_and_outputs():
    with pytest.raises(chipdock.errors.OutOfMemoryError, match="memory_limit"):
        chipdock.load(mlp(width=1000), memory_limit=1000)(np.zeros((1, 1000), np.float32))
    with pytest.raises(chipdock.errors.OutOfMemoryError, match="memory_limit"):
        chipdock.load(chain(1), memory_limit=1000)(np.zeros(1000, np.float32))


def test_a_memory_limit_of_the_device():
    device = open_cpu(memory="1MiB")
    loaded = chipdock.load(chain(4), device)
    for _ in range(2):
        with pytest.raises(chipdock.errors.OutOfMemoryError):
            loaded(np.ones(1 << 19, np.float32))
        assert loaded(np.ones(100, np.float32)).shape == (100,)


@pytest.mark.parametrize("after", range(0, 7, 2))
def test_device_lost_in_a_run(monkeypatch, after):
    monkeypatch.setenv("FAKE_LOST_AFTER", str(after))
    device = open_fake("lost")
    loaded = chipdock.load(chain(3), device, fallback="allow")
    x = np.ones(10, np.float32)
    with pytest.raises(chipdock.errors.DeviceLostError, match="fell off the bus") as caught:
        for _ in range(10):
            np.testing.assert_array_equal(loaded(x).numpy(), -x)
    assert caught.value.scope == "device"
    with pytest.raises(chipdock.errors.DeviceLostError, match="fell off the bus"):
        loaded(x)  # sticky, with the first cause
    assert chipdock.load(chain(3))(x).numpy()[0] == -1  # others go on


@pytest.mark.slow
def test_tensors_over_two_gib():
    kind = onnx.TensorProto.INT8
    proto = model(
        [node("Slice", ["x", "a", "b"], ["y"]), node("Size", ["x"], ["n"])], [value("x", kind, ["N"])],
        [value("y", kind), value("n", INT64, [])],
        {"a": np.int64([2**31 + 5]), "b": np.int64([2**31 + 9])},
    )  # fmt: skip
    x = np.zeros(2**31 + 4096, np.int8)
    x[2**31 + 5 : 2**31 + 9] = [1, 2, 3, 4]
    got = chipdock.load(proto).run({"x": x})
    np.testing.assert_array_equal(got["y"].numpy(), [1, 2, 3, 4])
    assert got["n"].numpy() == x.size
    negative = chipdock.run_op("Add", x, np.int8([1]))
    assert negative.shape == x.shape
    np.testing.assert_array_equal(negative[2**31 + 4 :].numpy()[:6], [1, 2, 3, 4, 5, 1])
    np.testing.assert_array_equal(negative[-1:].numpy(), [1])


INTERRUPTED = """
import numpy as np, sys, time
from api_support import *
import chipdock
from onnx import helper
node = helper.make_node
kind, fake_name = sys.argv[1], sys.argv[2]
device = open_fake(fake_name) if fake_name else {"cpu": "cpu:0"}["cpu"]
if kind == "loop":
    body = helper.make_graph(
        [node("Identity", ["c"], ["c2"]), node("Neg", ["v"], ["v2"])], "b",
        [value("i", INT64, []), value("c", BOOL, []), value("v")], [value("c2", BOOL, []), value("v2")])
    proto = model([node("Loop", ["n", "", "x"], ["y"], body=body)], [value("n", INT64, []), value("x")],
                  [value("y")])
    long, short = (np.int64(10**12), np.float32([1])), (np.int64(2), np.float32([1]))
elif kind == "slow trips":
    body = helper.make_graph(
        [node("Identity", ["c"], ["c2"]), node("MatMul", ["v", "v"], ["v2"])], "b",
        [value("i", INT64, []), value("c", BOOL, []), value("v")], [value("c2", BOOL, []), value("v2")])
    proto = model([node("Loop", ["n", "", "x"], ["y"], body=body)], [value("n", INT64, []), value("x")],
                  [value("y")])
    long, short = (np.int64(10**12), np.zeros((400, 400), np.float32)), (np.int64(2), np.ones((2, 2), np.float32))
elif kind == "scan":
    body = helper.make_graph(
        [node("Add", ["s", "e"], ["s2"]), node("Neg", ["e"], ["o"])], "b",
        [value("s"), value("e")], [value("s2"), value("o")])
    proto = model([node("Scan", ["s0", "x"], ["y", "z"], body=body, num_scan_inputs=1)],
                  [value("s0"), value("x")], [value("y"), value("z")])
    many = np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (30_000_000, 1), (0, 0))
    long, short = (np.float32([0]), many), (np.float32([0]), np.ones((2, 1), np.float32))
else:
    nodes = [node("MatMul", [f"t{i}", f"t{i}"], [f"t{i + 1}"]) for i in range(4000)]
    proto = model(nodes, [value("t0", shape=["N", "N"])], [value("t4000")])
    long, short = (np.zeros((700, 700), np.float32),), (np.zeros((2, 2), np.float32),)
loaded = chipdock.load(proto, device, fallback="allow")
loaded(*short)
print("running", flush=True)
try:
    loaded(*long)
except KeyboardInterrupt:
    loaded(*short)
    print("interrupted", flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("device", ["", "nano"], ids=["cpu", "nano"])
@pytest.mark.parametrize("kind", ["loop", "slow trips", "scan", "chain"])
def test_ctrl_c_in_a_long_run(kind, device):
    here = os.pathsep.join(filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]))
    child = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, kind, device], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, env={**os.environ, "PYTHONPATH": here, "CHIPDOCK_LAYERS": ""},
    )  # fmt: skip
    try:
        assert child.stdout.readline() == "running\n", child.stderr.read()
        time.sleep(0.3)  # well into the run; any moment would do
        start = time.monotonic()
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
        assert time.monotonic() - start < 5
        assert (out, child.returncode) == ("interrupted\n", 0), err
    finally:
        child.kill()
        child.wait()

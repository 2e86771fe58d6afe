# SPDX-License-Identifier: Apache-2.0
"""Memory that runs out, devices that are lost, and Ctrl-C: the model and the others go on."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from api_support import INT64, agrees, chain, mlp, model, open_cpu, open_fake, value
from onnx import helper

import chipdock

node = helper.make_node
invalid = chipdock.errors.InvalidArgumentError


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
    proto = model(
        [node("Add", ["x", "w"], ["y"])],
        [value("x")],
        [value("y")],
        {"w": np.ones(1 << 19, np.float32)},
    )
    device = open_fake("small_heap")
    with pytest.raises(chipdock.errors.OutOfMemoryError):
        chipdock.load(
            model(
                [node("Identity", ["w"], ["y"])],
                [],
                [value("y")],
                {"w": np.ones(1 << 19, np.float32)},
            ),
            device,
            fallback="allow",
        ).run({})
    assert device.memory_stats()["used_bytes"] == 0
    agrees(proto, {"x": np.float32([1])})


def test_a_memory_limit_of_the_model():
    loaded = chipdock.load(chain(4), memory_limit=10_000)
    assert loaded(np.ones(100, np.float32)).shape == (100,)
    with pytest.raises(chipdock.errors.OutOfMemoryError, match="memory_limit allows 10000"):
        loaded(np.ones(100_000, np.float32))
    assert loaded(np.ones(100, np.float32)).shape == (100,)


def test_a_memory_limit_counts_weights_and_no_outputs():
    with pytest.raises(chipdock.errors.OutOfMemoryError, match="memory_limit"):
        chipdock.load(mlp(width=1000), memory_limit=1000)(np.zeros((1, 1000), np.float32))
    assert chipdock.load(chain(1), memory_limit=1000)(np.zeros(1000, np.float32)).nbytes == 4000


def test_a_memory_limit_of_the_device():
    device = open_cpu(memory="1MiB")
    loaded = chipdock.load(chain(4), device)
    for _ in range(2):
        with pytest.raises(chipdock.errors.OutOfMemoryError):
            loaded(np.ones(1 << 19, np.float32))
        assert loaded(np.ones(100, np.float32)).shape == (100,)


def run_often(loaded, x):
    for _ in range(10):
        np.testing.assert_array_equal(loaded(x).numpy(), -x)


@pytest.mark.parametrize("after", range(0, 7, 2))
def test_device_lost_in_a_run(monkeypatch, after):
    monkeypatch.setenv("FAKE_LOST_AFTER", str(after))
    device = open_fake("lost")
    loaded = chipdock.load(chain(3), device, fallback="allow")
    x = np.ones(10, np.float32)
    with pytest.raises(chipdock.errors.DeviceLostError, match="fell off the bus") as caught:
        run_often(loaded, x)
    assert caught.value.scope == "device"
    with pytest.raises(chipdock.errors.DeviceLostError, match="fell off the bus"):
        loaded(x)  # sticky, with the first cause
    assert chipdock.load(chain(3))(x).numpy()[0] == -1  # others go on


@pytest.mark.slow
def test_tensors_over_two_gib():
    kind = onnx.TensorProto.INT8
    proto = model(
        [node("Slice", ["x", "a", "b"], ["y"]), node("Size", ["x"], ["n"])],
        [value("x", kind, ["N"])],
        [value("y", kind), value("n", INT64, [])],
        {"a": np.int64([2**31 + 5]), "b": np.int64([2**31 + 9])},
    )
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
        [value("i", INT64, []), value("c", BOOL, []), value("v")],
        [value("c2", BOOL, []), value("v2")])
    proto = model([node("Loop", ["n", "", "x"], ["y"], body=body)],
                  [value("n", INT64, []), value("x")], [value("y")])
    long, short = (np.int64(10**12), np.float32([1])), (np.int64(2), np.float32([1]))
elif kind == "slow trips":
    body = helper.make_graph(
        [node("Identity", ["c"], ["c2"]), node("MatMul", ["v", "v"], ["v2"])], "b",
        [value("i", INT64, []), value("c", BOOL, []), value("v")],
        [value("c2", BOOL, []), value("v2")])
    proto = model([node("Loop", ["n", "", "x"], ["y"], body=body)],
                  [value("n", INT64, []), value("x")], [value("y")])
    long = (np.int64(10**12), np.zeros((400, 400), np.float32))
    short = (np.int64(2), np.ones((2, 2), np.float32))
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
    here = os.pathsep.join(
        filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    )
    child = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, kind, device],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": here, "CHIPDOCK_LAYERS": ""},
    )
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

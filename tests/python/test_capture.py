# SPDX-License-Identifier: Apache-2.0
"""Segments of a model as graphs of the device, and runs inside a capture of the caller."""

import gc
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import pytest
from api_support import BOOL, INT64, chain, mlp, model, open_cpu, open_fake, reference, same, value
from onnx import helper

import chipdock

pytestmark = [pytest.mark.threads, pytest.mark.usefixtures("as_written")]
node = helper.make_node


@pytest.fixture
def captures(monkeypatch):
    monkeypatch.setenv("CHIPDOCK_CAPTURE", "on")


def decoder() -> onnx.ModelProto:
    """A step of attention over a cache of fixed length: writes row `at`, looks at rows to `at`."""
    return model(
        [
            node("Unsqueeze", ["at", "zero"], ["index"]),
            node("ScatterND", ["cache", "index", "token"], ["present"]),
            node("MatMul", ["token", "wq"], ["q"]),
            node("Transpose", ["present"], ["keys"], perm=[1, 0]),
            node("MatMul", ["q", "keys"], ["scores"]),
            node("LessOrEqual", ["rows", "at"], ["seen"]),
            node("Where", ["seen", "scores", "low"], ["masked"]),
            node("Softmax", ["masked"], ["weights"], axis=-1),
            node("MatMul", ["weights", "present"], ["y"]),
        ],
        [
            value("cache", shape=[8, 4]),
            value("token", shape=[1, 4]),
            value("at", INT64, [1]),
        ],
        [value("y", shape=[1, 4]), value("present", shape=[8, 4])],
        {
            "zero": np.array([0], np.int64),
            "wq": np.random.default_rng(1).standard_normal((4, 4)).astype(np.float32),
            "rows": np.arange(8, dtype=np.int64),
            "low": np.float32(-1e9),
        },
    )


def inputs(proto, seed):
    rng = np.random.default_rng(seed)
    rows = 1 + seed % 3
    return {"x": rng.standard_normal((rows, 8)).astype(np.float32)} if proto else {}


def test_replays_agree_for_changing_inputs_and_shapes(captures):
    proto = mlp()
    loaded = chipdock.load(proto, open_cpu("validate"))
    for seed in range(15):
        feeds = inputs(proto, seed)
        same(loaded.run(feeds), reference(proto, feeds))
    segments = loaded.explain().segments
    assert {tuple(s.shapes.items()) for s in segments} == {(("x", (n, 8)),) for n in (1, 2, 3)}
    # The first node reads and the last one writes memory of the caller.
    assert [op for op, _ in segments[0].nodes] == ["Add", "Relu", "MatMul"]
    assert "captured: 3 nodes, Add to MatMul, for x[3, 8]" in str(loaded.explain())


def test_what_is_captured_is_up_to_device_and_environment(monkeypatch):
    proto, feeds = mlp(), inputs(True, 0)
    for wanted, count in (("on", 1), ("off", 0), ("auto", 0)):  # the cpu plugin prefers inline work
        monkeypatch.setenv("CHIPDOCK_CAPTURE", wanted)
        loaded = chipdock.load(proto, open_cpu())
        for _ in range(3):
            loaded.run(feeds)
        assert len(loaded.explain().segments) == count
    monkeypatch.setenv("CHIPDOCK_CAPTURE", "yes")
    with pytest.raises(chipdock.errors.InvalidArgumentError, match="CHIPDOCK_CAPTURE is 'yes'"):
        chipdock.load(proto)


@pytest.mark.parametrize("layers", ["mask=required", "mask=graph.*", "mask=stream.*+event.*"])
def test_without_graphs_of_the_device_runs_are_ordinary(captures, layers):
    proto = mlp()
    loaded = chipdock.load(proto, open_cpu(layers), fallback="allow")
    for seed in range(6):
        feeds = inputs(proto, seed)
        same(loaded.run(feeds), reference(proto, feeds))
    assert loaded.explain().segments == ()


def test_many_threads_replay_at_once(captures):
    loaded = chipdock.load(chain(9), open_cpu("validate"))

    def work(index):
        for i in range(12):
            x = np.arange(16, dtype=np.float32) + 100 * index + i
            np.testing.assert_array_equal(loaded(x).numpy(), -x)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))


def test_bodies_of_loops_are_captured_and_control_flow_cuts(captures):
    body = helper.make_graph(
        [
            node("Identity", ["go_on"], ["more"]),
            node("Neg", ["s"], ["a"]),
            node("Neg", ["a"], ["b"]),
            node("Neg", ["b"], ["c"]),
            node("Neg", ["c"], ["d"]),
            node("Add", ["d", "one"], ["next"]),
        ],
        "body",
        [value("trip", INT64, []), value("go_on", BOOL, []), value("s", shape=["N"])],
        [value("more", BOOL, []), value("next", shape=["N"])],
    )
    proto = model(
        [
            node("Neg", ["x"], ["u"]),
            node("Neg", ["u"], ["v"]),
            node("Neg", ["v"], ["w"]),
            node("Loop", ["trips", "", "w"], ["looped"], body=body),
            node("Neg", ["looped"], ["y"]),
        ],
        [value("x", shape=["N"]), value("trips", INT64, [])],
        [value("y", shape=["N"])],
        {"one": np.ones(1, np.float32)},
    )
    loaded = chipdock.load(proto, open_cpu())
    for trips in (3, 5, 2):
        x = np.arange(6, dtype=np.float32) + trips
        out = loaded.run({"x": x, "trips": np.array(trips, np.int64)})["y"]
        np.testing.assert_array_equal(out.numpy(), x - trips)
    assert all(op == "Neg" for s in loaded.explain().segments for op, _ in s.nodes)


def test_random_numbers_differ_in_each_replay_and_follow_the_seed(captures):
    proto = model(
        [
            node("Neg", ["x"], ["a"]),
            node("Neg", ["a"], ["b"]),
            node("Neg", ["b"], ["c"]),
            node("RandomUniformLike", ["c"], ["d"]),
            node("Neg", ["d"], ["e"]),
            node("Neg", ["e"], ["f"]),
            node("Neg", ["f"], ["y"]),
        ],
        [value("x", shape=["N"])],
        [value("y", shape=["N"])],
    )
    loaded = chipdock.load(proto, open_cpu())
    x = np.zeros(8, np.float32)
    drawn = [loaded.run({"x": x})["y"].numpy().tolist() for _ in range(5)]
    assert len({tuple(line) for line in drawn}) == 5
    fixed = [loaded.run({"x": x}, seed=7)["y"].numpy().tolist() for _ in range(3)]
    assert fixed[0] == fixed[1] == fixed[2]
    assert all(op == "Neg" for s in loaded.explain().segments for op, _ in s.nodes)


def test_a_binding_is_captured_with_its_memory(captures):
    device = open_cpu("validate")
    loaded = chipdock.load(chain(5), device)
    x, y = (chipdock.array(np.zeros(8, np.float32), device) for _ in range(2))
    binding = loaded.bind().input("x", x).output("y", y)
    for i in range(5):
        x.copy_from(np.full(8, i, np.float32))
        assert binding.run()["y"] is not None
        np.testing.assert_array_equal(y.numpy(), np.full(8, -i, np.float32))
    assert [len(s.nodes) for s in loaded.explain().segments] == [5]
    # Two halves that take turns, as a cache has them.
    other = chipdock.array(np.zeros(8, np.float32), device)
    for i in range(6):
        target = (y, other)[i % 2]
        x.copy_from(np.full(8, 10 + i, np.float32))
        binding.output("y", target).run()
        np.testing.assert_array_equal(target.numpy(), np.full(8, -10 - i, np.float32))


def test_arrays_that_a_run_returned_keep_their_values(captures):
    loaded = chipdock.load(chain(5), open_cpu())
    results = [loaded(np.full(8, i, np.float32)) for i in range(6)]
    for i, result in enumerate(results):
        np.testing.assert_array_equal(result.numpy(), np.full(8, -i, np.float32))


@pytest.mark.parametrize("layers", ["validate", "mask=graph.*", "mask=stream.*+event.*"])
def test_a_decode_step_is_captured_once_and_launched_for_each_token(layers):
    """docs/abi-walks.md, section 5: the cache stays put, the position is data on the device."""
    device = open_cpu(layers)
    proto = decoder()
    loaded = chipdock.load(proto, device)
    cache = chipdock.array(np.zeros((8, 4), np.float32), device)
    token = chipdock.array(np.zeros((1, 4), np.float32), device)
    at = chipdock.array(np.zeros(1, np.int64), device)
    y = chipdock.empty((1, 4), np.float32, device)
    binding = loaded.bind().input("cache", cache).input("token", token).input("at", at)
    binding.output("present", cache).output("y", y)
    stream = chipdock.Stream(device)
    stream.begin_capture()
    binding.run(stream=stream)
    graph = stream.end_capture()
    del binding, loaded
    gc.collect()
    past = np.zeros((8, 4), np.float32)
    rng = np.random.default_rng(3)
    for position in range(8):
        feeds = {
            "cache": past,
            "token": rng.standard_normal((1, 4)).astype(np.float32),
            "at": np.array([position], np.int64),
        }
        token.copy_from(feeds["token"])
        at.copy_from(feeds["at"])
        graph.launch(stream)
        stream.sync()
        want = reference(proto, feeds)
        past = want["present"]
        np.testing.assert_allclose(y.numpy(), want["y"], rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(cache.numpy(), past)


def test_outputs_of_a_captured_run_are_written_at_each_launch():
    device = open_cpu("validate")
    loaded = chipdock.load(mlp(), device)
    x = chipdock.array(np.zeros((2, 8), np.float32), device)
    stream = chipdock.Stream(device)
    stream.begin_capture()
    y = loaded.run({"x": x}, stream=stream)["y"]
    graph = stream.end_capture()
    for seed in (1, 4):
        feeds = inputs(True, seed)
        x.copy_from(feeds["x"])
        graph.launch()
        same({"y": y}, reference(mlp(), feeds))


def test_constants_and_passed_through_inputs_are_outputs_of_a_captured_run():
    device = open_cpu("validate")
    proto = model(
        [node("Shape", ["x"], ["n"]), node("Neg", ["x"], ["y"])],
        [value("x", shape=["N"])],
        [value("n", INT64, [1]), value("y", shape=["N"])],
    )
    loaded = chipdock.load(proto, device)
    x = chipdock.array(np.arange(5, dtype=np.float32), device)
    stream = chipdock.Stream(device)
    stream.begin_capture()
    out = loaded.run({"x": x}, stream=stream)
    graph = stream.end_capture()
    graph.launch(stream)
    stream.sync()
    assert out["n"].numpy().tolist() == [5]
    np.testing.assert_array_equal(out["y"].numpy(), -np.arange(5, dtype=np.float32))


def refused(loaded, feeds, match, device):
    """The run is refused, and the capture goes on as if it had not been tried."""
    stream = chipdock.Stream(device)
    stream.begin_capture()
    with pytest.raises(chipdock.errors.FailedPreconditionError, match=match):
        loaded.run(feeds, stream=stream)
    assert stream.end_capture().node_count == 0


def test_what_cannot_be_captured_is_named():
    device = open_cpu()
    loaded = chipdock.load(chain(3), device)
    refused(loaded, {"x": np.zeros(4, np.float32)}, "input 'x' is not in memory of cpu:0", device)
    x = chipdock.array(np.ones(4, np.float32), device)
    where = model(
        [node("NonZero", ["x"], ["y"], name="where")],
        [value("x", shape=["N"])],
        [value("y", INT64)],
    )
    refused(chipdock.load(where, device), {"x": x}, "NonZero node 'where' has shapes", device)
    noise = model(
        [node("RandomNormalLike", ["x"], ["y"], name="noise")],
        [value("x", shape=["N"])],
        [value("y", shape=["N"])],
    )
    loaded = chipdock.load(noise, device)
    refused(loaded, {"x": x}, "node 'noise' draws other numbers.*give a seed", device)
    stream = chipdock.Stream(device)
    stream.begin_capture()
    y = loaded.run({"x": x}, stream=stream, seed=3)["y"]
    stream.end_capture().launch()
    np.testing.assert_array_equal(y.numpy(), loaded.run({"x": x}, seed=3)["y"].numpy())


def test_a_fallback_cannot_be_captured():
    device = open_fake("nano")
    loaded = chipdock.load(chain(3), device, fallback="allow")
    x = chipdock.array(np.ones(4, np.float32), device)
    refused(loaded, {"x": x}, "the move of 'x' copies between device and host", device)


def test_an_interrupt_does_not_wait_for_work_queued_before():
    """Ctrl-C with a long queue: the run returns, its memory stays until the work has ended."""
    device = open_cpu()
    loaded = chipdock.load(chain(3), device)
    stream = chipdock.Stream(device)
    gate = threading.Event()
    stream.host_function(lambda _: gate.wait(20))
    x = np.arange(1000, dtype=np.float32)

    import _thread

    timer = threading.Timer(0.02, _thread.interrupt_main)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            loaded.run({"x": x}, stream=stream)
    finally:
        timer.join()
        assert not gate.is_set()
        del x
        gc.collect()
        gate.set()
    stream.sync()
    np.testing.assert_array_equal(loaded(np.ones(2, np.float32)).numpy(), -np.ones(2))

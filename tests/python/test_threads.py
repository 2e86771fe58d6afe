# SPDX-License-Identifier: Apache-2.0
"""One model run from many threads, one model per thread, and threads that load, run and let go."""

import gc
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from api_support import (
    BOOL,
    INT64,
    chain,
    mlp,
    model,
    open_cpu,
    open_fake,
    python_json,
    reference,
    value,
)
from onnx import helper

import chipdock

pytestmark = pytest.mark.threads
node = helper.make_node
THREADS, ROUNDS = 6, 12


def together(work, count=THREADS):
    """Run work(index) in `count` threads that start at once; errors come out."""
    gate = threading.Barrier(count)

    def gated(index):
        gate.wait()
        return work(index)

    with ThreadPoolExecutor(count) as pool:
        return [f.result() for f in [pool.submit(gated, i) for i in range(count)]]


def batches(index):
    rng = np.random.default_rng(index)
    return [rng.standard_normal((1 + (index + r) % 4, 8)).astype(np.float32) for r in range(ROUNDS)]


@pytest.fixture(params=["cpu", "strict", "nano", "required"])
def device(request):
    return {
        "cpu": lambda: chipdock.device("cpu:0"),
        "strict": lambda: open_cpu(strict="1"),
        "nano": lambda: open_fake("nano"),
        "required": lambda: open_cpu("mask=required"),
    }[request.param]()


def expected(proto, x):
    return reference(proto, {"x": x})["y"]


def test_one_model_many_threads(device):
    proto = mlp()
    loaded = chipdock.load(proto, device, fallback="allow")

    def work(index):
        for x in batches(index):
            np.testing.assert_allclose(loaded(x).numpy(), expected(proto, x), rtol=1e-4, atol=1e-6)

    together(work)


def test_one_model_each(device):
    def work(index):
        proto = mlp(index)
        loaded = chipdock.load(proto, device, fallback="allow")
        for x in batches(index):
            np.testing.assert_allclose(loaded(x).numpy(), expected(proto, x), rtol=1e-4, atol=1e-6)

    together(work)


def test_one_weight_loaded_by_all_at_once():
    device = open_cpu(strict="1")
    gc.collect()
    before = device.memory_stats()["used_bytes"]
    models = together(lambda _: chipdock.load(mlp(3, 512), device))
    alone = models[0].memory({"x": (1, 512)})["weight_bytes"]
    used = device.memory_stats()["used_bytes"] - before
    assert used < 2 * alone
    del models
    gc.collect()
    assert device.memory_stats()["used_bytes"] == before


def test_loops_and_branches_many_threads():
    body = helper.make_graph(
        [node("Identity", ["c"], ["c2"]), node("Add", ["v", "w"], ["v2"])],
        "b",
        [value("i", INT64, []), value("c", BOOL, []), value("v")],
        [value("c2", BOOL, []), value("v2")],
    )
    proto = model(
        [node("Loop", ["n", "", "x"], ["y"], body=body)],
        [value("n", INT64, []), value("x")],
        [value("y")],
        {"w": np.float32([1])},
    )
    loaded = chipdock.load(proto)

    def work(index):
        for n in range(8):
            got = loaded(np.int64(n), np.full(5, index, np.float32)).numpy()
            np.testing.assert_array_equal(got, np.full(5, index + n))

    together(work)


def test_more_shapes_than_the_cache_holds_from_all_threads():
    loaded = chipdock.load(chain(3))

    def work(index):
        for n in range(1, 50):
            x = np.full(n, index, np.float32)
            np.testing.assert_array_equal(loaded(x).numpy(), -x)

    together(work)


def test_run_op_from_many_threads():
    def work(index):
        x = chipdock.array(np.full(33, index, np.float32))
        for r in range(100):
            op = ("Neg", "Exp", "Abs")[r % 3]
            got = chipdock.run_op(op, x).numpy()
            np.testing.assert_allclose(
                got, {"Neg": -x.numpy(), "Exp": np.exp(x.numpy()), "Abs": x.numpy()}[op], rtol=1e-5
            )

    together(work)


def test_errors_of_one_thread_do_not_reach_another():
    loaded = chipdock.load(mlp())

    def work(index):
        for x in batches(index):
            if index % 2:
                with pytest.raises(chipdock.errors.InvalidArgumentError):
                    loaded(x[:, :3])
            else:
                assert loaded(x).shape == (len(x), 4)

    together(work)


def test_models_are_let_go_while_others_run():
    proto = mlp()

    def work(index):
        for x in batches(index)[:6]:
            loaded = chipdock.load(proto)
            result = loaded(x)
            del loaded
            np.testing.assert_allclose(result.numpy(), expected(proto, x), rtol=1e-4, atol=1e-6)

    together(work)


def test_one_binding_from_many_threads_runs_one_at_a_time():
    loaded = chipdock.load(chain(1))
    x, y = chipdock.array(np.arange(64, dtype=np.float32)), chipdock.empty((64,))
    binding = loaded.bind().input("x", x).output("y", y)

    def work(_):
        for _ in range(50):
            binding.run()

    together(work)
    np.testing.assert_array_equal(y.numpy(), -np.arange(64))


def test_streams_of_ones_own_in_every_thread():
    device = open_cpu()
    proto = mlp()
    loaded = chipdock.load(proto, device)

    def work(index):
        stream = chipdock.Stream(device)
        for x in batches(index):
            got = loaded.run({"x": x}, stream=stream)["y"]
            np.testing.assert_allclose(got.numpy(), expected(proto, x), rtol=1e-4, atol=1e-6)

    together(work)


@pytest.mark.slow
def test_the_gil_is_free_during_a_run():
    """Another Python thread makes progress while a long run is under way."""
    loaded = chipdock.load(chain(400, "Exp"))
    x = np.zeros(200_000, np.float32)
    ended = threading.Event()

    def run():
        loaded(x)
        ended.set()

    thread = threading.Thread(target=run)
    thread.start()
    turns = 0
    while not ended.is_set():
        turns += 1
    thread.join()
    assert turns > 1000


@pytest.mark.slow
def test_the_first_arrays_of_a_process_come_from_many_threads():
    """The first of them imports a module, which lets others run: nobody may wait for it and hold
    the GIL."""
    code = """
import json, threading
import numpy as np
import chipdock
barrier, seen = threading.Barrier(6), []
def work():
    barrier.wait()
    seen.append(chipdock.array(np.arange(3)).numpy().tolist())
threads = [threading.Thread(target=work) for _ in range(6)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(json.dumps(seen))
"""
    assert python_json(code, timeout=60) == [[0, 1, 2]] * 6

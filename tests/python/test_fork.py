# SPDX-License-Identifier: Apache-2.0
"""After fork the child gets ForkedError from every handle, and the parent does not notice."""

import pytest
from api_support import python_json

pytestmark = [pytest.mark.slow, pytest.mark.threads]

CODE = """
import json, os, sys, numpy as np, chipdock
from api_support import *
device = chipdock.device("cpu:0")
x = np.ones((2, 8), np.float32)
loaded = chipdock.load(mlp(), device)
array = chipdock.array(x)
stream = chipdock.Stream(device)
stream.host_function(lambda _: None)
stream.sync()
want = loaded(x).numpy().copy()
read, write = os.pipe()
child = os.fork()
if child == 0:
    def outcome(call):
        try:
            call()
            return "OK"
        except chipdock.ChipdockError as error:
            return error.code
        except BaseException as error:
            return repr(error)
    results = {
        "run": outcome(lambda: loaded(x)),
        "load": outcome(lambda: chipdock.load(mlp())),
        "array": outcome(lambda: chipdock.array(x)), "empty": outcome(lambda: chipdock.empty((3,))),
        "sync": outcome(device.sync), "stream": outcome(lambda: chipdock.Stream(device)),
        "stream sync": outcome(stream.sync),
        "run_op": outcome(lambda: chipdock.run_op("Neg", array)),
        "event": outcome(lambda: chipdock.Event(device).record(stream)),
        "open": outcome(lambda: chipdock.open_plugin(device.plugin.path)),
    }
    os.write(write, json.dumps(results).encode())
    os.close(write)
    if sys.argv[-1] == "exit":
        sys.exit(0)
    os._exit(0)
os.close(write)
text = b"".join(iter(lambda: os.read(read, 65536), b""))
_, status = os.waitpid(child, 0)
same = bool(np.array_equal(loaded(x).numpy(), want))
stream.copy(array, chipdock.empty((2, 8)))
stream.sync()
print(json.dumps([json.loads(text), status, same]))
"""


@pytest.mark.parametrize("end", ["_exit", "exit"])
def test_a_child_gets_forked_and_the_parent_goes_on(end):
    code = CODE.replace("sys.argv[-1]", repr(end))
    results, status, same = python_json(code)
    assert results == dict.fromkeys(results, "FORKED")
    assert status == 0
    assert same


HELD = """
import json, os, signal, threading, numpy as np, onnx, chipdock
from api_support import *
proto = model(
    [onnx.helper.make_node("Mul", ["x", "w"], ["y"])], [value("x"), value("w", shape=[])],
    [value("y")], {"w": np.float32(2)},
)
loaded = chipdock.load(proto)
feeds = {"x": np.ones(3, np.float32), "w": np.float32(3)}
binding = loaded.bind().input("x", feeds["x"])
loaded.run(feeds)
calls = {
    "run": lambda: loaded.run(feeds), "binding": binding.run,
    "device": lambda: chipdock.device("cpu:0").sync(),
}
import chipdock._registry
variants = loaded._variants
locks = [variants._lock, binding._lock, chipdock._registry._lock]
locks += [v._lock for v in variants._variants.values()]
taken, fork_done = threading.Event(), threading.Event()
def hold():
    for lock in locks:
        lock.acquire()
    taken.set()
    fork_done.wait()
    for lock in locks:
        lock.release()
holder = threading.Thread(target=hold)
holder.start()
taken.wait()
read, write = os.pipe()
child = os.fork()
if child == 0:
    signal.alarm(30)
    results = {}
    for name, call in calls.items():
        try:
            call()
            results[name] = "OK"
        except chipdock.ChipdockError as error:
            results[name] = error.code
    os.write(write, json.dumps(results).encode())
    os.close(write)
    os._exit(0)
os.close(write)
text = b"".join(iter(lambda: os.read(read, 65536), b""))
fork_done.set()
holder.join()
assert os.waitpid(child, 0)[1] == 0
assert loaded.run(feeds)["y"].numpy().tolist() == [3, 3, 3]
assert binding.run()["y"].numpy().tolist() == [2, 2, 2]
print(text.decode())
"""


def test_a_lock_that_another_thread_held_does_not_hang_the_child():
    assert python_json(HELD) == dict.fromkeys(["run", "binding", "device"], "FORKED")


def test_spawned_workers_work():
    code = """
import json, multiprocessing, sys
import numpy as np
import chipdock
if __name__ == "__main__":
    chipdock.device("cpu:0")
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        import api_support
        print(json.dumps(pool.apply(api_support.negated, ([1.0, 2.0],))))
"""
    assert python_json(code) == [-1.0, -2.0]


def test_a_fork_before_the_first_use_is_free():
    code = """
import json, os, numpy as np, chipdock
read, write = os.pipe()
child = os.fork()
if child == 0:
    os.write(write, json.dumps(chipdock.run_op("Neg", np.float32([1])).numpy().tolist()).encode())
    os._exit(0)
os.close(write)
text = os.read(read, 4096)
os.waitpid(child, 0)
print(json.dumps([json.loads(text), chipdock.run_op("Neg", np.float32([2])).numpy().tolist()]))
"""
    assert python_json(code) == [[-1.0], [-2.0]]

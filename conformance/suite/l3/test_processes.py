# SPDX-License-Identifier: Apache-2.0
"""More than one process: beside each other, killed, forked, ending in any way, sharing memory."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np

import chipdock
from chipdock.conformance.case import NotSupported, Variant, case
from chipdock.conformance.suite.canary import check_bytes
from chipdock.conformance.suite.children import finish, start
from chipdock.conformance.suite.device import RawDevice, pattern
from chipdock.conformance.suite.l3.work import WORK
from chipdock.conformance.suite.raw import STATUS
from chipdock.conformance.suite.threads import run_together
from chipdock.conformance.suite.variants import named, sizes
from chipdock.conformance.target import Target

_MS = 3000


@case(
    "L3.processes.beside",
    duties=("DEV-4", "DEV-1"),
    needs="process",
    budget_ms=_MS,
    entry_points=("device.open", "memory.copy"),
    variants=sizes(1, 4),
)
def test_beside_each_other(target: Target, variant: Variant) -> None:
    """Processes use the device at once, and each gets what it wrote."""
    children = [start(target, "work(50)\nprint('done')") for _ in range(variant.size)]
    values = np.arange(3001, dtype=np.int32)
    for _ in range(20):
        got = chipdock.array(values, target.device).copy_to_numpy()
        assert np.array_equal(got, values)
    for child in children:
        assert finish(child) == "done\n"


@case(
    "L3.processes.killed",
    duties=("DEV-4", "DEV-1"),
    needs="process",
    budget_ms=_MS,
    entry_points=("device.open",),
    variants=named("idle at_work holding_memory"),
)
def test_killed(target: Target, variant: Variant) -> None:
    """A process that is killed takes nothing with it: others go on, and new ones start."""
    code = {
        "idle": "print('ready', flush=True)\nsys.stdin.read()",
        "at_work": "print('ready', flush=True)\nwhile True: work(1)",
        "holding_memory": "kept = [chipdock.empty((9**6,), np.uint8, device) for _ in range(16)]\n"
        "print('ready', flush=True)\nsys.stdin.read()",
    }[variant.name]
    child = start(target, code)
    assert child.stdout is not None
    if child.stdout.readline() != "ready\n":
        finish(child)
    child.send_signal(signal.SIGKILL)
    finish(child, -signal.SIGKILL)
    values = np.arange(3001, dtype=np.int32)
    assert np.array_equal(chipdock.array(values, target.device).copy_to_numpy(), values)
    assert finish(start(target, "work(3)\nprint('done')")) == "done\n"


_ENDS = {
    "plain": ("work(1)", 0),
    "sys_exit": ("work(1)\nsys.exit(3)", 3),
    "os_exit": ("work(1)\nos._exit(4)", 4),
    "exception": ("work(1)\nraise SystemExit(5)", 5),
    "stream_at_work": (
        "s = chipdock.Stream(device)\na = chipdock.array(np.arange(300000), device)\n"
        "b = chipdock.empty((300000,), np.int64, device)\n"
        "for _ in range(50): s.copy(a, b)", 0),
    "threads": ("ts = [threading.Thread(target=work) for _ in range(4)]\n"
                "[t.start() for t in ts]", 0),
    "after_shutdown": ("work(1)\nplugin.shutdown()", 0),
    "gate": ("s = chipdock.Stream(device)\ns.host_function(lambda _: None)\ndel s", 0),
    "event": ("e = chipdock.Event(device)\ns = chipdock.Stream(device)\ne.record(s)", 0),
    "graph": ("s = chipdock.Stream(device)\n"
        "a, b = (chipdock.array(np.arange(3), device) for _ in '12')\n"
              "s.begin_capture()\ns.copy(a, b)\ng = s.end_capture()\ng.launch(s)", 0),
    "open_capture": ("s = chipdock.Stream(device)\ns.begin_capture()", 0),
}  # fmt: skip


@case(
    "L3.processes.exit",
    duties=("PLG-6", "BASE-9"),
    needs="process",
    budget_ms=_MS,
    entry_points=("device.close",),
    variants=[
        Variant(name=name, code=code, status=status) for name, (code, status) in _ENDS.items()
    ],
)
def test_exit(target: Target, variant: Variant) -> None:
    """A process that ends with things open, or at work, ends: no hang, no signal, its own code."""
    finish(start(target, variant.code), variant.status)


_FORK = """
read, write = os.pipe()
array = chipdock.array(np.arange(3), device)
stream = chipdock.Stream(device)
pid = os.fork()
if pid == 0:
    codes = []
    for call in (plugin.device_count, lambda: chipdock.array(np.arange(3), device), stream.sync,
                 device.sync, lambda: chipdock.Stream(device)):
        try:
            call()
            codes.append("OK")
        except chipdock.ChipdockError as error:
            codes.append(error.code)
    os.write(write, ",".join(codes).encode())
    os._exit(0)
os.close(write)
print(os.read(read, 4096).decode())
assert os.waitpid(pid, 0)[1] == 0
work(3)
"""


@case("L3.processes.fork", duties=("PLG-7",), needs="process", budget_ms=_MS)
def test_fork(target: Target, variant: object) -> None:
    """In a forked child every call is FORKED, and the parent does not notice."""
    assert finish(start(target, _FORK)).strip() == ",".join(["FORKED"] * 5)


# Python's own views are of no use: os.environ is a copy, getsignal knows Python's handlers only.
_FACTS = """
import ctypes, locale, os, signal
import numpy, chipdock
libc = ctypes.CDLL(None)
def action(number):
    room = ctypes.create_string_buffer(256)
    libc.sigaction(int(number), None, room)
    return room.raw[:16]  # handler and mask; what lies behind may be anything
def environment():
    entries, found = ctypes.POINTER(ctypes.c_char_p).in_dll(libc, "environ"), []
    while entries[len(found)] is not None: found.append(entries[len(found)])
    return sorted(found)
def facts():
    return {"signals": [action(s) for s in signal.valid_signals()],
            "mask": signal.pthread_sigmask(signal.SIG_BLOCK, []),
            "locale": locale.setlocale(locale.LC_ALL), "environment": environment(),
            "affinity": os.sched_getaffinity(0), "rounding": libc.fegetround(),
            "denormals": numpy.float64(2.0 ** -1060) * numpy.float64(1.0),
            "directory": os.getcwd()}
# The process that starts this one has used the plugin and may be tied to a processor already.
os.sched_setaffinity(0, range(os.cpu_count()))
before = facts()
"""
_STATE = """
work(3)
second = chipdock.Device.open(plugin, int(sys.argv[2]))
# Once more by this very thread: the host may leave the opening to another one.
from chipdock._cabi import load_raw
raw = load_raw(sys.argv[1]); raw.start()
out = raw.ffi.new("chipdock_device**")
raw.call("open", raw.table("device").open, raw.plugin,
         raw.new("chipdock_device_open_desc", index=int(sys.argv[2])), out)
raw.call("close", raw.table("device").close, out[0])
raw.shutdown()
after = facts()
print(*(name for name in before if before[name] != after[name]))
"""


@case(
    "L3.processes.state",
    duties=("BASE-9", "PLG-2"),
    needs="process",
    budget_ms=_MS,
    entry_points=("device.open",),
)
def test_process_state_is_left_alone(target: Target, variant: object) -> None:
    """Using the device changes no signal handler, locale, environment, affinity or float mode."""
    changed = finish(start(target, _STATE, before=_FACTS)).split()
    assert not changed, f"the plugin changed {', '.join(changed)}"


_LOAD = """
import ctypes
def facts():
    with open("/proc/self/status") as status:
        masks = [line for line in status if line.startswith(("SigCgt", "SigIgn", "SigBlk"))]
    threads, files = os.listdir("/proc/self/task"), os.listdir("/proc/self/fd")
    return masks, len(threads), dict(os.environ), sorted(files)
before = facts()
library = ctypes.CDLL(sys.argv[3], mode=ctypes.RTLD_LOCAL)
after = facts()
for name, a, b in zip(("signals", "threads", "environment", "files"), before, after):
    if a != b: print(name)
"""


@case("L3.processes.load", duties=("PLG-2", "PLG-1", "BASE-9"), needs="process", budget_ms=_MS)
def test_loading_runs_nothing(target: Target, variant: object) -> None:
    """Loading the library alone starts no thread, opens no file and handles no signal."""
    code = "import os, sys\n" + _LOAD.replace("sys.argv[3]", "sys.argv[1]")
    done = subprocess.run(
        [sys.executable, "-c", code, str(target.plugin_path)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-1000:]
    assert not done.stdout.split(), f"loading changed {done.stdout.split()}"


_IMPORT = """
from chipdock._cabi import load_raw
raw = load_raw(sys.argv[1]); raw.start()
ffi, table, memory_table = raw.ffi, raw.table("device"), raw.table("memory")
out = ffi.new("chipdock_device**")
raw.call("open", table.open, raw.plugin,
         raw.new("chipdock_device_open_desc", index=int(sys.argv[2])), out)
blob = ffi.new("char[]", bytes.fromhex(sys.argv[3]))
external = raw.new("chipdock_external", kind=3, blob=blob, size=8192)
external.blob_size = len(sys.argv[3]) // 2
memory = ffi.new("chipdock_memory**")
raw.call("import", memory_table.import_memory, out[0], external, memory)
host = ffi.new("char[]", 8192)
def copy(source, target):
    raw.call("copy", memory_table.copy, out[0],
             raw.new("chipdock_copy_desc", source=source, target=target, size=8192))
there, here = raw.new("chipdock_place", memory=memory[0]), raw.new("chipdock_place", host=host)
copy(there, here)
ffi.memmove(host, bytes(255 - b for b in bytes(ffi.buffer(host, 8192))), 8192)
copy(here, there)
raw.call("free", memory_table.free, out[0], memory[0])
raw.call("close", table.close, out[0])
raw.shutdown()
print("done")
"""


@case(
    "L3.processes.shared",
    duties=("BASE-8", "MEM-2"),
    budget_ms=_MS,
    tolerance="E",
    needs="process and slot:memory.export_memory and slot:memory.import_memory",
    entry_points=("memory.export_memory", "memory.import_memory"),
    variants=sizes(1, 3),
)
def test_shared_memory(target: Target, variant: Variant) -> None:
    """Memory exported by blob is read and written by another process, and stays ours."""
    with RawDevice(target) as device:
        memory = device.alloc(8192, usage=8)
        data = pattern(8192, seed=70)
        device.write(memory, data)
        out = device.new("chipdock_external", kind=3)
        if device.call("memory.export_memory", device.device, memory, out) == STATUS["UNSUPPORTED"]:
            raise NotSupported("export of kind IPC")
        blob = device.block("char[]", out.blob_size)
        out.blob = blob
        device.ok("memory.export_memory", device.device, memory, out)
        text = bytes(device.ffi.buffer(blob, out.blob_size)).hex()
        for _ in range(variant.size):
            assert finish(start(target, _IMPORT, text)) == "done\n"
            data = bytes(255 - b for b in data)
            check_bytes(device.read(memory, 8192), data, "what the other process wrote")


@case("L3.processes.spawn", duties=("PLG-7",), needs="process", budget_ms=_MS, variants=sizes(2))
def test_children_of_threads(target: Target, variant: Variant) -> None:
    """Processes that are started by threads of a busy process work."""
    results: list[str] = []

    def run() -> None:
        results.append(finish(start(target, "work(5)\nprint('done')")))

    threads = [threading.Thread(target=run) for _ in range(variant.size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == ["done\n"] * variant.size


@case(
    "L3.soak.mixed",
    duties=("MEM-8", "MEM-2", "PLG-6"),
    budget_ms=30_000,
    tier="submit",
    variants=named("threads instances memory"),
)
def test_soak(target: Target, variant: Variant) -> None:
    """Twenty seconds of everything at once, of instances that come and go, of full memory."""
    end = time.monotonic() + 20
    names = [name for name, (_, needs) in WORK.items() if target.has(needs)]

    def work(device: RawDevice, name: str) -> None:
        while time.monotonic() < end:
            lane = device.lane()
            WORK[name][0](lane)
            lane.close()

    if variant.name == "instances":
        while time.monotonic() < end:
            with RawDevice(target) as device:
                for name in names:
                    WORK[name][0](device)
            os.sched_yield()
        return
    with RawDevice(target) as device:
        if variant.name == "memory":
            blocks = [device.alloc(1 << 20) for _ in range(64)]
            for i, block in enumerate(blocks):
                device.write(block, pattern(1 << 20, seed=i))
        run_together([functools.partial(work, device, name) for name in names])
        if variant.name == "memory":
            for i, block in enumerate(blocks):
                check_bytes(device.read(block, 1 << 20), pattern(1 << 20, seed=i), f"block {i}")

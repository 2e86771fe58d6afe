# SPDX-License-Identifier: Apache-2.0
"""The file of the layer `record`, as another process reads it after the writer was killed."""

import os
import signal
import struct
import subprocess
import sys
from pathlib import Path

from api_support import fake

from chipdock import _core

NAMES = _core.slot_names()

# Opens a device, says so, and waits to be killed.
CHILD = """
import sys
import chipdock
plugin = chipdock.open_plugin(sys.argv[1])
device = chipdock.Device.open(plugin, 0)
print("ready", flush=True)
sys.stdin.read()
"""


def test_slot_names_are_those_of_a_plugin_in_order():
    plugin = _core.load_plugin(str(fake("nano")), "none")
    assert tuple(plugin.slots) == NAMES
    assert NAMES[0] == "device.count"
    assert len(set(NAMES)) == len(NAMES)
    plugin.shutdown()


def test_calls_are_readable_after_sigkill(tmp_path: Path):
    path = tmp_path / "record"
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(fake("nano"))],
        env=os.environ | {"CHIPDOCK_LAYERS": f"validate,record={path}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    child.kill()
    assert child.wait() == -signal.SIGKILL
    child.stdout.close()
    assert child.stdin is not None
    child.stdin.close()

    data = path.read_bytes()
    magic, version, ring, slots, statuses, calls = struct.unpack_from("=8s4IQ", data)
    assert (magic, version, ring, slots, statuses) == (b"CDREC\0\0\1", 1, 256, len(NAMES), 32)
    seen = [struct.unpack_from("=QIiQQ", data, 64 + 32 * i) for i in range(calls)]
    assert [sequence for sequence, *_ in seen] == list(range(1, calls + 1))
    assert {status for _, _, status, *_ in seen} == {0}
    names = [NAMES[slot] for _, slot, *_ in seen]
    assert "device.open" in names
    assert names.index("device.count") < names.index("device.open")
    counts = struct.unpack_from(f"={slots * statuses}Q", data, 64 + 32 * ring)
    assert sum(counts) == calls
    assert counts[NAMES.index("device.open") * statuses] == names.count("device.open")

# SPDX-License-Identifier: Apache-2.0
"""The program as a process: on a terminal, interrupted, and with a reader that leaves."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import onnx
import pytest
from onnx import parser

COMMAND = [sys.executable, "-m", "chipdock.cli"]
LIMIT_S = 60


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "g.onnx"
    text = (
        '<ir_version: 10, opset_import: ["" : 21]> g (float[n] x) => (float[n] y) { y = Relu(x) }'
    )
    onnx.save(parser.parse_model(text), path)
    return str(path)


class Terminal:
    """A child whose stdout and stderr are a terminal of 80 columns."""

    def __init__(self, words, env=None):
        self.master, slave = pty.openpty()
        environment = os.environ | {"TERM": "xterm", "COLUMNS": "80"} | (env or {})
        self.child = subprocess.Popen(
            [*COMMAND, *words], stdin=slave, stdout=slave, stderr=slave, env=environment
        )
        os.close(slave)
        self.text = ""

    def read(self, until=None):
        """Collect what is shown until a text or the end."""
        end = time.monotonic() + LIMIT_S
        while until is None or until not in self.text:
            ready, _, _ = select.select([self.master], [], [], max(0, end - time.monotonic()))
            assert ready, f"no {until!r} in {self.text!r}"
            try:
                part = os.read(self.master, 4096)
            except OSError:  # the last writer has gone
                part = b""
            if not part:
                assert until is None, self.text
                break
            self.text += part.decode()
        return self.text

    def close(self):
        self.child.kill()
        self.child.wait()
        os.close(self.master)


@pytest.fixture
def terminal():
    made = []

    def start(*words, **env):
        made.append(Terminal(words, env))
        return made[-1]

    yield start
    for item in made:
        item.close()


@pytest.mark.slow
def test_interrupting_a_long_run_is_130_at_once(terminal, model):
    shown = terminal("bench", model, "--seconds", "600", "--no-compare-ort")
    shown.read("timing g")
    shown.child.send_signal(signal.SIGINT)
    start = time.monotonic()
    shown.read()
    assert shown.child.wait(LIMIT_S) == 130
    assert time.monotonic() - start < LIMIT_S / 2
    assert "interrupted" in shown.text
    assert "Traceback" not in shown.text


@pytest.mark.slow
def test_interrupting_a_plugin_that_hangs_is_130(terminal):
    path = Path(os.environ["CHIPDOCK_TEST_LIBDIR"]) / "libhangs_open.so"
    shown = terminal("info", "fake:0", CHIPDOCK_PLUGIN_PATH=str(path))
    shown.read("opening fake:0")
    shown.child.send_signal(signal.SIGINT)
    shown.read()
    assert shown.child.wait(LIMIT_S) == 130
    assert "Traceback" not in shown.text


@pytest.mark.slow
def test_a_table_fits_a_terminal(terminal):
    shown = terminal("devices", "--all")
    lines = shown.read().replace("\r", "").split("\n")
    assert shown.child.wait(LIMIT_S) == 0
    assert any("cpu:0" in line for line in lines)


@pytest.mark.slow
@pytest.mark.parametrize("words", [["--help"], ["info", "--ops"], ["devices", "--json"]])
def test_a_reader_that_leaves_is_silent(words):
    reader, writer = os.pipe()
    os.close(reader)
    with subprocess.Popen([*COMMAND, *words], stdout=writer, stderr=subprocess.PIPE) as child:
        os.close(writer)
        _, stderr = child.communicate(timeout=LIMIT_S)
    assert (child.returncode, stderr) == (141, b"")


@pytest.mark.slow
@pytest.mark.parametrize("words", ["--help", "include-dir", "info --ops", "devices --json"])
def test_a_full_disk_is_an_error(words):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*COMMAND, *words.split()], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    said = "error: UNAVAILABLE: the output cannot be written: No space left on device"
    assert done.stderr.startswith(said)
    assert done.stderr.count("\n") == 1
    assert done.returncode == 1


@pytest.mark.slow
def test_a_trace_that_cannot_be_written_is_an_error(model):
    command = [*COMMAND, "run", model, "--profile", "/dev/full"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = "error: UNAVAILABLE: the trace file /dev/full cannot be written: No space left on device"
    assert done.stderr.splitlines()[-1] == said
    assert (done.returncode, done.stdout) == (1, "")


@pytest.mark.slow
def test_json_is_all_there_is_on_stdout(model):
    done = subprocess.run(
        [*COMMAND, "run", model, "--json"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["schema"] == "chipdock.run/1"


@pytest.mark.slow
def test_version():
    done = subprocess.run([*COMMAND, "--version"], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("chipdock 0.")

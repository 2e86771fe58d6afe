# SPDX-License-Identifier: Apache-2.0
"""A process that ends with work in flight ends: no crash, no hang."""

import subprocess
import sys

import pytest

_RUN_OP = """
y = chipdock.array(np.ones(2_000_000, np.float32))
def work():
    while True:
        chipdock.run_op("Exp", y)
"""
_MODEL = """
text = '<ir_version: 10, opset_import: ["" : 21]> g (float[n] x) => (float[n] y) {' + "".join(
    f"a{i + 1} = Exp(a{i})" for i in range(200)).replace("a0", "x").replace("a200", "y") + "}"
model = chipdock.load(onnx.parser.parse_model(text))
x = np.ones(200_000, np.float32)
def work():
    while True:
        model.run({"x": x})
"""
_FRAME = """
import threading
import numpy as np, onnx.parser, chipdock
{body}
threads = [threading.Thread(target=work, daemon=True) for _ in range(3)]
for t in threads:
    t.start()
while chipdock.device().memory_stats()["launch_count"] < 3:
    pass
"""


@pytest.mark.slow
@pytest.mark.threads
@pytest.mark.parametrize("body", [_RUN_OP, _MODEL], ids=["run_op", "model"])
def test_exit_with_runs_in_progress(body):
    code = _FRAME.replace("{body}", body)
    for _ in range(3):
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr

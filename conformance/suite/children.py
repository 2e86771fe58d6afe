# SPDX-License-Identifier: Apache-2.0
"""Processes that use the plugin under test beside the case's own."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from chipdock.conformance.case import fail

if TYPE_CHECKING:
    from chipdock.conformance.target import Target

__all__ = ["PREAMBLE", "finish", "start"]

PREAMBLE = """
import gc, os, sys, threading
import numpy as np
import chipdock
plugin = chipdock.open_plugin(sys.argv[1])
device = chipdock.Device.open(plugin, int(sys.argv[2]))

def work(rounds=20):
    for i in range(rounds):
        values = np.full(3001, i + os.getpid() % 1000, np.int32)
        source = chipdock.array(values, device)
        target = chipdock.array(np.zeros(3001, np.int32), device)
        stream = chipdock.Stream(device)
        stream.copy(source, target)
        stream.sync()
        assert np.array_equal(target.copy_to_numpy(), values), f"round {i} came out wrong"
"""
"""Opens the device; `work` copies arrays and compares them."""

_TIMEOUT_S = 120


def start(target: Target, code: str, *arguments: str, before: str = "") -> subprocess.Popen[str]:
    """Start a process that runs PREAMBLE and `code`.

    Args:
        target: The fixture; the process gets its layers, but for the record of calls.
        code: Python text.
        arguments: sys.argv from the third on.
        before: Python text that runs ahead of PREAMBLE, when the plugin is not loaded yet.
    """
    layers = os.environ.get("CHIPDOCK_LAYERS", "")
    kept = [item for item in layers.split(",") if item and not item.startswith("record")]
    index = target.name.rpartition(":")[2]
    text = before + PREAMBLE + code
    return subprocess.Popen(
        [sys.executable, "-c", text, str(target.plugin_path), index, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "CHIPDOCK_LAYERS": ",".join(kept)},
    )


def finish(child: subprocess.Popen[str], code: int = 0) -> str:
    """Wait for a process, and return what it printed.

    Raises:
        CheckError: It hangs, or its exit code is another one.
    """
    try:
        out, err = child.communicate(timeout=_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.communicate()
        fail(f"the process does not end within {_TIMEOUT_S} s")
    if child.returncode != code:
        fail(
            f"the process ended with {child.returncode}: {err.strip()[-1500:]}",
            expected=code,
            got=child.returncode,
        )
    return out

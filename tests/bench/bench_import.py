# SPDX-License-Identifier: Apache-2.0
"""import: from a fresh interpreter to the package, and to the first result of an addition."""

import subprocess
import sys
import tempfile
from importlib import util

import onnx

from bench.bench_executor import chain
from bench.harness import Result, Samples, Settings, compare, in_turns
from bench.native import NotRun

_IMPORT = {name: f"import {name}" for name in ("chipdock", "numpy", "onnxruntime", "torch")}
# onnxruntime has no addition without a model.
_FIRST = {
    "chipdock": "import chipdock; a = chipdock.array([1.0]); chipdock.run_op('Add', a, a).numpy()",
    "numpy": "import numpy; a = numpy.array([1.0]); numpy.add(a, a)",
    "torch": "import torch; a = torch.tensor([1.0]); torch.add(a, a).numpy()",
}
_LOAD = {
    "chipdock": "import chipdock, sys; chipdock.load(sys.argv[1]).run({'x': [0.5] * 6})",
    "onnxruntime": "import onnxruntime, numpy, sys; s = onnxruntime.InferenceSession(sys.argv[1], "
    "providers=['CPUExecutionProvider']); s.run(None, {'x': numpy.full(6, 0.5, numpy.float32)})",
}


def _seconds(statement: str, *arguments: str) -> float:
    """Return how long a statement takes in a fresh interpreter, without the interpreter's start."""
    now = "time.perf_counter()"
    code = f"import time; begin = {now}\n{statement}\nprint({now} - begin)"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise NotRun(f"{statement!r} failed: {done.stderr.strip()[-300:]}")
    return float(done.stdout)


def _turns(statements: dict[str, str], settings: Settings, *arguments: str) -> Samples:
    there = {n: s for n, s in statements.items() if util.find_spec(n) is not None}
    if settings.quick:
        there = {n: s for n, s in there.items() if n in {"chipdock", "numpy"}}
    taken: dict[str, list[float]] = {name: [] for name in there}

    def start(name: str) -> None:
        taken[name].append(_seconds(there[name], *arguments))

    samples = in_turns(
        {name: lambda name=name: start(name) for name in there}, settings, sample_s=0, rounds=20
    )
    # What the children measured themselves, in place of the time of the whole process.
    count = min(len(seconds) for seconds in taken.values())
    samples.seconds = {name: seconds[-count:] for name, seconds in taken.items()}
    return samples


def run_import(settings: Settings) -> list[Result]:
    """Return import time, and time to a first result, against numpy, onnxruntime and torch."""
    results = compare("import", "import", _turns(_IMPORT, settings), "ms")
    if settings.quick:
        return results
    results += compare("import", "import and first Add", _turns(_FIRST, settings), "ms")
    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        onnx.save(chain(4, 6), file.name)
        case = "import, load and first run of a model"
        results += compare("import", case, _turns(_LOAD, settings, file.name), "ms")
    return results

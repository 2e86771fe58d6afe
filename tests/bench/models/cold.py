# SPDX-License-Identifier: Apache-2.0
"""Load, first run and memory of one runtime, in a process that has done nothing else.

As a program it measures itself and prints one line of JSON; measure() starts it. Imports are done
before the clock starts: they have a benchmark of their own.
"""

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

if __package__ in {None, ""}:  # run as a file: make its folder's parents the package `bench`
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from bench import peers

TIMEOUT_S = 300.0


@dataclass(frozen=True)
class Cold:
    """Of one fresh process.

    Attributes:
        load_s: Seconds from a file in the page cache to a loaded model.
        first_s: Seconds of the first run.
        growth: Bytes of resident memory at its peak, less those before the load.
    """

    load_s: float
    first_s: float
    growth: int


def measure(runtime: str, path: Path, threads: int, feeds: Path) -> Cold:
    """Measure in a new process.

    Args:
        runtime: One of peers.RUNTIMES.
        path: The model.
        threads: Inside an operator.
        feeds: .npz file of the inputs.

    Raises:
        RuntimeError: The process failed; with the last line that it wrote.
    """
    environment = os.environ | {
        "OMP_NUM_THREADS": str(threads), "CHIPDOCK_CPU_THREADS": str(threads)
    }  # fmt: skip
    command = [sys.executable, __file__, runtime, str(path), str(threads), str(feeds)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=TIMEOUT_S, env=environment, check=False
    )
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise RuntimeError(lines[-1][:300])
    return Cold(**json.loads(done.stdout.splitlines()[-1]))


def _resident(field: str) -> int:
    """VmRSS or VmHWM of this process in bytes, 0 where the kernel does not tell."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    found = next((line for line in lines if line.startswith(field + ":")), "0 0")
    return 1024 * int(found.split()[1])


def _forget_peak() -> None:
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return  # the peak of the imports stays, which is lower than that of any load seen


def main() -> None:
    """Measure this process and print it."""
    import numpy as np

    runtime, path, threads, archive = sys.argv[1:]
    peers.warm_imports(runtime)
    with np.load(archive) as stored:
        feeds = {name: stored[name] for name in stored.files}
    _forget_peak()
    before = _resident("VmRSS")
    start = time.perf_counter()
    run = peers.runner(runtime, Path(path), int(threads))
    middle = time.perf_counter()
    run(feeds)
    end = time.perf_counter()
    growth = max(_resident("VmHWM") - before, 0)
    print(json.dumps({"load_s": middle - start, "first_s": end - middle, "growth": growth}))


if __name__ == "__main__":
    main()

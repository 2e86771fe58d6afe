# SPDX-License-Identifier: Apache-2.0
"""What the numbers were taken on, and how busy it was with other things meanwhile."""

import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

_PACKAGES = ("chipdock", "numpy", "onnx", "onnxruntime", "openvino", "torch")


def _field(path: str, name: str) -> str:
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "")


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "absent"


def load_average() -> float:
    """Return the load average of the last minute, 0.0 where there is none."""
    try:
        return os.getloadavg()[0]
    except OSError:
        return 0.0


def cores() -> int:
    """Return the cores that this process may use."""
    return len(os.sched_getaffinity(0))


def describe() -> dict[str, Any]:
    """Return date, processor, cores, memory, kernel and versions."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": _field("/proc/cpuinfo", "model name") or platform.processor(),
        "virtual": " hypervisor" in _field("/proc/cpuinfo", "flags"),
        "cores": cores(),
        "memory": _field("/proc/meminfo", "MemTotal"),
        "kernel": platform.platform(),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in _PACKAGES},
        "load_average": load_average(),
    }


def _busy_seconds() -> float:
    """Seconds that all cores together have worked, for anyone; 0.0 if the kernel does not tell."""
    try:
        first = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()
    except OSError:
        return 0.0
    # user, nice, system, (idle, iowait,) irq, softirq, steal: a guest's steal is work of others.
    ticks = [int(first[i]) for i in (1, 2, 3, 6, 7, 8)]
    return sum(ticks) / os.sysconf("SC_CLK_TCK")


def _own_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


@dataclass
class Load:
    """How busy the machine was with other things during a block.

    Attributes:
        others: Share of all cores that other processes took, 0 to 1.
        load_average: Of the last minute, at the end.
        seconds: How long the block took.
    """

    others: float = 0.0
    load_average: float = 0.0
    seconds: float = 0.0


@contextmanager
def watch() -> Iterator[Load]:
    """Measure a block's Load; the fields are filled when it ends."""
    load = Load()
    wall, busy, own = time.monotonic(), _busy_seconds(), _own_seconds()
    try:
        yield load
    finally:
        load.seconds = max(time.monotonic() - wall, 1e-9)
        others = (_busy_seconds() - busy) - (_own_seconds() - own)
        load.others = min(max(others / (load.seconds * (os.cpu_count() or 1)), 0.0), 1.0)
        load.load_average = load_average()


def wait_until_quiet(limit_s: float, share: float = 0.1) -> bool:
    """Wait until others take less than `share` of all cores for three seconds.

    Returns:
        Whether that came within `limit_s` seconds.
    """
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        with watch() as load:
            time.sleep(3)
        if load.others < share:
            return True
    return False

# SPDX-License-Identifier: Apache-2.0
"""The machine that a run is on: what the journal says of it, and what memory it has for workers."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path

__all__ = ["environment", "memory_share"]


def environment() -> dict[str, str]:
    """Return os, kernel, cpu, python and chipdock."""
    cpu = platform.processor()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        cpu = next((line.split(":", 1)[1].strip() for line in lines if "model name" in line), cpu)
        release = platform.freedesktop_os_release().get("PRETTY_NAME", "")
    except OSError:
        release = platform.system()
    return {
        "os": release,
        "kernel": platform.release(),
        "cpu": cpu,
        "python": platform.python_version(),
        "chipdock": version("chipdock"),
    }


def memory_share(jobs: int) -> int:
    """Return bytes: three quarters of what this machine or container has, shared by the workers."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        text = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
        total = min(total, int(text)) if text.isdecimal() else total
    except OSError:
        pass
    return total * 3 // 4 // jobs

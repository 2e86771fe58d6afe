# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: PLC0415  the package with its libraries is imported when a check asks
"""What `chipdock doctor` looks at. Each check returns findings and never raises."""

import importlib
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chipdock.cli.exit_codes import ExitCode, for_error

if TYPE_CHECKING:
    import chipdock

__all__ = ["Check", "device_checks", "host_checks", "package_checks", "plugin_checks"]

_NEEDED = ("numpy", "ml_dtypes", "onnx")
_USEFUL = {"onnxruntime": "chipdock[models], for comparisons"}
_ISA_FLAGS = ("avx2", "fma", "f16c", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16",
              "amx_tile", "amx_bf16", "asimd", "sve", "bf16", "i8mm")  # fmt: skip
_COMPILERS = ("c++", "g++", "clang++")


@dataclass(frozen=True)
class Check:
    """One finding.

    Attributes:
        name: What was looked at.
        status: "ok", "note" (worth knowing), "warn" (works, but) or "fail".
        detail: What was seen.
        fix: What to do, "" if nothing.
        code: What it means for the exit code.
    """

    name: str
    status: str
    detail: str
    fix: str = ""
    code: ExitCode = ExitCode.GOOD

    def data(self) -> dict[str, Any]:
        """Return name, status, detail and fix."""
        values = asdict(self)
        del values["code"]
        return values


def package_checks() -> Iterator[Check]:
    """Look at Python, the packages and the versions of ours."""
    from importlib.metadata import PackageNotFoundError, version

    import chipdock
    from chipdock import _core

    yield Check("python", "ok", f"{platform.python_version()}, {sys.executable}")
    major, minor = _core.ABI_VERSION
    where = Path(chipdock.__file__).parent
    yield Check("chipdock", "ok", f"{chipdock.__version__}, C ABI {major}.{minor}, {where}")
    for name in _NEEDED:
        try:
            importlib.import_module(name)
            yield Check(name, "ok", version(name))
        except (ImportError, PackageNotFoundError) as error:
            fix = f"pip install {name}"
            yield Check(name, "fail", str(error), fix, ExitCode.FAILURES)
    for name, what in _USEFUL.items():
        try:
            yield Check(name, "ok", version(name))
        except PackageNotFoundError:
            yield Check(name, "note", "not installed", f"pip install {what}")


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _field(text: str, *names: str) -> str:
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon and key.strip() in names:
            return value.strip()
    return ""


def _processor() -> Iterator[Check]:
    text = _text("/proc/cpuinfo")
    model = _field(text, "model name") or platform.processor() or platform.machine()
    usable = len(os.sched_getaffinity(0))
    yield Check("processor", "ok", f"{model}, {usable} of {os.cpu_count()} logical cores usable")
    flags = set(_field(text, "flags", "Features").split())
    wanted = os.environ.get("CHIPDOCK_CPU_ISA", "")
    detail = " ".join(flag for flag in _ISA_FLAGS if flag in flags) or "none of those looked for"
    detail += f"; CHIPDOCK_CPU_ISA={wanted}" if wanted else ""
    yield Check("instruction sets", "ok", detail)


def host_checks() -> Iterator[Check]:
    """Look at processor, huge pages, compiler and the environment."""
    yield from _processor()
    modes = _text("/sys/kernel/mm/transparent_hugepage/enabled")
    mode = modes.partition("[")[2].partition("]")[0] or "unknown"
    reserved = _field(_text("/proc/meminfo"), "HugePages_Total") or "0"
    detail = f"transparent: {mode}, reserved: {reserved}"
    if mode == "never":
        fix = "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled, as root"
        yield Check("huge pages", "note", detail, fix)
    else:
        yield Check("huge pages", "ok", detail)
    names = [name for name in (os.environ.get("CXX", ""), *_COMPILERS) if name]
    compiler = next((path for path in map(shutil.which, names) if path), None)
    if compiler:
        yield Check("C++ compiler", "ok", compiler)
    else:
        fix = "needed for compile_source on the host and to build plugins"
        yield Check("C++ compiler", "note", f"none of {', '.join(names)} found", fix)
    found = sorted(f"{k}={v}" for k, v in os.environ.items() if k.startswith("CHIPDOCK_"))
    if found:
        yield Check("environment", "note", " ".join(found))


def plugin_checks(reports: "list[chipdock.PluginReport]") -> Iterator[Check]:
    """Judge the state of every plugin; a broken one fails, an absent driver does not."""
    for report in reports:
        name = f"plugin {report.id or report.manifest.path.name}"
        if report.state == "ready":
            detail = f"{len(report.devices)} devices" if len(report.devices) != 1 else "1 device"
            notes = f"; {'; '.join(report.notes)}" if report.notes else ""
            yield Check(name, "ok", detail + notes)
        elif report.state == "unavailable":
            yield Check(name, "warn", report.cause)
        else:
            fix = f"repair or remove {report.manifest.path}"
            yield Check(name, "fail", report.cause, fix, ExitCode.NOT_STARTED)


def _exercise(device: "chipdock.Device") -> str:
    """Copy there and back and run one kernel; returns what was done."""
    import numpy as np

    import chipdock

    values = np.arange(256, dtype=np.float32)
    there = chipdock.array(values, device)
    if not np.array_equal(there.numpy(), values):
        raise AssertionError("256 numbers came back from the device as others")
    if not any(op == "Add" and not domain for domain, op, *_ in device.kernels()):
        return "copies are right; no kernel for Add, models need --fallback allow"
    if not np.array_equal(chipdock.run_op("Add", there, there).numpy(), values * 2):
        raise AssertionError("Add gave wrong numbers")
    return "copies and Add are right"


def device_checks(reports: "list[chipdock.PluginReport]") -> Iterator[Check]:
    """Open every device that is ready and let it work."""
    import chipdock

    for name in (name for report in reports for name in report.devices):
        try:
            device = chipdock.device(name)
        except chipdock.ChipdockError as error:
            yield Check(name, "fail", str(error), "", ExitCode.NOT_STARTED)
            continue
        try:
            done = _exercise(device)
        except chipdock.ChipdockError as error:
            yield Check(name, "fail", str(error), "", for_error(error.code))
            continue
        except AssertionError as error:
            yield Check(name, "fail", f"MISMATCH: {error}", "", ExitCode.FAILURES)
            continue
        offered = device.plugin.slots.get("compile.compile_source", False)
        yield Check(name, "ok", f"{done}; compile_source {'offered' if offered else 'not offered'}")

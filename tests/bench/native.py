# SPDX-License-Identifier: Apache-2.0
"""Builds what native/ holds when a benchmark wants it, with the host's compiler."""

import json
import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = Path(__file__).resolve().parent / "native"


class NotRun(Exception):  # noqa: N818  an outcome
    """A benchmark cannot run here; the text says why."""


def build_folder() -> Path:
    """Return the build whose objects are used: the one under test, else build/default."""
    fakes = os.environ.get("CHIPDOCK_TEST_LIBDIR")
    return Path(fakes).parents[1] if fakes else ROOT / "build" / "default"


def compiler(variable: str, *names: str) -> str:
    """Return the compiler that `variable` names, else the first of `names` that there is.

    Raises:
        NotRun: There is none.
    """
    chosen = os.environ.get(variable)
    wanted = (chosen,) if chosen else names
    for name in wanted:
        if found := shutil.which(name):
            return found
    raise NotRun(f"none of the compilers {', '.join(wanted)} was found, set {variable} to one")


def _build(target: Path, inputs: list[Path], command: list[str]) -> Path:
    if not target.exists() or target.stat().st_mtime < max(p.stat().st_mtime for p in inputs):
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_suffix(f".{os.getpid()}")  # another process may be doing the same
        done = subprocess.run(
            [*command, "-o", str(partial)], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise NotRun(f"{target.name} could not be built: {done.stderr[-600:]}")
        partial.replace(target)
    return target


def c_library(name: str, *flags: str) -> Path:
    """Build native/<name>.c as a shared library that sees the C headers.

    Raises:
        NotRun: It could not be built.
    """
    source = SOURCES / f"{name}.c"
    include = [f"-I{ROOT / 'device_api' / 'include'}", f"-I{ROOT / 'tests' / 'fakes'}"]
    gcc = compiler("CC", "gcc", "cc", "clang")
    command = [gcc, "-shared", "-fPIC", *(flags or ("-O2",)), *include, str(source), "-lm"]
    return _build(build_folder() / "bench" / f"lib{name}.so", [source], [*command, "-pthread"])


def _runtime_objects() -> list[Path]:
    """Return the objects that the build lists; those of removed sources lie there too."""
    listed = build_folder() / "compile_commands.json"
    try:
        entries = json.loads(listed.read_text(encoding="utf-8"))
    except OSError as error:
        raise NotRun(f"{listed} cannot be read, ./dev build makes it: {error}") from error
    places = [Path(entry["directory"], entry["output"]) for entry in entries]
    objects = [path for path in places if "chipdock_runtime_objects.dir" in path.parts]
    if missing := [path.name for path in objects if not path.is_file()]:
        raise NotRun(f"{', '.join(missing)} are not built; ./dev build makes them")
    return objects


def host_program(name: str) -> Path:
    """Build native/<name>.cpp together with the runtime's own objects.

    Raises:
        NotRun: There are no objects, or it could not be built.
    """
    source, objects = SOURCES / f"{name}.cpp", _runtime_objects()
    parts = ("include", "runtime")
    command = [compiler("CXX", "g++", "c++", "clang++"), "-std=c++17", "-O2"]
    command += ["-DCHIPDOCK_UNSTABLE=1", *(f"-I{ROOT / 'device_api' / part}" for part in parts)]
    command += [str(source), *map(str, objects), "-pthread", "-ldl"]
    return _build(build_folder() / "bench" / name, [source, *objects], command)


def cpu_plugin() -> Path:
    """Return the cpu plugin's library of the same build.

    Raises:
        NotRun: It is not there.
    """
    path = build_folder() / "plugins" / "cpu" / "libchipdock_cpu.so"
    if not path.is_file():
        raise NotRun(f"{path} is not built")
    return path

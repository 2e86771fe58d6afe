# SPDX-License-Identifier: Apache-2.0
"""libchipdock.so exports the functions of host*.h alone; the page on embedding builds and runs."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import c_headers
import layout
import pytest

import chipdock

PACKAGE = Path(chipdock.__file__).parent
LIBRARY = PACKAGE / "lib" / "libchipdock.so"
PLUGIN = PACKAGE / "plugins" / "cpu" / "libchipdock_cpu.so"
TEXT = (layout.ROOT / "docs" / "embedding.md").read_text(encoding="utf-8")


def exported(library):
    """Returns the symbols that a library defines for others."""
    command = ["nm", "-D", "--defined-only", library]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return sorted(line.split()[-1] for line in text.splitlines())


def block(language):
    """Returns the one block of the page in a language."""
    (found,) = re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)
    return found


def test_library_exports_the_functions_of_the_headers():
    declared = [f.name for header in c_headers.load_all() for f in header.functions]
    assert exported(LIBRARY) == sorted(declared)


def test_plugin_exports_its_query_only():
    assert exported(PLUGIN) == ["chipdock_plugin_query"]


def test_extension_module_exports_its_entry_only():
    (module,) = PACKAGE.glob("_core*.so")
    assert exported(module) == ["PyInit__core"]


def run(program, *arguments):
    done = subprocess.run(
        [program, *arguments], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_program_of_the_page_runs(cc, tmp_path):
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text(block("c"), encoding="utf-8")
    command = [cc, "-std=c99", "-Wall", "-Werror", source, f"-I{chipdock.include_dir()}"]
    command += [f"-L{LIBRARY.parent}", "-lchipdock", f"-Wl,-rpath,{LIBRARY.parent}", "-o", program]
    subprocess.run(command, check=True)
    printed = run(program, PLUGIN)
    assert printed == "0 2 1 4 3 0\n"
    assert f"prints `{printed.strip()}`" in TEXT


@pytest.mark.slow
def test_commands_of_the_page_work(cc, tmp_path):
    (tmp_path / "program.c").write_text(block("c"), encoding="utf-8")
    tools = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["sh", "-euc", f'cc() {{ "{cc}" "$@"; }}\n{block("sh")}'],
        cwd=tmp_path,
        env={**os.environ, "PATH": tools},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("0 2 1 4 3 0\n", 0), done.stderr


@pytest.mark.slow
def test_cmake_finds_the_library(tmp_path):
    (tmp_path / "program.c").write_text(block("c"), encoding="utf-8")
    lists = "cmake_minimum_required(VERSION 3.26)\nproject(program C)\n"
    lists += "add_executable(program program.c)\n" + block("cmake")
    (tmp_path / "CMakeLists.txt").write_text(lists, encoding="utf-8")
    cmake = shutil.which("cmake")
    ninja = shutil.which("ninja")
    assert cmake, "the test extra brings cmake"
    assert ninja, "the test extra brings ninja"
    configure = [cmake, "-S", tmp_path, "-B", tmp_path / "build", "-G", "Ninja"]
    configure += [f"-Dchipdock_dir={chipdock.cmake_dir()}", f"-DCMAKE_MAKE_PROGRAM={ninja}"]
    for command in (configure, [cmake, "--build", tmp_path / "build"]):
        subprocess.run(command, check=True, capture_output=True)
    assert run(tmp_path / "build" / "program", PLUGIN).split() == ["0", "2", "1", "4", "3", "0"]

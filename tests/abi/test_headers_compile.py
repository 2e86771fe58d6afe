# SPDX-License-Identifier: Apache-2.0
"""Every header compiles alone, as pedantic C99 and as C++17, unstable tables shown or hidden."""

import re
import subprocess

import layout
import pytest

import chipdock

FLAGS = ["-pedantic", "-Wall", "-Wextra", "-Werror", f"-I{layout.INCLUDE}", "-fsyntax-only"]
HEADERS = sorted(path.name for path in (layout.INCLUDE / "chipdock").glob("*.h"))
KITS = sorted(path.name for path in (layout.INCLUDE / "chipdock").glob("*.hpp"))


def compile_text(compiler, language, standard, text, *flags):
    command = [compiler, f"-std={standard}", *FLAGS, *flags, "-x", language, "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("unstable", ["", "-DCHIPDOCK_UNSTABLE"])
@pytest.mark.parametrize("name", HEADERS)
def test_header_is_c99(cc, name, unstable):
    compile_text(cc, "c", "c99", f'#include "chipdock/{name}"\n', *filter(None, [unstable]))


@pytest.mark.parametrize("unstable", ["", "-DCHIPDOCK_UNSTABLE"])
@pytest.mark.parametrize("name", HEADERS)
def test_header_is_cxx17(cxx, name, unstable):
    compile_text(cxx, "c++", "c++17", f'#include "chipdock/{name}"\n', *filter(None, [unstable]))


@pytest.mark.slow
@pytest.mark.parametrize("name", KITS)
def test_kit_is_cxx17(cxx, name):
    compile_text(cxx, "c++", "c++17", f'#include "chipdock/{name}"\n')


@pytest.mark.slow
def test_every_header_is_installed_and_compiles_there(cc, cxx):
    """What device_api/README.md names is what an author finds below `chipdock include-dir`."""
    text = (layout.ROOT / "device_api" / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z_]+\.h(?:pp)?)`", text))
    folder = chipdock.include_dir() / "chipdock"
    installed = {path.name for path in folder.iterdir()}
    assert installed == {*HEADERS, *KITS}
    assert named <= installed
    assert {name for name in installed if not name.startswith("host_")} <= named
    for names, command in (
        (HEADERS, [cc, "-std=c99", "-xc"]),
        (KITS, [cxx, "-std=c++17", "-xc++"]),
    ):
        source = "".join(f"#include <chipdock/{name}>\n" for name in names)
        command += ["-fsyntax-only", "-Wall", "-Werror", f"-I{folder.parent}", "-"]
        done = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_umbrella_includes_every_table():
    text = (layout.INCLUDE / "chipdock" / "chipdock.h").read_text(encoding="utf-8")
    for name in layout.STABLE_HEADERS + layout.UNSTABLE_HEADERS:
        assert f'#include "chipdock/{name}"' in text
    assert '"chipdock/host' not in text, "plugins include chipdock.h"
    text = (layout.INCLUDE / "chipdock" / "host.h").read_text(encoding="utf-8")
    for name in layout.HOST_HEADERS:
        assert f'#include "chipdock/{name}"' in text


def test_unstable_tables_are_hidden(cc):
    text = '#include "chipdock/chipdock.h"\n'
    for name in ("graph", "compile", "ccl", "profiler"):
        text += f"typedef int chipdock_{name}_api;\n"
    compile_text(cc, "c", "c99", text)


def test_a_plugin_links_nothing_of_ours(cc, tmp_path):
    """Headers declare no function that has to be linked, besides the one a plugin exports."""
    source = '#define CHIPDOCK_UNSTABLE\n#include "chipdock/chipdock.h"\nint x;\n'
    binary = tmp_path / "x.so"
    command = [cc, "-std=c99", f"-I{layout.INCLUDE}", "-shared", "-fPIC", "-Wl,-z,defs", "-x", "c"]
    subprocess.run([*command, "-", "-o", binary], input=source, text=True, check=True)

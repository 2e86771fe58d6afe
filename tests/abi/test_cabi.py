# SPDX-License-Identifier: Apache-2.0
"""chipdock._cabi reads the headers without a compiler and arrives at the compiler's layouts."""

import importlib.util
import json
import re
import subprocess

import layout
import pytest

PATH = layout.ROOT / "device_api" / "python" / "chipdock" / "_cabi.py"


def load_cabi():
    """Loads the module from the source tree, so that no built package is needed."""
    spec = importlib.util.spec_from_file_location("chipdock_cabi_source", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


cabi = load_cabi()
GOLDEN = json.loads((layout.GOLDENS / "abi-1.0.json").read_text(encoding="utf-8"))


def test_include_dir_has_the_headers():
    assert cabi.include_dir() == layout.INCLUDE


@pytest.mark.slow
def test_every_struct_has_the_goldens_layout():
    ffi = cabi.ffi()
    for name, struct in GOLDEN["structs"].items():
        assert ffi.sizeof(name) == struct["size"], name
        fields = dict(ffi.typeof(name).fields)
        assert list(fields) == list(struct["fields"]), name
        for field, (offset, size) in struct["fields"].items():
            assert fields[field].offset == offset, f"{name}.{field}"
            assert ffi.sizeof(fields[field].type) == size, f"{name}.{field}"


def test_every_constant_has_the_goldens_value():
    library = cabi.ffi().dlopen(None)
    macros = cabi.constants()
    for name, value in GOLDEN["constants"].items():
        assert (macros[name] if name in macros else getattr(library, name)) == value, name


def test_declarations_equal_those_of_the_preprocessor(cc, tmp_path):
    """What a preprocessor leaves of the headers, but for inline functions, is our text."""
    for name in ("stddef.h", "stdint.h"):
        (tmp_path / name).write_text("")
    command = [cc, "-E", "-P", "-nostdinc", f"-I{tmp_path}", f"-I{layout.INCLUDE}"]
    command += ["-DCHIPDOCK_UNSTABLE", "-DCHIPDOCK_CALL=", "-x", "c", "-"]
    order = "".join(f'#include "chipdock/{name}"\n' for name in cabi.HEADERS)
    done = subprocess.run(command, input=order, capture_output=True, text=True, check=True)
    expected = re.sub(r"^static inline .*?^\}\n", "", done.stdout, flags=re.DOTALL | re.MULTILINE)
    ours = cabi.cdef().removesuffix(cabi._QUERY)
    assert ours.split() == expected.split()


def test_missing_library_is_an_os_error(tmp_path):
    with pytest.raises(OSError, match="no-such"):
        cabi.load_raw(tmp_path / "no-such.so")


def test_library_without_the_symbol_is_named(cc, tmp_path):
    binary = tmp_path / "empty.so"
    command = [cc, "-shared", "-fPIC", "-x", "c", "-", "-o", binary]
    subprocess.run(command, input="int x;\n", text=True, check=True)
    with pytest.raises(AttributeError, match="chipdock_plugin_query"):
        cabi.load_raw(binary)

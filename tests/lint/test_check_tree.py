# SPDX-License-Identifier: Apache-2.0
"""The tree passes check_tree.py, and each of its rules catches a tree that breaks it."""

import check_tree
import pytest

LICENCE = "// SPDX-License-Identifier: Apache-2.0\n"
PYTHON = "# SPDX-License-Identifier: Apache-2.0\n"


@pytest.mark.slow
def test_tree_has_no_findings():
    assert check_tree.check() == []


def test_every_area_of_the_design_is_known():
    for folder in ("include", "runtime", "python"):
        assert f"device_api/{folder}" in check_tree.ALLOWED


def test_a_plugin_may_use_only_the_headers():
    assert check_tree.ALLOWED["plugins"] == {"device_api/include", "plugins"}


# files of a small tree, and what the one finding says
BREAKS = {
    "plugin includes the host": (
        {"plugins/acme/a.cpp": LICENCE + '#include "plugin.hpp"\n',
         "device_api/runtime/plugin.hpp": LICENCE},
        "includes plugin.hpp of device_api/runtime",
    ),
    "plugin includes the host by a path": (
        {"plugins/acme/a.cpp": LICENCE + '#include "../../device_api/runtime/x.hpp"\n',
         "device_api/runtime/x.hpp": LICENCE},
        "of device_api/runtime",
    ),
    "plugin includes the embedders' interface": (
        {"plugins/acme/a.cpp": LICENCE + '#include "chipdock/host_plan.h"\n'}, "not the host",
    ),
    "plugin includes another plugin": (
        {"plugins/acme/a.cpp": LICENCE + '#include "../cpu/x.hpp"\n', "plugins/cpu/x.hpp": LICENCE},
        "of another plugin",
    ),
    "host includes a plugin": (
        {"device_api/runtime/a.cpp": LICENCE + '#include "plugins/cpu/x.hpp"\n',
         "plugins/cpu/x.hpp": LICENCE},
        "of plugins",
    ),
    "header includes the host": (
        {"device_api/include/chipdock/a.h": LICENCE + '#include "runtime/x.hpp"\n',
         "device_api/runtime/x.hpp": LICENCE},
        "of device_api/runtime",
    ),
    "package imports the suite": (
        {"device_api/python/chipdock/a.py": PYTHON + "from chipdock import conformance\n"},
        "of conformance",
    ),
    "package imports the suite relatively": (
        {"device_api/python/chipdock/a.py": PYTHON + "from .conformance import runner\n"},
        "of conformance",
    ),
    "collectives import templates": (
        {"ccl/a.py": PYTHON + "import chipdock.templates.x\n"}, "of templates",
    ),
    "bare package name": ({"conformance/a.py": PYTHON + "import ccl\n"}, "is chipdock.ccl"),
    "no licence": ({"plugins/acme/a.cpp": "// A file.\n"}, "SPDX"),
    "no licence in CMake": ({"plugins/acme/CMakeLists.txt": "project(x)\n"}, "SPDX"),
    "long": ({"plugins/acme/a.cpp": LICENCE + "//\n" * 400}, "over 400"),
    "too long": ({"plugins/acme/a.cpp": LICENCE + "//\n" * 600}, "at most 600"),
    "vendor in the host": (
        {"device_api/runtime/a.cpp": LICENCE + 'if (name == "cuda") return;\n'}, "names 'cuda'",
    ),
    "vendor in the package": (
        {"device_api/python/chipdock/a.py": PYTHON + 'if name == "rocm":\n    pass\n'},
        "names 'rocm'",
    ),
    "workplace": ({"plugins/acme/a.cpp": LICENCE + "// see /work/x\n"}, "workplace"),
    "todo": ({"plugins/acme/a.cpp": LICENCE + "// TODO: later\n"}, "TODO"),
    "versions": (
        {"pyproject.toml": '[project]\nversion = "1.2.3"\n',
         "CMakeLists.txt": PYTHON + "project(chipdock VERSION 1.2.4 LANGUAGES C)\n"},
        "pyproject.toml says 1.2.3",
    ),
    "idle exception": (
        {"tests/lint/exceptions.toml": '[size]\n"a.cpp" = "a reason of some words"\n'},
        "needs no exception",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BREAKS)
def test_broken_tree_is_found(name, tmp_path):
    tree, message = BREAKS[name]
    for path, text in tree.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    findings = check_tree.check(tmp_path)
    assert len(findings) == 1
    assert message in findings[0]


def test_good_tree_has_no_findings(tmp_path):
    tree = {
        "plugins/acme/a.cpp": LICENCE + '#include "chipdock/plugin.h"\n#include "b.hpp"\n',
        "plugins/acme/b.hpp": LICENCE,
        "plugins/cuda/c.cpp": LICENCE
        + 'int cuda();  // the vendor may name itself\n#include "gpu/g.hpp"\n',
        "plugins/gpu/g.hpp": LICENCE,
        "device_api/runtime/a.cpp": LICENCE + "// unlike cuda, …\n" + '#include "x.hpp"\n',
        "device_api/python/chipdock/a.py": PYTHON
        + '"""Not like cuda."""\nimport chipdock.errors\n',
        "conformance/a.py": PYTHON + "import chipdock.ccl\n",
        "tests/a.py": PYTHON + "import chipdock.templates\n",
    }
    for path, text in tree.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    assert check_tree.check(tmp_path) == []

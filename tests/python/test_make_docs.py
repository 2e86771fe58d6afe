# SPDX-License-Identifier: Apache-2.0
"""The build step that turns docstrings of _core.pyi into C++."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def header():
    path = ROOT / "device_api" / "python" / "bindings" / "make_docs.py"
    spec = importlib.util.spec_from_file_location("make_docs", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.header


def test_names_and_escapes(header):
    text = header(
        'class A:\n    """The "A"."""\n'
        '    def f(self):\n        r"""One\\two.\n\n        More.\n        """\n'
        '    def __len__(self):\n        """Size."""\n    def _own(self): ...\n'
        'def g():\n    """G."""\n'
    )
    assert 'namespace A {\n\ninline constexpr char kClass[] =\n    "The \\"A\\".";' in text
    assert 'inline constexpr char f[] =\n    "One\\\\two.\\n"\n    "\\n"\n    "More.";' in text
    assert "char kLen[]" in text
    assert 'char g[] =\n    "G.";' in text
    assert "_own" not in text


@pytest.mark.parametrize(
    ("stub", "name"),
    [
        ("def f(): ...\n", "f"),
        ("class A: ...\n", "A"),
        ('class A:\n    """A."""\n    def f(self): ...\n', "A.f"),
    ],
)
def test_what_is_public_must_have_a_docstring(header, stub, name):
    with pytest.raises(ValueError, match=rf"{name} has no docstring"):
        header(stub)

# SPDX-License-Identifier: Apache-2.0
"""Writes the docstrings of _core.pyi as a C++ header: help() says what type checkers show.

`python make_docs.py _core.pyi core_docs.hpp`. A docstring of `class A: def b` becomes
`chipdock::python::docs::A::b`, one of a class `docs::A::kClass`, and of a function `docs::f`; a
binding without one does not compile.
"""

import ast
import inspect
import sys
from pathlib import Path

_HEAD = """\
// SPDX-License-Identifier: Apache-2.0
// Made by make_docs.py from _core.pyi.
#ifndef CHIPDOCK_PYTHON_CORE_DOCS_HPP_
#define CHIPDOCK_PYTHON_CORE_DOCS_HPP_

namespace chipdock::python::docs {

"""

_TAIL = """\
}  // namespace chipdock::python::docs

#endif  // CHIPDOCK_PYTHON_CORE_DOCS_HPP_
"""


def _constant(name: str, text: str) -> str:
    # One literal a line: the standard promises 65,536 characters, and the header stays readable.
    lines = inspect.cleandoc(text).splitlines(keepends=True)
    quoted = []
    for line in lines:
        escaped = line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        quoted.append(f'    "{escaped}"')
    return f"inline constexpr char {name}[] =\n" + "\n".join(quoted) + ";\n"


def _named(name: str) -> str:
    """Names with two underscores are the compiler's."""
    return f"k{name.strip('_').title()}" if name.startswith("__") else name


def header(stub: str) -> str:
    """Return the header.

    Args:
        stub: Text of the .pyi file.

    Raises:
        ValueError: A class, or a function or property without an underscore, has no docstring.
    """
    parts = [_HEAD]
    for node in ast.parse(stub).body:
        if isinstance(node, ast.FunctionDef):
            parts.append(_constant(node.name, _text(node, node.name)))
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            parts.append(f"namespace {node.name} {{\n")
            parts.append(_constant("kClass", _text(node, node.name)))
            for member in node.body:
                private = isinstance(member, ast.FunctionDef) and member.name.startswith("_")
                if isinstance(member, ast.FunctionDef) and not (
                    private and not member.name.endswith("__")
                ):
                    name = f"{node.name}.{member.name}"
                    parts.append(_constant(_named(member.name), _text(member, name)))
            parts.append(f"}}  // namespace {node.name}\n")
    return "\n".join([*parts, _TAIL])


def _text(node: ast.FunctionDef | ast.ClassDef, name: str) -> str:
    text = ast.get_docstring(node)
    if not text:
        raise ValueError(f"_core.pyi: {name} has no docstring")
    return text


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:])
    target.write_text(header(source.read_text(encoding="utf-8")), encoding="utf-8")

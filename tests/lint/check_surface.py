# SPDX-License-Identifier: Apache-2.0
"""Checks that what the Python package shows is an explicit list.

Each module without an underscore has `__all__`; its names are defined there, and what it defines is
in it or has an underscore. The lists together are tests/lint/public_surface.json, so that a name
that appears or goes shows up in a review; `python tests/lint/check_surface.py --write` renews it.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {
    "chipdock": ROOT / "device_api" / "python" / "chipdock",
    "chipdock.ccl": ROOT / "ccl",
    "chipdock.conformance": ROOT / "conformance",
    "chipdock.templates": ROOT / "templates",
}
LISTING = Path(__file__).resolve().parent / "public_surface.json"
Surface = dict[str, list[str]]


def modules() -> Iterator[tuple[str, Path]]:
    """Yields dotted name and path of each public module of ours."""
    for package, folder in PACKAGES.items():
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            names = parts[:-1] if parts[-1] == "__init__" else parts
            # The suite's folder holds pytest cases, which nobody imports.
            if "suite" not in names and not any(name.startswith("_") for name in names):
                yield ".".join((package, *names)), path


def defined(body: list[ast.stmt]) -> Iterator[tuple[str, bool]]:
    """Yields the names that statements bind, and whether the module itself defines them."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, True
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                yield from ((n.id, True) for n in ast.walk(target) if isinstance(n, ast.Name))
        elif isinstance(node, ast.AnnAssign):
            if isinstance(node.target, ast.Name):
                yield node.target.id, True
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((alias.asname or alias.name, False) for alias in node.names)
        elif isinstance(node, ast.If | ast.Try):
            yield from defined(node.body)
            yield from defined(node.orelse)


def listed(tree: ast.Module) -> list[str] | None:
    """Returns the literal `__all__` of a module, or None."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets
        ):
            try:
                return list(ast.literal_eval(node.value))
            except ValueError:
                return None
    return None


def check_module(name: str, text: str) -> tuple[list[str], list[str]]:
    """Returns the public names of a module and the findings on it."""
    tree = ast.parse(text)
    names = listed(tree)
    if names is None:
        return [], [f"{name}: has no literal __all__"]
    bound = dict(defined(tree.body))
    findings = [f"{name}: __all__ names {n}, which is not there" for n in names if n not in bound]
    for own, is_definition in bound.items():
        if is_definition and not own.startswith("_") and own not in names:
            findings.append(f"{name}: {own} is neither in __all__ nor private")
    return sorted(names), findings


def check() -> tuple[Surface, list[str]]:
    """Returns the surface as it is, and all findings."""
    surface: Surface = {}
    findings = []
    for name, path in modules():
        surface[name], found = check_module(name, path.read_text(encoding="utf-8"))
        findings += found
    return surface, findings


def main() -> int:
    """Prints findings, or writes the listing; returns the exit code."""
    surface, findings = check()
    if "--write" in sys.argv[1:]:
        LISTING.write_text(json.dumps(surface, indent=1) + "\n", encoding="utf-8")
        return 0
    if json.loads(LISTING.read_text(encoding="utf-8")) != surface:
        findings.append("the surface differs from public_surface.json; if meant, run with --write")
    sys.stdout.write("".join(f"{finding}\n" for finding in findings))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""Checks the source tree: arrows between folders, file sizes, licence lines, forbidden names.

`python tests/lint/check_tree.py` prints findings as `path: what` and exits with 1 if there are any.
The direction of dependence is the table ALLOWED; file size exceptions stand in exceptions.toml.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CODE = {".py", ".pyi", ".c", ".h", ".cpp", ".hpp", ".cc", ".cu", ".inc", ".cmake", ".toml", ".yaml"}
SKIP = {".git", "build", "dist", ".venv", ".models", "__pycache__", ".pytest_cache", ".ruff_cache",
        ".mypy_cache", ".hypothesis", "node_modules"}  # fmt: skip
SHARE, MOST = 400, 600

# What the files of an area may include or import of the others. An area is a path prefix.
ALLOWED: dict[str, set[str]] = {
    "device_api/include": {"device_api/include"},
    "plugins": {"device_api/include", "plugins"},
    "device_api/runtime": {"device_api/include", "device_api/runtime"},
    "device_api/python": {"device_api/include", "device_api/runtime", "device_api/python"},
}
ALLOWED["ccl"] = ALLOWED["device_api/python"] | {"ccl"}
ALLOWED["conformance"] = ALLOWED["ccl"] | {"conformance"}
ALLOWED["templates"] = ALLOWED["conformance"] | {"templates"}
ALLOWED["tests"] = ALLOWED["templates"] | {"tests", "plugins"}
# What is built as a plugin and so may not see the embedders' interface.
PLUGIN_CODE = ("plugins/", "templates/", "tests/fakes/", "tests/mutants/")
# Include paths of an area beside its own folder.
AREA_ROOTS = {
    "device_api/python": ("device_api/runtime",),
    "ccl": ("ccl/src", "ccl/include", "device_api/runtime"),
    "tests": ("tests/cpp", "device_api/runtime", "plugins/cpu"),
}
# chipdock.<name> that is not device_api/python.
SUBPACKAGES = {"ccl": "ccl", "conformance": "conformance", "templates": "templates"}

# Host code may ask for capabilities only. cpu is allowed: it is the embedded fallback.
VENDORS = re.compile(
    r"(?<![A-Za-z])(cuda|rocm|hip|nvidia|amd|intel|nccl|rccl|hccl|metal|vulkan|opencl|level.?zero|ascend"
    r"|neuron|tpu|npu|cublas|rocblas|nvrtc|hiprtc)(?![a-z])",
    re.IGNORECASE,
)
HOST_CODE = ("device_api/runtime", "device_api/python", "conformance")
# Interchange formats that carry vendors' numbers by definition: DLPack's device types.
VENDOR_FILES = re.compile(r"(^|/)\w*dlpack\w*\.(py|pyi|cpp|hpp)$")
# Reads other engines' and packages' names on purpose: comparison, catalogue of models.
VENDOR_FOLDERS = ("device_api/python/chipdock/models/",)

# Words of the place where this is written have no place in what is published.
WORKPLACE = re.compile(
    r"(?<![\w./-])/(work|tmp/(brief|venv|build))/|\b(shared/[A-Z]+\.md|STYLE\.md|DEVELOPERS\.md)\b"
    r"|\b(language model|chat ?bot|claude|co-authored)\b|\bissue \d+ item\b",
    re.IGNORECASE,
)
TODO = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b(?!\(#\d+\))")


def files(root: Path) -> list[Path]:
    """Returns the text files of the tree that are ours, sorted."""
    found = []
    for path in root.rglob("*"):
        parts = path.relative_to(root).parts
        if not path.is_file() or any(p in SKIP or p.endswith(".egg-info") for p in parts):
            continue
        if path.suffix in CODE or path.name == "CMakeLists.txt" or path.suffix == ".md":
            found.append(path)
    return sorted(found)


def area(path: str) -> str | None:
    """Returns the area a path belongs to, or None."""
    for prefix in ALLOWED:
        if path.startswith(prefix + "/"):
            return prefix
    return None


def plugin_of(path: str) -> str | None:
    """Returns the folder's name below plugins/, or None."""
    parts = path.split("/")
    return parts[1] if parts[0] == "plugins" and len(parts) > 2 else None


def included_area(root: Path, path: str, target: str) -> str | None:
    """Returns where a quoted include points: an area's path, or None for what is not ours."""
    if target.startswith("chipdock/"):
        return "device_api/include/" + target
    own = area(path)
    bases = [str(Path(path).parent), own or "", *AREA_ROOTS.get(own or "", ())]
    if plugin := plugin_of(path):
        # A plugin that finds a host's file by a bare name has the host's folder as include path.
        bases += [f"plugins/{plugin}", "device_api/runtime"]
    bases += ["", "device_api"]
    for base in bases:
        candidate = (root / base / target).resolve()
        if candidate.is_file() and candidate.is_relative_to(root):
            return candidate.relative_to(root).as_posix()
    return None


def check_includes(root: Path, path: str, text: str) -> Iterator[str]:
    """Yields C and C++ includes against the arrows."""
    own = area(path)
    if own is None:
        return
    for target in re.findall(r'^\s*#\s*include\s+["<]([^">]+)[">]', text, re.MULTILINE):
        if path.startswith(PLUGIN_CODE) and re.match(r"chipdock/host\w*\.h", target):
            yield f"includes {target}: a plugin sees the C ABI, not the host"
        found = included_area(root, path, target)
        other = area(found) if found else None
        if other is not None and other not in ALLOWED[own]:
            yield f"includes {target} of {other}; {own} may use {sorted(ALLOWED[own])}"
        if found and plugin_of(path) and plugin_of(found) not in {None, plugin_of(path), "gpu"}:
            yield f"includes {target} of another plugin"


def imported(tree: ast.AST, package: tuple[str, ...]) -> Iterator[str]:
    """Yields absolute names of all imports of a module that lies in `package`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parent = package[: len(package) - node.level + 1]
                base = ".".join((*parent, base) if base else parent)
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def check_imports(path: str, text: str) -> Iterator[str]:
    """Yields Python imports against the arrows."""
    own = area(path)
    if own is None:
        return
    folders = Path(path).parent.parts
    package = folders[2:] if own == "device_api/python" else ("chipdock", *folders)
    seen = set()
    for name in imported(ast.parse(text), package):
        parts = name.split(".")
        if parts[0] in SUBPACKAGES and own != "tests":
            yield f"imports {name}; the package is chipdock.{parts[0]}"
        if parts[0] != "chipdock" or len(parts) < 2:
            continue
        other = SUBPACKAGES.get(parts[1], "device_api/python")
        if other not in ALLOWED[own] and other not in seen:
            seen.add(other)
            yield f"imports {name} of {other}; {own} may use {sorted(ALLOWED[own])}"


def check_first_line(path: str, text: str) -> Iterator[str]:
    """Yields a source file that does not open with its licence."""
    if Path(path).suffix not in CODE - {".toml", ".yaml"} and Path(path).name != "CMakeLists.txt":
        return
    lines = [line for line in text.splitlines()[:2] if not line.startswith("#!")]
    first = lines[0] if lines else ""
    if not re.fullmatch(r"(#|//|/\*) SPDX-License-Identifier: Apache-2\.0( \*/)?", first):
        yield f"opens with {first!r}, expected the line SPDX-License-Identifier: Apache-2.0"


def check_size(path: str, text: str, exceptions: dict[str, str]) -> Iterator[str]:
    """Yields source files over 400 lines without an entry, and over 600 lines always."""
    # A stub describes one extension module, and there is no way to split it.
    if Path(path).suffix not in CODE - {".toml", ".yaml", ".pyi"}:
        return
    lines = len(text.splitlines())
    if lines > MOST:
        yield f"{lines} lines, at most {MOST}: split it"
    elif lines > SHARE and path not in exceptions:
        yield f"{lines} lines, over {SHARE}: split it, or say why in tests/lint/exceptions.toml"


def check_words(path: str, text: str) -> Iterator[str]:
    """Yields words that must not be published, and vendors' names in host code."""
    if path.startswith("tests/lint/"):
        return
    for number, line in enumerate(text.splitlines(), 1):
        if match := WORKPLACE.search(line):
            yield f"line {number}: {match.group(0)!r} belongs to the workplace"
        if Path(path).suffix != ".md" and (match := TODO.search(line)):
            yield f"line {number}: {match.group(0)} without an issue number"
    host = path.startswith(HOST_CODE) and Path(path).suffix in {".py", ".cpp", ".hpp", ".inc"}
    if host and not VENDOR_FILES.search(path) and not path.startswith(VENDOR_FOLDERS):
        code = python_code(text) if path.endswith(".py") else cpp_code(text)
        for number, line in enumerate(code.splitlines(), 1):
            if match := VENDORS.search(line):
                yield f"line {number}: host code names {match.group(0)!r}; ask for a capability"


def cpp_code(text: str) -> str:
    """Returns C++ text without its comments, line ends kept."""
    return re.sub(
        r"/\*.*?\*/|//[^\n]*", lambda m: re.sub(r"[^\n]", " ", m.group(0)), text, flags=re.DOTALL
    )


def python_code(text: str) -> str:
    """Returns Python text without comments and docstrings, line ends kept."""
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        literal = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if literal and isinstance(node.value.value, str):
            for i in range(node.lineno - 1, node.end_lineno or node.lineno):
                lines[i] = ""
    return "\n".join(re.sub(r"(^|\s)#.*", "", line) for line in lines)


def check_versions(root: Path) -> Iterator[str]:
    """Yields versions that do not agree with pyproject.toml."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = project["version"]
    places = {
        "CMakeLists.txt": r"project\(chipdock VERSION (\S+)",
        "device_api/python/chipdock/__init__.py": r'__version__ = "([^"]+)"',
        "plugins/cpu/plugin.toml": r'^version = "([^"]+)"',
    }
    for place, pattern in places.items():
        path = root / place
        if not path.is_file():
            continue
        text = path.read_text(encoding="utf-8")
        match = re.search(pattern, text, re.MULTILINE)
        # CMake may read the number from pyproject.toml, which is agreement too.
        derived = match and match.group(1).startswith('"${') and "pyproject.toml" in text
        if match and not derived and match.group(1) != wanted:
            yield f"{place}: version {match.group(1)}, pyproject.toml says {wanted}"


def check_exceptions(root: Path, exceptions: dict[str, str]) -> Iterator[str]:
    """Yields exceptions that are not needed any more or give no reason."""
    for path, reason in exceptions.items():
        where = root / path
        if not where.is_file() or len(where.read_text(encoding="utf-8").splitlines()) <= SHARE:
            yield f"tests/lint/exceptions.toml: {path} needs no exception"
        if len(reason.split()) < 4:
            yield f"tests/lint/exceptions.toml: {path} gives no reason"


def check(root: Path = ROOT, paths: Iterable[Path] | None = None) -> list[str]:
    """Returns all findings of a tree."""
    listing = root / "tests" / "lint" / "exceptions.toml"
    exceptions: dict[str, str] = {}
    if listing.is_file():
        exceptions = tomllib.loads(listing.read_text(encoding="utf-8"))["size"]
    findings = []
    for file in files(root) if paths is None else paths:
        path = file.relative_to(root).as_posix()
        text = file.read_text(encoding="utf-8")
        found = [*check_first_line(path, text), *check_size(path, text, exceptions)]
        found += check_words(path, text)
        if file.suffix == ".py":
            found += check_imports(path, text)
        else:
            found += check_includes(root, path, text)
        findings += [f"{path}: {finding}" for finding in found]
    if (root / "pyproject.toml").is_file():
        findings += check_versions(root)
    return findings + list(check_exceptions(root, exceptions))


def main() -> int:
    """Prints the findings; returns the exit code."""
    findings = check()
    sys.stdout.write("".join(f"{finding}\n" for finding in findings))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())

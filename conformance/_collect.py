# SPDX-License-Identifier: Apache-2.0
"""Finding the cases of a suite's files by pytest, and hashing what each of them does."""

from __future__ import annotations

import dis
import hashlib
import inspect
import os
import re
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from chipdock.conformance._pytest import case_of
from chipdock.conformance.manifest import Row

__all__ = ["PYTEST_ARGUMENTS", "body_hash", "collect"]

PYTEST_ARGUMENTS = (
    "-p", "no:cacheprovider", "-p", "no:terminal", "-p", "no:logging", "-p", "no:faulthandler",
    "-p", "no:doctest", "-p", "no:junitxml", "-p", "no:pastebin", "-p", "no:stepwise",
    "-p", "no:warnings", "-p", "no:unittest", "-p", "no:unraisableexception",
    "-p", "no:threadexception", "-p", "no:legacypath", "--disable-plugin-autoload", "--capture=no",
    "--import-mode=importlib", "--strict-markers",
)  # fmt: skip
"""How cases are run and found: nothing of the place where the command is typed has a say."""

# Helpers whose meaning is part of a case; the engine's own modules are not.
_HELPERS = (
    "chipdock.conformance.numerics",
    "chipdock.conformance.opcases",
    "chipdock.conformance.suite",
)


class _Collector:
    """Collects the cases and runs nothing."""

    def __init__(self) -> None:
        self.items: list[pytest.Item] = []
        self.failures: list[str] = []

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.items = list(session.items)
        return True

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failures.append(f"{report.nodeid}: {report.longreprtext}")


def arguments(folder: Path) -> list[str]:
    """Return pytest's arguments for a suite's folder, without what is to be collected."""
    return ["-c", os.devnull, f"--rootdir={folder}", *PYTEST_ARGUMENTS]


def collect(folder: Path) -> list[Row]:
    """Return the cases of all files of a suite, in order of files and definitions.

    Raises:
        ValueError: A file cannot be imported, holds a test that is no case, or an id twice.
    """
    collector = _Collector()
    plugin = "chipdock.conformance._pytest"
    code = pytest.main([*arguments(folder), "-p", plugin, str(folder)], plugins=[collector])
    if collector.failures or code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        raise ValueError("\n".join(collector.failures) or f"pytest ended with {code!r}")
    rows: dict[str, Row] = {}
    for item in collector.items:
        facts = case_of(item)
        if facts is None or not isinstance(item, pytest.Function):
            raise ValueError(f"{item.nodeid} is no case; declare it with @case")
        if facts.id in rows:
            raise ValueError(
                f"the id '{facts.id}' is taken twice, in {rows[facts.id].file} and {item.path}"
            )
        variant = item.callspec.params["variant"]
        rows[facts.id] = Row(
            case=facts,
            file=item.path.relative_to(folder).as_posix(),
            function=item.originalname,
            doc=inspect.getdoc(item.function) or "",
            body=body_hash(item.function, repr(variant)),
        )
    return list(rows.values())


def body_hash(function: Callable[..., Any], variant: str) -> str:
    """Return the hash of what a case does, 16 hexadecimal digits.

    Args:
        function: The case's function: its source counts, and that of helpers which it names, in its
            own file or in the suite's numerics.
        variant: The variant as text.
    """
    return hashlib.sha256(f"{_meaning(function)}\n{variant}".encode()).hexdigest()[:16]


_meanings: dict[Any, str] = {}


def _meaning(function: Callable[..., Any]) -> str:
    if function not in _meanings:
        parts: dict[Any, str] = {}
        _add(function, parts)
        _meanings[function] = "\n".join(sorted(parts.values()))
    return _meanings[function]


def _add(thing: Any, parts: dict[Any, str]) -> None:
    """Add the source of a helper and, for functions, of the helpers that it names."""
    if thing in parts:
        return
    parts[thing] = _source(thing)
    if isinstance(thing, types.ModuleType):
        return
    functions = [thing] if isinstance(thing, types.FunctionType) else vars(thing).values()
    for function in functions:
        if isinstance(function, types.FunctionType):
            _add_named(function, parts)


def _source(thing: Any) -> str:
    """Source of a function, class or module, without decorators, whose facts are not the body's."""
    lines = inspect.getsource(thing).splitlines()
    if isinstance(thing, types.ModuleType):
        return "\n".join(lines)
    starts = (n for n, line in enumerate(lines) if re.match(r"\s*(async\s+)?(def|class)\b", line))
    return "\n".join(lines[next(starts, 0) :])


def _add_named(function: types.FunctionType, parts: dict[Any, str]) -> None:
    """Add what a function names: helpers of its own file and of the suite, and plain constants."""
    own = function.__globals__
    for name in sorted(set(_names(function.__code__))):
        found = own.get(name)
        if isinstance(found, types.FunctionType | type):
            if found.__module__ == own["__name__"] or found.__module__.startswith(_HELPERS):
                _add(found, parts)
        elif isinstance(found, types.ModuleType) and found.__name__.startswith(_HELPERS):
            _add(found, parts)
        elif isinstance(found, int | float | str | tuple | frozenset) and name not in parts:
            text = f"{name} = {sorted(found) if isinstance(found, frozenset) else found!r}"
            # Where a function happens to lie is no part of what a case does.
            parts[name] = re.sub(r" at 0x[0-9a-f]+>", ">", text)


def _names(code: types.CodeType) -> Iterator[str]:
    for instruction in dis.get_instructions(code):
        if instruction.opname == "LOAD_GLOBAL":
            yield instruction.argval
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)

# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin that runs cases: the mark `case`, the fixture `target`, outcomes.

Workers use it, and so does a developer who wants one file of cases under plain pytest:

    pytest -p chipdock.conformance._pytest --target acme:0 FILE
"""

from __future__ import annotations

import linecache
import os
import traceback
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from chipdock.conformance.case import Case, CheckError, NotSupported
from chipdock.conformance.outcomes import Outcome
from chipdock.conformance.target import HostLacks, Session, Target

__all__ = ["case_of", "judge", "session_key", "target_key", "trouble_key"]

session_key = pytest.StashKey[Session]()
target_key = pytest.StashKey[Target]()
trouble_key = pytest.StashKey[list[tuple[str, BaseException]]]()

_LOST = ("DEVICE_LOST", "RESET_REQUIRED")
_MOST_TEXT = 4000
_MOST_SOURCE = 240

# Helpers of cases assert as well, and then the values have to be told, too.
_REWRITTEN = ("suite", "models", "opcases", "numerics")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of plain pytest runs; a worker sets its session itself."""
    group = parser.getgroup("chipdock")
    group.addoption("--target", default=os.environ.get("CHIPDOCK_TARGET", "cpu:0"), help="Device.")
    group.addoption("--target-plugin", default="", help="Its library or plugin.toml.")
    group.addoption("--target-seed", type=int, default=0, help="Seed of the suite.")


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark, let assertions of helpers be explained, and make the session if need be."""
    pytest.register_assert_rewrite(*(f"chipdock.conformance.{name}" for name in _REWRITTEN))
    config.addinivalue_line("markers", "case(facts): a case of the conformance suite")
    if session_key not in config.stash:
        config.stash[session_key] = Session(
            config.getoption("--target"),
            plugin=config.getoption("--target-plugin"),
            seed=config.getoption("--target-seed"),
        )


def case_of(item: pytest.Item) -> Case | None:
    """Return the facts of an item, None if it is no case."""
    mark = item.get_closest_marker("case")
    found = mark.args[0] if mark is not None else None
    return found if isinstance(found, Case) else None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Make the target, and end the case here if the plugin lacks what it needs."""
    item.stash[trouble_key] = []
    facts = case_of(item)
    if facts is not None:
        made = item.stash[target_key] = Target(item.config.stash[session_key], facts)
        made.require(facts.needs)


@pytest.fixture
def target(request: pytest.FixtureRequest) -> Generator[Target, None, None]:
    """The device under test, see `chipdock.conformance.target.Target`."""
    made: Target = request.node.stash[target_key]
    yield made
    made.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep what was raised; under plain pytest, show what the plugin lacks as a skip."""
    report = yield
    if call.excinfo is not None and trouble_key in item.stash:
        item.stash[trouble_key].append((call.when, call.excinfo.value))
        if isinstance(call.excinfo.value, NotSupported):
            report.outcome = "skipped"
            report.longrepr = (str(item.path), item.location[1] or 0, str(call.excinfo.value))
    return report


def judge(item: pytest.Item) -> dict[str, Any]:
    """Return outcome, reason, evidence, digest and whether the device is lost, of an item that ran.

    The first exception of setup, call and teardown decides.
    """
    made = item.stash.get(target_key, None)
    evidence = made.evidence if made is not None else {}
    found: dict[str, Any] = {"digest": made.digest_text if made is not None else ""}
    remarks = made.remarks if made is not None else []
    trouble = item.stash.get(trouble_key, [])
    if not trouble:
        outcome = Outcome.QUALITY_WARN if remarks else Outcome.PASS
        said = {"outcome": outcome, "reason": "; ".join(remarks), "evidence": evidence}
        return found | said | {"lost": False}
    when, error = trouble[0]
    outcome, reason = _outcome(error)
    if isinstance(error, CheckError):
        evidence = evidence | error.evidence
    elif outcome is Outcome.FAIL:
        lines = traceback.format_exception(error, limit=-6)
        evidence["traceback"] = "".join(lines)[-_MOST_TEXT:]
    if when != "call" and outcome is Outcome.FAIL:
        reason = f"in {when}: {reason}"
    lost = any(getattr(raised, "code", "") in _LOST for _, raised in trouble)
    said = {"outcome": outcome, "reason": reason[:_MOST_TEXT], "evidence": evidence}
    return found | said | {"lost": lost}


def _outcome(error: BaseException) -> tuple[Outcome, str]:
    if isinstance(error, HostLacks):
        return Outcome.NOT_RUN, str(error)
    if isinstance(error, NotSupported):
        return Outcome.UNSUPPORTED, str(error)
    if isinstance(error, pytest.skip.Exception):
        return Outcome.FAIL, f"the case skipped itself, which is never a pass: {error}"
    if isinstance(error, pytest.xfail.Exception):
        return Outcome.FAIL, f"the case expects its own failure, which is never a pass: {error}"
    # RawError has the number of the status, the errors of chipdock its name.
    if getattr(error, "code", "") == "UNSUPPORTED" or getattr(error, "status", 0) == 2:
        return Outcome.CLAIMED_UNSUPPORTED, f"declared, and then: {error}"
    if isinstance(error, CheckError):
        return Outcome.FAIL, str(error)
    if isinstance(error, AssertionError):
        return Outcome.FAIL, _asserted(error)
    text = str(error)
    named = text.split(":", 1)[0].isupper() and text
    return Outcome.FAIL, text if named else f"{type(error).__name__}: {text}"


def _asserted(error: AssertionError) -> str:
    """Say in words what an assertion wanted, with the values that it saw and where it stands.

    pytest's text, "assert 2 == 3", has the values; the source says what they are.
    """
    lines = [line for line in str(error).splitlines() if "Use -v to get" not in line]
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return "\n".join(lines).strip() or "an assertion failed"
    last = frames[-1]
    numbers = range(last.lineno or 0, (last.end_lineno or last.lineno or 0) + 1)
    parts = (linecache.getline(last.filename, n).partition("  # ")[0].strip() for n in numbers)
    source = " ".join(parts).removeprefix("assert ")[:_MOST_SOURCE]
    where = f"{Path(last.filename).name}, line {last.lineno}"
    if not lines:
        return f"{source} does not hold: {where}"
    if not lines[0].startswith("assert "):  # a message of its own
        return "\n".join([*lines, f"{source} does not hold: {where}"])
    seen = lines[0].removeprefix("assert ")
    lines[0] = f"{source} does not hold{'' if seen == source else f', it was {seen}'}: {where}"
    return "\n".join(lines)

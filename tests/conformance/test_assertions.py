# SPDX-License-Identifier: Apache-2.0
"""What a failed assertion of a case tells: the source, the values, the place; also in helpers."""

import subprocess
import sys

import pytest

from chipdock.conformance._pytest import _asserted, _outcome
from chipdock.conformance.case import CheckError

HELPER = '''
from types import SimpleNamespace

from chipdock.conformance.case import case
from chipdock.conformance.suite.l3.work import _info


@case("L1.helper.asserts")
def test_it(target, variant):
    """A helper of the suite asserts."""
    _info(SimpleNamespace(info=lambda: SimpleNamespace(heap_count=0)))
'''


def said(work):
    with pytest.raises(AssertionError) as caught:
        work()
    outcome, reason = _outcome(caught.value)
    assert outcome == "FAIL"
    return reason


def test_numbers():
    def work():
        assert 2 == 3  # noqa: PLR0133

    assert said(work).startswith("2 == 3 does not hold: test_assertions.py, line ")


def test_values_beside_their_names():
    def work():
        count = [2]
        assert count[0] == 3

    assert said(work).startswith("count[0] == 3 does not hold, it was 2 == 3: test_assertions.py")


def test_a_call_has_its_value_on_the_next_line():
    def work():
        assert len("ab") == 3

    first, second = said(work).splitlines()
    assert first.startswith('len("ab") == 3 does not hold, it was 2 == 3: ')
    assert second.endswith("where 2 = len('ab')")


def test_a_message_stands_first():
    def work():
        found = 7
        # fmt: off
        assert (
            found < 5
        ), "too many"
        # fmt: on

    first, *rest = said(work).splitlines()
    assert first == "too many"
    assert rest[0] == "assert 7 < 5"
    assert "found < 5" in rest[-1]
    assert "test_assertions.py, line " in rest[-1]


def test_one_that_pytest_did_not_rewrite_has_its_source():
    namespace = {"count": 2}
    exec(compile("def work():\n    assert count == 3", __file__, "exec"), namespace)
    assert " does not hold: test_assertions.py, line 2" in said(namespace["work"])


def test_the_words_of_fail_stay_as_they_are():
    assert _outcome(CheckError("3 is not 4")) == ("FAIL", "3 is not 4")
    assert _asserted(AssertionError("a text")) == "a text"


@pytest.mark.slow
def test_helpers_of_the_suite_tell_values_too(tmp_path):
    (tmp_path / "test_it.py").write_text(HELPER, encoding="utf-8")
    command = [
        sys.executable, "-m", "pytest", "-q", "-p", "chipdock.conformance._pytest",
        "-c", "/dev/null", "--rootdir", str(tmp_path), "--target", "cpu:0", "test_it.py",
    ]  # fmt: skip
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "assert 0 >= 1" in done.stdout, done.stdout + done.stderr
    assert "warning" not in done.stdout

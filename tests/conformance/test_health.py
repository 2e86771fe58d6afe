# SPDX-License-Identifier: Apache-2.0
"""The health of the device: when it is doubted, reset and given up."""

import pytest

from chipdock.conformance.health import Health
from chipdock.conformance.journal import Journal


@pytest.fixture
def journal(tmp_path):
    return Journal(tmp_path)


def events(journal):
    return [event["what"] for event in journal.record.events]


def test_a_doubt_holds_until_a_probe_answers(journal):
    health = Health(journal)
    health.doubt()
    assert health.suspect
    health.good("answers")
    assert (health.suspect, health.opened) == (False, True)
    assert events(journal) == ["probe_ok"]


def test_without_a_reset_command_a_failed_probe_is_the_end(journal):
    health = Health(journal)
    health.failed("it is ill")
    assert health.quarantined == "it is ill; there is no --reset-cmd"
    assert events(journal) == ["probe_failed", "quarantined"]


def test_a_reset_is_followed_by_one_more_probe(journal, tmp_path):
    health = Health(journal, f"touch {tmp_path}/reset; echo done")
    health.failed("it is ill")
    assert (tmp_path / "reset").exists()
    assert (health.suspect, health.quarantined) == (True, "")
    assert journal.record.events[1]["detail"].endswith("done")
    health.failed("still ill")
    assert health.quarantined.startswith("still ill, after resets: 1")


def test_a_device_that_keeps_falling_ill_is_given_up(journal):
    health = Health(journal, "exit 3")
    failures = 0
    while not health.quarantined:
        health.failed("it is ill")
        failures += 1
        health.good("answers")
    assert failures == 6
    assert "exit code 3" in journal.record.events[1]["detail"]


def test_where_probes_tell_nothing_nothing_is_doubted(journal):
    health = Health(journal)
    health.probes = False
    health.doubt()
    assert not health.suspect

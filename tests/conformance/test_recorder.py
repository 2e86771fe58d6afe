# SPDX-License-Identifier: Apache-2.0
"""The record file: the last calls and the counts, whoever wrote them."""

import threading

import pytest

from chipdock.conformance.recorder import RING_SIZE, Recorder, create, slot_names

NAMES = ("device.count", "memory.alloc", "memory.copy")
STATUSES = ("OK", "NOT_READY", "UNSUPPORTED", "INVALID_ARGUMENT")


@pytest.fixture
def recorder(tmp_path):
    create(tmp_path / "record", len(NAMES))
    return Recorder(tmp_path / "record", NAMES)


def call(recorder, slot, status):
    recorder.end(recorder.begin(slot), slot, status)


def test_calls_come_back_in_order_with_the_one_that_never_returned(recorder):
    call(recorder, "device.count", 0)
    call(recorder, "memory.alloc", 3)
    recorder.begin("memory.copy")
    assert recorder.calls(0, 10, STATUSES) == [
        ["device.count", "OK"], ["memory.alloc", "INVALID_ARGUMENT"], ["memory.copy", "RUNNING"],
    ]  # fmt: skip


def test_only_calls_since_a_point_and_only_the_last_are_shown(recorder):
    call(recorder, "device.count", 0)
    since = recorder.total
    for _ in range(5):
        call(recorder, "memory.copy", 0)
    assert recorder.calls(since, 10, STATUSES) == [["memory.copy", "OK"]] * 5
    assert len(recorder.calls(0, 3, STATUSES)) == 3


def test_the_ring_keeps_the_last_and_the_counters_all(recorder):
    for n in range(RING_SIZE + 50):
        call(recorder, NAMES[n % 2], 0)
    assert len(recorder.calls(0, 1000, STATUSES)) == RING_SIZE
    assert recorder.coverage(STATUSES) == {"device.count": {"OK": 153}, "memory.alloc": {"OK": 153}}


def test_a_status_without_a_name_is_counted_as_unknown(recorder):
    for status in (77, -5, 31):
        call(recorder, "memory.copy", status)
    assert recorder.coverage(STATUSES) == {"memory.copy": {"UNKNOWN": 3}}


def test_what_is_no_slot_is_not_recorded(recorder):
    call(recorder, "plugin.query", 0)
    assert recorder.total == 0


def test_threads_share_it(recorder):
    def work():
        for _ in range(500):
            call(recorder, "memory.copy", 0)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert recorder.coverage(STATUSES) == {"memory.copy": {"OK": 2000}}


def test_a_file_of_other_slots_is_refused(tmp_path):
    create(tmp_path / "record", 7)
    with pytest.raises(ValueError, match="no record file of 3 slots"):
        Recorder(tmp_path / "record", NAMES)


def test_the_runtime_names_its_slots():
    names = slot_names()
    assert names[:2] == ("device.count", "device.info")
    assert len(set(names)) == len(names)

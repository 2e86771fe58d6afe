# SPDX-License-Identifier: Apache-2.0
"""Streams, events, host functions and graphs: the plugin's own and the host's emulation."""

import contextlib
import gc
import sys
import threading

import numpy as np
import pytest
from api_support import agrees, mlp, open_cpu, open_fake, reference, same

import chipdock

pytestmark = pytest.mark.threads


@pytest.fixture(params=["none", "mask=stream.*+event.*", "mask=required", "validate"])
def device(request):
    opened = open_cpu(request.param)
    yield opened
    opened.plugin.shutdown()


@pytest.fixture
def stream(device):
    return chipdock.Stream(device)


def test_emulation_is_told(device, stream):
    assert stream.emulated == (not device.plugin.slots["stream.create"])
    assert stream.device is device


def test_work_runs_in_order(device, stream):
    arrays = [chipdock.array(np.full(1000, i, np.int32), device) for i in range(8)]
    target = chipdock.empty((1000,), np.int32, device)
    for array in arrays:
        stream.copy(array, target)
    stream.sync()
    assert stream.query()
    np.testing.assert_array_equal(target.numpy(), np.full(1000, 7))


def test_host_functions_run_in_order_and_tell_the_state(stream):
    seen = []
    for i in range(5):
        stream.host_function(lambda state, i=i: seen.append((i, state)))
    stream.sync()
    assert seen == [(i, "OK") for i in range(5)]


def test_a_host_function_cannot_wait_for_its_own_stream(device, stream):
    other = chipdock.Stream(device)
    found = []

    def wait(_):
        for wanted in (stream, other):
            try:
                wanted.sync()
                found.append("waited")
            except chipdock.errors.FailedPreconditionError as error:
                found.append(str(error))

    stream.host_function(wait)
    stream.sync()
    assert found[0].startswith("FAILED_PRECONDITION: sync of ")
    assert "would wait for itself" in found[0]
    assert found[1:] == ["waited"]


def test_a_model_cannot_run_on_the_stream_of_the_function_that_calls_it(device, stream):
    loaded = chipdock.load(mlp(), device, fallback="allow")
    x = np.ones((2, 8), np.float32)
    found = []

    def run(_):
        try:
            loaded.run({"x": x}, stream=stream)
        except chipdock.errors.FailedPreconditionError as error:
            found.append(str(error))

    stream.host_function(run)
    stream.sync()
    assert len(found) == 1
    assert found[0].startswith("FAILED_PRECONDITION: run of ")


def test_an_exception_in_a_host_function_is_reported_and_does_no_harm(stream):
    caught = []

    def bad(_):
        raise RuntimeError("from a host function")

    before, sys.unraisablehook = sys.unraisablehook, lambda u: caught.append(str(u.exc_value))
    try:
        stream.host_function(bad)
        stream.sync()
    finally:
        sys.unraisablehook = before
    assert caught == ["from a host function"]
    stream.host_function(lambda _: caught.append("next"))
    stream.sync()
    assert caught[-1] == "next"


def test_events_order_two_streams(device):
    first, second = chipdock.Stream(device), chipdock.Stream(device)
    gate, seen = threading.Event(), []
    event = chipdock.Event(device)
    first.host_function(lambda _: (gate.wait(10), seen.append("first")))
    event.record(first)
    second.wait(event)
    second.host_function(lambda _: seen.append("second"))
    assert not event.query()
    assert not second.query()
    gate.set()
    second.sync()
    assert event.query()
    assert seen == ["first", "second"]


def test_sync_with_a_time_limit(device, stream):
    gate = threading.Event()
    stream.host_function(lambda _: gate.wait(10))
    event = chipdock.Event(device)
    event.record(stream)
    for wait in (stream.sync, event.sync, device.sync):
        with pytest.raises(chipdock.errors.TimeoutError):
            wait(1_000_000)
    gate.set()
    stream.sync()
    event.sync()
    device.sync()


def test_a_time_limit_below_minus_one_is_refused_and_does_no_harm(device, stream):
    event = chipdock.Event(device)
    event.record(stream)
    for wait in (stream.sync, event.sync, device.sync):
        with pytest.raises(chipdock.errors.InvalidArgumentError, match="timeout_ns is -2"):
            wait(-2)
    stream.sync()
    event.sync()
    assert stream.query()


def test_timing(device, stream):
    start, end = chipdock.Event(device, timing=True), chipdock.Event(device, timing=True)
    start.record(stream)
    stream.host_function(lambda _: None)
    end.record(stream)
    end.sync()
    assert end.elapsed_since(start) >= 0


def test_an_event_that_was_never_recorded_is_complete(device):
    event = chipdock.Event(device)
    assert event.query()
    event.sync()


def test_a_model_on_a_stream_waits_for_what_is_before_it(device, stream):
    proto = mlp()
    x, later = (np.full((2, 8), v, np.float32) for v in (0, 1))
    source, target = chipdock.array(later, device), chipdock.array(x, device)
    loaded = chipdock.load(proto, device, fallback="allow")
    gate = threading.Event()
    stream.host_function(lambda _: gate.wait(10))
    stream.copy(source, target)
    threading.Timer(0.02, gate.set).start()
    same(loaded.run({"x": target}, stream=stream), reference(proto, {"x": later}))


def test_a_stream_of_another_device_is_refused(device):
    other = chipdock.Stream(open_fake("nano"))
    loaded = chipdock.load(mlp(), device, fallback="allow")
    with pytest.raises(chipdock.errors.InvalidArgumentError, match="nano:0"):
        loaded.run({"x": np.zeros((1, 8), np.float32)}, stream=other)
    with pytest.raises(chipdock.errors.InvalidArgumentError):
        chipdock.Event(device).record(other)


def test_copies_of_other_sizes_or_strides_are_refused(device, stream):
    a, b = chipdock.empty((4,), np.float32, device), chipdock.empty((5,), np.float32, device)
    with pytest.raises(chipdock.errors.InvalidArgumentError, match="16 and 20 bytes"):
        stream.copy(a, b)
    with pytest.raises(chipdock.errors.InvalidArgumentError, match="contiguous"):
        stream.copy(a[::2], b[:2])
    stream.copy(a[:0], b[:0])


def test_a_copy_to_read_only_memory_is_refused():
    device = chipdock.device()
    source = np.arange(4)
    source.setflags(write=False)
    target = chipdock.from_dlpack(source)
    assert target.read_only
    with pytest.raises(chipdock.errors.FailedPreconditionError, match="read-only"):
        chipdock.Stream(device).copy(chipdock.array(np.zeros(4, np.int64)), target)
    np.testing.assert_array_equal(source, np.arange(4))


def test_memory_let_go_while_a_stream_uses_it(device, stream):
    """A block freed in mid-flight is not handed out before the stream is done with it."""
    gate = threading.Event()
    source = chipdock.array(np.full(1 << 16, 7, np.uint8), device)
    target = chipdock.array(np.zeros(1 << 16, np.uint8), device)
    stream.host_function(lambda _: gate.wait(10))
    stream.copy(source, target)
    del source
    gc.collect()
    others = [chipdock.array(np.full(1 << 16, 9, np.uint8), device) for _ in range(8)]
    gate.set()
    stream.sync()
    np.testing.assert_array_equal(target.numpy(), np.full(1 << 16, 7, np.uint8))
    del others


def test_a_stream_dropped_with_work_in_it_ends_it(device):
    done = []
    stream = chipdock.Stream(device)
    for i in range(50):
        stream.host_function(lambda _, i=i: done.append(i))
    event = chipdock.Event(device)
    event.record(stream)
    del stream
    gc.collect()
    event.sync()
    assert done == list(range(50))


def test_capture_and_replay(device, stream):
    source = chipdock.array(np.arange(100, dtype=np.int32), device)
    target = chipdock.array(np.zeros(100, np.int32), device)
    stream.begin_capture()
    stream.copy(source, target)
    graph = stream.end_capture()
    assert graph.node_count == 1
    assert not target.numpy().any()  # nothing ran yet
    for value in (1, 2):
        source.copy_from(np.full(100, value, np.int32))
        graph.launch(stream)
        stream.sync()
        np.testing.assert_array_equal(target.numpy(), np.full(100, value))
    graph.launch()
    np.testing.assert_array_equal(target.numpy(), np.full(100, 2))


def test_a_captured_graph_keeps_its_memory(device, stream):
    source = chipdock.array(np.full(4096, 5, np.uint8), device)
    target = chipdock.array(np.zeros(4096, np.uint8), device)
    stream.begin_capture()
    stream.copy(source, target)
    graph = stream.end_capture()
    del source
    gc.collect()
    others = [chipdock.array(np.full(4096, 9, np.uint8), device) for _ in range(8)]
    graph.launch(stream)
    stream.sync()
    np.testing.assert_array_equal(target.numpy(), np.full(4096, 5))
    del others


def test_end_capture_without_a_beginning(stream):
    with pytest.raises(chipdock.errors.FailedPreconditionError):
        stream.end_capture()


def test_a_run_inside_a_capture_is_refused_or_right(device, stream):
    proto = mlp()
    loaded = chipdock.load(proto, device, fallback="allow")
    x = np.ones((2, 8), np.float32)
    stream.begin_capture()
    with pytest.raises(chipdock.errors.FailedPreconditionError, match="captur"):
        loaded.run({"x": x}, stream=stream)
    with contextlib.suppress(chipdock.ChipdockError):
        stream.end_capture()
    same(loaded.run({"x": x}, stream=chipdock.Stream(device)), reference(proto, {"x": x}))


def test_abort_ends_a_stream(device):
    stream = chipdock.Stream(device)
    try:
        stream.abort()
    except chipdock.errors.UnsupportedError:
        assert not device.plugin.slots["stream.abort"]
        return
    with pytest.raises(chipdock.errors.AbortedError):
        stream.sync()
    agrees(mlp(), {"x": np.ones((1, 8), np.float32)}, device, fallback="allow")


def test_imported_native_streams_are_the_plugins_business(device):
    if device.plugin.slots["stream.native"]:
        pytest.fail("the cpu plugin has no native streams; this test must learn them")
    with pytest.raises(chipdock.errors.UnsupportedError):
        chipdock.Stream.from_native(device, 1)

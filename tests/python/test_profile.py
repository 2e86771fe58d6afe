# SPDX-License-Identifier: Apache-2.0
"""profile(): what ran where and when, as records and as Chrome trace JSON."""

import json
import threading

import numpy as np
import pytest
from api_support import mlp, open_fake

import chipdock

pytestmark = pytest.mark.usefixtures("as_written")

X = np.ones((2, 8), np.float32)


def test_records_of_a_run():
    loaded = chipdock.load(mlp())
    with chipdock.profile() as seen:
        loaded(X)
        loaded(X)
    nodes = [r for r in seen.records if r["category"] == "node"]
    assert [r["name"] for r in nodes] == ["MatMul", "Add", "Relu", "MatMul", "Softmax"] * 2
    for record in nodes:
        assert record["duration_ns"] >= 0
        assert record["start_ns"] > 0
        assert record["device"] == "cpu:0"
        assert record["args"]["kernel"]
    assert nodes[0]["args"]["output 0"] == "float32[2,16]"
    assert seen.total_by_name()["MatMul"][0] == 4
    starts = [r["start_ns"] for r in nodes]
    assert starts == sorted(starts)


def test_chrome_trace_is_valid(tmp_path):
    loaded = chipdock.load(mlp())
    path = tmp_path / 'trace "x" ü.json'
    proto = mlp()
    proto.graph.node[0].name = 'quoted " \\ \n ü'
    named = chipdock.load(proto)
    with chipdock.profile(path):
        loaded(X)
        named(X)
    trace = json.loads(path.read_text(encoding="utf-8"))
    events = trace["traceEvents"] if isinstance(trace, dict) else trace
    spans = [e for e in events if e.get("ph") == "X"]
    assert [e["name"] for e in spans if e["cat"] == "node"] == [
        "MatMul",
        "Add",
        "Relu",
        "MatMul",
        "Softmax",
    ] * 2
    for event in spans:
        assert event["dur"] >= 0
        assert isinstance(event["ts"], int | float)
        assert {"pid", "tid"} <= event.keys()
    assert any(e["args"].get("node") == 'quoted " \\ \n ü' for e in spans)


def test_nothing_is_recorded_outside():
    loaded = chipdock.load(mlp())
    with chipdock.profile() as seen:
        pass
    loaded(X)
    assert seen.records == []


def test_profiles_nest_and_are_of_their_thread():
    loaded = chipdock.load(mlp())
    with chipdock.profile() as outer:
        with chipdock.profile() as inner:
            loaded(X)
        thread = threading.Thread(target=lambda: loaded(X))
        thread.start()
        thread.join()
        loaded(X)
    assert (len(outer.records), len(inner.records)) == (5, 5)


def test_fallbacks_and_copies_are_seen():
    loaded = chipdock.load(mlp(), open_fake("nano"), fallback="allow")
    with chipdock.profile() as seen:
        loaded(X)
    by_category = {r["category"] for r in seen.records}
    assert by_category == {"node", "copy"}
    assert {r["device"] for r in seen.records if r["category"] == "node"} == {"cpu:0"}


def twice(loaded):
    loaded(X)
    loaded(X[:, :3])


def test_an_error_inside_still_ends_the_profile(tmp_path):
    loaded = chipdock.load(mlp())
    with pytest.raises(chipdock.errors.InvalidArgumentError), chipdock.profile() as seen:
        twice(loaded)
    assert len(seen.records) == 5
    loaded(X)
    assert len(seen.records) == 5


def test_a_path_that_cannot_be_written(tmp_path):
    with (
        pytest.raises(chipdock.errors.UnavailableError, match="gone"),
        chipdock.profile(tmp_path / "gone" / "t"),
    ):
        pass

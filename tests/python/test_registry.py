# SPDX-License-Identifier: Apache-2.0
"""plugins(), devices(), device(): names, suggestions, options, and one open per device."""

import os
import threading

import numpy as np
import pytest
from api_support import fake, open_cpu, python, python_json

import chipdock
from chipdock._registry import host_device


@pytest.fixture
def fakes(monkeypatch):
    """Puts fakes on the plugin path."""

    def add(*names):
        monkeypatch.setenv("CHIPDOCK_PLUGIN_PATH", os.pathsep.join(fake(n) for n in names))

    return add


def test_device_is_opened_once():
    device = chipdock.device("cpu:0")
    assert chipdock.device("cpu") is device
    assert chipdock.device("chipdock.cpu:0") is device
    assert chipdock.device(device) is device
    assert chipdock.device("cpu:0", threads="1") is not device
    assert chipdock.device("cpu:0", threads="1") is chipdock.device("cpu:0", threads="1")
    assert device.name == "cpu:0"
    assert device.index == 0
    assert device.plugin.id == "chipdock.cpu"


def test_printed_names_are_accepted_names(fakes):
    fakes("nano", "work", "small_heap")
    for report in chipdock.plugins():
        for name in report.devices:
            assert chipdock.device(name).plugin is report.plugin
    names = [d.name for d in chipdock.devices()]
    assert names[0] == "cpu:0"
    assert {"nano:0", "work:0", "work:1", "small:0"} <= set(names)


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("cup:0", "did you mean 'cpu:0'"),
        ("cpu:7", "cpu:7 does not exist, cpu has"),
        ("", "must look"),
        (":0", "must look"),
        ("cpu:", "must look"),
        ("cpu:-1", "must look"),
        ("cpu:x", "must look"),
        ("cpu:٣", "must look"),
        ("cpu:" + "9" * 20, "must look"),
        ("cpu:" + "9" * 5000, "must look"),
        ("cpu:0:0", "no plugin provides"),
        ("tpu:0", "devices here are"),
        ("CPU:0", "cpu:0"),
    ],
)
def test_names_that_cannot_be(name, match):
    with pytest.raises(chipdock.errors.InvalidArgumentError, match=match) as caught:
        chipdock.device(name)
    assert str(caught.value).startswith("INVALID_ARGUMENT: ")


@pytest.mark.parametrize("name", [None, 3, b"cpu:0"])
def test_a_name_of_another_type_is_refused(name):
    with pytest.raises((chipdock.errors.InvalidArgumentError, TypeError)):
        chipdock.device(name)


def test_unknown_options_are_refused_by_the_plugin():
    with pytest.raises(chipdock.errors.InvalidArgumentError, match="thread"):
        chipdock.device("cpu:0", thread="1")
    with pytest.raises(chipdock.errors.InvalidArgumentError, match="threads"):
        chipdock.device("cpu:0", threads="many")


def test_an_unavailable_plugin_gives_its_cause(fakes):
    fakes("fails_count")
    with pytest.raises(chipdock.errors.UnavailableError, match="driver answered -19"):
        chipdock.device("fake:0")
    assert next(d.name for d in chipdock.devices()) == "cpu:0"


def test_a_name_that_nobody_has_shows_what_did_not_load(fakes):
    with pytest.raises(chipdock.errors.InvalidArgumentError, match="CHIPDOCK_PLUGIN_PATH"):
        chipdock.device("acme:0")
    fakes("undefined_symbol")
    with pytest.raises(chipdock.errors.InvalidArgumentError) as caught:
        chipdock.device("acme:0")
    assert "libundefined_symbol.so does not load: " in str(caught.value)
    assert "undefined symbol: " in str(caught.value)


def test_two_plugins_of_one_name(fakes):
    fakes("fails_open", "lost", "nano")
    by_id = {r.id: r for r in chipdock.plugins()}
    assert by_id["chipdock.fails_open"].devices == ("fake:0",)
    assert by_id["chipdock.lost"].devices == ("chipdock.lost:0",)
    assert chipdock.device("chipdock.lost:0").plugin.id == "chipdock.lost"
    with pytest.raises(chipdock.errors.BusyError, match="exclusive mode"):
        chipdock.device("fake:0")


def test_a_device_that_does_not_open_is_left_out(fakes):
    fakes("fails_open", "nano")
    names = [d.name for d in chipdock.devices()]
    assert "nano:0" in names
    assert "fake:0" not in names


def test_a_plugin_that_did_not_open_is_shown_as_such(fakes):
    fakes("fails_open", "nano")
    with pytest.raises(chipdock.errors.BusyError):
        chipdock.device("fake:0")
    by_id = {r.id: r for r in chipdock.plugins()}
    report = by_id["chipdock.fails_open"]
    assert report.state == "unavailable"
    assert report.cause.startswith("BUSY: ")
    assert "exclusive mode" in report.cause
    assert report.devices == ("fake:0",)  # it may be tried again
    assert by_id["chipdock.nano"].state == "ready"


def test_a_wrong_option_is_not_held_against_the_plugin():
    with pytest.raises(chipdock.errors.InvalidArgumentError, match="no_such"):
        chipdock.device("cpu:0", no_such="1")
    assert next(r for r in chipdock.plugins() if r.id == "chipdock.cpu").state == "ready"


def test_an_open_that_works_makes_a_plugin_ready_again(fakes, monkeypatch):
    fakes("nano")
    nano = next(r.plugin for r in chipdock.plugins() if r.id == "chipdock.nano")
    key = (nano.path, 0)
    monkeypatch.setitem(chipdock._registry._unopened, key, ("unavailable", "BUSY: in use"))
    states = {r.id: (r.state, r.cause) for r in chipdock.plugins()}
    assert states["chipdock.nano"] == ("unavailable", "BUSY: in use")
    monkeypatch.setattr(chipdock._registry, "_devices", {})
    assert chipdock.device("nano:0").name == "nano:0"
    assert {r.id: r.state for r in chipdock.plugins()}["chipdock.nano"] == "ready"


def test_open_plugin_gives_instances_of_their_own():
    first, second = open_cpu(), open_cpu()
    assert first.plugin is not second.plugin
    a = chipdock.array(np.arange(3), first)
    np.testing.assert_array_equal(a.to(second).numpy(), [0, 1, 2])


def test_open_plugin_names_a_bad_layer():
    with pytest.raises(chipdock.errors.InvalidArgumentError, match="did you mean 'validate'"):
        open_cpu("validat")
    with pytest.raises(chipdock.errors.InvalidArgumentError, match=r"memory\.aloc"):
        open_cpu("fault=memory.aloc:1")


def test_the_host_device_is_unmasked_and_serves_itself():
    cpu = chipdock.device("cpu:0")
    assert host_device(cpu) is cpu
    masked = open_cpu("mask=required")
    assert host_device(masked) is not masked
    assert host_device(masked).plugin.slots["kernel.launch"]
    assert host_device() is host_device(masked)


def test_device_info():
    info = chipdock.device("cpu:0").info
    assert info["product"]
    assert info["heaps"][0]["host_visible"]
    assert info["heaps"][0]["bytes"] > 0
    assert info["uuid"].count("-") == 4
    free, total = chipdock.device("cpu:0").memory_info()
    assert 0 < free <= total


@pytest.mark.slow
def test_virtual_devices():
    code = """
import json, numpy as np, chipdock
names = [d.name for d in chipdock.devices() if d.plugin.id == "chipdock.cpu"]
arrays = [chipdock.array(np.full(3, i), n) for i, n in enumerate(names)]
moved = arrays[3].to(chipdock.device("cpu:1"))
total = chipdock.run_op("Add", moved, arrays[1])
uuids = {r.plugin.device_info(i)["uuid"] for r in chipdock.plugins()[:1] for i in range(4)}
print(json.dumps([names, moved.device.name, total.numpy().tolist(), total.device.name, len(uuids)]))
"""
    names, moved, total, where, uuids = python_json(code, CHIPDOCK_CPU_DEVICES="4")
    assert names == [f"cpu:{i}" for i in range(4)]
    assert (moved, total, where, uuids) == ("cpu:1", [4, 4, 4], "cpu:1", 4)


@pytest.mark.slow
def test_no_device_at_all():
    code = """
import json, chipdock
try:
    chipdock.device("cpu:0")
except chipdock.errors.InvalidArgumentError as error:
    print(json.dumps([len(chipdock.devices()), str(error)]))
"""
    count, text = python_json(code, CHIPDOCK_CPU_DEVICES="0")
    assert count == 0
    assert "cpu:0 does not exist" in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CHIPDOCK_CPU_DEVICES", "four"),
        ("CHIPDOCK_LAYERS", "nonsense"),
        ("CHIPDOCK_CPU_STRICT", "x"),
    ],
)
def test_a_bad_setting_is_a_state_with_its_cause(name, value):
    code = """
import json, chipdock
report = chipdock.plugins()[0]
try:
    chipdock.device("cpu:0")
except chipdock.ChipdockError as error:
    print(json.dumps([report.state, report.cause, str(error)]))
"""
    state, cause, text = python_json(code, **{name: value})
    assert state == "broken"
    assert value in cause
    assert value in text


@pytest.mark.slow
def test_the_process_ends_in_order_with_everything_in_use():
    code = """
import numpy as np, chipdock
a = chipdock.array(np.arange(9))
view, stream, event = a[::2].numpy(), chipdock.Stream(a.device), chipdock.Event(a.device)
exported = np.from_dlpack(a)
event.record(stream)
keep = chipdock.run_op("Add", a, a)
import atexit
print("last", flush=True)
"""
    done = python(code)
    assert (done.returncode, done.stdout, done.stderr) == (0, "last\n", "")


@pytest.mark.threads
def test_many_threads_open_one_device():
    seen, gate = [], threading.Barrier(8)

    def work():
        gate.wait()
        seen.append(chipdock.device("cpu:0", threads="2"))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 8
    assert len({id(d) for d in seen}) == 1


def test_errors_have_one_class_per_code():
    from chipdock import _core, errors

    assert _core.STATUS_NAMES[0] == "OK"
    for status, name in enumerate(_core.STATUS_NAMES):
        if status == 0:
            continue
        error = errors.make_error(f"{name}: x", status, 7, 2, 5)
        assert error.code == name
        assert isinstance(error, chipdock.ChipdockError)
        assert (error.vendor_code, error.scope, error.correlation_id) == (7, "device", 5)
    assert errors.make_error("x", 12345).code == "INTERNAL"
    assert len(set(errors._BY_STATUS)) == len(_core.STATUS_NAMES) - 1

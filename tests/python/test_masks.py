# SPDX-License-Identifier: Apache-2.0
"""The functional subset with slots taken away, under the validate layer, and with faults put in."""

import gc

import numpy as np
import pytest
from api_support import (
    BOOL,
    INT64,
    agrees,
    mlp,
    model,
    open_cpu,
    open_fake,
    python_json,
    reference,
    same,
    value,
)
from onnx import helper

import chipdock

node = helper.make_node
MASKS = ["none", "mask=required", *(f"mask=seed:{s}" for s in range(1, 6))]


@pytest.fixture(scope="module", params=[*MASKS, *(f"validate,{m}" for m in MASKS[1:]), "validate"])
def device(request):
    """The cpu plugin behind layers; violations are raised by the layer as errors."""
    opened = open_cpu(request.param)
    yield opened
    opened.plugin.shutdown()


@pytest.fixture(scope="module", params=["none", "validate", "validate,mask=required"])
def strict(request):
    """Memory that the host must not touch."""
    opened = open_cpu(request.param, strict="1")
    yield opened
    opened.plugin.shutdown()


@pytest.fixture
def layered():
    """open_cpu whose instances are shut down at the end: only some can have layers at one time."""
    opened = []

    def make(*arguments, **options):
        opened.append(open_cpu(*arguments, **options))
        return opened[-1]

    yield make
    for device in opened:
        device.plugin.shutdown()


def everything():
    """Matrix work, views, shape work, data-dependent shapes, a branch and a loop in one model."""
    rng = np.random.default_rng(5)
    body = helper.make_graph(
        [
            node("Identity", ["go"], ["go2"]),
            node("Tanh", ["v"], ["v2"]),
            node("ReduceSum", ["v2", "rows_axis"], ["row"], keepdims=0),
        ],
        "b",
        [value("i", INT64, []), value("go", BOOL, []), value("v")],
        [value("go2", BOOL, []), value("v2"), value("row", shape=[3])],
    )
    then = helper.make_graph([node("Relu", ["h"], ["r"])], "t", [], [value("r")])
    other = helper.make_graph([node("Neg", ["h"], ["r"])], "e", [], [value("r")])
    return model(
        [
            node("MatMul", ["x", "w"], ["h"]),
            node("If", ["c"], ["j"], then_branch=then, else_branch=other),
            node("Loop", ["n", "yes", "j"], ["l", "rows"], body=body),
            node("Shape", ["l"], ["s"]),
            node("ConstantOfShape", ["s"], ["zeros"]),
            node("Greater", ["l", "zeros"], ["g"]),
            node("NonZero", ["g"], ["nz"]),
            node("Transpose", ["nz"], ["at"]),
            node("GatherND", ["l", "at"], ["picked"]),
            node("Reshape", ["l", "flat"], ["v"]),
            node("Softmax", ["v"], ["y"], axis=0),
        ],
        [value("x", shape=["N", 4]), value("c", BOOL, []), value("n", INT64, [])],
        [value("y"), value("picked"), value("rows"), value("l")],
        {
            "w": rng.standard_normal((4, 3), np.float32),
            "flat": np.int64([-1]),
            "yes": np.array(True),
            "rows_axis": np.int64([0]),
        },
    )


FEEDS = [
    {
        "x": np.random.default_rng(i).standard_normal((n, 4)).astype(np.float32),
        "c": np.array(c),
        "n": np.int64(t),
    }
    for i, (n, c, t) in enumerate([(2, True, 2), (5, False, 1), (2, False, 3)])
]


def functional(target):
    loaded = chipdock.load(everything(), target, fallback="allow")
    for feeds in FEEDS:
        same(loaded.run(feeds), reference(everything(), feeds), 1e-4)
    x = chipdock.array(np.arange(12, dtype=np.float32).reshape(3, 4), target)
    np.testing.assert_array_equal(x[::-1, 1:].numpy(), np.arange(12).reshape(3, 4)[::-1, 1:])
    np.testing.assert_array_equal(
        x.to(chipdock.device("cpu:0")).to(target).numpy(), x.copy_to_numpy()
    )
    out = chipdock.empty((3, 4), np.float32, target)
    proto = mlp(width=4)
    bound = chipdock.empty((3, 4), np.float32, target)
    run = chipdock.load(proto, target, fallback="allow").bind().input("x", x).output("y", bound)
    run.run()
    same({"y": bound}, reference(proto, {"x": x.numpy()}))
    stream, event = chipdock.Stream(target), chipdock.Event(target)
    stream.copy(x, out)
    event.record(stream)
    event.sync()
    np.testing.assert_array_equal(out.numpy(), x.numpy())


def test_functional_subset(device):
    functional(device)
    device.sync()


def test_functional_subset_in_strict_mode(strict):
    assert not strict.host_visible
    functional(strict)


def test_a_model_on_a_stream_of_ones_own(device):
    stream = chipdock.Stream(device)
    proto = everything()
    got = chipdock.load(proto, device, fallback="allow").run(FEEDS[0], stream=stream)
    same(got, reference(proto, FEEDS[0]), 1e-4)
    stream.sync()


def test_masks_take_slots_away(layered):
    required = layered("mask=required").plugin.slots
    assert sum(required.values()) == 7
    assert not layered("mask=stream.*").plugin.slots["stream.create"]
    sets = {tuple(layered(f"mask=seed:{s}").plugin.slots.values()) for s in range(1, 6)}
    assert len(sets) == 5


@pytest.mark.slow
@pytest.mark.parametrize("layers", ["mask=required", "validate,mask=seed:2", "validate"])
def test_layers_by_environment(layers):
    code = """
import json, numpy as np, chipdock
from api_support import *
x = np.ones((2, 8), np.float32)
device = chipdock.device("cpu:0")
same(chipdock.load(mlp(), device, fallback="allow").run({"x": x}), reference(mlp(), {"x": x}))
print(json.dumps([device.name, sum(device.plugin.slots.values())]))
"""
    name, slots = python_json(code, CHIPDOCK_LAYERS=layers)
    assert name == "cpu:0"
    assert (slots == 7) == (layers == "mask=required")


@pytest.mark.slow
@pytest.mark.parametrize("devices", ["1", "4"])
def test_strict_mode_by_environment(devices):
    code = """
import json, numpy as np, chipdock
from api_support import *
x = np.ones((2, 8), np.float32)
visible = []
for device in chipdock.devices():
    visible.append(device.host_visible)
    same(chipdock.load(mlp(), device, fallback="allow").run({"x": x}), reference(mlp(), {"x": x}))
    got = chipdock.run_op("Add", chipdock.array(x, device), chipdock.array(x, device))
    np.testing.assert_array_equal(got.numpy(), x + x)
print(json.dumps(visible))
"""
    environment = {"CHIPDOCK_CPU_STRICT": "1", "CHIPDOCK_CPU_DEVICES": devices}
    assert python_json(code, **environment) == [False] * int(devices)


# Faults: the n-th call of a slot fails, once. The error says so, nothing leaks, the next run works.


@pytest.fixture
def young_heap():
    """Collections of garbage look at what is made from now on, not at all that tests have left."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def run_until_no_fault(slot, make_device, at_most=400):
    """Load and run with the n-th call of `slot` failing, n = 1, 2, … until a run is free of faults.

    INTERNAL is asked for: of memory that is out once the allocator makes good by itself.
    """
    proto, feeds = everything(), FEEDS[0]
    want = reference(proto, feeds)
    for n in range(1, at_most):
        device = make_device(f"fault={slot}:{n}:INTERNAL")
        failures, texts = 0, []
        for _ in range(2):
            try:
                loaded = chipdock.load(proto, device, fallback="allow")
                same(loaded.run(feeds), want, 1e-4)
            except chipdock.ChipdockError as error:
                failures += 1
                texts.append((error.code, str(error)))
            loaded = None
            gc.collect()
        for code, text in texts:
            assert "failed on purpose" in text
            assert text.startswith(f"{code}: ")
        assert failures <= 1, f"call {n} of {slot} broke more than one run"
        assert device.memory_stats()["used_bytes"] == 0, f"call {n} of {slot} leaked"
        device.plugin.shutdown()
        if failures == 0:
            return n
    raise AssertionError(f"{slot} is called more than {at_most} times")


@pytest.mark.slow
@pytest.mark.usefixtures("young_heap")
@pytest.mark.parametrize("slot", ["memory.alloc", "memory.copy"])
def test_faults_of_a_plugin_without_kernels(slot):
    assert run_until_no_fault(slot, lambda layers: open_fake("nano", layers)) > 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "slot",
    [
        "memory.alloc",
        "memory.alloc_async",
        "memory.copy",
        "kernel.create",
        "kernel.launch",
        "kernel.workspace_size",
        "kernel.prepack",
        "kernel.supports",
        "memory.address",
    ],
)
@pytest.mark.usefixtures("young_heap")
@pytest.mark.parametrize("strict", ["0", "1"])
def test_faults_of_the_cpu_plugin(slot, strict):
    run_until_no_fault(slot, lambda layers: open_cpu(layers, strict=strict))


@pytest.mark.parametrize("n", range(1, 4))
def test_memory_that_is_out_once_is_asked_for_again(n):
    device = open_fake("nano", f"fault=memory.alloc:{n}")
    same(
        chipdock.load(everything(), device, fallback="allow").run(FEEDS[0]),
        reference(everything(), FEEDS[0]),
        1e-4,
    )
    device.plugin.shutdown()


@pytest.mark.usefixtures("as_written")
@pytest.mark.parametrize("n", range(1, 6))
def test_a_model_survives_a_failed_launch(layered, n):
    device = layered(f"fault=kernel.launch:{n}:INTERNAL")
    loaded = chipdock.load(mlp(), device)
    x = np.ones((2, 8), np.float32)
    with pytest.raises(chipdock.errors.InternalError, match=r"kernel\.launch failed on purpose"):
        loaded.run({"x": x})
    for _ in range(2):
        same(loaded.run({"x": x}), reference(mlp(), {"x": x}))


@pytest.mark.usefixtures("as_written")
def test_a_failed_launch_names_its_node(layered):
    device = layered("fault=kernel.launch:3")
    proto = mlp()
    proto.graph.node[2].name = "third"
    with pytest.raises(chipdock.errors.InternalError, match="Relu node 'third'"):
        chipdock.load(proto, device).run({"x": np.ones((2, 8), np.float32)})


def test_a_lost_device_is_lost_for_good_and_others_go_on(layered):
    device = layered("fault=kernel.launch:2:DEVICE_LOST")
    loaded = chipdock.load(mlp(), device)
    x = np.ones((2, 8), np.float32)
    for _ in range(2):
        with pytest.raises(chipdock.errors.DeviceLostError, match="failed on purpose"):
            loaded.run({"x": x})
    agrees(mlp(), {"x": x})
    agrees(mlp(), {"x": x}, open_cpu())

# SPDX-License-Identifier: Apache-2.0
"""Statistics, limits and trim; weights shared between loads; nothing held longer than used."""

import gc
from pathlib import Path

import numpy as np
import pytest
from api_support import chain, mlp, model, open_cpu, open_fake, value
from onnx import TensorProto, helper

import chipdock

node = helper.make_node


@pytest.fixture
def device():
    return open_cpu()


def used(device):
    gc.collect()
    return device.memory_stats()["used_bytes"]


def test_arrays_are_counted_and_given_back(device):
    assert used(device) == 0
    a = chipdock.empty((1000,), np.float32, device)
    assert used(device) >= 4000
    view = a[10:20]
    del a
    assert used(device) >= 4000
    del view
    assert used(device) == 0
    stats = device.memory_stats()
    assert stats["peak_used_bytes"] >= 4000
    device.reset_peak()
    assert device.memory_stats()["peak_used_bytes"] == 0


def test_memory_is_cached_and_trimmed(device):
    chipdock.empty((1 << 20,), np.uint8, device)
    gc.collect()
    before = device.memory_stats()
    assert before["cached_bytes"] >= 1 << 20
    chipdock.empty((1 << 20,), np.uint8, device)
    gc.collect()
    assert device.memory_stats()["plugin_allocation_count"] == before["plugin_allocation_count"]
    device.trim()
    after = device.memory_stats()
    assert (after["cached_bytes"], after["reserved_bytes"]) == (0, 0)


def test_a_limit_is_kept_and_can_be_raised(device):
    device.set_memory_limit(1 << 20)
    keep = chipdock.empty((1 << 19,), np.uint8, device)
    with pytest.raises(chipdock.errors.OutOfMemoryError):
        chipdock.empty((1 << 20,), np.uint8, device)
    device.set_memory_limit(1 << 30)
    assert chipdock.empty((1 << 20,), np.uint8, device).size == 1 << 20
    assert keep.size == 1 << 19


def test_a_model_and_its_runs_leave_nothing(device):
    loaded = chipdock.load(mlp(), device)
    for batch in (1, 5, 3):
        loaded(np.ones((batch, 8), np.float32))
    del loaded
    assert used(device) == 0


@pytest.mark.parametrize("strict", ["0", "1"])
def test_weights_are_shared_between_loads(strict):
    device = open_cpu(strict=strict)
    proto = model(
        [node("MatMul", ["x", "w"], ["a"]), node("Mul", ["a", "s"], ["y"])],
        [value("x", shape=["N", 256])],
        [value("y")],
        {
            "w": np.random.default_rng(0).random((256, 256), np.float32),
            "s": np.ones(256, np.float32),
        },
    )
    x = np.ones((2, 256), np.float32)
    first = chipdock.load(proto, device)
    want = first(x).numpy().copy()
    one = used(device)
    others = [chipdock.load(proto.SerializeToString(), device) for _ in range(3)]
    assert used(device) - one < 256 * 256  # far less than another copy of w
    for other in others:
        np.testing.assert_array_equal(other(x).numpy(), want)
    del first
    gc.collect()
    np.testing.assert_array_equal(others[0](x).numpy(), want)
    others.clear()
    del other
    assert used(device) == 0


def test_equal_weights_of_different_shape_are_not_mixed_up():
    device = open_cpu(strict="1")
    values = np.arange(12, dtype=np.float32)

    def load(*shape):
        return chipdock.load(
            model(
                [node("MatMul", ["x", "w"], ["y"])],
                [value("x")],
                [value("y")],
                {"w": values.reshape(shape)},
            ),
            device,
        )

    a, b = load(3, 4), load(4, 3)
    np.testing.assert_array_equal(
        a(np.ones((1, 3), np.float32)).numpy(), [values.reshape(3, 4).sum(0)]
    )
    np.testing.assert_array_equal(
        b(np.ones((1, 4), np.float32)).numpy(), [values.reshape(4, 3).sum(0)]
    )


def test_equal_bits_of_different_dtype_are_not_mixed_up():
    device = open_fake("nano")
    bits = np.arange(4, dtype=np.int32)

    def load(weights, kind):
        return chipdock.load(
            model(
                [node("Add", ["x", "w"], ["y"])],
                [value("x", kind)],
                [value("y", kind)],
                {"w": weights},
            ),
            device,
            fallback="allow",
        )

    a, b = load(bits, 6), load(bits.view(np.float32), 1)
    np.testing.assert_array_equal(a(np.zeros(4, np.int32)).numpy(), bits)
    np.testing.assert_array_equal(b(np.zeros(4, np.float32)).numpy(), bits.view(np.float32))


def test_outputs_take_their_own_size_and_scratch_goes_back(device):
    loaded = chipdock.load(chain(20), device)
    x = np.ones(1 << 16, np.float32)
    result = loaded(x)
    assert used(device) == 1 << 18
    del result
    assert used(device) == 0
    peak = device.memory_stats()["peak_used_bytes"]
    assert peak <= 4 << 18  # two scratch tensors, one output, some slack


def test_failed_runs_leave_nothing(device):
    loaded = chipdock.load(mlp(), device)
    at_rest = used(device)
    for _ in range(3):
        with pytest.raises(chipdock.errors.InvalidArgumentError):
            loaded(np.ones((1, 9), np.float32))
    assert used(device) == at_rest


def test_trimmed_memory_is_taken_anew(device):
    """Addresses of an arena may change under a model that has run before."""
    loaded = chipdock.load(chain(5), device)
    spacers = []
    for i in range(6):
        x = np.full(3000, i, np.float32)
        np.testing.assert_array_equal(loaded(x).numpy(), -x)
        device.trim()
        spacers.append(chipdock.empty((3000 + 1000 * i,), np.uint8, device))
    assert spacers


def test_device_statistics_count_work(device):
    before = device.memory_stats()
    chipdock.load(chain(3), device)(np.ones(10, np.float32))
    assert device.memory_stats()["launch_count"] - before["launch_count"] == 3


def test_random_histories_of_allocations_match_their_sum(device):
    rng = np.random.default_rng(3)
    live = {}
    for step in range(300):
        if live and rng.random() < 0.5:
            key = list(live)[rng.integers(len(live))]
            np.testing.assert_array_equal(
                live[key].numpy(), np.full(live[key].size, key % 251, np.uint8)
            )
            del live[key]
        else:
            size = int(rng.integers(1, 70_000))
            live[step] = chipdock.array(np.full(size, step % 251, np.uint8), device)
        total = sum(a.nbytes for a in live.values())
        now = device.memory_stats()["used_bytes"]
        assert total <= now <= total + 512 * len(live)
    live.clear()
    assert used(device) == 0


def test_weights_that_a_kernel_packed_are_let_go(tmp_path):
    """External data is mapped: what a model still holds of it shows in the process's maps."""
    size = 256
    names = {"product": "MatMul", "sum": "Add"}
    weight = np.random.default_rng(0).standard_normal((size, size), np.float32)
    models = {}
    for name, op in names.items():
        tensor = TensorProto(name="w", data_type=1, dims=[size, size])
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=f"{name}.bin")
        weight.tofile(tmp_path / f"{name}.bin")
        made = model([node(op, ["x", "w"], ["y"])], [value("x", 1, [size, size])],
                     [value("y", 1, [size, size])])  # fmt: skip
        made.graph.initializer.append(tensor)
        path = tmp_path / f"{name}.onnx"
        path.write_bytes(made.SerializeToString())
        models[name] = chipdock.load(path)
    gc.collect()
    maps = Path("/proc/self/maps").read_text(encoding="utf-8")
    assert "product.bin" not in maps
    assert "sum.bin" in maps  # read where it lies
    (y,) = models["product"].run({"x": np.eye(size, dtype=np.float32)}).values()
    np.testing.assert_array_equal(y.numpy(), weight)

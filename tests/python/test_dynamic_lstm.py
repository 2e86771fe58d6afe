# SPDX-License-Identifier: Apache-2.0
"""DynamicQuantizeLSTM of com.microsoft rounds where onnxruntime does."""

import numpy as np
import onnxruntime
import pytest
from api_support import model, open_cpu, value
from onnx import helper

import chipdock

_RNG = np.random.default_rng(5)
_NAMES = ("x", "w", "r", "b", "l", "h", "c", "p", "ws", "wz", "rs", "rz")


def normal(*shape):
    return _RNG.standard_normal(shape).astype(np.float32)


def inputs(count, *, steps=7, batch=1, width=9, hidden=21, columns=1, dtype=np.int8):
    """What the operator cannot do without, weights of bytes."""
    info = np.iinfo(dtype)

    def of(k):
        weights = _RNG.integers(info.min, info.max, (count, k, 4 * hidden)).astype(dtype)
        shape = (count,) if columns == 1 else (count, 4 * hidden)
        scale = _RNG.uniform(0.002, 0.008, shape).astype(np.float32)
        # onnxruntime takes no zero points of columns but 0.
        zero = _RNG.integers(-9, 9, shape) if columns == 1 else np.zeros(shape)
        return weights, scale, (zero + (0 if info.min else 128)).astype(dtype)

    w, ws, wz = of(width)
    r, rs, rz = of(hidden)
    return {
        "x": normal(steps, batch, width),
        "w": w,
        "r": r,
        "ws": ws,
        "wz": wz,
        "rs": rs,
        "rz": rz,
    }


def lstm(feeds, **attributes):
    """A model of one node, and its inputs."""
    hidden = feeds["r"].shape[1]
    names = [name if name in feeds else "" for name in _NAMES]
    node = helper.make_node("DynamicQuantizeLSTM", names, ["y", "yh", "yc"],
                            domain="com.microsoft", hidden_size=hidden, **attributes)  # fmt: skip
    types = {k: helper.np_dtype_to_tensor_dtype(v.dtype) for k, v in feeds.items()}
    proto = model(
        [node], [value(k, types[k], list(v.shape)) for k, v in feeds.items()],
        [value(k, 1) for k in ("y", "yh", "yc")],
    )  # fmt: skip
    proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return proto, feeds


def check(feeds, **attributes):
    proto, feeds = lstm(feeds, **attributes)
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    loaded = chipdock.load(proto)
    assert [n.op for n in loaded.explain().nodes] == ["com.microsoft.DynamicQuantizeLSTM"]
    got = loaded.run(feeds)
    for name, want in zip(("y", "yh", "yc"), session.run(None, feeds), strict=True):
        assert got[name].shape == want.shape
        # A value at the border of two bytes may fall to either side.
        assert np.abs(got[name].numpy() - want).max() <= 0.01 * np.abs(want).max()
    return got


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_directions_and_weights_of_either_type(direction, dtype):
    count = 2 if direction == "bidirectional" else 1
    check(inputs(count, dtype=dtype), direction=direction)


@pytest.mark.parametrize("sizes", [{"hidden": 1}, {"hidden": 64, "width": 33}, {"steps": 1}])
def test_sizes(sizes):
    check(inputs(1, **sizes) | {"b": normal(1, 8 * sizes.get("hidden", 21))})


@pytest.mark.parametrize("sizes", [{}, {"batch": 32, "hidden": 256}], ids=["small", "large"])
def test_directions_do_not_depend_on_who_runs_them(sizes):
    """Threads take a direction each, or share the large steps of one after the other."""
    proto, feeds = lstm(inputs(2, steps=2, **sizes), direction="bidirectional")
    want = chipdock.load(proto).run(feeds)
    for threads in ("1", "3", "4"):
        got = chipdock.load(proto, open_cpu(threads=threads)).run(feeds)
        for name, array in got.items():
            np.testing.assert_array_equal(array.numpy(), want[name].numpy())


def test_scales_of_columns():
    check(inputs(2, columns=4), direction="bidirectional")


def test_states_lengths_and_a_batch():
    feeds = inputs(2, batch=3) | {
        "b": normal(2, 168), "l": np.array([7, 2, 5], np.int32),
        "h": normal(2, 3, 21) / 4, "c": normal(2, 3, 21) / 4, "p": normal(2, 63) / 4,
    }  # fmt: skip
    check(feeds, direction="bidirectional")


def test_zeros_alone_have_no_scale():
    feeds = inputs(1)
    feeds["x"][:] = 0
    got = check(feeds)
    assert not got["y"].numpy().any()


def test_scales_that_do_not_fit_are_named():
    feeds = inputs(1)
    feeds["ws"] = normal(1, 5)
    feeds["wz"] = np.zeros((1, 5), np.int8)
    with pytest.raises(chipdock.errors.InvalidArgumentError, match="5 scales for 1 directions"):
        check(feeds)

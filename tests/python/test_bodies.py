# SPDX-License-Identifier: Apache-2.0
"""Operators that run by a body of chipdock's own: those of com.microsoft, against onnxruntime."""

import numpy as np
import onnx
import pytest
from api_support import FLOAT, model, value
from onnx import helper

import chipdock
from chipdock._bodies import own_body

node = helper.make_node
RNG = np.random.default_rng(0)


def check(op, feeds, outputs=("y",), tolerance=1e-5, **attributes):
    """Compare with onnxruntime: largest difference relative to the largest value."""
    onnxruntime = pytest.importorskip("onnxruntime", reason="no reference for com.microsoft")
    names = [n if a is not None else "" for n, a in feeds.items()]
    feeds = {n: a for n, a in feeds.items() if a is not None}
    proto = model(
        [node(op, names, list(outputs), domain="com.microsoft", **attributes)],
        [value(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in feeds.items()],
        [value(n) if n else onnx.ValueInfoProto(name=n) for n in outputs if n],
        opsets=[helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)],
    )
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    wanted = session.run(None, feeds)
    got = chipdock.load(proto).run(feeds)
    for array, want in zip(got.values(), wanted, strict=True):
        np.testing.assert_allclose(array.numpy(), want, atol=tolerance * np.abs(want).max())


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("bias", [False, True])
def test_fast_gelu(bias):
    check("FastGelu", {"x": normal(3, 4), "b": normal(4) if bias else None}, tolerance=2e-5)


def test_gelu_and_bias_gelu():
    check("Gelu", {"x": normal(3, 4)})
    check("BiasGelu", {"x": normal(3, 4), "b": normal(4)})


@pytest.mark.parametrize(("left", "right"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_fused_matmul(left, right):
    a = normal(2, 4, 3) if left else normal(2, 3, 4)
    b = normal(2, 5, 4) if right else normal(2, 4, 5)
    check("FusedMatMul", {"a": a, "b": b}, transA=left, transB=right, alpha=0.5)


@pytest.mark.parametrize("bias", [False, True])
def test_skip_layer_normalization_and_its_sum(bias):
    feeds = {"x": normal(2, 3, 8), "s": normal(2, 3, 8), "g": normal(8), "b": normal(8)}
    if bias:
        feeds["c"] = normal(8)
    check("SkipLayerNormalization", feeds, ("y", "", "", "t"), epsilon=1e-5)


def drawn(dtype, *shape):
    return RNG.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape).astype(dtype)


def small(*values):
    return np.float32(values[0] if len(values) == 1 else values)


BYTES = {
    "MatMulInteger": [
        drawn(np.uint8, 5, 9), drawn(np.int8, 9, 4), drawn(np.uint8, 5), drawn(np.int8, 4),
    ],
    "ConvInteger": [
        drawn(np.uint8, 1, 3, 6, 7), drawn(np.int8, 4, 3, 3, 3), np.uint8(9), drawn(np.int8, 4),
    ],
    "QLinearMatMul": [
        drawn(np.uint8, 5, 9), small(0.5), np.uint8(9), drawn(np.int8, 9, 4), small(0.25),
        np.int8(-3), small(41), np.int8(5),
    ],
    "QLinearConv": [
        drawn(np.uint8, 1, 3, 6, 7), small(0.5), np.uint8(9), drawn(np.int8, 4, 3, 3, 3),
        small(0.2, 0.3, 0.4, 0.5), drawn(np.int8, 4), small(71), np.uint8(5),
        drawn(np.int8, 4).astype(np.int32),
    ],
    "DynamicQuantizeLSTM": [
        normal(5, 1, 6), drawn(np.int8, 1, 6, 32), drawn(np.int8, 1, 8, 32), normal(1, 64),
        None, None, None, None, np.full(1, 0.01, np.float32), np.zeros(1, np.int8),
        np.full(1, 0.01, np.float32), np.zeros(1, np.int8),
    ],
}  # fmt: skip


@pytest.mark.parametrize("op", BYTES)
def test_bodies_of_products_of_bytes_do_what_the_kernels_do(op):
    domain = "com.microsoft" if op == "DynamicQuantizeLSTM" else ""
    given = [f"i{k}" if a is not None else "" for k, a in enumerate(BYTES[op])]
    feeds = {n: np.asarray(a) for n, a in zip(given, BYTES[op], strict=True) if n}
    whole = node(op, given, ["y"], domain=domain)
    if domain:
        whole.attribute.append(helper.make_attribute("hidden_size", 8))
    inputs = [value(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in feeds.items()]
    types = {v.name: v.type for v in inputs}
    body = own_body(whole, domain, [types.get(n) for n in given])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    results = []
    for nodes, name in (([whole], "y"), (body.node, body.output[0])):
        output = onnx.ValueInfoProto(name=name)
        loaded = chipdock.load(model(nodes, inputs, [output], opsets=opsets))
        ran = {n.op.rpartition(".")[2] for n in loaded.explain().nodes}
        assert (op in ran) == (name == "y")
        results.append(loaded.run(feeds)[name].numpy())
    kernel, parts = results
    assert kernel.dtype == parts.dtype
    # The kernel's LSTM rounds activations, the body's does not.
    limit = {"DynamicQuantizeLSTM": 0.05, "QLinearMatMul": 1, "QLinearConv": 1}.get(op, 0)
    assert np.abs(kernel.astype(np.float64) - parts).max() <= limit


def test_a_body_names_what_it_cannot_do():
    proto = model(
        [node("FusedMatMul", ["a", "b"], ["y"], domain="com.microsoft", transBatchA=1)],
        [value("a", FLOAT, [2, 2, 2]), value("b", FLOAT, [2, 2, 2])],
        [value("y")],
        opsets=[helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)],
    )
    with pytest.raises(chipdock.errors.UnsupportedError, match="transBatchA"):
        chipdock.load(proto)


def test_max_roi_pool_takes_the_largest_pixel_of_each_cell():
    x = np.arange(32.0).reshape(1, 2, 4, 4)
    got = chipdock.run_op("MaxRoiPool", x, np.array([[0.0, 0, 0, 3, 3]]), pooled_shape=[2, 2])
    assert got.numpy().tolist() == [[[[5, 7], [13, 15]], [[21, 23], [29, 31]]]]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_mean_variance_normalization_in_every_dtype(dtype):
    x = RNG.normal(3, 2, (2, 3, 4)).astype(dtype)
    got = chipdock.run_op("MeanVarianceNormalization", x, axes=[0, 2]).numpy()
    wide = x.astype(np.float64)
    want = (wide - wide.mean((0, 2), keepdims=True)) / wide.std((0, 2), keepdims=True)
    assert got.dtype == dtype
    np.testing.assert_allclose(got, want, atol=2e-3 if dtype == np.float16 else 1e-5)


def test_a_zero_point_for_each_channel_finds_its_axis_where_no_rank_is_known():
    x = RNG.integers(0, 255, (1, 2, 4, 5)).astype(np.uint8)
    w = RNG.integers(-128, 127, (3, 2, 1, 1)).astype(np.int8)
    zeros = np.array([-3, 0, 7], np.int8)
    feeds = {"x": x, "w": w, "p": np.uint8(9).reshape(()), "q": zeros}
    proto = model(
        [node("ConvInteger", list(feeds), ["y"])],
        [value(n, helper.np_dtype_to_tensor_dtype(a.dtype), None) for n, a in feeds.items()],
        [onnx.ValueInfoProto(name="y")],
        opsets=[helper.make_opsetid("", 21)],
    )
    got = chipdock.load(proto).run(feeds)["y"].numpy()
    centred = w[:, :, 0, 0].astype(np.int32) - zeros[:, None]
    np.testing.assert_array_equal(got, np.einsum("nchw,oc->nohw", x.astype(np.int32) - 9, centred))


def test_bernoulli_and_bodies_that_do_not_overflow(monkeypatch):
    # As a device without kernels for them runs them: by their bodies.
    from chipdock._target import Target

    hidden = {"Bernoulli", "Softplus", "ReduceLogSumExp", "ReduceL2", "Gelu"}
    real = Target.runs
    monkeypatch.setattr(
        Target,
        "runs",
        lambda self, domain, op, since: op not in hidden and real(self, domain, op, since),
    )

    def run(op, x, *more, opset=21, **attributes):
        names = ["x", *(f"c{i}" for i in range(len(more)))]
        proto = model(
            [node(op, names, ["y"], **attributes)],
            [value("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)],
            [onnx.ValueInfoProto(name="y")],
            dict(zip(names[1:], more, strict=True)),
            opsets=[helper.make_opsetid("", opset)],
        )
        loaded = chipdock.load(proto)
        assert op not in {n.op for n in loaded.explain().nodes}
        return loaded.run({"x": x})["y"].numpy()

    chances = np.array([0.0, 1.0] * 500, np.float32)
    np.testing.assert_array_equal(run("Bernoulli", chances, opset=22), chances)
    x = np.array([[-1e4, -2.0, 0.5], [3.0, 700.0, 1e4]])
    np.testing.assert_allclose(run("Softplus", x, opset=22), np.logaddexp(0, x), rtol=1e-12)
    axes = np.array([1])
    want = np.logaddexp.reduce(x, axis=1)
    np.testing.assert_allclose(run("ReduceLogSumExp", x, axes, keepdims=0), want, rtol=1e-12)
    np.testing.assert_allclose(
        run("ReduceLogSumExp", x, axes=[1], opset=13), want[:, None], rtol=1e-12
    )
    none = np.full((2, 2), -np.inf, np.float32)
    np.testing.assert_array_equal(run("ReduceLogSumExp", none, keepdims=0), -np.inf)
    np.testing.assert_allclose(
        run("ReduceL2", x, axes), np.linalg.norm(x, axis=1, keepdims=True), rtol=1e-12
    )
    near = np.array([-1.0, 0.25, 2.0])
    tanh = 0.5 * near * (1 + np.tanh(np.sqrt(2 / np.pi) * (near + 0.044715 * near**3)))
    np.testing.assert_allclose(run("Gelu", near, approximate="tanh"), tanh, rtol=1e-12)

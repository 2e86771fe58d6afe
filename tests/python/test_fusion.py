# SPDX-License-Identifier: Apache-2.0
"""Graphs are rewritten into fewer nodes, compute the same, and stay as they are where they must."""

from collections import Counter

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper

import chipdock
from chipdock._fusion import pattern
from chipdock.errors import InvalidArgumentError

_RNG = np.random.default_rng(28)


def _model(body, inputs, outputs, opset=17, **constants):
    text = f'<ir_version: 10, opset_import: ["": {opset}]> g ({inputs}) => ({outputs}) {{ {body} }}'
    model = onnx.parser.parse_model(text)
    for name, value in constants.items():
        array = np.asarray(value)
        array = array.astype(np.float32) if array.dtype == np.float64 else array
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    return model


def _random(*shape):
    return _RNG.standard_normal(shape)


def _check(monkeypatch, model, wanted, tolerance=1e-5, **feeds):
    """Run with and without rewriting; returns the operators that ran with it."""
    feeds = {k: v.astype(np.float32) if v.dtype == np.float64 else v for k, v in feeds.items()}
    whole = chipdock.load(model)
    monkeypatch.setenv("CHIPDOCK_FUSION", "off")
    apart = chipdock.load(model)
    ops = Counter(n.op for n in whole.explain().nodes if n.placement not in {"folded", "view"})
    got, due = whole.run(feeds), apart.run(feeds)
    for name, value in due.items():
        limit = tolerance * max(1.0, float(np.abs(value.numpy()).max(initial=0)))
        assert got[name].shape == value.shape
        assert np.abs(got[name].numpy().astype(float) - value.numpy()).max(initial=0) <= limit
    assert ops == Counter(wanted.split())
    return whole


_X = "float[1,6,9,9] x"
_CONV = {"w": _random(4, 6, 3, 3), "b": _random(4)}


@pytest.mark.parametrize(
    ("body", "constants"),
    [
        ("c = Conv(x, w) y = Add(c, k)", {"k": _random(1, 4, 1, 1)}),
        ("c = Conv(x, w) y = Add(k, c)", {"k": _random(4, 1, 1)}),
        ("c = Conv(x, w, b) y = Add(c, k)", {"k": _random(4, 1, 1)}),
        ("c = Conv<pads=[1,1,1,1]>(x, w, b) y = Mul(c, k)", {"k": _random(1, 4, 1, 1)}),
        ("c = Conv(x, w) y = Mul(c, k)", {"k": _random(4, 1, 1)}),
        ("c = Conv(x, w) d = Add(c, k) y = Mul(d, k)", {"k": _random(4, 1, 1)}),
        ("p = Pad(x, k) y = Conv(p, w, b)", {"k": np.array([0, 0, 1, 2, 0, 0, 3, 0])}),
    ],
)  # fmt: skip
def test_what_follows_a_convolution_by_channel_is_part_of_it(monkeypatch, body, constants):
    model = _model(body, _X, "float[a,b,c,d] y", **_CONV, **constants)
    _check(monkeypatch, model, "Conv", x=_random(1, 6, 9, 9))


@pytest.mark.parametrize("bias", ["", ", b"])
@pytest.mark.parametrize("opset", [9, 15])
def test_batch_normalization_is_folded_into_filters(monkeypatch, bias, opset):
    body = f"c = Conv(x, w{bias}) y = BatchNormalization <epsilon=0.01> (c, s, o, m, v)"
    numbers = {"s": _random(4), "o": _random(4), "m": _random(4), "v": np.abs(_random(4)) + 0.1}
    model = _model(body, _X, "float[a,b,c,d] y", opset, **_CONV, **numbers)
    _check(monkeypatch, model, "Conv", x=_random(1, 6, 9, 9))


@pytest.mark.parametrize(
    ("why", "body", "wanted", "constants"),
    [
        ("read elsewhere", "c = Conv(x, w) d = Add(c, k) y = Mul(d, c)", "Conv Add Mul",
         {"k": _random(4, 1, 1)}),
        ("by column", "c = Conv(x, w) y = Add(c, k)", "Conv Add", {"k": _random(7)}),
        ("widens", "c = Conv(x, w) y = Add(c, k)", "Conv Add", {"k": _random(3, 4, 1, 1)}),
        ("can change", "k = ReduceMean <axes=[0,2,3], keepdims=1> (x) s = Slice(k, i, j, a)"
         " c = Conv(x, w) y = Add(c, s)", "Conv Add ReduceMean Slice",
         {"i": np.array([0]), "j": np.array([4]), "a": np.array([1])}),
        ("pads channels", "p = Pad(x, k) y = Conv(p, w)", "Pad Conv",
         {"k": np.array([0, 1, 0, 0, 0, -1, 0, 0])}),
        ("pads with ones", "p = Pad(x, k, o) y = Conv(p, w)", "Pad Conv",
         {"k": np.array([0, 0, 1, 1, 0, 0, 1, 1]), "o": np.float32(1)}),
    ],
)  # fmt: skip
def test_a_convolution_stays_apart(monkeypatch, why, body, wanted, constants):
    del why
    model = _model(body, _X, "float[a,b,c,d] y", w=_CONV["w"], **constants)
    _check(monkeypatch, model, wanted, x=_random(1, 6, 9, 9))


@pytest.mark.parametrize(
    "activation",
    ["Relu(c)", "LeakyRelu <alpha=0.3> (c)", "Sigmoid(c)", "Tanh(c)", "HardSwish(c)",
     "Clip(c, l, h)", "Clip(c, , h)", "Clip(c)", "HardSigmoid <alpha=0.3, beta=0.4> (c)"],
)  # fmt: skip
@pytest.mark.parametrize("product", ["Conv(x, w, b)", "MatMul(x, k)"])
def test_an_activation_ends_a_convolution_or_product(monkeypatch, product, activation):
    body = f"c = {product} y = {activation}"
    limits = {"l": np.float32(-0.5), "h": np.float32(0.75)}
    model = _model(body, _X, "float[a,b,c,d] y", **_CONV, **limits, k=_random(9, 5))
    wanted = "ai.chipdock.Fused" + product.partition("(")[0]
    _check(monkeypatch, model, wanted, x=_random(1, 6, 9, 9))


def test_limits_that_can_change_leave_clip_alone(monkeypatch):
    model = _model("c = MatMul(x, k) y = Clip(c, l)", "float[2,9] x, float l", "float[2,5] y",
                   k=_random(9, 5))  # fmt: skip
    _check(monkeypatch, model, "MatMul Clip", x=_random(2, 9), l=np.array(0.1))


@pytest.mark.parametrize("high", [6.0, 6.0000001])
def test_a_limit_in_double_that_an_attribute_would_round_stays_apart(high):
    model = _model("c = MatMul(x, k) y = Clip(c, l, h)", "double[2,9] x", "double[2,5] y")
    constants = {"k": _random(9, 5) + 5.0, "l": np.float64(0), "h": np.float64(high)}
    for name, value in constants.items():
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    whole = chipdock.load(model)
    assert ("Clip" in [n.op for n in whole.explain().nodes]) == (high != 6.0)
    x = np.abs(_random(2, 9))
    wanted = np.clip(x @ constants["k"], 0.0, high)
    np.testing.assert_allclose(whole.run({"x": x})["y"].numpy(), wanted, rtol=1e-14)


_HALF_ROOT, _ROOT = np.float32(0.70710677), np.float32(1.4142135)


@pytest.mark.parametrize(
    ("body", "wanted", "opset"),
    [
        ("e = Div(x, r) f = Erf(e) g = Add(f, o) h = Mul(x, g) y = Mul(h, p)", "Gelu", 17),
        ("e = Mul(x, q) f = Erf(e) g = Add(o, f) h = Mul(x, p) y = Mul(g, h)", "Gelu", 13),
        ("s = Sigmoid(x) y = Mul(s, x)", "Swish", 17),
        ("s = HardSigmoid <alpha=0.16666667> (x) y = Mul(x, s)", "HardSwish", 13),
        ("s = HardSigmoid <alpha=0.2> (x) y = Mul(x, s)", "HardSigmoid Mul", 13),
        ("a = Add(x, t) c = Clip(a, z, u) m = Mul(x, c) y = Div(m, u)", "HardSwish", 13),
        ("a = Softplus(x) b = Tanh(a) y = Mul(x, b)", "Mish", 13),
        ("e = Div(x, r) f = Erf(e) g = Add(f, t) h = Mul(x, g) y = Mul(h, p)",
         "Div Erf Add Mul Mul", 17),
    ],
)  # fmt: skip
def test_activations_that_are_written_out(monkeypatch, body, wanted, opset):
    numbers = {"r": _ROOT, "q": _HALF_ROOT, "o": 1.0, "p": 0.5, "t": 3.0, "z": 0.0, "u": 6.0}
    constants = {k: np.float32(v) for k, v in numbers.items()}
    model = _model(body, "float[n,7] x", "float[n,7] y", opset, **constants)
    _check(monkeypatch, model, wanted, x=_random(5, 7) * 3)


@pytest.mark.parametrize("opset", [13, 18])
def test_normalizations_that_are_written_out(monkeypatch, opset):
    mean = "ReduceMean <axes=[-1]>({})" if opset < 18 else "ReduceMean({}, axes)"
    layer = (f"m = {mean.format('x')} d = Sub(x, m) q = Pow(d, two) v = {mean.format('q')} "
             "e = Add(v, eps) r = Sqrt(e) n = Div(d, r) t = Mul(n, s) y = Add(t, o)")  # fmt: skip
    constants = {"s": _random(16), "o": _random(16), "eps": np.float32(1e-5),
                 "two": np.float32(2), "axes": np.array([2])}  # fmt: skip
    x = _random(3, 4, 16)
    model = _model(layer, "float[n,m,16] x", "float[n,m,16] y", opset, **constants)
    _check(monkeypatch, model, "LayerNormalization", x=x)
    monkeypatch.delenv("CHIPDOCK_FUSION")
    rms = (f"q = Mul(x, x) v = {mean.format('q')} e = Add(v, eps) r = Sqrt(e) i = Reciprocal(r) "
           "n = Mul(x, i) y = Mul(s, n)")  # fmt: skip
    model = _model(rms, "float[n,m,16] x", "float[n,m,16] y", opset, **constants)
    _check(monkeypatch, model, "RMSNormalization", x=x)


def test_a_product_takes_scale_bias_residual_and_activation(monkeypatch):
    body = "m = MatMul(x, k) s = Mul(m, f) b = Add(s, c) r = Add(z, b) y = Relu(r)"
    model = _model(body, "float[2,n,9] x, float[2,n,5] z", "float[2,n,5] y", k=_random(9, 5),
                   c=_random(5), f=np.float32(0.25))  # fmt: skip
    feeds = {"x": _random(2, 3, 9), "z": _random(2, 3, 5)}
    _check(monkeypatch, model, "ai.chipdock.FusedMatMul", **feeds)


@pytest.mark.parametrize("scale", ["", " s = Div(m, f)", " s = Mul(f, m)"])
@pytest.mark.parametrize("mask", ["", "float[1,1,n,s] z", "float[s] z", "float[2,1,n,1] z"])
@pytest.mark.parametrize("length", [1, 70])
def test_attention_that_is_written_out(monkeypatch, scale, mask, length):
    value = "s" if scale else "m"
    masked = f" a = Add({value}, z)" if mask else ""
    value = "a" if mask else value
    body = f"m = MatMul(q, k){scale}{masked} p = Softmax <axis=-1> ({value}) y = MatMul(p, v)"
    inputs = ["float[2,3,n,8] q", "float[2,3,8,s] k", "float[2,3,s,5] v", *filter(None, [mask])]
    model = _model(body, ", ".join(inputs), "float[2,3,n,5] y", f=np.float32(2.5))
    columns = 33
    feeds = {"q": _random(2, 3, length, 8), "k": _random(2, 3, 8, columns),
             "v": _random(2, 3, columns, 5)}  # fmt: skip
    if mask:
        extents = {"n": length, "s": columns}
        named = mask[mask.index("[") + 1 : mask.index("]")].split(",")
        feeds["z"] = _random(*(extents.get(d) or int(d) for d in named))
    _check(monkeypatch, model, "ai.chipdock.FusedAttention", **feeds)


@pytest.mark.parametrize(("q", "k", "v"), [((3, 4, 8), (1, 8, 600), (1, 600, 2)),
                                     ((1, 4, 8), (2, 8, 5), (1, 5, 70)),
                                     ((1, 0, 8), (2, 8, 5), (1, 5, 3)),
                                     ((1, 2, 3), (1, 3, 0), (1, 0, 3))])  # fmt: skip
def test_batches_of_attention_broadcast(monkeypatch, q, k, v):
    body = "m = MatMul(q, k) p = Softmax <axis=-1> (m) y = MatMul(p, v)"
    model = _model(body, "float[a,n,d] q, float[b,d,s] k, float[c,s,e] v", "float[t,n,e] y")
    feeds = {"q": _random(*q), "k": _random(*k), "v": _random(*v)}
    _check(monkeypatch, model, "ai.chipdock.FusedAttention", **feeds)


def test_half_types_of_attention_are_computed_in_float(monkeypatch):
    body = "m = MatMul(q, k) p = Softmax <axis=-1> (m) y = MatMul(p, v)"
    text = "float16[1,n,16] q, float16[1,16,s] k, float16[1,s,4] v"
    model = _model(body, text, "float16[1,n,4] y")
    feeds = {"q": _random(1, 5, 16), "k": _random(1, 16, 7), "v": _random(1, 7, 4)}
    feeds = {name: array.astype(np.float16) for name, array in feeds.items()}
    _check(monkeypatch, model, "ai.chipdock.FusedAttention", tolerance=2e-3, **feeds)


@pytest.mark.parametrize("softmax", ["Softmax <axis=1> (m)", "Softmax(m)"])
def test_a_softmax_that_may_run_along_another_axis_is_no_attention(monkeypatch, softmax):
    body = f"m = MatMul(q, k) p = {softmax} y = MatMul(p, v)"
    model = _model(body, "float[2,n,8] q, float[2,8,s] k, float[2,s,5] v", "float[2,n,5] y")
    feeds = {"q": _random(2, 4, 8), "k": _random(2, 8, 6), "v": _random(2, 6, 5)}
    _check(monkeypatch, model, "MatMul Softmax MatMul", **feeds)


def test_what_may_widen_the_result_is_no_residual(monkeypatch):
    body = "m = MatMul(x, k) y = Add(m, z)"
    model = _model(body, "float[n,9] x, float[m,5] z", "float[l,5] y", k=_random(9, 5))
    _check(monkeypatch, model, "MatMul Add", x=_random(1, 9), z=_random(4, 5))


def test_a_residual_of_a_convolution(monkeypatch):
    body = "c = Conv <pads=[1,1,1,1]> (x, w) r = Add(c, x) y = Relu(r)"
    model = _model(body, _X, "float[1,6,9,9] y", w=_random(6, 6, 3, 3))
    _check(monkeypatch, model, "ai.chipdock.FusedConv", x=_random(1, 6, 9, 9))


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("p = Conv<pads=[1,1,1,1]>(x, w) q = Relu(p) c = Conv<pads=[2,2,2,2]>(q, v) y = Add(c, x)",
         "ai.chipdock.FusedConv ai.chipdock.FusedConv"),
        ("p = Conv<strides=[2,2]>(x, w) q = Conv<auto_pad=\"VALID\", strides=[2,2]>(x, w)"
         " y = Add(q, p)", "Conv Conv Add"),
        ("p = Conv<strides=[2,2]>(x, w) q = MaxPool<kernel_shape=[3,3], strides=[2,2]>(x)"
         " r = Sigmoid(q) y = Add(r, p)", "ai.chipdock.FusedConv MaxPool Sigmoid"),
        ("p = Conv<strides=[2,2]>(x, w) q = MaxPool<kernel_shape=[3,3], strides=[2,1]>(x)"
         " r = GlobalAveragePool(q) y = Add(r, p)", "Conv MaxPool GlobalAveragePool Add"),
        ("t = Transpose<perm=[0,1,3,2]>(x) u = Transpose<perm=[0,1,3,2]>(t)"
         " p = Conv<pads=[1,1,1,1]>(x, w) y = Add(u, p)",
         "Transpose Transpose ai.chipdock.FusedConv"),
        ("t = Transpose<perm=[0,1,3,2]>(x) p = Conv<pads=[1,1,1,1]>(x, w) y = Add(t, p)",
         "Transpose Conv Add"),
    ],
)  # fmt: skip
def test_extents_that_nobody_knows_can_be_known_to_be_equal(monkeypatch, body, wanted):
    """A residual needs them; without numbers in the model they follow from how both are made."""
    model = _model(body, "float[n,6,h,w] x", "float[a,b,c,d] y", w=_random(6, 6, 3, 3),
                   v=_random(6, 6, 5, 5))  # fmt: skip
    _check(monkeypatch, model, wanted, x=_random(2, 6, 9, 9))


def test_identities_do_not_keep_nodes_apart(monkeypatch):
    body = ("k = Identity(b) c = MatMul(x, w) i = Identity(c) j = Identity(i) d = Add(j, k)"
            " e = Identity(d) f = Relu(e) y = Identity(f)")  # fmt: skip
    model = _model(body, "float[n,9] x", "float[n,5] y", w=_random(9, 5), b=_random(5))
    _check(monkeypatch, model, "ai.chipdock.FusedMatMul", x=_random(3, 9))


def test_an_identity_that_is_an_output_or_read_by_a_body_stays(monkeypatch):
    body = ("c = MatMul(x, w) z = Identity(c) i = Identity(x) d = Relu(z)"
            " y = If(p) <then_branch = a () => (float[2,5] t) { t = MatMul(i, w) },"
            " else_branch = b () => (float[2,5] e) { e = Identity(d) }>")  # fmt: skip
    model = _model(body, "bool p, float[2,9] x", "float[2,5] y, float[2,5] z", w=_random(9, 5))
    for branch in (True, False):
        monkeypatch.delenv("CHIPDOCK_FUSION", raising=False)
        _check(monkeypatch, model, "MatMul Relu If MatMul", p=np.array(branch), x=_random(2, 9))


def test_an_identity_that_a_loop_is_given_and_its_body_reads_stays(monkeypatch):
    body = """i = Identity(x)
        y = Loop(n, , i) <body = b (int64 at, bool on, float[3] s) => (bool go, float[3] t) {
            go = Identity(on) t = Add(s, i) }>"""
    model = _model(body, "float[3] x", "float[3] y", n=np.int64(2))
    x = _random(3).astype(np.float32)
    np.testing.assert_allclose(chipdock.load(model).run({"x": x})["y"].numpy(), 3 * x, rtol=1e-6)


def test_a_value_that_is_added_to_itself(monkeypatch):
    model = _model("c = MatMul(x, k) y = Add(c, c)", "float[3,9] x", "float[3,5] y",
                   k=_random(9, 5))  # fmt: skip
    _check(monkeypatch, model, "MatMul Add", x=_random(3, 9))


@pytest.mark.parametrize("trans", [0, 1])
def test_a_gemm_with_an_activation(monkeypatch, trans):
    body = f"c = Gemm <transB={trans}> (x, k, b) y = Tanh(c)"
    weights = _random(5, 9) if trans else _random(9, 5)
    model = _model(body, "float[n,9] x", "float[n,5] y", k=weights, b=_random(5))
    _check(monkeypatch, model, "ai.chipdock.FusedMatMul", x=_random(3, 9))
    monkeypatch.delenv("CHIPDOCK_FUSION")
    scaled = _model(body.replace("<", "<alpha=0.5, "), "float[n,9] x", "float[n,5] y", k=weights,
                    b=_random(5))  # fmt: skip
    _check(monkeypatch, scaled, "Gemm Tanh", x=_random(3, 9))


def test_nodes_come_back_where_no_kernel_accepts_the_whole(monkeypatch):
    """The device lists FusedMatMul, but not for integers."""
    text = "int64[n,9] x"
    model = _model("c = MatMul(x, k) y = Add(c, b)", text, "int64[n,5] y",
                   k=_RNG.integers(-9, 9, (9, 5)), b=_RNG.integers(-9, 9, 5))  # fmt: skip
    whole = _check(monkeypatch, model, "MatMul Add", x=_RNG.integers(-9, 9, (3, 9)))
    assert not any(n.op.startswith("ai.chipdock") for n in whole.explain().nodes)


def test_bodies_are_rewritten_with_constants_from_outside(monkeypatch):
    model = _model(
        "y = If (p) <then_branch = a () => (float[2,5] t)"
        " { m = MatMul(x, k) n = Add(m, c) t = Relu(n) },"
        " else_branch = b () => (float[2,5] e) { e = MatMul(x, k) }>",
        "bool p, float[2,9] x", "float[2,5] y", k=_random(9, 5), c=_random(5),
    )  # fmt: skip
    for branch in (True, False):
        monkeypatch.delenv("CHIPDOCK_FUSION", raising=False)
        _check(monkeypatch, model, "If ai.chipdock.FusedMatMul MatMul", p=np.array(branch),
               x=_random(2, 9))  # fmt: skip


def test_a_bad_policy_is_named(monkeypatch):
    monkeypatch.setenv("CHIPDOCK_FUSION", "maybe")
    with pytest.raises(InvalidArgumentError, match="CHIPDOCK_FUSION is 'maybe'"):
        chipdock.load(_model("y = Relu(x)", "float[2] x", "float[2] y"))


@pytest.mark.parametrize("text", ["x", "1.0 + 2", "Add(x, [1])", "other.Add(x)", "f(x)(y)"])
def test_a_text_that_is_no_rule_is_refused(text):
    with pytest.raises(ValueError, match="is no"):
        pattern.parse(text)


def test_the_device_lists_what_rules_make():
    kernels = {entry[:2] for entry in chipdock.device("cpu:0").kernels()}
    assert {("ai.chipdock", "FusedConv"), ("ai.chipdock", "FusedMatMul")} <= kernels

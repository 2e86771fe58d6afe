# SPDX-License-Identifier: Apache-2.0
"""Gradients of operators that have no rule but a body in nodes that have one."""

import numpy as np
import onnx
import pytest
from gradient_support import check_gradients, gradient, normal, training_model
from onnx import TensorProto, helper

import chipdock
from chipdock.errors import UnsupportedError

node = helper.make_node
NEWEST = onnx.defs.onnx_opset_version()
KINDS = pytest.mark.parametrize("kind", [{}, {"dynamic": True}], ids=str)


def normals(names, *shape):
    return {name: normal(*shape, seed=i) for i, name in enumerate(names)}


DOUBLE = {
    "MeanVarianceNormalization": (18, {"x": normal(2, 3, 4, 2)}, {}),
    "Swish": (24, {"x": normal(3, 4)}, {"alpha": 0.7}),
    "Shrink": (18, {"x": normal(3, 4)}, {"lambd": 0.3, "bias": 0.1}),
    "SwiGLU": (NEWEST, normals("ab", 3, 4), {}),
    "Attention": (23, normals("qkv", 1, 2, 3, 4), {"is_causal": 1}),
    "CenterCropPad": (18, {"x": normal(4, 5), "s": np.array([3, 7])}, {}),
    "microsoft FastGelu": (18, {"x": normal(3, 4), "b": normal(4, seed=1)}, {}),
    "microsoft Gelu": (18, {"x": normal(3, 4)}, {}),
    "microsoft BiasGelu": (21, {"x": normal(3, 4), "b": normal(4, seed=1)}, {}),
    "microsoft FusedMatMul": (
        18, {"a": normal(2, 3, 4), "b": normal(2, 5, 4, seed=1)}, {"transB": 1, "alpha": 0.5},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", DOUBLE)
@KINDS
def test_functions(case, kind):
    opset, feeds, attributes = DOUBLE[case]
    domain, _, op = case.rpartition(" ")
    domain = f"com.{domain}" if domain else ""
    nodes = [node(op, [*feeds], ["y"], domain=domain, **attributes)]
    check_gradients(nodes, feeds, opset=opset, tolerance=1e-5, **kind)


SINGLE = {
    "RotaryEmbedding": (
        23,
        {"x": normal(1, 2, 3, 4), "c": normal(5, 2, seed=1), "s": normal(5, 2, seed=2)},
        {"p": np.array([[0, 1, 4]])},
        {},
    ),
    "microsoft SkipLayerNormalization": (
        18,
        {**normals("xs", 2, 3, 8), "g": normal(8, seed=3), "b": normal(8, seed=4)},
        {},
        {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SINGLE)
@KINDS
def test_functions_without_float64(case, kind):
    """Differences of float32 tell a wrong gradient, not its last digits."""
    opset, feeds, others, attributes = SINGLE[case]
    domain, _, op = case.rpartition(" ")
    nodes = [node("Cast", [n], [f"{n}32"], to=TensorProto.FLOAT) for n in feeds]
    names = [f"{n}32" for n in feeds] + [*others]
    domain = f"com.{domain}" if domain else ""
    nodes.append(node(op, names, ["y32"], domain=domain, **attributes))
    nodes.append(node("Cast", ["y32"], ["y"], to=TensorProto.DOUBLE))
    check_gradients(nodes, {**feeds, **others}, opset=opset, tolerance=0.06, **kind)


def test_a_node_without_a_rule_inside_of_a_body_is_named():
    feeds = normals("qkv", 1, 3, 8)
    feeds = {n: a.astype(np.float32) for n, a in feeds.items()}
    heads = {"q_num_heads": 2, "kv_num_heads": 2, "update_rule": "linear"}
    nodes = [node("LinearAttention", [*feeds], ["y"], "slow", **heads), gradient(["q"], "y")]
    with pytest.raises(UnsupportedError, match="leads through Scan node 'slow/"):
        chipdock.load(training_model(nodes, feeds, ["dq"], opset=NEWEST))

# SPDX-License-Identifier: Apache-2.0
"""From ONNX to the executor: dtypes that inference leaves open, domains, versions, captures."""

import numpy as np
import onnx
import pytest
from api_support import BOOL, FLOAT, INT64, model, value
from onnx import helper

import chipdock
from chipdock._onnx_graph import in_order

node = helper.make_node


@pytest.fixture
def no_inference(monkeypatch):
    """onnx's shape inference fails, as it does for models it cannot hold."""

    def fail(*_, **__):
        raise RuntimeError("inference failed")

    monkeypatch.setattr(onnx.shape_inference, "infer_shapes", fail)


def untyped(name):
    return onnx.ValueInfoProto(name=name)


def dtypes(proto):
    return [v.dtype for v in chipdock.load(proto).outputs]


def test_dtypes_without_inference(no_inference):
    proto = model(
        [
            node("Shape", ["x"], ["s"]),
            node("Cast", ["x"], ["h"], to=onnx.TensorProto.FLOAT16),
            node("Equal", ["x", "x"], ["e"]),
            node("ConstantOfShape", ["s"], ["c"]),
            node("ArgMax", ["x"], ["a"], axis=0),
            node("TopK", ["x", "k"], ["v", "i"]),
            node("Where", ["e", "x", "c"], ["w"]),
        ],
        [value("x", shape=["N"])],
        [untyped(n) for n in "shecaviw"],
        {"k": np.int64([1])},
    )
    assert dtypes(proto) == [
        np.int64,
        np.float16,
        np.bool_,
        np.float32,
        np.int64,
        np.float32,
        np.int64,
        np.float32,
    ]


def test_dtypes_of_branches_without_inference(no_inference):
    def branch(constant):
        return helper.make_graph(
            [node("Constant", [], ["r"], value=onnx.numpy_helper.from_array(constant))],
            "b",
            [],
            [untyped("r")],
        )

    proto = model(
        [
            node(
                "If",
                ["c"],
                ["y"],
                then_branch=branch(np.float32([1, 2])),
                else_branch=branch(np.float32([3])),
            )
        ],
        [value("c", BOOL, [])],
        [untyped("y")],
    )
    loaded = chipdock.load(proto)
    assert loaded.outputs[0].dtype == np.float32
    np.testing.assert_array_equal(loaded(np.array(True)).numpy(), [1, 2])
    np.testing.assert_array_equal(loaded(np.array(False)).numpy(), [3])


def test_dtypes_of_loops_without_inference(no_inference):
    body = helper.make_graph(
        [
            node("Identity", ["c"], ["c2"]),
            node("Add", ["v", "v"], ["v2"]),
            node("Cast", ["v2"], ["row"], to=INT64),
        ],
        "body",
        [value("i", INT64, []), value("c", BOOL, []), value("v", FLOAT)],
        [untyped("c2"), untyped("v2"), untyped("row")],
    )
    proto = model(
        [node("Loop", ["n", "", "x"], ["y", "rows"], body=body)],
        [value("n", INT64, []), value("x")],
        [untyped("y"), untyped("rows")],
    )
    assert dtypes(proto) == [np.float32, np.int64]


def test_an_operator_takes_the_version_of_the_models_opset():
    for opset, since in ((9, 1), (11, 11), (13, 13), (21, 13)):
        proto = model(
            [node("Softmax", ["x"], ["y"])],
            [value("x", shape=[2, 3, 4])],
            [value("y")],
            opset=opset,
        )
        loaded = chipdock.load(proto)
        x = np.random.default_rng(0).random((2, 3, 4), np.float32)
        axes = (-1,) if since == 13 else (1, 2)  # until opset 12 all axes from 1 on, as one
        want = np.exp(x) / np.exp(x).sum(axes, keepdims=True)
        np.testing.assert_allclose(loaded(x).numpy(), want, rtol=1e-5)
        assert loaded.explain().nodes[0].since_version == since


def test_ai_onnx_is_the_default_domain():
    proto = model(
        [node("Neg", ["x"], ["y"], domain="ai.onnx")],
        [value("x")],
        [value("y")],
        opsets=[helper.make_opsetid("ai.onnx", 21)],
    )
    np.testing.assert_array_equal(chipdock.load(proto)(np.float32([1])).numpy(), [-1])


@pytest.mark.parametrize(
    ("attributes", "want"),
    [
        ({"value_int": 3}, np.int64(3)),
        ({"value_ints": [1, 2]}, np.int64([1, 2])),
        ({"value_float": 1.5}, np.float32(1.5)),
        ({"value_floats": [1.0, 2.0]}, np.float32([1, 2])),
        ({"value": onnx.numpy_helper.from_array(np.uint8([7]))}, np.uint8([7])),
    ],
    ids=lambda a: next(iter(a)) if isinstance(a, dict) else "",
)
def test_constant_nodes(attributes, want):
    kind = helper.np_dtype_to_tensor_dtype(want.dtype)
    proto = model([node("Constant", [], ["y"], **attributes)], [], [value("y", kind)])
    got = chipdock.load(proto).run({})["y"].numpy()
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)
    assert got.shape == want.shape


@pytest.mark.parametrize("kind", ["sequence", "optional", "string", "sparse"])
def test_what_is_not_supported_yet_says_so(kind):
    tensor = helper.make_tensor_type_proto(FLOAT, ["N"])
    made = {
        "sequence": lambda: model(
            [], [helper.make_value_info("x", helper.make_sequence_type_proto(tensor))], [value("x")]
        ),
        "optional": lambda: model(
            [], [helper.make_value_info("x", helper.make_optional_type_proto(tensor))], [value("x")]
        ),
        "string": lambda: model(
            [node("Identity", ["x"], ["y"])],
            [value("x", onnx.TensorProto.STRING)],
            [value("y", onnx.TensorProto.STRING)],
        ),
        "sparse": lambda: with_sparse(
            model([node("Neg", ["x"], ["y"])], [value("x")], [value("y")])
        ),
    }[kind]()
    with pytest.raises(chipdock.errors.UnsupportedError, match=r"^UNSUPPORTED: "):
        chipdock.load(made)


def with_sparse(proto):
    values = helper.make_tensor("w", FLOAT, [1], [1.0])
    indices = helper.make_tensor("i", INT64, [1], [0])
    proto.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [4]))
    return proto


def test_wrong_shape_advice_in_the_file_is_only_advice():
    proto = model(
        [node("Concat", ["x", "x"], ["a"], axis=0), node("Neg", ["a"], ["y"])],
        [value("x", shape=["N"])],
        [value("y", shape=["N"])],
    )
    np.testing.assert_array_equal(chipdock.load(proto)(np.float32([1])).numpy(), [-1, -1])


@pytest.mark.parametrize("domain", ["", "ai.onnx"])
def test_names_of_inner_values_may_repeat_in_branches(domain):
    def branch(op):
        return helper.make_graph([node(op, ["x"], ["r"], domain=domain)], "b", [], [value("r")])

    proto = model(
        [node("If", ["c"], ["y"], then_branch=branch("Neg"), else_branch=branch("Abs"))],
        [value("c", BOOL, []), value("x", shape=["N"])],
        [value("y")],
    )
    loaded = chipdock.load(proto)
    np.testing.assert_array_equal(loaded(np.array(True), np.float32([-2])).numpy(), [2])
    np.testing.assert_array_equal(loaded(np.array(False), np.float32([-2])).numpy(), [2])


@pytest.mark.slow
def test_a_deep_graph_is_no_recursion():
    nodes = [node("Neg", [f"t{i}"], [f"t{i + 1}"]) for i in range(3000)]
    proto = model(nodes[::-1], [value("t0", shape=[1])], [value("t3000", shape=[1])])
    np.testing.assert_array_equal(chipdock.load(proto)(np.float32([1])).numpy(), [1])


def test_order_keeps_what_is_in_order():
    proto = model(
        [node("Neg", ["x"], ["a"]), node("Exp", ["x"], ["b"]), node("Add", ["b", "a"], ["y"])],
        [value("x")],
        [value("y")],
    )
    assert [n.op_type for n in in_order(proto.graph, {"x"})] == ["Neg", "Exp", "Add"]

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


def sparse(values, indices, dims):
    return helper.make_sparse_tensor(
        helper.make_tensor("w", FLOAT, [len(values)], values),
        helper.make_tensor("i", INT64, np.shape(indices), np.ravel(indices)),
        dims,
    )


@pytest.mark.parametrize("indices", [[1, 5], [[0, 1], [1, 2]]], ids=["linear", "coordinates"])
def test_sparse_weights_are_made_dense(indices):
    proto = model([node("Add", ["x", "w"], ["y"])], [value("x")], [value("y")])
    proto.graph.sparse_initializer.append(sparse([1.5, 2.5], indices, [2, 3]))
    got = chipdock.load(proto)(np.zeros((2, 3), np.float32)).numpy()
    np.testing.assert_array_equal(got, [[0, 1.5, 0], [0, 0, 2.5]])


def test_a_sparse_constant_is_made_dense():
    constant = node("Constant", [], ["y"], sparse_value=sparse([3.0], [2], [4]))
    proto = model([constant], [], [value("y")])
    np.testing.assert_array_equal(chipdock.load(proto).run({})["y"].numpy(), [0, 0, 3, 0])


@pytest.mark.parametrize("indices", [[4], [-1], [[0, 4]], [[0]], [0, 1]])
def test_wrong_sparse_indices_are_refused(indices):
    proto = model([node("Add", ["x", "w"], ["y"])], [value("x")], [value("y")])
    proto.graph.sparse_initializer.append(sparse([1.0], indices, [1, 4]))
    with pytest.raises(chipdock.errors.InvalidArgumentError, match="sparse tensor 'w'"):
        chipdock.load(proto)


def test_a_declared_output_dtype_that_is_not_computed_is_refused():
    proto = model(
        [node("Cast", ["x"], ["y"], to=INT64, name="c")], [value("x")], [value("y", FLOAT)]
    )
    with pytest.raises(
        chipdock.errors.InvalidArgumentError, match=r"output 'y'.*declared float.*computes int64"
    ):
        chipdock.load(proto)


def test_branches_of_different_dtypes_are_refused():
    def branch(to):
        nodes = [node("Cast", ["x"], ["r"], to=to)]
        return helper.make_graph(nodes, "b", [], [value("r", to)])

    proto = model(
        [node("If", ["c"], ["y"], then_branch=branch(FLOAT), else_branch=branch(INT64))],
        [value("c", BOOL, []), value("x", shape=["N"])],
        [onnx.ValueInfoProto(name="y")],
    )
    with pytest.raises(
        chipdock.errors.InvalidArgumentError, match=r"'y' of If.*float in one branch, int64 in"
    ):
        chipdock.load(proto)


def test_one_symbol_with_two_extents_is_refused_with_both_inputs():
    proto = model(
        [node("MatMul", ["a", "b"], ["y"])],
        [value("a", shape=["N", 3]), value("b", shape=[3, "N"])],
        [value("y")],
    )
    loaded = chipdock.load(proto)
    assert loaded(np.ones((2, 3), np.float32), np.ones((3, 2), np.float32)).shape == (2, 2)
    with pytest.raises(
        chipdock.errors.InvalidArgumentError,
        match=r"dim 'N' is 2 on axis 0 of input 'a' and 4 on axis 1 of input 'b'",
    ):
        loaded(np.ones((2, 3), np.float32), np.ones((3, 4), np.float32))


@pytest.mark.parametrize("unknown", ["?", "-1", "None", "unk 1"])
def test_what_exporters_write_for_unknown_dims_is_no_name(unknown):
    proto = model(
        [node("MatMul", ["a", "b"], ["y"])],
        [value("a", shape=[unknown, 3]), value("b", shape=[3, unknown])],
        [value("y")],
    )
    result = chipdock.load(proto)(np.ones((2, 3), np.float32), np.ones((3, 4), np.float32))
    assert result.shape == (2, 4)


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
    assert [n.op_type for n in in_order(proto.graph.node, {"x"})] == ["Neg", "Exp", "Add"]


@pytest.mark.parametrize(
    ("op", "inputs", "want"),
    [
        ("Multinomial", [np.float32([[0.5, 0.5]])], np.int32),
        ("QuantizeLinear", [np.float32([1]), np.float32(1)], np.uint8),
        ("DequantizeLinear", [np.int8([1]), np.float16(1)], np.float16),
        ("MelWeightMatrix", [np.int64(2), np.int64(8), np.int64(8), np.float64(1), np.float64(3)],
         np.float32),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)  # fmt: skip
def test_dtypes_of_operators_that_compute_another_than_they_read(no_inference, op, inputs, want):
    names = [f"x{i}" for i in range(len(inputs))]
    kinds = [helper.np_dtype_to_tensor_dtype(a.dtype) for a in inputs]
    values = [value(n, k, a.shape) for n, k, a in zip(names, kinds, inputs, strict=True)]
    proto = model([node(op, names, ["y"])], values, [untyped("y")])
    assert dtypes(proto) == [want]
    assert chipdock.load(proto)(*inputs).dtype == want

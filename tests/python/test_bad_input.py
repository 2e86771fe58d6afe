# SPDX-License-Identifier: Apache-2.0
"""Bad models and bad inputs: a clear error each, and nothing is lost by it."""

import contextlib

import numpy as np
import onnx
import pytest
from api_support import BOOL, FLOAT, INT64, mlp, model, value
from bad_input_support import invalid, refuses
from onnx import helper

import chipdock

node = helper.make_node


# Graphs


def test_unknown_operator_and_domain():
    text = refuses(
        model([node("Rellu", ["x"], ["y"], name="n7")], [value("x")], [value("y")]),
        "operator Rellu of node 'n7'",
        chipdock.errors.UnsupportedError,
    )
    assert "opset 21" in text
    refuses(
        model([node("Neg", ["x"], ["y"], domain="acme")], [value("x")], [value("y")]),
        "domain 'acme', which the model's opset_import does not list",
    )
    refuses(
        model(
            [node("Frob", ["x"], ["y"], domain="acme")],
            [value("x")],
            [value("y")],
            opsets=[helper.make_opsetid("", 21), helper.make_opsetid("acme", 1)],
        ),
        r"acme\.Frob",
        chipdock.errors.UnsupportedError,
    )
    for fallback in ("allow", "warn"):
        with pytest.raises(chipdock.errors.UnsupportedError, match="Rellu"):
            chipdock.load(
                model([node("Rellu", ["x"], ["y"])], [value("x")], [value("y")]), fallback=fallback
            )


def test_an_opset_of_the_future():
    refuses(
        model([node("Neg", ["x"], ["y"])], [value("x")], [value("y")], opset=999),
        "opset 999",
        chipdock.errors.UnsupportedError,
    )


@pytest.mark.parametrize(
    ("nodes", "match"),
    [
        ([("Neg", "b", "a"), ("Neg", "a", "b"), ("Neg", "x", "y")], "cycle"),
        ([("Neg", "y", "y")], "cycle"),
        ([("Neg", "nothing", "y")], "reads 'nothing', which nothing computes"),
        ([("Neg", "x", "y"), ("Exp", "x", "y")], "'y' is computed twice"),
        ([("Neg", "x", "x"), ("Exp", "x", "y")], "'x' is computed twice"),
        ([("Neg", "x", "w"), ("Exp", "x", "y")], "'w' is computed twice"),
        ([("Neg", "x", "z")], "output 'y' is computed by no node"),
        ([("Neg", "x,x", "y")], "has 2 inputs, 1 to 1 are allowed"),
        ([("Add", "x", "y")], "has 1 inputs, 2 to 2"),
        ([("Neg", "", "y")], "Neg"),
        ([("Neg", "x", "y,z")], "outputs"),
        ([("Cast", "x", "y")], "lacks the attribute 'to'"),
    ],
)
def test_malformed_graphs(nodes, match):
    proto = model(
        [node(op, i.split(","), o.split(",")) for op, i, o in nodes],
        [value("x")],
        [value("y")],
        {"w": np.float32([1])},
    )
    refuses(proto, match)


def test_duplicate_names_of_inputs_and_initializers():
    twice = model([node("Neg", ["x"], ["y"])], [value("x"), value("x")], [value("y")])
    refuses(twice, "input 'x' is declared twice")
    weights = model(
        [node("Add", ["x", "w"], ["y"])], [value("x")], [value("y")], {"w": np.float32([1])}
    )
    weights.graph.initializer.append(onnx.numpy_helper.from_array(np.float32([2]), "w"))
    refuses(weights, "'w' is declared twice")
    weights.graph.initializer.pop()
    weights.graph.input.extend([value("w", shape=[1])] * 2)
    refuses(weights, "input 'w' is declared twice")


@pytest.mark.parametrize(
    ("declared", "match"),
    [
        (value("w", INT64, [3]), "is declared int64, its initializer is float; correct"),
        (
            value("w", shape=[1]),
            r"is declared with shape \[1\], its initializer has \[3\]; correct",
        ),
        (value("w", shape=[1, "n"]), r"with shape \[1, 'n'\], its initializer has \[3\]"),
        (value("w", shape=["n"]), None),
        (value("w"), None),
        (onnx.ValueInfoProto(name="w"), None),
    ],
)
@pytest.mark.parametrize("ir_version", [3, 10])
def test_an_input_that_is_an_initializer_is_declared_as_that(declared, match, ir_version):
    constants = {"w": np.float32([1, 2, 3])}
    proto = model(
        [node("Add", ["x", "w"], ["y"])], [value("x"), declared], [value("y")], constants, opset=8
    )
    proto.ir_version = ir_version
    if match is not None:
        refuses(proto, match)
    else:
        loaded = chipdock.load(proto)
        assert loaded.run({"x": np.float32([1])})["y"].numpy().tolist() == [2, 3, 4]


@pytest.mark.parametrize(
    ("name", "bits"), [("UINT4", 4), ("FLOAT4E2M1", 4), ("UINT2", 2), ("FLOAT6E2M3", 6)]
)
@pytest.mark.parametrize("count", [0, 1, 4, 5])
def test_elements_below_a_byte_fill_their_bytes(name, bits, count):
    """Too many bytes are as wrong as too few: the shape or the dtype is another."""
    right = (count * bits + 7) // 8
    for size in (right - 1, right, right + 1):
        tensor = onnx.TensorProto(
            name="w", data_type=getattr(onnx.TensorProto, name), dims=[count],
            raw_data=bytes(max(size, 0)),
        )  # fmt: skip
        proto = model([node("Cast", ["w"], ["y"], to=1)], [], [value("y")], opset=28)
        proto.graph.initializer.append(tensor)
        if size == max(right, 0) or size < 0:
            assert chipdock.load(proto).run({})["y"].shape == (count,)
        else:
            refuses(proto, f"needs {right} bytes, the model has {size}")


def test_a_cycle_through_a_branch():
    branch = helper.make_graph([node("Neg", ["y"], ["r"])], "b", [], [value("r")])
    proto = model(
        [
            node("If", ["c"], ["z"], then_branch=branch, else_branch=branch),
            node("Neg", ["z"], ["y"]),
        ],
        [value("c", BOOL, [])],
        [value("y")],
    )
    refuses(proto, "cycle")


def test_no_graph_no_outputs():
    refuses(onnx.ModelProto(), "no graph or no opset_import")
    refuses(model([], [value("x")], []), "no outputs")


@pytest.mark.parametrize(
    ("name", "attributes", "match"),
    [
        ("Softmax", {"axis": "one"}, "axis"),
        ("Transpose", {"perm": [0, 0]}, "Transpose|perm"),
        ("Transpose", {"perm": [0, 1, 2]}, "Transpose|perm"),
        ("Concat", {"axis": 9}, "Concat|axis"),
        ("Softmax", {"axis": 5}, "Softmax|axis"),
        ("Cast", {"to": 77}, "77"),
        ("LeakyRelu", {"alpha": [1, 2]}, "alpha"),
    ],
)
def test_bad_attributes(name, attributes, match):
    proto = model([node(name, ["x"], ["y"], **attributes)], [value("x")], [value("y")])
    with pytest.raises(chipdock.ChipdockError, match=match):
        chipdock.load(proto)(np.zeros((2, 3), np.float32))


def test_weights_that_do_not_fill_their_shape():
    proto = mlp()
    proto.graph.initializer[0].raw_data = b"\0" * 7
    refuses(proto, "'w1' of shape .* needs 512 bytes, the model has 7")
    proto.graph.initializer[0].dims[0] = -3
    refuses(proto, "negative extent")
    proto.graph.initializer[0].dims[0] = 2**62
    refuses(proto, "needs")
    proto.graph.initializer[0].data_type = 99
    refuses(proto, "data_type 99")


def test_weights_of_typed_fields_that_do_not_fill_their_shape():
    proto = model([node("Add", ["x", "w"], ["y"])], [value("x")], [value("y")])
    proto.graph.initializer.append(
        onnx.TensorProto(name="w", data_type=FLOAT, dims=[3], float_data=[1, 2])
    )
    refuses(proto, "'w' cannot be read")


# Inputs of a run


@pytest.fixture(scope="module")
def loaded():
    return chipdock.load(mlp())


@pytest.mark.parametrize(
    ("x", "match"),
    [
        (np.zeros((2, 8)), "input 'x' is float64, the model wants float32"),
        (np.zeros((2, 8), np.int32), "int32"),
        (np.zeros((2, 8), ">f4"), "input 'x'"),
        (np.zeros((2, 7), np.float32), r"input 'x' has shape \[2,7\], the model wants \[N,8\]"),
        (np.zeros(8, np.float32), r"has shape \[8\]"),
        (np.zeros((1, 2, 8), np.float32), "has shape"),
        (np.float32(1), r"has shape \[\]"),
        ("text", "input 'x'"),
        (None, "input 'x'"),
        ([[1, 2], [3]], "input 'x'"),
        ({}, "input 'x'"),
        (np.array([["a"] * 8]), "input 'x'"),
        (object(), "input 'x'"),
    ],
    ids=lambda v: (getattr(v, "shape", None) and f"{v.dtype}{v.shape}") or type(v).__name__,
)
def test_wrong_inputs(loaded, x, match):
    with pytest.raises(invalid, match=match):
        loaded.run({"x": x})
    assert loaded.run({"x": np.zeros((2, 8), np.float32)})["y"].shape == (2, 4)


def test_missing_and_unknown_names(loaded):
    x = np.zeros((1, 8), np.float32)
    with pytest.raises(invalid, match=r"missing: \['x'\], unknown: \[\]"):
        loaded.run({})
    with pytest.raises(invalid, match=r"missing: \['x'\], unknown: \['X'\]"):
        loaded.run({"X": x})
    with pytest.raises(invalid, match=r"missing: \[\], unknown: \['z'\]"):
        loaded.run({"x": x, "z": x})
    for bad in ([x], x, "x", None):
        with pytest.raises(invalid, match="takes a mapping"):
            loaded.run(bad)


def test_shapes_that_do_not_fit_name_the_node():
    proto = model(
        [node("Add", ["a", "b"], ["y"], name="sum")], [value("a"), value("b")], [value("y")]
    )
    loaded = chipdock.load(proto)
    for a, b in (((2,), (3,)), ((2, 3), (3, 2)), ((0,), (2,))):
        with pytest.raises(invalid, match="Add node 'sum'"):
            loaded(np.zeros(a, np.float32), np.zeros(b, np.float32))
    assert loaded(np.float32([1]), np.float32([2])).numpy() == 3


def test_shape_overflow():
    proto = model(
        [node("Expand", ["x", "s"], ["y"], name="grow")],
        [value("x"), value("s", INT64, ["R"])],
        [value("y")],
    )
    loaded = chipdock.load(proto)
    for shape in ([2**62, 4], [2**40, 2**40], [2**31, 2**31, 2**31], [2**63 - 1]):
        with pytest.raises((invalid, chipdock.errors.OutOfMemoryError)):
            loaded(np.float32([1]), np.int64(shape))
    with pytest.raises(invalid):
        loaded(np.float32([1]), np.int64([-5]))
    np.testing.assert_array_equal(loaded(np.float32([1]), np.int64([2])).numpy(), [1, 1])


def test_reshape_to_impossible_shapes():
    proto = model(
        [node("Reshape", ["x", "s"], ["y"])], [value("x"), value("s", INT64, ["R"])], [value("y")]
    )
    loaded = chipdock.load(proto)
    x = np.zeros(6, np.float32)
    for shape in ([4], [-1, 4], [-1, -1], [-2, 3], [2**62, 2**62]):
        with pytest.raises(invalid, match="Reshape"):
            loaded(x, np.int64(shape))
    assert loaded(x, np.int64([-1, 2])).shape == (3, 2)


def test_indices_outside_are_refused():
    proto = model(
        [node("Gather", ["x", "i"], ["y"])], [value("x"), value("i", INT64)], [value("y")]
    )
    loaded = chipdock.load(proto)
    for bad in (3, -4, 2**40):
        with pytest.raises(chipdock.ChipdockError, match="Gather"):
            loaded(np.zeros(3, np.float32), np.int64([bad]))
    np.testing.assert_array_equal(loaded(np.float32([1, 2, 3]), np.int64([-1])).numpy(), [3])


def test_division_by_zero_of_integers_is_no_crash():
    proto = model(
        [node("Div", ["x", "z"], ["y"])],
        [value("x", INT64), value("z", INT64)],
        [value("y", INT64)],
    )
    loaded = chipdock.load(proto)
    with contextlib.suppress(chipdock.ChipdockError):
        loaded(np.int64([1, -(2**63)]), np.int64([0, -1]))
    assert loaded(np.int64([6]), np.int64([2])).numpy() == 3


@pytest.mark.parametrize(
    "bad",
    [None, "a", b"a", ["a"], [None], object(), {}, np.array(["a"]), np.array([None])],
    ids=repr,
)
def test_what_is_no_number_is_not_sent_to_astype(bad):
    loaded = chipdock.load(model([node("Neg", ["x"], ["y"])], [value("x")], [value("y")]))
    with pytest.raises(
        invalid, match=r"input 'x' is .*, the model wants an array of float32"
    ) as got:
        loaded.run({"x": bad})
    assert "astype" not in str(got.value)
    with pytest.raises(invalid, match=r"is float64, the model wants float32; convert .*astype"):
        loaded.run({"x": np.float64([1])})


def test_a_node_without_a_name_is_called_by_its_output():
    def text(name):
        return refuses(
            model([node("Add", ["x", "q"], ["y"], name=name)], [value("x")], [value("y")]), "'q'"
        )

    assert "Add node (of output 'y') reads 'q'" in text("")
    assert "Add node 'n1' reads 'q'" in text("n1")
    unknown = model([node("Rellu", ["x"], ["y"])], [value("x")], [value("y")])
    refuses(unknown, r"Rellu of node \(of output 'y'\)", chipdock.errors.UnsupportedError)

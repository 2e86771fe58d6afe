# SPDX-License-Identifier: Apache-2.0
"""Tensors of strings: in and out, moved, compared, cast, and the operators on text."""

import ml_dtypes
import numpy as np
import onnx
import pytest
from api_support import BOOL, FLOAT, INT64, model, value
from onnx import helper

import chipdock

STRING = onnx.TensorProto.STRING
node = helper.make_node
WORDS = np.array([["b", "a", ""], ["ä", "b", "zz"]], object)


def text(name, shape=None):
    return value(name, STRING, shape)


def run(nodes, feeds, outputs, constants=None, inputs=None):
    kinds = inputs or [
        value(k, STRING if a.dtype == object else helper.np_dtype_to_tensor_dtype(a.dtype))
        for k, a in feeds.items()
    ]
    loaded = chipdock.load(model(nodes, kinds, outputs, constants))
    return loaded.run(feeds)


def test_strings_go_in_and_come_out_unchanged():
    odd = np.array(["", "a\0b", "日本", "\udcff raw"], object)
    got = run([node("Identity", ["x"], ["y"])], {"x": odd}, [text("y")])["y"]
    assert got.dtype == object
    assert got.tolist() == odd.tolist()
    assert chipdock.load(model([node("Identity", ["x"], ["y"])], [text("x")], [text("y")])).run(
        {"x": ["a", b"b"]}
    )["y"].tolist() == ["a", "b"]


@pytest.mark.parametrize("given", [np.int64([1]), np.array([1], object), 3])
def test_what_is_no_string_is_refused(given):
    proto = model([node("Identity", ["x"], ["y"])], [text("x")], [text("y")])
    with pytest.raises(chipdock.errors.InvalidArgumentError, match=r"str"):
        chipdock.load(proto).run({"x": given})


def test_a_declared_shape_holds_for_strings():
    proto = model([node("Identity", ["x"], ["y"])], [text("x", [2])], [text("y")])
    with pytest.raises(chipdock.errors.InvalidArgumentError, match=r"'x' has shape \[3\]"):
        chipdock.load(proto).run({"x": np.array(["a", "b", "c"], object)})


@pytest.mark.parametrize(
    ("operator", "more", "attributes", "want"),
    [
        ("Transpose", [], {}, WORDS.T),
        ("Reshape", [np.int64([3, 2])], {}, WORDS.reshape(3, 2)),
        ("Unsqueeze", [np.int64([0])], {}, WORDS[None]),
        ("Gather", [np.int64([1, 0])], {}, WORDS[[1, 0]]),
        ("Slice", [np.int64([1]), np.int64([3]), np.int64([1])], {}, WORDS[:, 1:3]),
        ("Tile", [np.int64([1, 2])], {}, np.tile(WORDS, (1, 2))),
        ("Expand", [np.int64([2, 2, 3])], {}, np.broadcast_to(WORDS, (2, 2, 3))),
        ("Pad", [np.int64([0, 1, 0, 0])], {}, np.array([["", *r] for r in WORDS], object)),
        ("Concat", [WORDS], {"axis": 0}, np.concatenate([WORDS, WORDS])),
        ("Flatten", [], {"axis": 0}, WORDS.reshape(1, 6)),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_operators_that_move_elements_move_strings(operator, more, attributes, want):
    feeds = {"x": WORDS} | {f"a{i}": a for i, a in enumerate(more)}
    got = run([node(operator, list(feeds), ["y"], **attributes)], feeds, [text("y")])["y"]
    assert got.tolist() == want.tolist()


def sample(operator, more, **attributes):
    feeds = {"x": WORDS[None, None]} | {f"a{i}": a for i, a in enumerate(more)}
    inputs = ["x", "", "a0"] if operator == "Resize" else list(feeds)
    return run([node(operator, inputs, ["y"], **attributes)], feeds, [text("y")])["y"]


def test_the_nearest_string_is_taken():
    double = np.float32([1, 1, 2, 1])
    got = sample("Resize", [double], mode="nearest", coordinate_transformation_mode="asymmetric",
                 nearest_mode="floor")  # fmt: skip
    assert got.tolist() == [[np.repeat(WORDS, 2, 0).tolist()]]
    # The middle of the right column, the lower left corner, and a place outside.
    grid = np.float32([[[[1, -1], [-1, 1], [3, 1]]]])
    got = sample("GridSample", [grid], mode="nearest", align_corners=1)
    assert got.tolist() == [[[["", "ä", ""]]]]
    got = sample("GridSample", [grid], mode="nearest", align_corners=1, padding_mode="border")
    assert got.tolist() == [[[["", "ä", "zz"]]]]


@pytest.mark.parametrize(
    ("operator", "more", "attributes", "match"),
    [
        ("Resize", [np.float32([1, 1, 2, 1])], {"mode": "linear"}, "mode 'linear' weighs"),
        ("GridSample", [np.zeros((1, 1, 1, 2), np.float32)], {}, "mode 'linear' weighs"),
        ("Resize", [np.float32([1, 1, 2, 1])], {"extrapolation_value": 1.0}, "which is written"),
    ],
)
def test_strings_are_not_weighed(operator, more, attributes, match):
    with pytest.raises(chipdock.errors.InvalidArgumentError, match=match):
        sample(operator, more, **attributes)


def test_split_and_where_and_equal():
    nodes = [
        node("Split", ["x"], ["a", "b"], axis=0, num_outputs=2),
        node("Equal", ["a", "b"], ["same"]),
        node("Where", ["same", "a", "k"], ["y"]),
        node("Shape", ["y"], ["n"]),
    ]
    got = run(
        nodes,
        {"x": np.array([["p", "q"], ["p", "r"]], object)},
        [text("y"), value("same", BOOL), value("n", INT64)],
        {"k": np.array(["other"], object)},
    )
    assert got["same"].numpy().tolist() == [[True, False]]
    assert got["y"].tolist() == [["p", "other"]]
    assert got["n"].numpy().tolist() == [1, 2]


def test_unique_sorts_strings():
    got = run(
        [node("Unique", ["x"], ["y", "", "i"], sorted=1)],
        {"x": np.array(["b", "a", "b"], object)},
        [text("y"), value("i", INT64)],
    )
    assert got["y"].tolist() == ["a", "b"]
    assert got["i"].numpy().tolist() == [1, 0, 1]


def test_a_constant_of_strings_is_an_output():
    nodes = [
        node("Constant", [], ["a"], value_strings=["x", "y"]),
        node("Constant", [], ["b"], value_string="z"),
    ]
    got = run(nodes, {}, [text("a"), text("b")])
    assert got["a"].tolist() == ["x", "y"]
    assert (got["b"].shape, got["b"].item()) == ((), "z")


@pytest.mark.parametrize(
    ("array", "want"),
    [
        (np.float32([0.1, 1, -2.5e20, 1e-5, np.inf, np.nan]),
         ["0.1", "1.0", "-2.5e+20", "1e-05", "inf", "nan"]),
        (np.float64([1 / 3, 1e15, 1e16]), ["0.3333333333333333", "1000000000000000.0", "1e+16"]),
        (np.int8([-128, 7]), ["-128", "7"]),
        (np.uint64([2**64 - 1]), ["18446744073709551615"]),
        (np.array([True, False]), ["True", "False"]),
    ],
    ids=lambda v: v.dtype.name if isinstance(v, np.ndarray) else "",
)  # fmt: skip
def test_numbers_become_text_as_numpy_writes_it_and_come_back(array, want):
    kind = helper.np_dtype_to_tensor_dtype(array.dtype)
    got = run([node("Cast", ["x"], ["y"], to=STRING)], {"x": array}, [text("y")])["y"]
    assert got.tolist() == want
    if array.dtype != np.bool_:
        back = run([node("Cast", ["x"], ["y"], to=kind)], {"x": got}, [value("y", kind)])["y"]
        np.testing.assert_array_equal(back.numpy(), array)


@pytest.mark.parametrize("op", ["RandomNormalLike", "RandomUniformLike"])
def test_random_numbers_have_the_shape_of_strings(op):
    nodes = [node(op, ["x"], ["y"], dtype=FLOAT), node(op, ["n"], ["z"], dtype=FLOAT)]
    inputs = [text("x", ["a", "b"]), value("n", shape=["a", "b"])]
    loaded = chipdock.load(model(nodes, inputs, [value("y"), value("z")]))
    feeds = {"x": WORDS, "n": np.zeros((2, 3), np.float32)}
    first, again, other = (loaded.run(feeds, seed=s)["y"].numpy() for s in (5, 5, 6))
    assert first.shape == (2, 3)
    assert len(np.unique(first)) == 6
    np.testing.assert_array_equal(first, again)
    assert (first != other).all()


def test_random_numbers_like_strings_need_a_dtype():
    proto = model([node("RandomNormalLike", ["x"], ["y"], name="r")], [text("x")], [value("y")])
    with pytest.raises(chipdock.errors.InvalidArgumentError, match="node 'r' of strings needs the"):
        chipdock.load(proto)


def test_random_numbers_like_strings_leave_every_name_to_the_model():
    nodes = [
        node("Neg", ["y/shape"], ["y/zeros"]), node("RandomNormalLike", ["x"], ["y"], dtype=FLOAT),
        node("Add", ["y", "y/zeros"], ["a"]), node("Add", ["a", "y/shape"], ["z"]),
    ]  # fmt: skip
    outputs = [value("y"), value("z")]
    loaded = chipdock.load(model(nodes, [text("x"), value("y/shape")], outputs))
    got = loaded.run({"x": WORDS, "y/shape": np.ones((2, 3), np.float32)})
    np.testing.assert_allclose(got["z"].numpy(), got["y"].numpy(), atol=1e-6)
    nobody = model([node("RandomNormalLike", ["x"], [], dtype=FLOAT)], [text("x")], [text("x")])
    assert chipdock.load(nobody).run({"x": WORDS})["x"].tolist() == WORDS.tolist()


def test_random_numbers_like_strings_before_constant_of_shape_are_refused():
    nodes = [node("RandomNormalLike", ["x"], ["y"], dtype=FLOAT)]
    proto = model(nodes, [text("x")], [value("y")], opset=8)
    with pytest.raises(chipdock.errors.UnsupportedError, match="of strings is done from opset 9"):
        chipdock.load(proto)


def test_numbers_of_six_bits_become_text_and_come_back():
    x = np.array([0.125, -7.5]).astype(ml_dtypes.float6_e2m3fn)
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    nodes = [node("Cast", ["x"], ["t"], to=STRING), node("Cast", ["t"], ["y"], to=kind)]
    proto = model(nodes, [value("x", kind)], [text("t"), value("y", kind)], opset=28)
    got = chipdock.load(proto).run({"x": x})
    assert got["t"].tolist() == ["0.125", "-7.5"]
    assert got["y"].numpy().tobytes() == x.tobytes()


@pytest.mark.parametrize(("word", "to"), [("abc", FLOAT), ("1.5", INT64), ("", FLOAT)])
def test_text_that_is_no_number_is_refused(word, to):
    with pytest.raises(chipdock.errors.InvalidArgumentError, match=f"'{word}' is not"):
        run(
            [node("Cast", ["x"], ["y"], to=to)],
            {"x": np.array([word], object)},
            [value("y", to)],
        )


def test_concatenation_broadcasts():
    feeds = {"a": WORDS, "b": np.array(["!"], object)}
    got = run([node("StringConcat", ["a", "b"], ["y"])], feeds, [text("y")])["y"]
    assert got.tolist() == (WORDS + "!").tolist()


@pytest.mark.parametrize(
    ("attributes", "want"),
    [
        ({}, [["a", "b", "c"], ["d", "", ""]]),
        ({"maxsplit": 1}, [["a", "b  c"], ["d", ""]]),
        ({"delimiter": " "}, [["", "a", "b", "", "c", ""], ["d", "", "", "", "", ""]]),
    ],
    ids=["blanks", "most", "delimiter"],
)
def test_split_pads_to_the_longest(attributes, want):
    got = run(
        [node("StringSplit", ["x"], ["y", "n"], **attributes)],
        {"x": np.array([" a b  c ", "d"], object)},
        [text("y"), value("n", INT64)],
    )
    assert got["y"].tolist() == want
    assert got["n"].numpy().tolist() == [sum(w != "" for w in want[0]) if not attributes else
                                         len(want[0]), 1]  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "words", "want"),
    [
        (r"\w+@\w+\.\w{2,}", ["me@ho.me", "me@ho", "x me@ho.me"], [True, False, False]),
        (r"(?i)ab.", ["ABé", "ab"], [True, False]),
        (r"\A(?P<y>\d{4})\z", ["2026", "20261"], [True, False]),
        (r"(a|aa)*b", ["a" * 2000, "a" * 2000 + "b"], [False, True]),
    ],
)
def test_a_pattern_matches_whole_strings_without_backtracking(pattern, words, want):
    got = run(
        [node("RegexFullMatch", ["x"], ["y"], pattern=pattern)],
        {"x": np.array(words, object)},
        [value("y", BOOL)],
    )
    assert got["y"].numpy().tolist() == want


def test_a_wrong_pattern_is_named():
    with pytest.raises(chipdock.errors.InvalidArgumentError, match=r"pattern '\(' cannot be read"):
        run(
            [node("RegexFullMatch", ["x"], ["y"], pattern="(")],
            {"x": np.array(["a"], object)},
            [value("y", BOOL)],
        )


def test_normalizer_drops_words_and_changes_case_beyond_ascii():
    got = run(
        [
            node(
                "StringNormalizer",
                ["x"],
                ["y"],
                case_change_action="UPPER",
                stopwords=["THE"],
                is_case_sensitive=0,
            )
        ],
        {"x": np.array(["the", "straße", "é"], object)},
        [text("y")],
    )["y"]
    assert got.tolist() == ["STRAßE", "É"]


def test_a_loop_stacks_rows_of_strings():
    body = helper.make_graph(
        [
            node("Identity", ["keep"], ["keep2"]),
            node("StringConcat", ["s", "x"], ["s2"]),
            node("Identity", ["s2"], ["row"]),
        ],
        "body",
        [value("i", INT64, []), value("keep", BOOL, []), text("s")],
        [value("keep2", BOOL, []), text("s2"), text("row")],
    )
    proto = model(
        [node("Loop", ["n", "", "x"], ["last", "rows"], body=body)],
        [value("n", INT64, []), text("x", [1])],
        [text("last"), text("rows")],
    )
    got = chipdock.load(proto).run({"n": np.int64(2), "x": np.array(["a"], object)})
    assert got["last"].tolist() == ["aaa"]
    assert got["rows"].tolist() == [["aa"], ["aaa"]]


def test_an_operator_without_strings_says_so():
    proto = model([node("TopK", ["x", "k"], ["v", "i"])], [text("x"), value("k", INT64, [1])],
                  [text("v"), value("i", INT64)])  # fmt: skip
    with pytest.raises(chipdock.errors.InvalidArgumentError, match="is string, allowed are"):
        chipdock.load(proto)


LONE = "\ud800"


@pytest.mark.parametrize(
    "call",
    [
        lambda: chipdock.device("cpu:0", threads=LONE),
        lambda: chipdock.device("cpu:0", **{LONE: "1"}),
        lambda: chipdock.device(LONE),
        lambda: chipdock.load(LONE),
        lambda: chipdock.open_plugin(LONE),
        lambda: chipdock.open_plugin("x.so", layers=LONE),
        lambda: chipdock.open_plugin("x.so", a=LONE),
        lambda: chipdock.run_op("Relu", np.float32([1]), domain=LONE),
        lambda: chipdock.run_op("StringConcat", LONE, "a"),
        lambda: run([node("Identity", ["x"], ["y"])], {"x": np.array([LONE], object)}, [text("y")]),
    ],
)
def test_a_lone_surrogate_is_refused(call):
    """It is a str of Python, but no text: UTF-8 has nothing for it."""
    with pytest.raises(chipdock.errors.InvalidArgumentError) as caught:
        call()
    assert str(caught.value).startswith("INVALID_ARGUMENT: ")
    assert "ud800" in str(caught.value)

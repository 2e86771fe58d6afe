# SPDX-License-Identifier: Apache-2.0
"""Inputs, preprocessing and answers; with onnxruntime every first model gives the right ones."""

import os
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

import chipdock.models.__main__ as command
from chipdock.models import cases, check_case, decode, entries, entry, inputs, wordpiece
from chipdock.models.check import reference_runner
from chipdock.models.demo import Record, run_model
from chipdock.models.fetch import OFFLINE_VARIABLE, ModelUnavailable, fetch

FIRST = entries(first_only=True)


def _file(item):
    try:
        return fetch(item)
    except ModelUnavailable as error:
        if os.environ.get(OFFLINE_VARIABLE):
            pytest.skip(f"NOT_RUN: {error}")
        raise


def test_text_is_read_with_repeats_merged_and_blanks_dropped():
    steps = [0, 1, 1, 0, 1, 2, 2, 3, 1, 0]  # blank, a, a, blank, a, b, b, space, a, blank
    scores = np.eye(4, dtype=np.float32)[steps][None]
    assert decode.read_text(scores, ["a", "b"]) == ["aab a"]


def test_boxes_join_touching_runs_and_drop_weak_and_tiny_ones():
    chance = np.zeros((40, 60), np.float32)
    chance[5:15, 10:50] = 0.9
    chance[15:18, 50:55] = 0.9  # touches by a corner
    chance[25:35, 10:20] = 0.4  # text, but too weak
    chance[30:32, 40:44] = 0.9  # too low
    assert decode.text_boxes(chance) == [(10, 5, 55, 18)]


def test_closest_finds_partners():
    vectors = np.array([[1, 0], [0, 1], [1, 0.1], [0.1, 1]], np.float32)
    assert decode.closest(vectors) == [2, 3, 0, 1]


def test_drawn_lines_have_ink_only_inside_their_boxes():
    page = inputs.draw_page(["alpha", "beta", "gamma"], 320, 160, 20)
    ink = np.asarray(page.image.convert("L")) < 128
    for left, top, right, bottom in page.boxes:
        assert ink[top:bottom, left:right].any()
        ink[top:bottom, left:right] = False
    assert not ink.any()


def test_file_features_strip_pad_and_take_both_ends():
    short = inputs.file_features(b"  ab\n")
    assert short[:3].tolist() == [97, 98, 256]
    assert short[-3:].tolist() == [256, 97, 98]
    long = inputs.file_features(b"\n" + b"x" * 5000 + b"y" * 2000)
    assert set(long[:1024]) == {ord("x")}
    assert set(long[1024:]) == {ord("y")}


def test_wordpiece_gives_the_numbers_of_the_full_vocabulary():
    # From the published vocabulary of BERT-base uncased.
    assert wordpiece.tokenize("The cat, today.") == [101, 1996, 4937, 1010, 2651, 1012, 102]
    known = {"[CLS]": 0, "[SEP]": 1, "[UNK]": 2, "un": 3, "##want": 4, "##ed": 5}
    assert wordpiece.tokenize("Unwanted Ünwant xyz", known) == [0, 3, 4, 5, 3, 4, 2, 1]


def test_sentences_are_padded_and_masked():
    feeds = wordpiece.encode(["The cat.", "The cat sleeps on the sofa."])
    assert feeds["input_ids"].shape == feeds["attention_mask"].shape == (2, 9)
    assert feeds["attention_mask"].sum(axis=1).tolist() == [5, 9]


def test_shipped_vocabulary_covers_the_sentences():
    unknown = wordpiece.vocabulary()["[UNK]"]
    for case in cases(entry("minilm-l3"), None):
        assert unknown not in case.feeds["input_ids"]


@pytest.mark.slow
@pytest.mark.parametrize("item", FIRST, ids=lambda item: item.name)
def test_onnxruntime_gives_the_right_answers(item):
    path = _file(item)
    reference = reference_runner(path, 2)
    todo = cases(item, path)
    assert len({case.shapes for case in todo}) > 1
    for case in todo:
        result = check_case(case, reference, reference)
        assert result.ok, f"{case.name}: {result.cause}"


@pytest.mark.slow
def test_demo_passes_a_right_loader_and_fails_a_perturbed_one():
    item = entry("ppocr-cls-mobile-v2")
    _file(item)

    def loader(factor):
        def load(path):
            run = reference_runner(path, 1)
            return SimpleNamespace(
                run=lambda feeds: {k: v * np.float32(factor) for k, v in run(feeds).items()},
                explain=lambda: SimpleNamespace(
                    nodes=[
                        SimpleNamespace(device="cpu:0", placement="device"),
                        SimpleNamespace(device="cpu:1", placement="fallback"),
                        SimpleNamespace(device="", placement="view"),
                    ]
                ),
            )

        return load

    good = run_model(item, loader(1.0), "cpu:0", threads=1)
    assert (good.verdict, good.on_device, good.elsewhere) == ("PASS", 1, {"cpu:1": 1})
    bad = run_model(item, loader(1.01), "cpu:0", threads=1)
    assert bad.verdict == "FAIL"
    assert "is off by" in bad.cause


@pytest.mark.slow
def test_converted_lite0_is_the_graph_it_was_trained_as():
    onnx = pytest.importorskip("onnx")
    model = onnx.load(_file(entry("efficientnet-lite0")))
    kinds = [node.op_type for node in model.graph.node]
    assert len(kinds) == 94
    assert (kinds.count("Conv"), kinds.count("Clip"), kinds.count("Add")) == (49, 33, 9)


@pytest.mark.parametrize(
    ("words", "headers"),
    [
        (["list"], ["model", "domain", "from", "file", "licence", "first"]),
        (["demo"], ["nodes", "input shape", "difference", "answer", "ms / ort", "verdict"]),
    ],
    ids=["list", "demo"],
)
def test_tables_fit_a_terminal_of_80_columns(monkeypatch, words, headers):
    """Headers stay whole, and long cells go on below instead of being cut."""
    monkeypatch.setattr(command, "_console", lambda: Console(width=80))
    monkeypatch.setattr(
        command,
        "run_model",
        lambda item, *_, **__: Record(
            item.name, item.domain, "PASS", "", 1234, {}, (), 1234.5, 1234.5
        ),
    )
    result = CliRunner().invoke(command.main, words)
    assert result.exit_code == 0, result.output
    assert "…" not in result.stdout
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    (head,) = (line for line in lines if line.startswith("model "))
    for header in headers:
        assert header in head

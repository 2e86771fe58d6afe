# SPDX-License-Identifier: Apache-2.0
"""The benchmark harness counts right, and every benchmark runs; no test judges a time."""

import json
import sys
from itertools import pairwise
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import bench_models, harness, machine, native, peers, report
from bench.__main__ import BENCHMARKS, main, run_one
from bench.harness import Result, Samples, Settings
from bench.models import cold, subject, transformers, vision
from bench.models.net import Net

QUICK = Settings(quick=True, threads=1, download=False)


class Clock:
    """A clock that only pretended work moves."""

    def __init__(self):
        self.now = 0.0
        self.order = []

    def __call__(self):
        return self.now

    def work(self, name, *seconds):
        """A runner that takes the given times in turn, over and over."""
        count = 0

        def run():
            nonlocal count
            self.now += seconds[count % len(seconds)]
            count += 1
            self.order.append(name)

        return run


def test_stats_are_scaled_and_interpolated():
    found = harness.stats([4.0, 1.0, 3.0, 2.0, 5.0], scale=1e3, calls=7)
    assert (found.median, found.minimum, found.samples, found.calls) == (3000, 1000, 5, 7)
    assert found.p10 == pytest.approx(1400)
    assert found.p90 == pytest.approx(4600)


@pytest.mark.parametrize(("q", "want"), [(0, 1.0), (0.25, 1.75), (0.5, 2.5), (1, 4.0)])
def test_quantile_is_linear_between_neighbours(q, want):
    assert harness.quantile([4.0, 1.0, 2.0, 3.0], q) == pytest.approx(want)


def test_ratio_pairs_neighbours_and_not_sorted_times():
    # The machine gets ten times slower half way; each pair still says 2.
    found = harness.ratio([2.0, 2.2, 20.0, 22.0], [1.0, 1.1, 10.0, 11.0])
    assert (found.median, found.p10, found.p90) == pytest.approx((2, 2, 2))
    assert (found.low, found.high) == pytest.approx((2, 2))
    assert found.of_minima == pytest.approx(2)


def test_ratio_shows_spread_around_the_median():
    ours = [float(i) for i in range(1, 102)]
    found = harness.ratio(ours, [50.0] * 101)
    assert found.median == pytest.approx(51 / 50)
    assert (found.p10, found.p90) == pytest.approx((11 / 50, 91 / 50))
    assert found.p10 < found.low < found.median < found.high < found.p90
    assert found.of_minima == pytest.approx(1 / 50)
    assert found == harness.ratio(ours, [50.0] * 101), "another reading gives another interval"


def test_ratio_of_one_pair_has_no_spread():
    found = harness.ratio([3.0], [2.0])
    assert {found.median, found.low, found.high, found.p10, found.p90} == {1.5}


def test_ratio_wants_as_many_of_both():
    with pytest.raises(ValueError, match="shorter"):
        harness.ratio([1.0, 2.0], [1.0])


def test_runners_take_turns_forth_and_back():
    clock = Clock()
    runners = {name: clock.work(name, 0.1) for name in "ab"}
    found = harness.in_turns(runners, Settings(budget_s=0), sample_s=0.05, clock=clock)
    turns = [name for name, last in pairwise([*clock.order[-24:], ""]) if name]
    assert len(found.seconds["a"]) == len(found.seconds["b"]) == 6
    # Each turn is one call that is not timed and one that is.
    assert "".join(turns) == "aabb" + "bbaa" + "aabb" + "bbaa" + "aabb" + "bbaa"


def test_the_machine_idles_before_each_turn_and_the_budget_does_not_count_it():
    clock = Clock()
    runners = {name: clock.work(name, 0.1) for name in "ab"}

    def sleep(seconds):
        clock.order.append("-")
        clock.now += seconds

    found = harness.in_turns(
        runners, Settings(budget_s=1.5), sample_s=0.01, idle_s=100.0, clock=clock, sleep=sleep
    )
    assert "".join(clock.order).endswith("-aa-bb-bb-aa-aa-bb-bb-aa")
    # A round takes 0.4 s without its pauses.
    assert len(found.seconds["a"]) == 6
    assert found.seconds["b"] == pytest.approx([0.1] * 6)


def test_long_calls_have_no_call_in_front():
    clock = Clock()
    runners = {"a": clock.work("a", 2.0), "b": clock.work("b", 0.1)}
    harness.in_turns(runners, Settings(budget_s=0), sample_s=0.01, least=2, clock=clock)
    assert "".join(clock.order).endswith("abb" + "bba")


def test_samples_are_means_of_enough_calls():
    clock = Clock()
    found = harness.in_turns(
        {"a": clock.work("a", 1e-6), "b": clock.work("b", 4e-6)},
        Settings(budget_s=0.01),
        sample_s=1e-4,
        clock=clock,
    )
    assert found.calls == {"a": pytest.approx(101, abs=1), "b": pytest.approx(26, abs=1)}
    assert found.seconds["b"] == pytest.approx([4e-6] * len(found.seconds["b"]))
    assert clock.now < 0.02, "the budget was not kept"


def test_number_of_rounds_is_limited():
    clock = Clock()
    found = harness.in_turns({"a": clock.work("a", 1e-9)}, Settings(), rounds=8, clock=clock)
    assert len(found.seconds["a"]) == 8


def test_compare_counts_what_the_samples_say():
    samples = Samples({"chipdock": [1.0, 1.0], "x": [2.0, 2.0], "y": [1.0, 0.5]}, {})
    samples.calls = {"chipdock": 3, "x": 1, "y": 1}
    x, y = harness.compare("b", "c", samples, "us", aims={"x": 1.0, "y": 1.0})
    assert (x.peer, x.ours.median, x.other.median, x.ratio.median) == ("x", 1e6, 2e6, 0.5)
    assert (x.ours.calls, x.reached, x.difference) == (3, True, -1e6)
    assert (y.ratio.median, y.reached) == (1.5, False)


def test_an_aim_can_be_a_difference():
    one = harness.stats([5.0])
    other = harness.stats([1.0])
    share = harness.ratio([5.0], [1.0])
    result = Result("b", "c", "p", "ns", one, other, share, 4.0, aim_is_difference=True)
    assert result.difference == 4.0
    assert result.reached is True
    assert Result("b", "c", cause="no peer", aim=1.0).reached is None


def test_geometric_mean_weighs_halves_and_doubles_alike():
    assert harness.geometric_mean([0.5, 2.0, 4.0, 0.25]) == pytest.approx(1.0)


def test_machine_is_described_and_watched():
    about = machine.describe()
    assert about["cores"] >= 1
    assert about["packages"]["chipdock"] != "absent"
    with machine.watch() as load:
        sum(range(1000))
    assert 0 <= load.others <= 1
    assert load.seconds > 0


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0.0"), (0.012345, "0.0123"), (3.14159, "3.14"), (99.96, "100.0"), (12345.6, "12,346")],
)
def test_numbers_have_three_digits(value, text):
    assert report.number(value) == text


@pytest.fixture
def results():
    share = harness.ratio([1.0, 1.1], [2.0, 2.0])
    one, two = harness.stats([1.0, 1.1]), harness.stats([2.0, 2.0])
    return [
        Result("a", "slow", "p", "us", two, one, harness.ratio([2.0], [1.0]), 1.0),
        Result("a", "fast", "p", "us", one, two, share, 1.0, note="n"),
        Result("b", "calls", "p", "ns", two, one, harness.ratio([2.0], [1.0]), 3.0, True),
        Result("b", "gone", "p", cause="p is not installed"),
    ]


def test_table_shows_aims_and_causes(results):
    console = Console(width=200, record=True, quiet=True)
    report.print_table(results, console)
    rows = [report.row(result) for result in results]
    assert rows[0][-1] == "1: missed"
    assert rows[1][-3:] == ("0.53", "0.51 to 0.55", "1: reached")
    assert rows[2][5] == "+0.9 ns"
    assert rows[2][-1] == "+3.00 ns: reached"
    assert rows[3][3:] == ("NOT_RUN", "", "", "", "p is not installed")
    assert report.markdown(results).count("\n| ") == len(results)


def test_json_follows_its_schema(results, tmp_path):
    load = {"a": {"others": 0.5, "load_average": 1.0, "seconds": 2.0}}
    settings = {"quick": True, "threads": 1, "budget_s": 1.0, "download": None}
    report.write_json(
        tmp_path / "x.json", report.as_json(machine.describe(), settings, load, results)
    )
    data = json.loads((tmp_path / "x.json").read_text())
    jsonschema.validate(data, json.loads(report.SCHEMA.read_text()))
    assert [item["reached"] for item in data["results"]] == [False, True, True, None]


@pytest.mark.slow  # matplotlib's import and one figure
def test_plot_is_drawn(results, tmp_path):
    path = report.plot(results, tmp_path / "new", "title")
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.parametrize("name", list(BENCHMARKS))
def test_benchmark_runs(name):
    results, _ = run_one(name, QUICK)
    assert results
    for result in results:
        assert result.benchmark in {name, "load", "rss"}
        # A model or a peer that cannot be had is said; what this build holds must be measured.
        if result.cause:
            assert name in {"models", "memory", "executor", "idle", "sharing"}, result.cause
        else:
            assert result.ours.median > 0
            assert result.ratio.median > 0


@pytest.mark.slow
def test_models_have_unique_names_and_feeds_of_every_size():
    found = subject.subjects(Settings())
    assert len({s.name for s in found}) == len(found) > 40
    for each in found:
        for point in each.points(Settings()):
            if point.length > 100_000 or point.batch * point.length > 4096:
                continue  # large arrays say no more
            feeds = each.feeds(point)
            assert {row[0] for row in each.inputs} == set(feeds)
            again = each.feeds(point)
            assert all(np.array_equal(feeds[name], again[name]) for name in feeds)


def test_an_essential_run_takes_the_main_models_and_one_length_each():
    settings = Settings(essential=True)
    found = subject.subjects(settings)
    assert 10 <= len(found) < len(subject.subjects(Settings())) / 2
    assert all(len({p.length for p in each.points(settings)}) == 1 for each in found)
    (bert,) = subject.subjects(Settings(models=("bert*",)))
    assert [p.text for p in bert.points(settings)] == ["batch 1, 128 tokens", "batch 8, 128 tokens"]


@pytest.mark.slow
@pytest.mark.parametrize("make", [vision.unet, transformers.llama_stack])
def test_a_built_net_computes_what_onnxruntime_computes(make, tmp_path):
    made = Net(seed=3)
    make(made, 1, 64) if make is transformers.llama_stack else make(made, 16)
    path = tmp_path / "net.onnx"
    made.save(path, "net")
    name = {vision.unet: "unet", transformers.llama_stack: "llama-stack"}[make]
    (each,) = subject.subjects(Settings(models=(name,)))
    feeds = each.feeds(subject.Point(2, 8, ""))
    ours, wanted = (peers.runner(n, path, 1)(feeds) for n in ("chipdock", "onnxruntime"))
    np.testing.assert_allclose(ours[0], wanted[0], atol=1e-4 * np.abs(wanted[0]).max())


def test_a_mean_counts_each_model_once_and_each_case_against_its_better_peer():
    def row(model, peer, ours, other):
        samples = Samples({"chipdock": [ours] * 2, peer: [other] * 2}, {"chipdock": 1, peer: 1})
        return harness.compare("models", model, samples, "ms")

    found = bench_models.Report()
    found.add("1 thread", "a", row("a", "x", 2.0, 1.0) + row("a", "y", 2.0, 4.0))
    for _ in range(3):
        found.add("1 thread", "b", row("b", "x", 2.0, 4.0) + row("b", "y", 2.0, 1.0))
    found.add("1 thread", "b", row("b", "x", 2.0, 1.0))
    means = {m.peer: m.ratio.median for m in bench_models._means(found)}
    # Of a: 2 against x, 0.5 against y. Of b: 0.5 three times and 2 once against x, 2 against y.
    assert means == pytest.approx(
        {"x": (2 * 0.5**0.5) ** 0.5, "y": (0.5 * 2) ** 0.5, bench_models.BETTER: 2.0}
    )


def test_a_process_that_fails_says_its_last_line(tmp_path):
    np.savez(tmp_path / "feeds.npz", x=np.ones(1, np.float32))
    with pytest.raises(RuntimeError, match="INVALID_ARGUMENT"):
        cold.measure("chipdock", tmp_path / "none.onnx", 1, tmp_path / "feeds.npz")


def test_benchmark_that_cannot_run_says_why(monkeypatch, tmp_path):
    monkeypatch.setenv("CHIPDOCK_TEST_LIBDIR", str(tmp_path / "tests" / "fakes"))
    (result,), _ = run_one("abi", QUICK)
    assert "./dev build makes it" in result.cause
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(native.NotRun, match="no-such-compiler"):
        native.compiler("CC", "gcc")


def test_command_lists_and_refuses(monkeypatch):
    listed = CliRunner().invoke(main, ["--list"])
    assert listed.exit_code == 0
    assert all(name in listed.output for name in BENCHMARKS)
    assert CliRunner().invoke(main, ["--only", "nothing"]).exit_code == 2


def test_command_writes_what_it_is_asked_for(monkeypatch, tmp_path):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # main sets these; put back afterwards
    monkeypatch.setenv("CHIPDOCK_CPU_THREADS", "1")
    shown = [Result("abi", "case", "peer", cause="not here")]
    monkeypatch.setattr("bench.__main__.run_one", lambda *_: (shown, machine.Load()))
    out = tmp_path / "r.json"
    got = CliRunner().invoke(main, ["--only", "abi", "--threads", "1", "--json", str(out)])
    assert got.exit_code == 3, got.output
    assert json.loads(out.read_text())["results"][0]["cause"] == "not here"

# SPDX-License-Identifier: Apache-2.0
"""The command line before anything runs: selections, mistakes, and their exit codes."""

import errno
import os
import sys

import pytest

from chipdock.conformance.cli import main


@pytest.fixture
def call(suite, monkeypatch, capsys, tmp_path):
    """Runs conformance-run in this process; returns exit code, stdout and stderr."""
    monkeypatch.setenv("CHIPDOCK_CONFORMANCE_SUITE", str(suite.folder / "samples"))
    monkeypatch.chdir(tmp_path)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["conformance-run", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return ended.value.code, said.out, said.err

    return run


def test_list_prints_one_id_a_line(call):
    code, out, err = call("list", "-k", "L1.good.calm*")
    assert (code, err) == (0, "")
    assert out.splitlines() == [f"L1.good.calm.any.n{n}" for n in range(6)]


def test_help_names_every_command_and_no_file_that_holds_none(call):
    code, out, err = call("--help")
    assert (code, err) == (0, "")
    commands = out.partition("Commands:")[2].split()
    assert {"run", "list", "explain", "selftest"} <= set(commands)
    assert "parts" not in commands
    assert call("parts")[0] == 2


def test_the_run_command_lists_too(call):
    code, out, _ = call("--list", "--case", "L1.bad.fails.any.base")
    assert (code, out) == (0, "L1.bad.fails.any.base\n")


def test_a_plan_is_a_file_of_ids(call, tmp_path):
    plan = tmp_path / "plan"
    plan.write_text("# chosen\nL1.bad.skips.any.base\n\nL1.good.calm.any.n[23]  # two\n")
    _, out, _ = call("list", "--plan", plan)
    assert out.split() == ["L1.good.calm.any.n2", "L1.good.calm.any.n3", "L1.bad.skips.any.base"]


def test_an_unknown_case_is_usage_and_offers_the_closest(call):
    code, _, err = call("--device", "cpu:0", "--case", "L1.bad.failz.any.base")
    assert code == 2
    assert "did you mean 'L1.bad.fails.any.base'" in err


def test_an_unknown_id_in_a_plan_is_usage(call, tmp_path):
    (tmp_path / "plan").write_text("L1.good.calm.any.n0\nL1.no.such.any.case\n")
    code, _, err = call("--device", "cpu:0", "--plan", tmp_path / "plan")
    assert code == 2
    assert "L1.no.such.any.case" in err


def test_a_selection_without_cases_is_not_a_success(call):
    for words in (["-k", "nothing*"], ["--level", "L4"], ["--tier", "smoke", "--level", "L1"]):
        code, out, err = call("--device", "cpu:0", *words)
        assert (code, out) == (3, "")
        assert "holds no case" in err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--level", "L7"], "'L7' is no level"),
        (["--shard", "3/2"], "is no shard"),
        (["--worker-memory", "lots"], "is no size"),
        (["--tier", "quick"], "tier"),
        (["--mask", "half"], "'half' is no mask"),
        (["--device", "cpu:99999999999999999999"], "no number of a device"),
        (["--device", "cpu:٣"], "no number of a device"),
        (["--seed", "٣"], "is no number"),
        (["--shard", "1/٣"], "is no shard"),
        (["--worker-memory", "٣G"], "is no size"),
        (["--mask", "seed:1٣"], "is no mask"),
        (["--timeout-scale", "nan"], "is no finite number"),
        (["--resume", "{empty}"], "holds no results.jsonl"),
        (["--no-such-option"], "no option"),
        (["frobnicate"], "no command 'frobnicate'"),
    ],
)
def test_a_mistake_is_usage_and_said_in_one_line(call, tmp_path, words, complaint):
    (tmp_path / "empty").mkdir()
    words = [word.format(empty=tmp_path / "empty") for word in words]
    start = [] if words == ["frobnicate"] else ["--device", "cpu:0"]
    code, _, err = call(*start, *words)
    assert code == 2
    assert complaint in err
    assert len(err.splitlines()) == 1


def test_a_run_needs_a_device(call):
    code, _, err = call("--level", "L1")
    assert code == 2
    assert "--device" in err


def test_a_folder_that_holds_a_run_is_not_written_to(call, deeds):
    code, _, err = call("--device", "cpu:0", "--level", "L0", "--out", deeds.folder)
    assert code == 2
    assert f"--resume {deeds.folder}" in err


@pytest.mark.parametrize(
    "words",
    [
        ["--out", "/proc/nope"],
        ["--out", "/dev/null"],
        ["--out", "out", "--html", "no/such/folder.html"],
        ["--out", "out", "--junit", "no/such/folder.xml"],
    ],
)
def test_results_that_cannot_be_written_are_said_before_the_run(call, words):
    code, out, err = call("--device", "nosuch:0", "-k", "L1.good.calm*", *words)
    assert (code, out) == (2, "")
    assert "the results cannot be written" in err


def test_a_disk_that_is_full_is_the_infrastructure(call, monkeypatch):
    def full(*_arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "report.html")

    monkeypatch.setattr("chipdock.conformance.run.execute", full)
    code, _, err = call("--device", "nosuch:0", "-k", "L1.good.calm*", "--out", "out")
    assert code == 5
    assert "UNAVAILABLE: report.html: No space left" in err


def test_a_ratio_that_is_no_number_is_usage(call, tmp_path):
    code, _, err = call("diff", tmp_path, tmp_path, "--slower", "nan")
    assert code == 2
    assert "is no finite number" in err


@pytest.mark.parametrize("words", [["report"], ["--resume"], ["merge", "--out", "m"]])
def test_a_damaged_journal_is_usage(call, tmp_path, words):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "results.jsonl").write_text('{"type":"case"}\n')
    code, _, err = call(*words, "run")
    assert code == 2
    assert "line 1, is none that a run writes" in err


@pytest.mark.slow
def test_what_failed_in_a_run_can_be_chosen(call, deeds):
    code, out, _ = call("--rerun-failed", deeds.folder, "--list")
    assert code == 0
    chosen = set(out.split())
    assert "L1.crash.segfault.any.base" in chosen
    assert "L1.good.calm.any.n0" not in chosen
    bad = {
        i for i, o in deeds.outcomes().items() if o not in ("PASS", "QUALITY_WARN", "UNSUPPORTED")
    }
    assert chosen == bad


def test_the_default_suite_lists_its_release_band(call, monkeypatch):
    monkeypatch.delenv("CHIPDOCK_CONFORMANCE_SUITE")
    code, out, _ = call("list", "--level", "release")
    assert code == 0
    assert "L0.plugin" in out or "L0." in out
    assert all(line.count(".") == 4 for line in out.splitlines())

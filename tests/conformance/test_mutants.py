# SPDX-License-Identifier: Apache-2.0
"""The suite against plugins that are wrong on purpose: a third of the faults, and the null plugin.

All faults: `conformance-run selftest`.
"""

import dataclasses
import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from chipdock._cabi import RawError, include_dir, load_raw
from chipdock.conformance._cli_selftest import selftest
from chipdock.conformance.ids import match
from chipdock.conformance.manifest import read_manifest
from chipdock.conformance.mutants import Table, bystanders, read_table
from chipdock.conformance.selftest import NONE, Trial, run

# Two or three of each family, such as levels L0 to L2 see in few cases.
THIRD = (
    "error_not_terminated", "error_past_size", "struct_tail_ignored", "output_past_size",
    "flags_ignored", "query_any_version", "table_moves", "throws", "count_changes",
    "open_shares_device", "info_heap_alignment", "alloc_overlaps", "alloc_oom_spoils",
    "copy_odd_sizes", "copy_byte_too_many", "fill_tail", "copy_2d_claimed", "stream_wait_ignored",
    "host_function_twice", "stream_sync_early", "event_record_lost",
    "event_elapsed_negative", "list_changes", "launch_damages_input", "launch_last_left_out",
    "capture_runs_eagerly", "graph_update_in_parts", "compile_no_log", "profiler_other_ids",
    "reorder_garbage_in_padding", "layout_kernel_last_block", "layout_size_short",
    "matmul_ten_bits", "round_half_away", "segfault_in_copy",
)  # fmt: skip

REQUIRED_SLOTS = {"memory.alloc", "memory.free", "memory.copy"}
# May pass on the null plugin though they are about a required slot of memory, and why.
MAY_PASS = (
    "L0.slots.required.*",  # that it is there
    "L0.flags.unknown.any.memory_alloc_*",  # UNSUPPORTED is the right answer
    "L0.struct.tail_data.any.memory_alloc",  # the same
    "L1.array.round_trip.*.empty",  # nothing is allocated
    "L1.errors.code.*",  # a layer fails the call before it reaches the plugin
)


def table():
    return read_table(Path(os.environ["CHIPDOCK_TEST_LIBDIR"]) / "mutants" / "mutants.toml")


@pytest.fixture(scope="module")
def third(tmp_path_factory):
    """A run of the third, stopped at the first red case of each."""
    folder = tmp_path_factory.mktemp("third")
    return run(table(), THIRD, read_manifest(), folder, jobs=2, collateral=False, most=16)


def test_table_and_plugin_have_the_same_faults(monkeypatch):
    known = table()
    monkeypatch.setenv(known.switch, "list")
    raw = load_raw(known.library)
    with pytest.raises(RawError, match="the names were logged"):
        raw.start()
    names = [text for _, text in raw.log]
    assert len(names) > 200
    assert sorted(names) == sorted(known.mutants)


def test_each_fault_breaks_a_duty_of_a_header():
    text = "".join(path.read_text("utf-8") for path in (include_dir() / "chipdock").glob("*.h"))
    duties = set(re.findall(r"^ \*   ([A-Z]{3,4}-\d+) ", text, re.MULTILINE))
    assert {mutant.duty for mutant in table().mutants.values()} <= duties


def test_a_third_is_spread_over_all_families():
    files = (Path(os.environ["CHIPDOCK_TEST_LIBDIR"]) / "mutants" / "faults").glob("*.toml")
    for file in files:
        names = re.findall(r"^\[(\w+)\]$", file.read_text("utf-8"), re.MULTILINE)
        assert set(names) & set(THIRD), file.name


@pytest.mark.slow
def test_nothing_fails_without_a_fault(third):
    assert third.faultless == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", THIRD)
def test_fault_is_caught(third, name):
    verdict = next(verdict for verdict in third.verdicts if verdict.mutant.name == name)
    assert verdict.state == "caught", f"none of {verdict.ran} cases failed"
    assert verdict.red or verdict.given_up


@pytest.mark.slow
def test_a_fault_that_no_case_sees_has_survived(tmp_path):
    known = table()
    blind = dataclasses.replace(known.mutants["copy_odd_sizes"], cases=("L0.device.count.*",))
    nobody = dataclasses.replace(blind, name="fill_tail", cases=("L9.*",))
    changed = dataclasses.replace(known, mutants={m.name: m for m in (blind, nobody)})
    told = []
    names = list(changed.mutants)
    report = run(changed, names, read_manifest(), tmp_path, collateral=False, told=told.append)
    assert [verdict.state for verdict in report.verdicts] == ["survived", "no_case"]
    assert sorted(v.mutant.name for v in told) == ["copy_odd_sizes", "fill_tail"]
    assert (report.caught, report.clean) == (0, False)
    assert '"score": 0.0' in (tmp_path / "selftest.json").read_text("utf-8")


def test_allowances_are_in_use_and_say_why():
    ids = list(read_manifest().rows)
    for mutant in table().mutants.values():
        for pattern, why in mutant.allowed.items():
            assert match([pattern], ids), f"{mutant.name} allows {pattern}, which no case is"
            assert len(why) > 20, f"{mutant.name} allows {pattern} for no reason"


def test_an_allowance_without_a_reason_is_refused(tmp_path):
    (tmp_path / "faults").mkdir()
    (tmp_path / "faults" / "a.toml").write_text(
        '[one]\nduty = "MEM-1"\nbreaks = "it"\n[[one.allowed]]\ncases = ["L1.*"]\nwhy = ""\n'
    )
    (tmp_path / "t.toml").write_text(
        '[plugin]\nlibrary = "l.so"\ndevice = "a:0"\nswitch = "S"\nfaults = "faults"\n'
    )
    with pytest.raises(ValueError, match="'one' allows cases to fail and does not say why"):
        read_table(tmp_path / "t.toml")


def test_bystanders_hang_on_their_ids_alone():
    whole = read_manifest()
    taken = bystanders(whole)
    assert 50 < len(taken) < 100
    assert {i.split(".")[0] for i in taken} == {"L0", "L1", "L2", "L3"}
    less = dict(whole.rows)
    for case_id in [i for i in less if i not in taken][::2]:
        del less[case_id]
    assert bystanders(dataclasses.replace(whole, rows=less)) == taken


@pytest.mark.slow
def test_what_else_fails_has_to_be_allowed_and_a_table_can_be_mended_later(tmp_path):
    known = table()
    name = "alloc_oom_stays"
    strict = dataclasses.replace(known.mutants[name], allowed={})
    changed = dataclasses.replace(known, mutants={name: strict})
    first = run(changed, [name], read_manifest(), tmp_path, most=8)
    assert (first.caught, first.wide, first.clean) == (1, 1, False)
    assert {i.split(".")[0] for i, _ in first.verdicts[0].collateral} >= {"L1", "L2"}
    journal = tmp_path / name / "results.jsonl"
    ran = journal.read_bytes()
    again = run(known, [name], read_manifest(), tmp_path, most=8, resume=True)
    assert (again.caught, again.wide, again.clean) == (1, 0, True)
    assert len(again.verdicts[0].allowed) >= len(first.verdicts[0].collateral)
    assert journal.read_bytes() == ran, "nothing has to run again"
    other = dataclasses.replace(read_manifest(), root="00")
    with pytest.raises(RuntimeError, match="is one of another suite or plugin"):
        run(known, [name], other, tmp_path, resume=True)
    with pytest.raises(RuntimeError, match="holds no self-test to go on with"):
        run(known, [name], other, tmp_path / "new", resume=True)


@pytest.mark.slow
def test_on_the_null_plugin_nothing_passes_that_needs_memory(tmp_path):
    library = Path(os.environ["CHIPDOCK_TEST_LIBDIR"]) / "libnull_plugin.so"
    null = Table(library, "null:0", "CHIPDOCK_NO_SWITCH", {}, {})
    manifest = read_manifest()
    ids = [
        case_id
        for case_id, row in manifest.rows.items()
        if row.case.level in ("L0", "L1") and REQUIRED_SLOTS & set(row.case.entry_points)
    ]
    assert len(ids) > 200
    trial = Trial(null, NONE, manifest, tmp_path, tmp_path / "capabilities.json")
    trial.run(ids, jobs=2)
    assert trial.given_up == ""
    passed = [i for i, record in trial.records.items() if record.outcome == "PASS"]
    assert match(["L0.slots.required.*"], passed), "nothing was run at all"
    assert sorted(set(passed) - set(match(MAY_PASS, passed))) == []


def test_command_lists_faults_and_refuses_unknown_ones():
    known = table()
    listed = CliRunner().invoke(selftest, ["--list", "--mutant", "copy_last_byte"])
    assert listed.output == "copy_last_byte [MEM-5]: copy leaves the last byte out\n"
    assert len(CliRunner().invoke(selftest, ["--list"]).output.splitlines()) == len(known.mutants)
    wrong = CliRunner().invoke(selftest, ["--mutant", "copy_last_bite"])
    assert "did you mean 'copy_last_byte'?" in str(wrong.exception)


@pytest.mark.slow
def test_command_ends_with_1_if_a_fault_survived(tmp_path):
    command = ["--mutant", "open_ignores_options", "--fast", "-j", "1", "--out", str(tmp_path)]
    done = CliRunner().invoke(selftest, command)
    assert done.exit_code == 0, done.output
    assert "caught   open_ignores_options [BASE-6]" in done.output
    assert "mutation score 1 of 1 = 100.0 %" in done.output

# SPDX-License-Identifier: Apache-2.0
"""The report that is kept with the sources: what is in it, and that it is this suite's."""

import getpass
import json
import re
import socket
from pathlib import Path

import pytest
from evidence_sample import END, RUN, every_outcome

from chipdock.conformance.evidence.keep import RENEW, digest, keep, load, main
from chipdock.conformance.journal import RunRecord
from chipdock.conformance.manifest import read_manifest

KEPT = Path(__file__).parents[2] / "docs" / "reports"
MOST_BYTES = 300_000
ABSOLUTE = re.compile(r"(?<![\w.])/(home|root|tmp|work|usr|opt|var|mnt|Users|private)/")
FILES = ("masked.json.gz", "whole.json.gz")


OPTIONS = {"jobs": 2, "selection": {"level": "release", "tier": "submit", "order": "manifest"}}


def sample(**more):
    record = RunRecord()
    for line in (RUN | {"options": OPTIONS} | more, *every_outcome()[0], END):
        record.add(line)
    return record


def test_the_same_run_gives_the_same_bytes_and_is_read_again(tmp_path):
    first = [path.read_bytes() for path in keep(tmp_path / "a", {"whole": sample()})]
    second = [path.read_bytes() for path in keep(tmp_path / "b", {"whole": sample()})]
    assert first == second
    assert load(tmp_path / "a" / "whole.json.gz") == json.loads(json.dumps(digest(sample())))


def test_paths_of_the_machine_are_left_out():
    record = sample()
    case_id, case = next(iter(record.cases.items()))
    record.add(case.to_json() | {"outcome": "FAIL", "reason": "in /home/me/lib/libx.so: no\nmore"})
    kept = digest(record)
    assert [case_id, "FAIL", "in libx.so: no"] in kept["remarks"]
    assert kept["counts"] == record.counts
    assert sum(map(len, kept["cases"].values())) == len(record.cases)


def test_runs_of_two_suites_are_no_one_version(tmp_path):
    with pytest.raises(ValueError, match="the runs differ in suite_root"):
        keep(tmp_path, {"a": sample(), "b": sample(suite_root="00")})
    unended = sample()
    unended.end = None
    with pytest.raises(ValueError, match="go on with it by --resume"):
        keep(tmp_path, {"a": unended})


def test_the_command_wants_names(tmp_path, capsys):
    assert main([str(tmp_path)]) == 2
    assert main([str(tmp_path), "a=nowhere"]) == 2
    assert "INVALID_ARGUMENT" in capsys.readouterr().err


def test_a_report_is_kept_whole_and_under_a_mask():
    assert tuple(sorted(path.name for path in KEPT.glob("*.gz"))) == FILES
    files = [path for path in KEPT.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < MOST_BYTES


@pytest.mark.parametrize("name", FILES)
def test_what_is_kept_is_of_this_suite_green_and_names_no_machine(name):
    kept = load(KEPT / name)
    text = json.dumps(kept) + (KEPT / "README.md").read_text(encoding="utf-8")
    assert not ABSOLUTE.search(text)
    assert socket.gethostname() not in text
    user = getpass.getuser()
    assert user in {"root", "runner"} or not re.search(rf"\b{re.escape(user)}\b", text)
    assert kept["exit_code"] == 0, kept["remarks"]
    root = read_manifest().root
    assert kept["suite_root"] == root, (
        f"{name} is of the suite {kept['suite_root'][:12]}, this one is {root[:12]}; renew it "
        f"by: {RENEW}"
    )

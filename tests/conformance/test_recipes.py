# SPDX-License-Identifier: Apache-2.0
"""The recipes for Slurm and GitHub run here: their own shell text, two shards, one whole."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from chipdock.conformance.journal import read

pytestmark = pytest.mark.slow

RECIPES = Path(__file__).parents[2] / "conformance" / "recipes"


@pytest.fixture
def shell(suite, tmp_path):
    """Run bash in an empty folder, with conformance-run in its path; returns the exit code."""
    tools = tmp_path / "bin"
    tools.mkdir()
    tool = tools / "conformance-run"
    tool.write_text(f'#!/bin/sh\nexec {sys.executable} -m chipdock.conformance.cli "$@"\n')
    tool.chmod(0o755)
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"

    def run(*words, **environment):
        env = suite.environment | {"PATH": path} | environment
        return subprocess.run(
            ["bash", *map(str, words)], env=env, cwd=tmp_path, timeout=120, check=False
        ).returncode

    return run


def whole(folder):
    record = read(folder)
    return record.counts, len(record.run["shards"])


def test_the_array_runs_its_shards_and_merges_them(shell, tmp_path):
    script = RECIPES / "array.sbatch"
    results = tmp_path / "results"
    given = {"DEVICE": "cpu:0", "SELECTION": "--case L1.more.after.*", "RESULTS": str(results)}
    for task in ("1", "2"):
        array = {"SLURM_ARRAY_TASK_ID": task, "SLURM_ARRAY_TASK_COUNT": "2"}
        assert shell(script, **given, **array) == 0
    # A task that Slurm starts again goes on with what is there.
    assert shell(script, **given, **array) == 0
    assert shell(script, **given, CONFORMANCE_MERGE="1") == 0
    assert whole(results / "whole") == ({"PASS": 3}, 2)
    directives = [line for line in script.read_text().splitlines() if line.startswith("#SBATCH")]
    assert "#SBATCH --requeue" in directives


def test_the_matrix_runs_its_shards_and_merges_them(shell, tmp_path):
    workflow = yaml.safe_load((RECIPES / "matrix.yaml").read_text())
    jobs = workflow["jobs"]
    steps = {step["name"]: step["run"] for job in jobs.values() for step in job["steps"]
             if "run" in step}  # fmt: skip
    assert [str(n) for n in jobs["shard"]["strategy"]["matrix"]["shard"]] == [
        str(n + 1) for n in range(int(workflow["env"]["SHARDS"]))
    ]
    assert jobs["whole"]["needs"] == "shard"
    given = {"DEVICE": "cpu:0", "SELECTION": "--case L1.more.after.*", "SHARDS": "2"}
    for shard in ("1", "2"):
        assert shell("-euo", "pipefail", "-c", steps["run"], **given, SHARD=shard) == 0
    (tmp_path / "shards").mkdir()
    for folder in tmp_path.glob("shard-*"):
        folder.rename(tmp_path / "shards" / folder.name)
    assert shell("-euo", "pipefail", "-c", steps["merge"]) == 0
    assert whole(tmp_path / "whole") == ({"PASS": 3}, 2)


def test_a_shard_that_left_nothing_is_red(shell):
    workflow = yaml.safe_load((RECIPES / "matrix.yaml").read_text())
    run = workflow["jobs"]["shard"]["steps"][0]["run"]
    given = {"DEVICE": "nobody:0", "SELECTION": "--case L1.more.after.*", "SHARDS": "2"}
    assert shell("-euo", "pipefail", "-c", run, **given, SHARD="1") == 1

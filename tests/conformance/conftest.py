# SPDX-License-Identifier: Apache-2.0
"""Makes the helpers of this folder importable; runs the sample suite for those who look at it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
collect_ignore = ["samples"]  # they crash, and only workers may


def pytest_configure(config):
    config.addinivalue_line("markers", "case(facts): of a case, for tests that import cases")


@pytest.fixture(scope="session")
def suite(tmp_path_factory):
    """A copy of the samples with its manifest."""
    folder = tmp_path_factory.mktemp("suite")
    shutil.copytree(
        HERE / "samples", folder / "samples", ignore=shutil.ignore_patterns("__pycache__")
    )
    from run_support import Suite

    made = Suite(folder)
    command = [sys.executable, "-m", "chipdock.conformance.manifest", "--write"]
    subprocess.run(command, env=made.environment, check=True, cwd=folder)
    return made


@pytest.fixture(scope="session")
def deeds(suite, tmp_path_factory):
    """One run of everything that goes wrong in one process; most tests look at it."""
    out = tmp_path_factory.mktemp("deeds") / "out"
    return suite.run(
        out, "--device", "cpu:0", "-j", 2, "-k", "L1.[gbcoha]*", "--worker-memory", "700M",
        "--timeout-scale", 0.5,
    )  # fmt: skip

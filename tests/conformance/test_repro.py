# SPDX-License-Identifier: Apache-2.0
"""chipdock.conformance.evidence.repro, dump and solo: one failing case, really run again."""

import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import evidence_sample as sample
import numpy as np
import pytest
import suite_sample

from chipdock._cabi import include_dir
from chipdock.conformance.evidence import report, repro

ROOT = Path(__file__).resolve().parents[2]


def need(tool):
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed: the script under it is not shown")


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    folder = tmp_path_factory.mktemp("suite")
    return suite_sample.make(folder)


@pytest.fixture
def script(suite, tmp_path):
    def make(case_id, device="cpu:0", **more):
        run = {"device": device, "seed": 7, "mask": "none", "options": {}} | more.pop("run", {})
        case = {"id": case_id, "outcome": "FAIL", "cause": "it's $wrong\n `really`"} | more
        file = tmp_path / f"{case_id}.sh"
        env = {key: suite[key] for key in suite if key.startswith("CHIPDOCK_CONFORMANCE")}
        file.write_text(repro.script(case, run, environment=env | more.get("env", {})))
        return file

    return make


def run(file, *options, **env):
    clean = {key: value for key, value in os.environ.items() if not key.startswith("CHIPDOCK_")}
    return subprocess.run(
        ["sh", file, *options],
        env=clean | env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_nothing_that_a_plugin_says_becomes_a_command(script):
    hostile = "a:0\ntouch pwned\x1b[2J"
    file = script("L1.demo.wrong.f32.n1", hostile, cause=hostile, env={"CHIPDOCK_X;touch y": "1"})
    lines = file.read_text().splitlines()
    assert "# L1.demo.wrong.f32.n1: FAIL on a:0 touch pwned?[2J" in lines
    assert "touch y" not in file.read_text()
    solo = 'printf "%s|" "$@"; exit 0\n'
    python = file.with_name("python")
    python.write_text(f"#!/bin/sh\n{solo}")
    python.chmod(0o755)
    done = run(file, PYTHON=str(python))
    assert hostile in done.stdout
    assert not [*file.parent.glob("*pwned*")]


def test_scripts_are_written_for_failures_only(tmp_path):
    document = report.build(sample.RUN, *sample.every_outcome(), end=sample.END)
    files = repro.write_all(document, tmp_path)
    marked = {case["outcome"]: case.get("repro", "") for case in document["cases"]}
    assert {name for name, text in marked.items() if text} == {
        "FAIL", "CRASH", "TIMEOUT", "CLAIMED_UNSUPPORTED", "FLAKY", "ORDER_DEPENDENT", "WAIVED",
        "XPASS",
    }  # fmt: skip
    assert len(files) == 8
    assert all(os.access(file, os.X_OK) for file in files)
    assert marked["FAIL"] == f"sh {tmp_path}/repro/L2.op.case2.f32.odd.sh"


def test_command_quotes_its_path():
    assert repro.command_of(Path("/a b"), "L1.a.b.c.d") == "sh '/a b/repro/L1.a.b.c.d.sh'"


def test_scripts_are_clean_shell(script):
    need("shellcheck")
    file = script("L1.demo.wrong.f32.n1", env={"CHIPDOCK_X": "a 'b' $c `d` \"e\"\\"})
    done = subprocess.run(
        ["shellcheck", "-s", "sh", file], capture_output=True, text=True, check=False
    )
    assert done.stdout == ""
    assert done.returncode == 0


@pytest.mark.slow
def test_script_repeats_the_failure_with_the_same_numbers(script):
    file = script("L1.demo.wrong.f32.n1")
    first, second = run(file), run(file)
    assert first.returncode == 1
    assert "FAIL L1.demo.wrong.f32.n1" in first.stdout
    assert (
        "the number is wrong\n  ULP 9.5, limit 4, worst at index [1], expected 1, got"
        in first.stdout
    )
    got = re.findall(r"got (\d+)", first.stdout)
    assert got == re.findall(r"got (\d+)", second.stdout) != []
    other = run(script("L1.demo.wrong.f32.n1", run={"seed": 8}))
    assert got != re.findall(r"got (\d+)", other.stdout)


@pytest.mark.slow
def test_script_of_a_case_that_passes_exits_good(script):
    done = run(script("L1.demo.good.any.base"))
    assert (done.returncode, done.stdout.count("PASS")) == (0, 1)


@pytest.mark.slow
def test_script_of_an_order_dependent_case_runs_what_is_before_it(script):
    evidence = {"behind": ["L1.demo.first.any.base"]}
    done = run(script("L1.demo.second.any.base", evidence=evidence))
    assert done.returncode == 1
    assert "PASS L1.demo.first.any.base" in done.stdout
    assert "somebody was here before" in done.stdout


@pytest.mark.slow
def test_mask_and_environment_of_the_run_reach_the_case(script):
    file = script(
        "L1.demo.env.any.base", run={"mask": "seed:3"}, env={"CHIPDOCK_DEMO": 'it\'s "here" $HOME'}
    )
    assert 'validate,mask=seed:3 it\'s "here" $HOME' in run(file).stdout
    # What the caller sets stands before what the run had.
    assert "mask=seed:3 mine" in run(file, CHIPDOCK_DEMO="mine").stdout


@pytest.mark.slow
def test_trace_and_tensors_are_written(script, tmp_path):
    done = run(script("L1.demo.wrong.f32.n1"), "--trace", "--dump-tensors", tmp_path / "tensors")
    assert '"name":"memory.alloc"' in done.stderr
    written = sorted(path.name for path in (tmp_path / "tensors").iterdir())
    assert written == [
        "000_Add.in0.float32.npy",
        "000_Add.in1.float32.npy",
        "000_Add.out0.float32.npy",
    ]
    assert np.load(tmp_path / "tensors" / written[2]).tolist() == [2.0, 4.0]


@pytest.mark.slow
def test_gdb_shows_where_a_crash_is(script):
    need("gdb")
    done = run(script("L1.demo.crash.any.base"), "--debug", "gdb", "--batch")
    assert "SIGSEGV" in done.stdout
    assert re.search(r"#0 .*\n#1 ", done.stdout)
    assert "libchipdock_cpu.so" in done.stdout
    assert done.returncode != 0


@pytest.mark.slow
def test_crash_without_a_debugger_is_a_crash_of_the_script(script):
    done = run(script("L1.demo.crash.any.base"))
    assert done.returncode == -11


@pytest.mark.slow
def test_a_debugger_can_be_waited_for(script, suite):
    need("gdb")
    file = script("L1.demo.wrong.f32.n1")
    process = subprocess.Popen(
        ["sh", file, "--wait-for-debugger"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    # Ends a process that waits for ever; the test would hang otherwise.
    guard = threading.Timer(60, process.kill)
    guard.start()
    try:
        number = re.search(r"gdb -p (\d+)", process.stderr.readline())[1]
        subprocess.run(
            ["gdb", "-q", "-batch", "-p", number, "-ex", "continue", "-ex", "signal 0"],
            capture_output=True, timeout=60, check=True,
        )  # fmt: skip
        out, _ = process.communicate(timeout=60)
    finally:
        guard.cancel()
        process.kill()
    assert "FAIL L1.demo.wrong.f32.n1" in out


def build_asan(folder):
    """The smallest plugin with ASan, and a copy that reads past the end of its block."""
    source = (ROOT / "tests" / "fakes" / "nano.c").read_text(encoding="utf-8")
    (folder / "nano.c").write_text(
        source.replace(
            "#include <string.h>", "#include <string.h>\n#define memcpy past_the_end", 1
        ).replace(
            '#include "chipdock/chipdock.h"',
            '#include "chipdock/chipdock.h"\n#undef memcpy\n'
            "static void* past_the_end(void* to, const void* from, size_t size) {\n"
            "  volatile const unsigned char* bytes = from;\n"
            "  if (size == 100) (void)bytes[4096];\n"
            "  return memcpy(to, from, size);\n}\n#define memcpy past_the_end",
            1,
        )
    )
    subprocess.run(
        [os.environ.get("CC", "cc"), "-std=gnu99", "-g", "-O0", "-shared", "-fPIC",
         "-fsanitize=address", f"-I{include_dir()}", "-o", folder / "libnano.so",
         folder / "nano.c"],
        check=True,
    )  # fmt: skip
    return folder / "libnano.so"


@pytest.mark.slow
def test_a_build_with_asan_names_the_line(script, tmp_path):
    need(os.environ.get("CC", "cc"))
    library = build_asan(tmp_path)
    file = script("L1.demo.overrun.any.base", device="nano:0")
    done = run(file, "--asan", library)
    assert "AddressSanitizer" in done.stderr, done.stderr[-2000:]
    assert "past_the_end" in done.stderr
    assert done.returncode not in {0, 2}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--bogus"], "no option --bogus"),
        (["--debug"], "--debug needs a value"),
        (["--debug", "lldb"], "allowed are gdb and valgrind"),
    ],
)
def test_wrong_options_are_named(script, options, text):
    done = run(script("L1.demo.good.any.base"), *options)
    assert done.returncode == 2
    assert text in done.stderr


def test_help_lists_every_option(script):
    text = run(script("L1.demo.good.any.base"), "--help").stdout
    for option in (
        "--debug",
        "--batch",
        "--wait-for-debugger",
        "--asan",
        "--dump-tensors",
        "--trace",
    ):
        assert option in text


@pytest.mark.slow
def test_an_unknown_case_is_a_usage_error_that_suggests(suite):
    done = subprocess.run(
        [sys.executable, "-m", "chipdock.conformance.solo", "--device", "cpu:0",
         "L1.demo.god.any.base"],
        env=suite, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "did you mean L1.demo.good.any.base" in done.stderr


@pytest.mark.slow
def test_an_unknown_device_is_no_failure_of_the_case(script):
    done = run(script("L1.demo.good.any.base", device="nodevice:0"))
    assert done.returncode == 2
    assert "no plugin provides" in done.stderr

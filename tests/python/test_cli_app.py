# SPDX-License-Identifier: Apache-2.0
"""Exit codes, one-line errors, suggestions and completion of the command line."""

import errno
import os
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from chipdock import errors
from chipdock.cli._app import cli, describe
from chipdock.cli._output import load_schema
from chipdock.cli.exit_codes import PRIORITY, ExitCode, for_error, worst


def call(*words, **kwargs):
    return CliRunner().invoke(cli, list(words), **kwargs)


def test_priority_is_the_documented_order():
    assert [int(code) for code, _ in PRIORITY] == [2, 130, 4, 5, 3, 1, 6, 7, 8, 0]


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ([], 0),
        ([0, 1], 1),
        ([1, 3], 3),
        ([3, 5, 1], 5),
        ([5, 4], 4),
        ([4, 130], 130),
        ([130, 2], 2),
    ],
)
def test_the_first_of_the_table_wins(codes, expected):
    assert worst(map(ExitCode, codes)) == expected


def test_every_status_has_an_exit_code():
    kinds = [getattr(errors, name) for name in errors.__all__ if name.endswith("Error")]
    codes = {kind.code: for_error(kind.code) for kind in kinds}
    assert codes["INVALID_ARGUMENT"] == 2
    assert codes["DEVICE_LOST"] == 5
    assert codes["UNSUPPORTED"] == 3
    assert codes["OUT_OF_MEMORY"] == 1
    assert ExitCode.GOOD not in codes.values()


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["devcies"], "did you mean 'devices'?"),
        (["benhc"], "did you mean 'bench'?"),
        (["run", "x.onnx", "--devise", "cpu:0"], "did you mean '--device'?"),
        (["run", "magica"], "did you mean 'magika'?"),
        (["run", "magika", "--fallback", "alow"], "'alow' is not one of 'error', 'warn', 'allow'"),
        (["info", "cpv:0"], "did you mean 'cpu:0'?"),
        (["info", "cpu:99"], "cpu:99 does not exist"),
        (["info", "cpu:x"], "must look like 'cpu:0'"),
        (["run", "magika", "--plugin", "/nowhere/lib.so"], "does not exist"),
        (["frobnicate"], "there are devices, info, doctor"),
    ],
)
def test_mistakes_are_one_line_with_a_hint_and_exit_code_2(words, hint):
    result = call(*words)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("error: INVALID_ARGUMENT: ")
    assert result.stderr.count("\n") == 1
    assert hint in result.stderr


def test_no_command_shows_help_and_is_a_usage_error():
    result = call()
    assert result.exit_code == 2
    assert "Usage: chipdock" in result.stderr


def test_help_has_all_commands_and_the_exit_codes():
    result = call("--help")
    assert result.exit_code == 0
    for word in ("devices", "doctor", "explain", "cmake-dir", "130  interrupted"):
        assert word in result.stdout
    assert "..." not in result.stdout.partition("Commands:")[2]


@pytest.mark.parametrize("name", [name for name in cli.commands if name != "completion"])
def test_every_command_has_json_and_help(name):
    options = [word for param in cli.commands[name].params for word in param.opts]
    assert {"--json", "--plugin", "--debug"} <= set(options)
    assert call(name, "--help").exit_code == 0
    schema = "path" if name.endswith("-dir") else name
    assert load_schema(schema)["properties"]["schema"]["const"] == f"chipdock.{schema}/1"


@pytest.mark.parametrize(
    ("error", "line", "code"),
    [
        (errors.DeviceLostError("DEVICE_LOST: gone"), "DEVICE_LOST: gone", 5),
        (errors.InternalError("odd"), "INTERNAL: odd", 1),
        (errors.UnsupportedError("UNSUPPORTED: a\n  b"), "UNSUPPORTED: a b", 3),
        (MemoryError(), "OUT_OF_MEMORY: the host has no memory left for it", 1),
        (FileNotFoundError(2, "No such file", "a.npy"), "UNAVAILABLE: a.npy: No such file", 1),
        (click.UsageError("Bad thing."), "INVALID_ARGUMENT: bad thing (see 'chipdock --help')", 2),
    ],
)
def test_errors_become_a_line_and_a_code(error, line, code):
    assert describe(error) == (line, code)


@pytest.fixture
def failing(monkeypatch):
    """Lets `chipdock include-dir` raise what the test wants."""

    def install(error):
        def raise_it(**_):
            raise error

        monkeypatch.setattr(cli.commands["include-dir"], "callback", raise_it)

    return install


def test_a_fault_of_ours_is_one_line_and_debug_shows_more(failing):
    failing(ZeroDivisionError("oh"))
    result = call("include-dir")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: INTERNAL: ZeroDivisionError: oh; ")
    assert "Traceback" not in result.stderr
    for shown in (call("include-dir", "--debug"), call("include-dir", env={"CHIPDOCK_DEBUG": "1"})):
        assert "Traceback" in shown.stderr
        assert "error: INTERNAL" in shown.stderr


def test_interruption_is_130(failing):
    failing(KeyboardInterrupt())
    result = call("include-dir")
    assert (result.exit_code, result.stderr) == (130, "interrupted\n")


def test_a_reader_that_left_is_no_error(failing):
    failing(BrokenPipeError(errno.EPIPE, "Broken pipe"))
    result = call("include-dir")
    assert (result.exit_code, result.stderr) == (141, "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell):
    result = call("completion", shell)
    assert result.exit_code == 0
    assert "_CHIPDOCK_COMPLETE" in result.stdout


def test_unknown_shell():
    assert "'elvish' is not one of 'bash', 'zsh', 'fish'" in call("completion", "elvish").stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("chipdock dev", ["plain,devices"]),
        ("chipdock run mag", ["plain,magika"]),
        ("chipdock run magika --device cp", ["plain,cpu:0"]),
        ("chipdock explain magika --mem", ["plain,--memory"]),
        ("chipdock run magika --fallback a", ["plain,allow"]),
    ],
)
def test_completion_answers(line, expected):
    env = os.environ | {
        "_CHIPDOCK_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(line.count(" ")),
    }
    done = subprocess.run(
        [sys.executable, "-m", "chipdock.cli"], env=env, capture_output=True, text=True, check=False
    )
    assert [item for item in done.stdout.split() if not item.startswith("file,")] == expected
    assert done.stderr == ""


@pytest.mark.slow
def test_help_imports_nothing_slow():
    code = (
        "import sys; from chipdock.cli._app import cli\n"
        "try: cli.main(['--help'])\n"
        "except SystemExit: pass\n"
        "slow = {'numpy', 'onnx', 'rich', 'ml_dtypes', 'chipdock._core'} & set(sys.modules)\n"
        "sys.exit(f'imported {slow}' if slow else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", sorted(cli.commands))
def test_help_keeps_its_lines(name):
    """What click may not wrap is marked by a control character, never by two letters."""
    result = call(name, "--help")
    assert result.exit_code == 0
    assert "\\b" not in result.stdout
    assert "\b" not in result.stdout
    if name == "completion":
        assert '\n  bash  eval "$(chipdock completion bash)" ' in result.stdout
        assert '\n  zsh   eval "$(chipdock completion zsh)" ' in result.stdout

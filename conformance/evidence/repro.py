# SPDX-License-Identifier: Apache-2.0
"""A shell script for each failure that repeats the one case: same seed, inputs and mask.

The script is POSIX sh and calls solo.py, plainly or under a debugger or sanitizer. It names the
Python, the plugin and the environment of the run, and can be sent with them to the plugin's author.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chipdock.conformance.outcomes import FAILED, Outcome

__all__ = ["FOLDER", "command_of", "script", "write_all"]

FOLDER = "repro"
# Set by a run for its workers, or by the script itself.
_OWN = frozenset({"CHIPDOCK_LAYERS", "CHIPDOCK_DEBUG"})

# Others cannot be set in a shell.
_NAME = re.compile(r"CHIPDOCK_[A-Za-z0-9_]*")

_HEAD = """\
#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# {id}: {outcome} on {device}
# {cause}
# shellcheck disable=SC1003,SC2016,SC2089,SC2090 # values of the environment are literal
usage() {{
  cat <<'TEXT'
usage: sh {id}.sh [OPTION]...
  --debug gdb|valgrind   run under a debugger; gdb waits for commands, `run` starts the case
  --batch                with --debug gdb: run at once and print where it ended
  --wait-for-debugger    print the process id and wait until a debugger is attached
  --asan PLUGIN          use this build of the plugin, made with -fsanitize=address
  --plugin PLUGIN        use this build of the plugin
  --dump-tensors DIR     write all inputs and outputs as .npy files
  --trace                print every ABI call as JSON
TEXT
}}
set -eu

# What the run used; the environment comes before it.
python={python}
python=${{PYTHON:-$python}}
plugin={plugin}
{environment}"""

_BODY = """\

die() { printf '%s\\n' "$1" >&2; exit 2; }
need() { command -v "$1" >/dev/null || die "UNAVAILABLE: $1 is not installed"; }

debug='' batch='' asan='' trace='' wait='' dump=''
while [ $# -gt 0 ]; do
  case $1 in
    --debug | --asan | --plugin | --dump-tensors)
      [ $# -ge 2 ] || die "INVALID_ARGUMENT: $1 needs a value (see --help)" ;;
  esac
  case $1 in
    --debug) debug=$2; shift ;;
    --asan) asan=$2; plugin=$2; shift ;;
    --plugin) plugin=$2; shift ;;
    --dump-tensors) dump=$2; shift ;;
    --batch) batch=1 ;;
    --wait-for-debugger) wait=1 ;;
    --trace) trace=1 ;;
    -h | --help) usage; exit 0 ;;
    *) die "INVALID_ARGUMENT: no option $1 (see --help)" ;;
  esac
  shift
done

[ -z "$wait" ] || set -- "$@" --wait-for-debugger
[ -z "$dump" ] || set -- "$@" --dump-tensors "$dump"
[ -z "$trace" ] || set -- "$@" --trace /dev/stderr
[ -z "$plugin" ] || set -- "$@" --plugin "$plugin"
"""

_TAIL = """\

preload=''
if [ -n "$asan" ]; then
  # Python itself is not instrumented, so the sanitizer has to be there before it, and libstdc++
  # before the sanitizer looks for __cxa_throw.
  need "${CC:-cc}"
  runtime=$("${CC:-cc}" -print-file-name=libasan.so)
  [ -e "$runtime" ] || die "UNAVAILABLE: ${CC:-cc} has no libasan.so; set CC to another"
  preload="$runtime $("${CC:-cc}" -print-file-name=libstdc++.so.6)"
  # Python never frees all it holds.
  ASAN_OPTIONS="detect_leaks=0:${ASAN_OPTIONS:-}"
  export ASAN_OPTIONS
fi

case $debug in
  '')
    exec env LD_PRELOAD="$preload" "$@" ;;
  gdb)
    need gdb
    # The wrapper gives the preload to the case and not to gdb.
    if [ -n "$batch" ]; then
      set -- -batch -ex run -ex bt -ex 'info sharedlibrary chipdock' --args "$@"
    else
      set -- --args "$@"
    fi
    exec gdb -q --return-child-result -ex 'set breakpoint pending on' \\
      -ex "set exec-wrapper env 'LD_PRELOAD=$preload'" "$@" ;;
  valgrind)
    need valgrind
    known=$("$python" -c 'import chipdock.conformance.evidence as e; print(e.__path__[0])')
    # Python's own allocator would hide overruns. More options come from VALGRIND_OPTS.
    PYTHONMALLOC=malloc exec valgrind -q --error-exitcode=99 \\
      --suppressions="$known/valgrind.supp" "$@" ;;
  *)
    die "INVALID_ARGUMENT: --debug $debug; allowed are gdb and valgrind" ;;
esac
"""


def _environment(environment: Mapping[str, str]) -> str:
    kept = {k: v for k, v in environment.items() if _NAME.fullmatch(k) and k not in _OWN}
    return "".join(
        f'[ -n "${{{name}+set}}" ] || {name}={shlex.quote(value)}\nexport {name}\n'
        for name, value in sorted(kept.items())
    )


def _flat(value: Any) -> str:
    """Return text that cannot leave its comment, whatever a plugin or journal put into it."""
    words = " ".join(str(value).split())
    return "".join(c if c.isprintable() else "?" for c in words)[:300]


def script(
    case: Mapping[str, Any],
    run: Mapping[str, Any],
    *,
    python: str = sys.executable,
    environment: Mapping[str, str] | None = None,
) -> str:
    """Return the script of one case.

    Args:
        case: Of the report's cases.
        run: The report's run.
        python: Interpreter of the run.
        environment: Of the run; variables of chipdock are kept. None takes that of this process.
    """
    evidence = case.get("evidence") or {}
    # A case that fails behind others only is repeated behind them.
    ids = [*map(str, evidence.get("behind") or ()), str(case["id"])]
    options = run.get("options") or {}
    plugin = str(options.get("plugin") or "")
    words = ["--device", run["device"], "--seed", run["seed"], "--mask", run.get("mask", "none")]
    call = " ".join(shlex.quote(str(word)) for word in words)
    named = " \\\n  ".join(map(shlex.quote, ids))
    head = _HEAD.format(
        id=case["id"],
        outcome=case["outcome"],
        device=_flat(run["device"]),
        cause=_flat(case.get("cause", "")),
        python=shlex.quote(python),
        plugin=shlex.quote(str(Path(plugin).absolute()) if plugin else ""),
        environment=_environment(os.environ if environment is None else environment),
    )
    command = f'set -- "$python" -m chipdock.conformance.solo {call} "$@" -- \\\n  {named}\n'
    return head + _BODY + command + _TAIL


def command_of(folder: Path, case_id: str) -> str:
    """Return the one command that repeats a case of the run in `folder`."""
    return f"sh {shlex.quote(str(folder / FOLDER / f'{case_id}.sh'))}"


def write_all(document: dict[str, Any], folder: Path) -> list[Path]:
    """Write the scripts of all failures into folder/repro and note each command in the document.

    Args:
        document: See report.py; its failing cases get the key "repro".
        folder: Of the run.

    Returns:
        The files.
    """
    made = []
    for case in document["cases"]:
        if case["outcome"] in FAILED or case["outcome"] in {Outcome.WAIVED, Outcome.XPASS}:
            path = folder / FOLDER / f"{case['id']}.sh"
            path.parent.mkdir(exist_ok=True)
            path.write_text(script(case, document["run"]), "utf-8", "backslashreplace")
            path.chmod(0o755)
            case["repro"] = command_of(folder, case["id"])
            made.append(path)
    return made

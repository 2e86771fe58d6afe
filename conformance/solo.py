# SPDX-License-Identifier: Apache-2.0
"""One case, or a few in this order, in this very process, for a debugger to look at.

    python -m chipdock.conformance.solo --device acme:0 --seed 7 L2.op.erf.f16.odd

The scripts in a run's folder repro/ call it. There is no limit in time and no second process: a
crash is a crash of this one.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import pytest

from chipdock.cli.exit_codes import ExitCode, for_error
from chipdock.conformance.outcomes import FAILED, Outcome, exit_code

__all__ = ["main"]

_LAYERS = "CHIPDOCK_LAYERS"


class _Cases:
    """The pytest plugin that keeps the wanted cases, in order, and tells what became of them."""

    def __init__(self, ids: Sequence[str]) -> None:
        self._ids = ids
        self.outcomes: dict[str, Outcome] = {}
        self.trouble: list[str] = []

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.trouble.append(report.longreprtext)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        from chipdock.conformance._pytest import case_of  # noqa: PLC0415  after the environment

        found = {facts.id: item for item in items if (facts := case_of(item)) is not None}
        items[:] = [found[case_id] for case_id in self._ids if case_id in found]
        self.trouble += [f"{i} is not in its file" for i in self._ids if i not in found]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        from chipdock.conformance._pytest import case_of, judge  # noqa: PLC0415

        facts = case_of(item)
        begin = time.perf_counter()
        result = yield
        found = judge(item)
        assert facts is not None
        self.outcomes[facts.id] = found["outcome"]
        _tell(facts.id, found, (time.perf_counter() - begin) * 1e3)
        return result


def _tell(case_id: str, found: Mapping[str, Any], spent: float) -> None:
    from chipdock.conformance.evidence.cause import measured  # noqa: PLC0415

    sys.stderr.flush()
    lines = [f"{found['outcome']} {case_id} in {spent:.1f} ms"]
    if found["reason"]:
        lines.append(f"  {found['reason']}")
    numbers = measured(found["evidence"])
    if numbers:
        lines.append(f"  {numbers}")
    shown = {"metric", "value", "limit", "index", "expected", "got", "traceback"}
    lines += [f"  {key}: {value}" for key, value in found["evidence"].items() if key not in shown]
    lines += [f"    {line}" for line in str(found["evidence"].get("traceback", "")).splitlines()]
    click.echo("\n".join(lines))
    sys.stdout.flush()


def _layers(mask: str, trace: str) -> str:
    """Return CHIPDOCK_LAYERS as a worker of a run has them, with the trace outermost."""
    parts = [f"trace={trace}"] if trace else []
    parts.append("validate")
    if mask != "none":
        parts.append(f"mask={mask}")
    return ",".join(parts)


def _wait_for_debugger() -> None:
    """Wait until a debugger is attached to this process, and stop once it is."""
    # Without this, a debugger that is no ancestor may not attach where Yama restricts it.
    try:
        import ctypes  # noqa: PLC0415

        pr_set_ptracer, anyone = 0x59616D61, -1
        ctypes.CDLL(None).prctl(pr_set_ptracer, ctypes.c_ulong(anyone & 2**64 - 1), 0, 0, 0)
    except OSError:
        pass
    python = Path(sys.executable)
    click.echo(
        f"waiting for a debugger: gdb -p {os.getpid()}  # {python}, then: continue", err=True
    )
    while not re.search(r"(?m)^TracerPid:\s*[1-9]", Path("/proc/self/status").read_text("ascii")):
        time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGTRAP)


@click.command("solo", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--device", required=True, help="Device under test, NAME:N.")
@click.option("--plugin", default="", help="Its library or plugin.toml, if not installed.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the suite.")
@click.option("--mask", default="none", help="Optional slots taken away: required, or seed:N.")
@click.option("--trace", default="", metavar="FILE", help="Write every ABI call to it.")
@click.option(
    "--dump-tensors",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write inputs and outputs of every operator and model as .npy into this folder.",
)
@click.option("--wait-for-debugger", is_flag=True, help="Print the process id and wait.")
@click.argument("ids", nargs=-1, required=True, metavar="ID…")
def _solo(**given: Any) -> None:
    """Run the cases ID… in this process, in this order, and say what became of each."""
    device, seed, mask, ids = (given[name] for name in ("device", "seed", "mask", "ids"))
    os.environ[_LAYERS] = _layers(mask, given["trace"])
    from chipdock.conformance import _pytest as engine  # noqa: PLC0415  after the environment
    from chipdock.conformance._collect import arguments  # noqa: PLC0415
    from chipdock.conformance.ids import suggestions  # noqa: PLC0415
    from chipdock.conformance.manifest import read_manifest  # noqa: PLC0415
    from chipdock.conformance.target import Session  # noqa: PLC0415

    manifest = read_manifest()
    for case_id in ids:
        if case_id not in manifest.rows:
            close = suggestions(case_id, list(manifest.rows))
            hint = f"; did you mean {' or '.join(close)}?" if close else ""
            raise click.UsageError(f"no case '{case_id}'{hint}")
    if given["dump_tensors"] is not None:
        from chipdock.conformance.evidence.dump import install  # noqa: PLC0415

        install(given["dump_tensors"])
    if given["wait_for_debugger"]:
        _wait_for_debugger()
    session = Session(device, plugin=given["plugin"], seed=seed)
    try:
        session.plugin  # noqa: B018  an unusable plugin is no fault of a case
    except Exception as error:
        code = for_error(getattr(error, "code", ""))
        click.echo(str(error), err=True)
        sys.exit(int(code if code == ExitCode.USAGE else ExitCode.NOT_STARTED))
    cases = _Cases(ids)

    class _Early:
        """Sets the session before the engine would make its own."""

        @staticmethod
        @pytest.hookimpl(tryfirst=True)
        def pytest_configure(config: pytest.Config) -> None:
            config.stash[engine.session_key] = session

    click.echo(f"{device}, seed {seed}, mask {mask}: {shlex.join(ids)}")
    sys.stdout.flush()
    folder = manifest.folder
    files = list(dict.fromkeys(str(folder / manifest.rows[case_id].file) for case_id in ids))
    pytest.main([*arguments(folder), *files], plugins=[_Early(), cases, engine])
    for text in cases.trouble:
        click.echo(f"MISSING: {text}", err=True)
    # Earlier cases only prepare the ground: the last one is asked about.
    judged = [cases.outcomes.get(ids[-1], Outcome.MISSING)]
    judged += [outcome for outcome in cases.outcomes.values() if outcome in FAILED]
    sys.exit(int(exit_code(judged)))


def main() -> None:
    """Run the command line of this process and exit with its code."""
    _solo.main(prog_name="python -m chipdock.conformance.solo")


if __name__ == "__main__":
    main()

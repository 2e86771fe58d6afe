# SPDX-License-Identifier: Apache-2.0
"""abi: calls through the host; copies: against memcpy. Both are linked with the runtime."""

import subprocess
from collections.abc import Iterator

from bench import native
from bench.harness import SCALES, Result, Samples, Settings, compare, ratio, stats

AIM_CALL_NS = 3.0
AIM_COPY = 1 / 0.95  # 0.95 of memcpy's bandwidth, as a ratio of times
SIZES = (64 << 10, 1 << 20, 16 << 20, 256 << 20)


def _run(*arguments: object) -> Iterator[tuple[str, Samples]]:
    """Yield the samples of each case that a native program printed."""
    done = subprocess.run([*map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise native.NotRun(f"{arguments[0]} failed: {done.stderr.strip()[-400:]}")
    found: dict[str, Samples] = {}
    for line in done.stdout.splitlines():
        case, runner, calls, *seconds = line.split("\t")
        samples = found.setdefault(case, Samples())
        samples.seconds[runner] = [float(value) for value in seconds]
        samples.calls[runner] = int(calls)
    yield from found.items()


def run_abi(settings: Settings) -> list[Result]:
    """Return a call through the host against the plugin's own function pointer."""
    program = native.host_program("abi_call")
    rounds, calls = (2, 1000) if settings.quick else (400, 20_000)
    results = []
    for case, samples in _run(
        program, native.c_library("noop"), native.cpu_plugin(), rounds, calls
    ):
        ours, other = samples.seconds["chipdock"], samples.seconds["raw pointer"]
        results.append(
            Result(
                "abi",
                case,
                "raw pointer",
                "ns",
                stats(ours, SCALES["ns"], calls),
                stats(other, SCALES["ns"], calls),
                ratio(ours, other),
                AIM_CALL_NS,
                aim_is_difference=True,
            )
        )
    return results


def run_copies(settings: Settings) -> list[Result]:
    """Return copies between host and device memory against memcpy."""
    program = native.host_program("copies")
    results = []
    for size in SIZES[:1] if settings.quick else SIZES:
        # Short samples, so that most are not interrupted by other work on the machine.
        calls = 1 if settings.quick else max(1, (4 << 20) // size)
        each = 6 * calls * size / 8e9
        rounds = 2 if settings.quick else int(min(max(settings.budget_s / each, 8), 400)) // 2 * 2
        for case, samples in _run(program, native.cpu_plugin(), size, rounds, calls):
            what = f"{case} {size >> 10} KiB" if size < 1 << 20 else f"{case} {size >> 20} MiB"
            results += compare("copies", what, samples, "us", aims={"memcpy": AIM_COPY})
    return results

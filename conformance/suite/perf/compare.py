# SPDX-License-Identifier: Apache-2.0
"""What level P makes of a piece of work: against another plugin or run, or against nothing.

With something to compare with, the sides take turns and a verdict follows. Without, both sides are
the plugin under test: its time and the noise of the machine are kept as evidence, and the case is
NOT_RUN, because a figure alone shows neither fast nor slow and must not count as passed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chipdock.conformance.case import fail
from chipdock.conformance.evidence.paired import (
    Sample,
    Verdict,
    compare_counters,
    judge,
    measure,
)
from chipdock.conformance.evidence.side import AGAINST, Side
from chipdock.conformance.journal import read
from chipdock.conformance.target import HostLacks, Target

__all__ = ["Other", "conclude", "other_of", "run"]


@dataclass(frozen=True)
class Other:
    """A side.

    Attributes:
        device: "acme:0".
        plugin: Library or plugin.toml; "" finds it by name.
        layers: For CHIPDOCK_LAYERS of its process.
    """

    device: str
    plugin: str = ""
    layers: str = ""


def other_of(text: str, device: str) -> Other:
    """Return the side that `--against` names.

    Args:
        text: FILE, a library or plugin.toml with the device `device`; NAME:N; NAME:N@FILE; or
            DIR, the folder of a run: its device and plugin, as long as that is the same file.
        device: Under test.

    Raises:
        HostLacks: There is no such plugin any more.
    """
    path = Path(text)
    if path.is_dir():
        known = read(path).run
        library = Path(known["plugin"]["path"])
        same = known["plugin"]["sha256"]
        if not library.is_file() or hashlib.sha256(library.read_bytes()).hexdigest() != same:
            raise HostLacks(
                f"UNAVAILABLE: the plugin of {text}, {library}, is gone or another build by now; "
                f"keep its library and name that"
            )
        return Other(known["device"], str(library))
    name, _, file = text.rpartition("@")
    if not file.endswith((".so", ".toml", ".dylib")):
        return Other(text)
    return Other(name or device, file)


def conclude(
    target: Target,
    samples: tuple[Sequence[float], Sequence[float]],
    counters: tuple[Mapping[str, int], Mapping[str, int]],
    against: str,
) -> None:
    """Record what was measured and say what follows.

    Args:
        target: Of the case.
        samples: Times of A, the other side, and of B, the one under test, in seconds.
        counters: Calls by entry point of one piece of work, of A and of B.
        against: What A is; "" if it is the plugin under test itself.

    Raises:
        CheckError: B is slower, or calls an entry point more often.
        HostLacks: There was nothing to compare with.
    """
    found = judge(*samples)
    shown: dict[str, Any] = {
        "metric": "time ratio", "value": found.ratio, "low": found.low, "high": found.high,
        "noise": found.noise, "pairs": found.pairs, "verdict": str(found.verdict),
        "seconds": statistics.median(samples[1]), "counters": dict(counters[1]),
        "against": against,
    }  # fmt: skip
    if against:
        shown["seconds_against"] = statistics.median(samples[0])
    target.record(**shown)
    if not against:
        raise HostLacks(
            f"measured {shown['seconds']:.3e} s, noise {100 * found.noise:.1f} %, and compared "
            f"with nothing; --against names a plugin or a run"
        )
    grown = compare_counters(*counters)
    if grown:
        text = ", ".join(f"{name}: {change}" for name, change in grown.items())
        fail(f"more calls than {against}: {text}", grown=grown)
    if found.verdict is Verdict.SLOWER:
        fail(f"slower than {against}: {found}", limit=1.05)
    if found.verdict is Verdict.INCONCLUSIVE:
        target.warn(f"against {against}: {found}")


def run(target: Target, workload: str, *, given: Other | None = None) -> None:
    """Measure a piece of work of work.py, "gemm:256", and conclude.

    Args:
        target: Of the case.
        workload: Name and argument.
        given: The other side; None is what `--against` named, and nothing if it was not given.
    """
    named = os.environ.get(AGAINST, "")
    mine = Other(target.name, str(target.plugin_path))
    other = given or (other_of(named, target.name) if named else None)
    full = f"chipdock.conformance.suite.perf.work:{workload}"
    counts = []
    for side in (other or mine, mine):
        with Side(full, side.device, plugin=side.plugin, record=True) as counted:
            counts.append(counted.counters())
    first = other or mine

    @contextlib.contextmanager
    def sides() -> Iterator[tuple[Sample, Sample]]:
        with (
            Side(full, first.device, plugin=first.plugin, layers=first.layers, wait=False) as one,
            Side(full, mine.device, plugin=mine.plugin, wait=False) as two,
        ):
            one.ready()
            two.ready()
            yield one.sample, two.sample

    samples = measure(sides)
    against = "" if other is None else named or f"{other.device} {other.layers}".strip()
    conclude(target, samples, (counts[0], counts[1]), against)

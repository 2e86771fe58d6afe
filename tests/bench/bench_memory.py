# SPDX-License-Identifier: Apache-2.0
"""memory: bytes planned for activations, against the largest sum of those that live at once."""

import tempfile
from pathlib import Path

import chipdock
from bench.harness import Result, Settings, Stats, ratio
from bench.models.subject import subjects
from chipdock.models import ModelUnavailable

AIM = 1.1
# Below this a ratio speaks of alignment alone.
_SMALL = 64 << 10


def run_memory(settings: Settings) -> list[Result]:
    """Return one line per model, at its middle length."""
    results = []
    with tempfile.TemporaryDirectory(prefix="chipdock-bench-") as folder:
        for subject in subjects(settings):
            try:
                path = subject.source(settings, Path(folder))
            except ModelUnavailable as error:
                results.append(Result("memory", subject.name, "lower bound", cause=str(error)))
                continue
            point = subject.first_point()
            model = chipdock.load(path)
            shapes = {name: array.shape for name, array in subject.feeds(point).items()}
            found = model.memory(shapes)
            ours, bound = float(found["activation_bytes"]), float(found["activation_lower_bound"])
            exact = [Stats(v, v, v, v, 1) for v in (ours, bound)]
            note = f"workspace {found['workspace_bytes']:,} B, weights {found['weight_bytes']:,} B"
            case = subject.name + (f", {point.text}" if point.text else "")
            share = ratio([ours], [bound]) if bound else None
            aim = AIM if bound >= _SMALL else None
            results.append(
                Result("memory", case, "lower bound", "bytes", *exact, share, aim, note=note)
            )
            if path.parent == Path(folder):
                path.unlink()
    return results

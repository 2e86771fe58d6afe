# SPDX-License-Identifier: Apache-2.0
"""Makes the goldens of real models by onnxruntime with its optimizations off.

`python -m chipdock.conformance.goldens` says whether they are what onnxruntime computes here;
`--write` makes them anew and ends with 1, so that no job that writes them is ever green.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import platform
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chipdock.conformance.case import CheckError
from chipdock.conformance.models.golden import (
    FOLDER,
    check_output,
    digest_of,
    read_golden,
    read_index,
    summarize,
)
from chipdock.models import catalogue, tasks
from chipdock.models.fetch import ModelUnavailable, fetch

__all__ = ["independent_run", "main"]


def independent_run(model: Path, feeds: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
    """Return the outputs of a model by onnxruntime on the CPU, without optimizations.

    Raises:
        ModelUnavailable: onnxruntime is not installed.
    """
    try:
        import onnxruntime as ort  # noqa: PLC0415  optional
    except ImportError as error:
        raise ModelUnavailable("the golden", [f"onnxruntime cannot be used: {error}"]) from error
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return [np.asarray(value) for value in session.run(None, dict(feeds))]


def _write(names: Sequence[str], folder: Path) -> None:
    import onnxruntime as ort  # noqa: PLC0415  optional

    folder.mkdir(parents=True, exist_ok=True)
    index: dict[str, Any] = {
        "schema": 1,
        "tool": f"onnxruntime {ort.__version__}, CPUExecutionProvider, ORT_DISABLE_ALL",
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "models": {},
    }
    for name in names:
        item = catalogue.entry(name)
        path = fetch(item)
        arrays: dict[str, NDArray[Any]] = {}
        rows: dict[str, Any] = {}
        for case in tasks.cases(item, path):
            outputs = independent_run(path, case.feeds)
            rows[case.name] = {"inputs": digest_of(case.feeds), "outputs": len(outputs)}
            for i, output in enumerate(outputs):
                parts = summarize(output).items()
                arrays |= {f"{case.name}/{i}/{part}": value for part, value in parts}
        data = folder / f"{name}.npz"
        np.savez_compressed(data, allow_pickle=False, **arrays)
        index["models"][name] = {
            "model": hashlib.sha256(path.read_bytes()).hexdigest(),
            "data": hashlib.sha256(data.read_bytes()).hexdigest(),
            "cases": rows,
        }
    text = json.dumps(index, indent=1, sort_keys=True) + "\n"
    (folder / "index.json").write_text(text, encoding="utf-8")


def _compare(names: Sequence[str], folder: Path) -> list[str]:
    """Return what is not as the goldens say."""
    wrong = []
    for name in names:
        known = read_index(folder)["models"].get(name, {"cases": {}})["cases"]
        item = catalogue.entry(name)
        path = fetch(item)
        for case in tasks.cases(item, path):
            place = f"{name}, {case.name}"
            if case.name not in known:
                wrong.append(f"{place}: there is no golden")
            elif known[case.name]["inputs"] != digest_of(case.feeds):
                wrong.append(f"{place}: the inputs made here have another sha256")
            else:
                outputs = independent_run(path, case.feeds)
                rows = read_golden(name, case.name, known[case.name]["outputs"], folder)
                try:
                    for i, (output, row) in enumerate(zip(outputs, rows, strict=True)):
                        check_output(output, row, f"output {i}")
                except CheckError as error:
                    wrong.append(f"{place}: {error}")
    return wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare or write goldens; returns the exit code: 0 only if all were compared and agree."""
    parser = argparse.ArgumentParser(prog="chipdock.conformance.goldens", description=__doc__)
    parser.add_argument("--write", action="store_true", help="make all anew; ends with 1")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where they lie")
    asked = parser.parse_args(arguments)
    names = [item.name for item in catalogue.entries()]
    try:
        if asked.write:
            _write(names, asked.folder)
            sys.stderr.write(f"wrote {asked.folder}; nothing was checked, so this is no success\n")
            return 1
        wrong = _compare(names, asked.folder)
    except (ModelUnavailable, ImportError) as error:
        sys.stderr.write(f"NOT_RUN: {error}\n")
        return 3
    for line in wrong:
        sys.stderr.write(f"{line}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

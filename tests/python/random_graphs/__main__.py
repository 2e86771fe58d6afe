# SPDX-License-Identifier: Apache-2.0
"""Runs many random graphs: `PYTHONPATH=tests/python python -m random_graphs --count 20000`.

Prints faults by kind with one minimal case each; exit code 1 if there was any.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import onnx

from random_graphs.grow import OPSETS, Seeded, grow
from random_graphs.judge import Fault, check
from random_graphs.recipes import ALL

FAMILIES = ("", *sorted({recipe.__module__.rpartition(".")[2] for recipe in ALL}))


def keep(fault: Fault, folder: Path, name: str) -> None:
    """Write a minimal case: the model as text and binary, and its inputs."""
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(fault.model, folder / f"{name}.onnx")
    (folder / f"{name}.txt").write_text(f"{fault.text}\n\n{onnx.printer.to_text(fault.model)}\n")
    np.savez(folder / f"{name}.npz", **fault.feeds)


def main() -> int:
    """Run the chosen graphs; 1 if any was wrong."""
    parser = argparse.ArgumentParser(prog="random_graphs", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the first graph (1)")
    parser.add_argument("--count", type=int, default=1000, help="graphs (1000)")
    parser.add_argument("--most", type=int, default=30, help="nodes of a graph at most (30)")
    parser.add_argument(
        "--family", choices=FAMILIES, default="", help="recipes of most nodes, such as patterns"
    )
    parser.add_argument("--device", default="cpu:0", help="device name (cpu:0)")
    parser.add_argument(
        "--keep", type=Path, help="folder for one minimal case of each kind, and the seed at work"
    )
    options = parser.parse_args()
    kinds: Counter[str] = Counter()
    operators: Counter[str] = Counter()
    nodes, start = 0, time.monotonic()
    for seed in range(options.seed, options.seed + options.count):
        if options.keep is not None:  # a process that dies shall leave what it died of
            options.keep.mkdir(parents=True, exist_ok=True)
            (options.keep / f"at-{options.seed}.txt").write_text(f"{seed}\n")
        sample = grow(Seeded(seed), options.most, options.family)
        operators.update(node.op_type for node in sample.model.graph.node)
        nodes += len(sample.model.graph.node)
        fault = check(sample, options.device)
        if fault is not None:
            kinds[fault.kind] += 1
            if kinds[fault.kind] == 1:
                print(f"seed {seed}: {fault.text}", flush=True)
                if options.keep is not None:
                    keep(fault, options.keep, f"seed{seed}")
        done = seed - options.seed + 1
        if done % 1000 == 0:
            minutes = (time.monotonic() - start) / 60
            print(f"{done} graphs, {nodes} nodes, {sum(kinds.values())} wrong, {minutes:.1f} min",
                  flush=True)  # fmt: skip
    print(
        f"seeds {options.seed} to {options.seed + options.count - 1}: {options.count} graphs, "
        f"{nodes} nodes of {len(operators)} operators, opsets {OPSETS[0]} to {OPSETS[-1]}, "
        f"{sum(kinds.values())} wrong"
    )
    for kind, count in kinds.most_common():
        print(f"{count:6} {kind}")
    return 1 if kinds else 0


if __name__ == "__main__":
    sys.exit(main())

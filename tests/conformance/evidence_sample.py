# SPDX-License-Identifier: Apache-2.0
"""A run that never was, of any size, for the tests of the reports: journal lines and rows."""

import random
from pathlib import Path

from chipdock.conformance.case import Case
from chipdock.conformance.outcomes import Outcome

OPS = ["Abs", "Add", "Cast", "Conv", "Erf", "Exp", "Gather", "Gemm", "MatMul", "Mul", "Pow",
       "ReduceSum", "Relu", "Reshape", "Sigmoid", "Slice", "Softmax", "TopK", "Transpose",
       "Where"]  # fmt: skip
DTYPES = ["f32", "f64", "f16", "bf16", "i8", "i32", "i64", "u8", "bool", "f8e4m3fn"]
SHAPES = ["scalar", "empty", "odd", "broadcast", "strided", "large_k", "special"]

RUN = {
    "type": "run",
    "schema": 1,
    "suite_root": "9f2c" * 16,
    "suite_version": "0.1.0",
    "device": "demo:0",
    "plugin": {
        "name": "demo",
        "version": "2.4.1",
        "sha256": "ab" * 32,
        "abi": "1.0",
        "path": "/opt/demo/libchipdock_demo.so",
    },
    "device_info": {"product": "Demo X1", "architecture": "x1", "driver": "Demo 2.4.1",
                    "uuid": "0042"},
    "capabilities": {
        "slots": ["device.count", "device.info", "device.open", "device.close", "memory.alloc",
                  "memory.free", "memory.copy", "memory.fill", "stream.create", "kernel.launch"],
        "tables": {"memory": "1.0"},
    },
    "seed": 20240229,
    "options": {"level": "release", "jobs": 2},
    "env": {"os": "Linux 6.1", "kernel": "6.1.0", "cpu": "x86-64", "python": "3.11.2"},
    "mask": "none",
    "selected": [0],
    "started": "2026-03-01T12:00:00+00:00",
}  # fmt: skip

END = {
    "type": "end",
    "counts": {},
    "exit_code": 1,
    "seconds": 412.5,
    "coverage": {
        "memory.alloc": {"OK": 9120, "INVALID_ARGUMENT": 14, "OUT_OF_MEMORY": 2},
        "memory.copy": {"OK": 20240, "INVALID_ARGUMENT": 31, "TIMEOUT": 1},
        "device.open": {"OK": 12},
    },
}


def row(case_id, **facts):
    return Case(id=case_id, **facts)


def passed(case_id, ms=1.5, **more):
    return {"type": "case", "id": case_id, "revision": 1, "outcome": "PASS", "ms": ms, **more}


def wrong(case_id, **more):
    """A FAIL with all that a comparison tells."""
    return {
        "type": "case",
        "id": case_id,
        "revision": 1,
        "outcome": "FAIL",
        "ms": 3.25,
        "worker": 1,
        "attempt": 2,
        "reason": "the result is too far from the exact one",
        "evidence": {
            "metric": "ulp",
            "value": 9.25,
            "limit": 4.0,
            "index": [3, 17],
            "expected": 1.2345678,
            "got": 1.2345699,
            "max_ulp": 9.25,
            "rel_l2": 1.7e-6,
            "cosine": 0.9999999,
        },
        "duties": ["KRN-9"],
        "calls": [["memory.copy", "OK"], ["kernel.launch", "OK"], ["memory.copy", "OK"]],
        "stdout": "",
        "stderr": "warning: <slow path> & more\n",
        **more,
    }


def crash(case_id, **more):
    return {
        "type": "case",
        "id": case_id,
        "revision": 1,
        "outcome": "CRASH",
        "ms": 12.0,
        "signal": "SIGSEGV",
        "calls": [["kernel.create", "OK"], ["kernel.launch", "running"]],
        "evidence": {},
        **more,
    }


def of_kind(outcome, case_id):
    """A record of any outcome."""
    reasons = {
        "UNSUPPORTED": "op:Erf:f16",
        "NOT_RUN": "tool:valgrind",
        "MISSING": "no result was written",
        "TIMEOUT": "",
        "FLAKY": "failed behind others, passed alone",
        "ORDER_DEPENDENT": "fails behind L2.op.abs.f32.odd",
        "CLAIMED_UNSUPPORTED": "the kernel is listed and create returned UNSUPPORTED",
        "QUALITY_WARN": "99 % of the output is zero",
        "WAIVED": "the result is too far from the exact one",
        "XPASS": "waived, and passed",
    }
    if outcome == "PASS":
        return passed(case_id)
    if outcome == "FAIL":
        return wrong(case_id)
    if outcome == "CRASH":
        return crash(case_id)
    made = {
        "type": "case",
        "id": case_id,
        "outcome": outcome,
        "ms": 2.0,
        "reason": reasons[outcome],
    }
    if outcome == "TIMEOUT":
        made |= {"ms": 2000.0, "calls": [["stream.sync", "running"]]}
    if outcome == "ORDER_DEPENDENT":
        made["evidence"] = {"behind": ["L2.op.abs.f32.odd", "L2.op.exp.f32.odd"]}
    if outcome == "WAIVED":
        made["waiver"] = "W-2026-014"
    return made


def every_outcome():
    """(records, rows) with each outcome once."""
    records = [of_kind(str(kind), f"L2.op.case{n}.f32.odd") for n, kind in enumerate(Outcome)]
    rows = {r["id"]: row(r["id"], op="Erf", shape_class="odd", tolerance="U") for r in records}
    return records, rows


def large(count=5500, failing=0.01, seed=1):
    """(records, rows) of a run as large as a release's."""
    pick = random.Random(seed)
    records, rows = [], {}
    levels = [("L0", 250), ("L1", 320), ("L3", 150), ("L5", 30)]
    names = [
        f"{level}.area{n % 7}.subject{n // 7}.any.base"
        for level, most in levels
        for n in range(most)
    ]
    rest = count - len(names)
    ops = [*OPS, *(f"Operator{n}" for n in range(rest // (len(DTYPES) * len(SHAPES))))]
    every = [(op, dtype, shape) for op in ops for dtype in DTYPES for shape in SHAPES][:rest]
    for op, dtype, shape in every:
        case_id = f"L2.op.{op.lower()}.{dtype}.{shape}"
        rows[case_id] = row(case_id, op=op, shape_class=shape, tolerance="U", budget_ms=10)
        names.append(case_id)
    kinds = [str(kind) for kind in Outcome if kind != Outcome.PASS]
    for case_id in names:
        rows.setdefault(case_id, row(case_id, budget_ms=50, duties=("MEM-7",)))
        kind = "PASS"
        if pick.random() < failing:
            kind = pick.choice(kinds)
        elif case_id.split(".")[3] == "f8e4m3fn":
            kind = "UNSUPPORTED"
        made = of_kind(kind, case_id)
        made["ms"] = round(pick.lognormvariate(1.0, 1.2), 3) if kind != "TIMEOUT" else 2000.0
        records.append(made)
    return records, rows


def write_lines(path: Path, lines):
    """Write a journal."""
    import json

    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")

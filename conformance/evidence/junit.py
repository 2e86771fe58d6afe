# SPDX-License-Identifier: Apache-2.0
"""JUnit XML, which CI systems show. A suite is a level, a test case is a case.

JUnit knows four results: outcomes that fail the run are failures; a dead process, a case without a
verdict and a waiver that has to go are errors, so that no gate that reads only this file is green
without reason; UNSUPPORTED and WAIVED are skipped. The outcome's own name is always in the text.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from typing import Any

from chipdock.conformance.outcomes import FAILED, Outcome

__all__ = ["render"]

_ERRORS = frozenset(
    {Outcome.CRASH, Outcome.TIMEOUT, Outcome.MISSING, Outcome.NOT_RUN, Outcome.XPASS}
)
_SKIPPED = frozenset({Outcome.UNSUPPORTED, Outcome.WAIVED})
# Characters that XML 1.0 cannot hold, not even escaped.
_ILLEGAL = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _text(value: Any) -> str:
    return _ILLEGAL.sub("�", str(value))


def _result(case: Mapping[str, Any]) -> str:
    if case["outcome"] in _ERRORS:
        return "error"
    if case["outcome"] in FAILED:
        return "failure"
    return "skipped" if case["outcome"] in _SKIPPED else ""


def _add(suite: ET.Element, case: Mapping[str, Any]) -> None:
    level, area, subject, dtype, variant = str(case["id"]).split(".")
    node = ET.SubElement(
        suite,
        "testcase",
        classname=f"{level}.{area}.{subject}",
        name=f"{dtype}.{variant}",
        time=f"{case['ms'] / 1000.0:.6f}",
    )
    result = _result(case)
    if result:
        made = ET.SubElement(node, result, message=_text(f"{case['outcome']}: {case['cause']}"))
        if result != "skipped":
            made.set("type", str(case["outcome"]))
            calls = [" -> ".join(call) for call in case.get("calls", [])]
            lines = [case.get("reason", ""), *(["last ABI calls:", *calls] if calls else [])]
            if case.get("repro"):
                lines += ["repeat it by:", case["repro"]]
            made.text = _text("\n".join(line for line in lines if line))
    for name in ("stdout", "stderr"):
        if case.get(name):
            ET.SubElement(node, f"system-{name[3:]}").text = _text(case[name])


def render(document: Mapping[str, Any]) -> str:
    """Return the report as JUnit XML."""
    run = document["run"]
    root = ET.Element("testsuites", name="chipdock conformance", time=f"{document['seconds']:.3f}")
    totals = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    for level in document["levels"]:
        cases = [case for case in document["cases"] if case["id"].split(".")[0] == level["level"]]
        results = [_result(case) for case in cases]
        numbers = {
            "tests": len(cases),
            "failures": results.count("failure"),
            "errors": results.count("error"),
            "skipped": results.count("skipped"),
        }
        suite = ET.SubElement(
            root,
            "testsuite",
            name=level["level"],
            time=f"{level['seconds']:.3f}",
            timestamp=_text(run.get("started", document["made"])),
        )
        for key, value in numbers.items():
            suite.set(key, str(value))
            totals[key] += value
        properties = ET.SubElement(suite, "properties")
        for key in ("device", "seed", "mask", "suite_root"):
            if key in run:
                ET.SubElement(properties, "property", name=key, value=_text(run[key]))
        for case in cases:
            _add(suite, case)
    for key, value in totals.items():
        root.set(key, str(value))
    ET.indent(root, " ")
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"

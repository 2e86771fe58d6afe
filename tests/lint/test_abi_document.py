# SPDX-License-Identifier: Apache-2.0
"""device_api/ABI.md lists the headers' duties as they are, and every test that it names exists."""

import re

import abi_duties
import c_headers

TEXT = abi_duties.DOCUMENT.read_text(encoding="utf-8")


def test_duties_equal_the_headers():
    """Renewed by `python tests/lint/abi_duties.py --write`."""
    assert abi_duties.with_duties(TEXT, c_headers.load_all()) == TEXT


def test_named_tests_exist():
    assert len(abi_duties.named_tests(TEXT)) > 30
    assert abi_duties.missing_tests(TEXT) == []


def test_missing_test_is_found():
    document = "`tests/abi/test_cabi.py::test_of_nothing` `tests/no.cpp::x`"
    assert abi_duties.missing_tests(document) == [
        "tests/abi/test_cabi.py::test_of_nothing",
        "tests/no.cpp::x",
    ]


def test_each_of_the_36_failures_has_its_row():
    rows = re.findall(r"^\| (\d+) \| (.+) \| (.+) \|$", TEXT, re.MULTILINE)
    assert [int(number) for number, _, _ in rows] == list(range(1, 37))
    for number, failure, answer in rows:
        assert re.search(r"[\w.-]+/[\w.-]+#\d+", failure), number
        assert "`" in answer or "no test" in answer or "CHIPDOCK_" in answer, number


def test_versions_of_the_changelog_are_those_of_the_headers():
    changes = (c_headers.ROOT / "device_api" / "CHANGELOG.md").read_text(encoding="utf-8")
    for header in c_headers.load_all():
        name = header.name.removesuffix(".h")
        major = re.search(rf"#define CHIPDOCK_{name.upper()}_MAJOR (\d+)", header.text)
        minor = re.search(rf"#define CHIPDOCK_{name.upper()}_MINOR (\d+)", header.text)
        if major and minor:
            assert f"{name} {major.group(1)}.{minor.group(1)}" in changes


def test_walks_name_slots_and_fields_that_exist():
    walks = (c_headers.ROOT / "docs" / "abi-walks.md").read_text(encoding="utf-8")
    structs = [s for header in c_headers.load_all() for s in header.structs]
    slots = {s.name: {slot.name for slot in s.slots} for s in structs}
    fields = {name for s in structs for _, name in s.fields} | {"progress", "size"}
    tables = "device|memory|stream|event|kernel|graph|compile|ccl|profiler"
    calls = re.findall(rf"`({tables})\.(\w+)(?![\w.])", walks)
    assert len(calls) > 80
    for table, slot in calls:
        assert slot in slots[f"chipdock_{table}_api"], f"{table}.{slot}"
    for name in re.findall(r"\b([a-z_]+) = ", walks) + re.findall(r"\{(\w+): ", walks):
        assert name in fields | {"n", "y"}, name

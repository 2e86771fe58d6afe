# SPDX-License-Identifier: Apache-2.0
"""Offsets, sizes and constants never move: they equal their golden and extend older ones."""

import copy
import json
import re

import layout
import pytest


@pytest.fixture(scope="module")
def current(cc):
    return layout.take(cc)


@pytest.fixture(scope="module")
def golden(current):
    return json.loads(layout.golden_path(current).read_text(encoding="utf-8"))


@pytest.mark.slow
def test_layout_equals_golden_of_this_version(current, golden):
    """Before a release `layout.py --write` renews it; afterwards the minor is raised."""
    assert current == golden


def test_layout_extends_every_older_golden(current):
    paths = sorted(layout.GOLDENS.glob("abi-*.json"))
    assert paths
    for path in paths:
        assert layout.differences(json.loads(path.read_text(encoding="utf-8")), current) == []


def test_first_sizes_in_the_text_are_those_of_the_first_golden():
    text = (layout.ROOT / "device_api" / "README.md").read_text(encoding="utf-8")
    first = json.loads((layout.GOLDENS / "abi-1.0.json").read_text(encoding="utf-8"))["structs"]
    named = re.findall(r"`(chipdock_\w+)` (\d+)", text)
    assert {"chipdock_node", "chipdock_launch_desc"} <= {name for name, _ in named}
    for name, size in named:
        assert first[name]["size"] == int(size), name


def test_structs_have_no_padding_at_the_end(golden):
    """A field appended later would lie in it, where older writers left old bytes. [BASE-2]"""
    for name, struct in golden["structs"].items():
        assert max(sum(place) for place in struct["fields"].values()) == struct["size"], name


def test_structs_have_no_padding_inside(golden):
    """Every byte has a name, so that two equal structs have equal bytes."""
    known = {("chipdock_kernel", "dtype_rules")}
    for name, struct in golden["structs"].items():
        at = 0
        for field, (offset, size) in struct["fields"].items():
            assert offset == at or (name, field) in known, f"{name}.{field}"
            at = offset + size


@pytest.mark.slow
def test_host_layout_equals_its_golden(cc):
    current = layout.take(cc, of="HOST")
    path = layout.golden_path(current, "HOST")
    assert current == json.loads(path.read_text(encoding="utf-8"))
    test_structs_have_no_padding_at_the_end(current)
    test_structs_have_no_padding_inside(current)


def test_fixed_sizes():
    """Values that other projects fixed: DLPack's dtype, and our error record."""
    structs = json.loads((layout.GOLDENS / "abi-1.0.json").read_text(encoding="utf-8"))["structs"]
    assert structs["chipdock_dtype"]["fields"] == {"code": [0, 1], "bits": [1, 1], "lanes": [2, 2]}
    assert structs["chipdock_table_header"]["size"] == 8
    assert structs["chipdock_error"]["size"] == 544


CHANGES = {
    "a field moved": lambda s: s["chipdock_copy_desc"]["fields"].update(size=[32, 8]),
    "a field is gone": lambda s: s["chipdock_copy_desc"]["fields"].pop("flags"),
    "a field got wider": lambda s: s["chipdock_copy_desc"]["fields"].update(flags=[4, 8]),
    "a struct is gone": lambda s: s.pop("chipdock_copy_desc"),
    "a slot was put between": lambda s: s["chipdock_memory_api"]["fields"].update(between=[16, 8]),
}


@pytest.mark.parametrize("name", CHANGES)
def test_incompatible_change_is_found(golden, name):
    changed = copy.deepcopy(golden)
    CHANGES[name](changed["structs"])
    assert len(layout.differences(golden, changed)) == 1


def test_appended_field_is_compatible(golden):
    changed = copy.deepcopy(golden)
    struct = changed["structs"]["chipdock_copy_desc"]
    struct["fields"]["more"] = [struct["size"], 8]
    struct["size"] += 8
    changed["constants"]["CHIPDOCK_ABI_MINOR"] += 1
    changed["constants"]["CHIPDOCK_NEWER_STATUS"] = 19
    assert layout.differences(golden, changed) == []


def test_changed_constant_is_found(golden):
    changed = copy.deepcopy(golden)
    changed["constants"]["CHIPDOCK_TIMEOUT"] = 80
    assert layout.differences(golden, changed) == ["CHIPDOCK_TIMEOUT was 8, is 80"]


def test_unstable_table_may_change_with_its_minor_only(golden):
    changed = copy.deepcopy(golden)
    changed["structs"].pop("chipdock_ccl_op")
    assert layout.differences(golden, changed) == ["chipdock_ccl_op is gone"]
    changed["constants"]["CHIPDOCK_CCL_MINOR"] += 1
    assert layout.differences(golden, changed) == []

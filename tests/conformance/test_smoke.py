# SPDX-License-Identifier: Apache-2.0
"""The smoke tier: a list of known cases that touches every level, operator family and slot."""

from types import SimpleNamespace

import chipdock
from chipdock.conformance.case import Case
from chipdock.conformance.manifest import read_manifest
from chipdock.conformance.smoke import choose, smoke_ids, traits


def row(case_id, file="a.py", **facts):
    return SimpleNamespace(case=Case(id=case_id, **facts), file=file)


def test_the_list_names_cases_that_are_there():
    manifest = read_manifest()
    assert smoke_ids() <= set(manifest.rows)
    assert 300 <= len(smoke_ids()) <= 500
    assert {i for i, r in manifest.rows.items() if r.case.tier == "smoke"} == smoke_ids()


def test_every_level_and_family_of_operators_is_there():
    manifest = read_manifest()
    chosen = [manifest.rows[case_id] for case_id in smoke_ids()]
    assert {r.case.level for r in chosen} == {"L0", "L1", "L2", "L3"}
    families = {r.file for r in manifest.rows.values() if r.case.level == "L2"}
    assert {r.file for r in chosen if r.case.level == "L2"} >= {
        file for file in families if "models" not in file
    }


def test_every_slot_of_the_embedded_plugin_is_called_by_some_case():
    slots = {name for name, there in chipdock.open_plugin("cpu").slots.items() if there}
    manifest = read_manifest()
    known = set().union(*(r.case.entry_points for r in manifest.rows.values()))
    chosen = set().union(*(manifest.rows[i].case.entry_points for i in smoke_ids()))
    assert slots & known <= chosen


def test_the_cheapest_case_that_adds_something_is_chosen():
    rows = {
        "L1.a.b.any.dear": row("L1.a.b.any.dear", entry_points=("memory.copy",)),
        "L1.a.b.any.cheap": row("L1.a.b.any.cheap", entry_points=("memory.copy",)),
        "L1.a.b.any.other": row("L1.a.b.any.other", entry_points=("memory.free",)),
        "L5.model.b.any.x": row("L5.model.b.any.x", entry_points=("memory.alloc",)),
    }
    times = {"L1.a.b.any.dear": 90.0, "L1.a.b.any.cheap": 1.0, "L1.a.b.any.other": 5.0}
    assert choose(rows, times | {"L5.model.b.any.x": 1.0}) == [
        "L1.a.b.any.cheap",
        "L1.a.b.any.other",
    ]
    assert choose(rows, {"L1.a.b.any.dear": 9000.0}) == []


def test_what_a_case_of_an_operator_stands_for():
    facts = row("L2.op.add.f32.row", duties=("KRN-4",), shape_class="broadcast", tolerance="U")
    assert traits(facts) == {
        "duty KRN-4", "subject L2.op.add", "dtype f32", "class U", "file a.py",
        "shapes a.py broadcast",
    }  # fmt: skip

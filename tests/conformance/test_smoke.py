# SPDX-License-Identifier: Apache-2.0
"""The smoke tier: a list of known cases that touches every level, operator family and slot."""

from types import SimpleNamespace

from chipdock.conformance.case import Case
from chipdock.conformance.manifest import read_manifest
from chipdock.conformance.smoke import choose, smoke_ids, traits


def row(case_id, file="a.py", **facts):
    return SimpleNamespace(case=Case(id=case_id, **facts), file=file)


def test_the_list_names_cases_that_are_there():
    manifest = read_manifest()
    assert smoke_ids() <= set(manifest.rows)
    assert 300 <= len(smoke_ids()) <= 600
    smoke = {i for i, row in manifest.rows.items() if row.case.tier == "smoke"}
    assert {i for i in smoke if not i.startswith(("L4", "L5"))} == smoke_ids()  # these say so


def test_every_level_slot_and_family_of_operators_is_there():
    rows = read_manifest().rows.values()
    chosen = [row for row in rows if row.case.id in smoke_ids()]
    assert {row.case.level for row in chosen} == {"L0", "L1", "L2", "L3"}
    families = {row.file for row in rows if row.case.level == "L2" and "models" not in row.file}
    assert families <= {row.file for row in chosen}
    slots = set().union(*(r.case.entry_points for r in rows if r.case.level in {"L0", "L1", "L2"}))
    assert slots <= set().union(*(row.case.entry_points for row in chosen))


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
    assert choose(rows, times, {"slot memory.copy", "subject L1.a.b"}) == ["L1.a.b.any.other"]


def test_what_a_case_of_an_operator_stands_for():
    facts = row("L2.op.add.f32.row", duties=("KRN-4",), shape_class="broadcast", tolerance="U")
    assert traits(facts) == {
        "duty KRN-4", "subject L2.op.add", "dtype f32", "class U", "file a.py",
        "shapes a.py broadcast",
    }  # fmt: skip

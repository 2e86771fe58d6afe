# SPDX-License-Identifier: Apache-2.0
"""Which cases a selection holds, how shards divide it, and what batches look like."""

from pathlib import Path

import pytest

from chipdock.conformance.case import Case
from chipdock.conformance.manifest import Row, make
from chipdock.conformance.plan import Selection, SelectionError, batches, group_of, select


def row(case_id, file="a.py", **facts):
    return Row(Case(case_id, **facts), file, "test_it", "", "0")


@pytest.fixture
def manifest():
    rows = [
        row("L0.abi.size.any.base", "l0.py", tier="smoke"),
        row("L1.memory.copy.any.n1", budget_ms=3000),
        row("L1.memory.copy.any.n2", budget_ms=3000, was=("L1.memory.move.any.n2",)),
        *(row(f"L2.op.add.f32.n{n}", "l2.py", budget_ms=10) for n in range(100)),
        row("L3.soak.all.any.base", "l3.py", budget_ms=60000, tier="submit"),
        row("P.copy.rate.any.base", "p.py"),
    ]
    return make(rows, Path())


def test_the_default_is_the_release_band_without_measurements(manifest):
    ids = select(manifest, Selection())
    assert len(ids) == 104
    assert not [case_id for case_id in ids if case_id.startswith("P.")]
    assert select(manifest, Selection(level="P")) == ["P.copy.rate.any.base"]


def test_a_tier_holds_the_smaller_ones(manifest):
    assert select(manifest, Selection(tier="smoke")) == ["L0.abi.size.any.base"]
    assert len(select(manifest, Selection(tier="pr"))) == 103


def test_named_cases_are_run_in_the_suites_order_whatever_their_tier(manifest):
    names = ("L3.soak.all.any.base", "L1.memory.copy.*", "L1.memory.copy.any.n1")
    assert select(manifest, Selection(cases=names, tier="smoke")) == [
        "L1.memory.copy.any.n1", "L1.memory.copy.any.n2", "L3.soak.all.any.base",
    ]  # fmt: skip


def test_a_former_id_finds_its_case(manifest):
    found = select(manifest, Selection(cases=("L1.memory.move.any.n2",)))
    assert found == ["L1.memory.copy.any.n2"]


@pytest.mark.parametrize("name", ["L1.memory.copi.any.n1", "L9.*", "L1.memory.copy.any.n[7]"])
def test_a_name_that_finds_nothing_is_an_error(manifest, name):
    with pytest.raises(SelectionError, match="no case"):
        select(manifest, Selection(cases=("L1.memory.copy.*", name)))


def test_an_error_offers_what_looks_like_it(manifest):
    with pytest.raises(SelectionError, match=r"did you mean 'L1.memory.copy.any.n[12]' or"):
        select(manifest, Selection(cases=("L1.memory.copi.any.n1",)))


def test_globs_narrow_and_may_leave_nothing(manifest):
    assert len(select(manifest, Selection(globs=("*.f32.n1*",)))) == 11
    assert select(manifest, Selection(globs=("nothing",))) == []


@pytest.mark.parametrize("count", [1, 2, 3, 7, 200])
def test_shards_are_disjoint_whole_and_even(manifest, count):
    parts = [select(manifest, Selection(shard=(n, count))) for n in range(1, count + 1)]
    together = [case_id for part in parts for case_id in part]
    assert sorted(together) == sorted(select(manifest, Selection()))
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 2


def test_shards_do_not_hang_on_the_order(manifest):
    one = select(manifest, Selection(shard=(1, 3)))
    other = select(manifest, Selection(shard=(1, 3), order="shuffle", seed=5))
    assert sorted(one) == sorted(other)
    assert one != other


def test_an_order_comes_again_with_its_seed(manifest):
    def shuffled(seed):
        return select(manifest, Selection(order="shuffle", seed=seed))

    assert shuffled(1) == shuffled(1)
    assert shuffled(1) != shuffled(2)


def test_batches_hold_everything_once_within_their_limits(manifest):
    ids = select(manifest, Selection())
    made = batches(ids, manifest)
    assert sorted(case_id for batch in made for case_id in batch) == sorted(ids)
    for batch in made:
        rows = [manifest.rows[case_id] for case_id in batch]
        assert len(batch) <= 64
        assert len({(r.file, r.case.level) for r in rows}) == 1
        assert len(batch) == 1 or sum(r.case.budget_ms for r in rows) <= 5000


def test_what_takes_long_starts_first_and_the_rest_in_order(manifest):
    made = batches(select(manifest, Selection()), manifest)
    assert made[0] == ["L3.soak.all.any.base"]
    assert made[1] == ["L0.abi.size.any.base"]
    assert made[2] == ["L1.memory.copy.any.n1"]


def test_the_group_of_a_case_is_its_subject():
    assert group_of("L2.op.matmul.bf16.k4096_ta") == "L2.op.matmul"

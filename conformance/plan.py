# SPDX-License-Identifier: Apache-2.0
"""Which cases a run holds, in which order, and in which batches workers get them."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from chipdock.conformance.ids import expand_levels, match, suggestions
from chipdock.conformance.manifest import Manifest, Row

__all__ = ["TIERS", "Selection", "SelectionError", "batches", "group_of", "select", "shard_of"]

TIERS = ("smoke", "pr", "nightly", "submit")
_BATCH_MS = 5000
_BATCH_CASES = 64


class SelectionError(ValueError):
    """What was asked for names something that is not there."""


@dataclass(frozen=True)
class Selection:
    """What the user asked for.

    Attributes:
        level: "core", "L0-L3", …; "" is every level but P.
        tier: The largest tier that is run.
        cases: Ids or glob patterns, each of which has to match something.
        globs: Patterns that narrow the selection.
        shard: (number from 1, count).
        order: "manifest" or "shuffle".
        seed: Of the order.
    """

    level: str = ""
    tier: str = "submit"
    cases: tuple[str, ...] = ()
    globs: tuple[str, ...] = ()
    shard: tuple[int, int] = (1, 1)
    order: str = "manifest"
    seed: int = 0


def select(manifest: Manifest, asked: Selection) -> list[str]:
    """Return the ids of a selection in the order in which they are run.

    Raises:
        SelectionError: An id is unknown, or a pattern of `cases` matches nothing.
    """
    ids = list(manifest.rows)
    if asked.cases:
        ids = _named(asked.cases, manifest)
    if asked.level or not asked.cases:
        try:
            levels = expand_levels(asked.level or "release")
        except ValueError as error:
            raise SelectionError(str(error)) from None
        ids = [case_id for case_id in ids if case_id.split(".", 1)[0] in levels]
    if not asked.cases:
        largest = TIERS.index(asked.tier)
        ids = [i for i in ids if TIERS.index(manifest.rows[i].case.tier) <= largest]
    if asked.globs:
        ids = match(asked.globs, ids)
    ids = shard_of(ids, manifest, *asked.shard)
    if asked.order == "shuffle":
        random.Random(asked.seed).shuffle(ids)
    return ids


def _named(names: Sequence[str], manifest: Manifest) -> list[str]:
    former = {was: row.case.id for row in manifest.rows.values() for was in row.case.was}
    chosen: set[str] = set()
    for name in names:
        if name in manifest.rows:
            chosen.add(name)
        elif name in former:
            chosen.add(former[name])
        else:
            found = match([name], manifest.rows) if set(name) & set("*?[") else []
            if not found:
                known = suggestions(name, list(manifest.rows))
                hint = f"; did you mean {' or '.join(map(repr, known))}?" if known else ""
                raise SelectionError(f"no case {name!r}{hint}")
            chosen.update(found)
    return [case_id for case_id in manifest.rows if case_id in chosen]


def shard_of(ids: Sequence[str], manifest: Manifest, number: int, count: int) -> list[str]:
    """Return the part of the ids that shard `number` of `count` runs, in their order.

    The parts are disjoint, make up the whole, and take about equally long.
    """
    if count == 1:
        return list(ids)
    rank = sorted(ids, key=lambda case_id: (-manifest.rows[case_id].case.budget_ms, case_id))
    # Back and forth: 1 2 3 3 2 1, so that the first shard does not get the longest of every row.
    period = [*range(1, count + 1), *range(count, 0, -1)]
    mine = {case_id for place, case_id in enumerate(rank) if period[place % len(period)] == number}
    return [case_id for case_id in ids if case_id in mine]


def batches(ids: Sequence[str], manifest: Manifest, alone: Collection[str] = ()) -> list[list[str]]:
    """Cut a list of ids into batches, the longest batches first.

    A batch is of one level and one file, holds at most _BATCH_CASES, and takes about _BATCH_MS if
    its budgets are true.

    Args:
        ids: To be run.
        manifest: Of the suite.
        alone: Cases that come behind all others, each in a batch of its own.
    """
    behind = [[case_id] for case_id in ids if case_id in alone]
    ids = [case_id for case_id in ids if case_id not in alone]
    made: list[list[str]] = []
    spent = 0
    last: Row | None = None
    for case_id in ids:
        row = manifest.rows[case_id]
        full = not made or len(made[-1]) >= _BATCH_CASES or spent + row.case.budget_ms > _BATCH_MS
        if full or last is None or (row.case.level, row.file) != (last.case.level, last.file):
            made.append([])
            spent = 0
        made[-1].append(case_id)
        spent += row.case.budget_ms
        last = row
    lengths = [sum(manifest.rows[i].case.budget_ms for i in batch) for batch in made]
    # Only what is longer than an ordinary batch moves: the rest keeps the suite's order, from the
    # ABI up, which a reader of the progress expects.
    order = sorted(range(len(made)), key=lambda k: -lengths[k] if lengths[k] > _BATCH_MS else 0)
    return [made[k] for k in order] + behind


def group_of(case_id: str) -> str:
    """Return the group of a case: the first three parts of its id."""
    return ".".join(case_id.split(".", 3)[:3])

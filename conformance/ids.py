# SPDX-License-Identifier: Apache-2.0
"""The grammar of case ids, and choosing ids by level, name and pattern."""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Iterable, Sequence

__all__ = ["BANDS", "LEVELS", "check_id", "expand_levels", "match", "suggestions"]

LEVELS = ("L0", "L1", "L2", "L3", "L4", "L5", "P")
BANDS = {
    "sanity": ("L0",),
    "core": ("L0", "L1", "L2"),
    "release": ("L0", "L1", "L2", "L3", "L4", "L5"),
}
"""Names for several levels. P is never part of a band: its cases compare, they do not judge."""

_PART = r"[a-z0-9][a-z0-9_]*"
_ID = re.compile(rf"(L[0-5]|P)\.{_PART}\.{_PART}\.{_PART}\.{_PART}")
_LONGEST = 160


def check_id(case_id: str) -> str:
    """Return the id if it is well formed: LEVEL.area.subject.dtype.variant.

    Raises:
        ValueError: It is not; the text says what is.
    """
    if len(case_id) > _LONGEST or not _ID.fullmatch(case_id):
        raise ValueError(
            f"'{case_id}' is no case id: it is LEVEL.area.subject.dtype.variant of the characters "
            f"a-z 0-9 _, at most {_LONGEST} long, such as L2.op.matmul.bf16.k4096_ta"
        )
    return case_id


def expand_levels(text: str) -> tuple[str, ...]:
    """Return the levels of "core", "L0", "L0-L3" or several of these with commas, in order.

    Raises:
        ValueError: A part is neither a band nor a level.
    """
    found: set[str] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if part.strip() in BANDS:
            found.update(BANDS[part.strip()])
        elif first in LEVELS and (not dash or last in LEVELS):
            begin, end = LEVELS.index(first), LEVELS.index(last if dash else first)
            if end < begin:
                raise ValueError(f"the level range '{part}' runs backwards; write {last}-{first}")
            found.update(LEVELS[begin : end + 1])
        else:
            raise ValueError(
                f"'{part.strip()}' is no level; allowed are {', '.join([*BANDS, *LEVELS])}, "
                "ranges such as L0-L3, and lists of these"
            )
    return tuple(level for level in LEVELS if level in found)


def match(patterns: Iterable[str], ids: Iterable[str]) -> list[str]:
    """Return the ids that match any of the glob patterns, in the order of `ids`."""
    tests = [re.compile(fnmatch.translate(pattern)) for pattern in patterns]
    return [case_id for case_id in ids if any(test.match(case_id) for test in tests)]


def suggestions(wrong: str, known: Sequence[str], count: int = 3) -> list[str]:
    """Return known ids that look most like a wrong one."""
    return difflib.get_close_matches(wrong, known, n=count, cutoff=0.6)

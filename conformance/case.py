# SPDX-License-Identifier: Apache-2.0
"""How a case is declared: a pytest function, its variants, and the facts of the manifest.

    @case("L1.memory.copy_h2d", duties=("MEM-5",), entry_points=("memory.copy",),
          variants=[Variant(name=f"n{size}", size=size) for size in (1, 4097)])
    def test_copy_h2d(target: Target, variant: Variant) -> None:
        \"\"\"Bytes copied to the device come back unchanged.\"\"\"

Each variant is one case with the id `L1.memory.copy_h2d.any.n1`. The docstring is what `explain`
prints. What runs the cases is worker.py; what `target` offers is target.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar

from chipdock.conformance.ids import check_id
from chipdock.conformance.smoke import smoke_ids

__all__ = ["Case", "CheckError", "NotSupported", "Variant", "case", "fail"]

_TOLERANCES = ("none", "E", "U", "R", "C", "Q", "D", "M")
_TIERS = ("smoke", "pr", "nightly", "submit")

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Variant:
    """One case of a function: its dtype, its name and whatever else the function reads.

    Attributes:
        dtype: Fourth part of the id; "any" where there is none.
        name: Fifth part of the id.
        needs: Capabilities beyond those of the function, see target.py.
        values: What the function reads; also reachable as attributes. Only plain data, whose repr
            is the same in every process: it is part of the case's body hash.
    """

    def __init__(
        self, dtype: str = "any", name: str = "base", needs: str = "", **values: Any
    ) -> None:
        """Names a case and keeps its values."""
        self.dtype = dtype
        self.name = name
        self.needs = needs
        self.values: Mapping[str, Any] = values

    def __getattr__(self, name: str) -> Any:
        """Return a value by its name."""
        try:
            return self.__dict__["values"][name]
        except KeyError:
            raise AttributeError(f"the variant has no value '{name}'") from None

    def __repr__(self) -> str:
        """Return the variant as text that is the same in every process."""
        values = ", ".join(f"{key}={value!r}" for key, value in sorted(self.values.items()))
        return f"Variant({self.dtype!r}, {self.name!r}, {self.needs!r}, {values})"


@dataclass(frozen=True, slots=True)
class Case:
    """The facts of one case, as they stand in the manifest.

    Attributes:
        id: See ids.py.
        duties: Of the C headers that it judges, "MEM-5".
        entry_points: Slots that it touches, "memory.copy".
        needs: Capability expression; "" needs only the required slots.
        op: Operator, "Conv" or "com.microsoft::FastGelu"; "" for none.
        shape_class: Of level 2, "scalar", "empty", "odd", "broadcast", "strided", "large_k",
            "special", …; "" for none.
        tolerance: One of none, E, U, R, C, Q, D, M.
        budget_ms: Time of the reference CPU plugin, rounded up; limits follow from it.
        revision: Goes up when the meaning of the case changes.
        tier: The smallest tier that holds it: smoke, pr, nightly or submit.
        mustpass: No waiver can cover it.
        was: Ids it had before.
    """

    id: str
    duties: tuple[str, ...] = ()
    entry_points: tuple[str, ...] = ()
    needs: str = ""
    op: str = ""
    shape_class: str = ""
    tolerance: str = "none"
    budget_ms: int = 100
    revision: int = 1
    tier: str = "pr"
    mustpass: bool = False
    was: tuple[str, ...] = field(default=())

    @property
    def level(self) -> str:
        """First part of the id."""
        return self.id.split(".", 1)[0]


class NotSupported(Exception):  # noqa: N818 - an outcome, not an error
    """Raised in a case: the plugin declares that it lacks something. The outcome is UNSUPPORTED."""


class CheckError(AssertionError):
    """Raised in a case: what was seen is not what was promised. The outcome is FAIL.

    Attributes:
        evidence: Plain data for the reports: metric, value, limit, index, expected, got, ….
    """

    def __init__(self, text: str, **evidence: Any) -> None:
        """Keeps the text and the evidence."""
        super().__init__(text)
        self.evidence = evidence


def fail(text: str, **evidence: Any) -> NoReturn:
    """Fail the running case.

    Args:
        text: What was seen, what was promised, in words.
        evidence: For the reports, plain data.

    Raises:
        CheckError: Always.
    """
    raise CheckError(text, **evidence)


def case(
    subject: str,
    *,
    duties: Sequence[str] = (),
    entry_points: Sequence[str] = (),
    needs: str = "",
    op: str = "",
    tolerance: str = "none",
    budget_ms: int = 100,
    revision: int = 1,
    tier: str = "pr",
    mustpass: bool = False,
    variants: Iterable[Variant] | None = None,
) -> Callable[[_Function], _Function]:
    """Declare a test function as a family of cases.

    Args:
        subject: "LEVEL.area.subject", the first three parts of the ids.
        duties: See `Case`; so are the other facts. A variant's values of the names op,
            shape_class, tolerance, budget_ms, revision, tier, mustpass, duties, entry_points and
            was stand before the function's.
        entry_points: See `Case`.
        needs: See `Case`; a variant's needs are added.
        op: See `Case`.
        tolerance: See `Case`.
        budget_ms: See `Case`.
        revision: See `Case`.
        tier: See `Case`.
        mustpass: See `Case`.
        variants: The cases; None is one with the names "any" and "base".

    Raises:
        ValueError: An id is malformed or taken twice, or a tolerance or tier is unknown.
    """
    rows = [
        _row(
            subject,
            variant,
            {
                "duties": tuple(duties),
                "entry_points": tuple(entry_points),
                "op": op,
                "tolerance": tolerance,
                "budget_ms": budget_ms,
                "revision": revision,
                "tier": tier,
                "mustpass": mustpass,
            },
            needs,
        )
        for variant in (variants if variants is not None else (Variant(),))
    ]
    ids = [row.id for row, _ in rows]
    if len(set(ids)) != len(ids):
        twice = sorted({case_id for case_id in ids if ids.count(case_id) > 1})
        raise ValueError(f"the id '{twice[0]}' is taken twice by {subject}")

    import pytest  # noqa: PLC0415  slow, and the owner of a run reads `Case` without it

    def decorate(function: _Function) -> _Function:
        marks = [
            pytest.param(variant, id=row.id, marks=pytest.mark.case(row)) for row, variant in rows
        ]
        marked: _Function = pytest.mark.parametrize("variant", marks)(function)
        return marked

    return decorate


def _row(subject: str, variant: Variant, facts: dict[str, Any], needs: str) -> tuple[Case, Variant]:
    named = {**facts, "shape_class": "", "was": ()}
    own = {key: variant.values[key] for key in named if key in variant.values}
    both = " and ".join(part for part in (needs, variant.needs) if part)
    case_id = check_id(f"{subject}.{variant.dtype}.{variant.name}")
    if case_id in smoke_ids():
        own["tier"] = "smoke"
    made = Case(id=case_id, needs=both, **(named | own))
    if made.tolerance not in _TOLERANCES or made.tier not in _TIERS:
        raise ValueError(
            f"{made.id}: tolerance '{made.tolerance}' and tier '{made.tier}' must be of "
            f"{_TOLERANCES} and {_TIERS}"
        )
    return made, variant

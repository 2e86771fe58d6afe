# SPDX-License-Identifier: Apache-2.0
"""How descs of other sizes are read: the rules by which structs grow, for every desc."""

from __future__ import annotations

from chipdock.conformance.case import Variant, case
from chipdock.conformance.suite.l0.bench import RECIPES, Bench
from chipdock.conformance.suite.l0.signatures import signature
from chipdock.conformance.suite.l0.sizes import FIRST_SIZE, cut, lengthened
from chipdock.conformance.target import Target

_REQUIRED = {"device.open", "memory.alloc", "memory.copy"}
# Their recipes reach the checks and do not succeed: no text or model fits every compiler.
_NEVER_OK = {
    "compile.compile_source", "compile.claim", "compile.compile", "ccl.init",
    "memory.import_memory", "kernel.layout_size",
}  # fmt: skip
_DESCS = [
    (slot, argument)
    for slot in RECIPES
    for argument in signature(slot)
    if argument.role == "desc" and argument.struct in FIRST_SIZE
]


def _variants(*, runs: bool = False) -> list[Variant]:
    return [
        Variant(
            name=slot.replace(".", "_"),
            needs=f"slot:{slot}",
            slot=slot,
            position=argument.position,
            struct=argument.struct,
            entry_points=(slot,),
            mustpass=slot in _REQUIRED,
        )
        for slot, argument in _DESCS
        if not runs or slot not in _NEVER_OK
    ]


def _outputs_untouched(variant: Variant, arguments: list[object]) -> None:
    for argument in signature(variant.slot):
        if argument.role == "output":
            written = arguments[argument.position][0]  # type: ignore[index]
            assert not written, f"the failed call wrote {argument.name} [BASE-8]"


@case("L0.struct.size_zero", duties=("BASE-1", "BASE-4", "BASE-8"), variants=_variants())
def test_size_zero(target: Target, variant: Variant) -> None:
    """A desc with struct_size 0 is INVALID_ARGUMENT and changes nothing."""
    with Bench(target) as bench:
        arguments = bench.arguments(variant.slot)
        arguments[variant.position].struct_size = 0
        bench.refuse(variant.slot, "INVALID_ARGUMENT", *arguments)
        _outputs_untouched(variant, arguments)


@case("L0.struct.size_short", duties=("BASE-4", "BASE-8"), variants=_variants())
def test_size_short(target: Target, variant: Variant) -> None:
    """A desc one byte shorter than it was when first published is INVALID_ARGUMENT."""
    with Bench(target) as bench:
        arguments = bench.arguments(variant.slot)
        arguments[variant.position].struct_size = FIRST_SIZE[variant.struct] - 1
        bench.refuse(variant.slot, "INVALID_ARGUMENT", *arguments)
        _outputs_untouched(variant, arguments)


@case("L0.struct.size_first", duties=("BASE-2",), variants=_variants(runs=True))
def test_size_first(target: Target, variant: Variant) -> None:
    """A desc of its first published size works, and what lies behind it is not read."""
    with Bench(target) as bench:
        arguments = bench.arguments(variant.slot)
        desc = arguments[variant.position]
        arguments[variant.position] = cut(bench, desc, FIRST_SIZE[variant.struct])
        bench.ok(variant.slot, *arguments)
        bench.undo(variant.slot, arguments)


@case("L0.struct.tail_zero", duties=("BASE-3",), variants=_variants(runs=True))
def test_tail_of_zeros(target: Target, variant: Variant) -> None:
    """A longer desc whose unknown rest is zero is taken as it is."""
    with Bench(target) as bench:
        arguments = bench.arguments(variant.slot)
        arguments[variant.position] = lengthened(bench, arguments[variant.position], 72, 0)
        bench.ok(variant.slot, *arguments)
        bench.undo(variant.slot, arguments)


@case("L0.struct.tail_data", duties=("BASE-3", "BASE-8"), variants=_variants())
def test_tail_with_data(target: Target, variant: Variant) -> None:
    """A longer desc that asks for something unknown is UNSUPPORTED and changes nothing."""
    with Bench(target) as bench:
        arguments = bench.arguments(variant.slot)
        arguments[variant.position] = lengthened(bench, arguments[variant.position], 72, 1)
        bench.refuse(variant.slot, "UNSUPPORTED", *arguments)
        _outputs_untouched(variant, arguments)

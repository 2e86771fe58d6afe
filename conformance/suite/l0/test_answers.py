# SPDX-License-Identifier: Apache-2.0
"""How structs of the caller are filled: up to their size, which stays, and no byte further."""

from __future__ import annotations

from typing import Any

from chipdock.conformance.case import Variant, case
from chipdock.conformance.suite.l0.bench import RECIPES, Bench
from chipdock.conformance.suite.l0.signatures import signature
from chipdock.conformance.suite.l0.sizes import FIRST_SIZE
from chipdock.conformance.target import Target

_BEHIND = 0xA5
_ANSWERS = [
    Variant(
        name=slot.replace(".", "_"),
        needs=f"slot:{slot}",
        slot=slot,
        position=argument.position,
        struct=argument.struct,
        entry_points=(slot,),
        mustpass=slot == "device.info",
    )
    for slot in RECIPES
    for argument in signature(slot)
    if argument.role == "answer"
    and argument.struct in FIRST_SIZE
    and slot != "memory.export_memory"
]


def _ask(bench: Bench, variant: Variant, size: int) -> tuple[Any, bytes]:
    """Call with an answer of `size` bytes before 64 marked ones; return it and the marked ones."""
    arguments = bench.arguments(variant.slot)
    given = arguments[variant.position]
    kind = bench.ffi.typeof(given)
    whole = bench.ffi.sizeof(kind.item)
    data = bytes(bench.ffi.buffer(given, whole))[:size]
    block = bench.block("unsigned char[]", data + bytes(size - len(data)) + bytes([_BEHIND]) * 192)
    answer = bench.ffi.cast(kind, block)
    answer.struct_size = size
    arguments[variant.position] = answer
    bench.ok(variant.slot, *arguments)
    return answer, bytes(bench.ffi.buffer(block, size + 192))[size:]


@case("L0.answer.size_exact", duties=("BASE-5",), variants=_ANSWERS)
def test_exact(target: Target, variant: Variant) -> None:
    """An answer of today's size is filled, its size stays, and nothing behind it is written."""
    with Bench(target) as bench:
        size = bench.ffi.sizeof(variant.struct)
        answer, behind = _ask(bench, variant, size)
        assert answer.struct_size == size, "struct_size was changed [BASE-5]"
        assert set(behind) == {_BEHIND}, "bytes behind the struct were written [BASE-5]"


@case("L0.answer.size_longer", duties=("BASE-5",), variants=_ANSWERS)
def test_longer(target: Target, variant: Variant) -> None:
    """A longer answer, of a newer host, is filled too and keeps its size."""
    with Bench(target) as bench:
        size = bench.ffi.sizeof(variant.struct)
        answer, behind = _ask(bench, variant, size + 40)
        assert answer.struct_size == size + 40, "struct_size was changed [BASE-5]"
        assert set(behind) == {_BEHIND}, "bytes behind the struct were written [BASE-5]"


@case("L0.answer.size_zero", duties=("BASE-4", "BASE-5"), variants=_ANSWERS)
def test_size_zero(target: Target, variant: Variant) -> None:
    """An answer without a size is INVALID_ARGUMENT and is not written."""
    with Bench(target) as bench:
        arguments = bench.arguments(variant.slot)
        size = bench.ffi.sizeof(variant.struct)
        answer = arguments[variant.position]
        bench.ffi.memmove(answer, bytes([_BEHIND]) * size, size)
        answer.struct_size = 0
        bench.refuse(variant.slot, "INVALID_ARGUMENT", *arguments)
        assert set(bytes(bench.ffi.buffer(answer, size))[4:]) == {_BEHIND}, "it was written"

# SPDX-License-Identifier: Apache-2.0
"""NULL where the headers say "Not NULL": outputs, answers and descs of every slot."""

from __future__ import annotations

from chipdock.conformance.case import Variant, case
from chipdock.conformance.suite.l0.bench import RECIPES, Bench
from chipdock.conformance.suite.l0.signatures import signature
from chipdock.conformance.target import Target

_REQUIRED = {"device.count", "device.info", "device.open", "memory.alloc", "memory.copy"}


def _variants(roles: set[str]) -> list[Variant]:
    return [
        Variant(
            name=f"{slot.replace('.', '_')}_{argument.name}",
            needs=f"slot:{slot}",
            slot=slot,
            position=argument.position,
            entry_points=(slot,),
            mustpass=slot in _REQUIRED,
        )
        for slot in RECIPES
        for argument in signature(slot)
        if argument.role in roles
    ]


@case("L0.null.output", duties=("BASE-8",), variants=_variants({"output", "answer"}))
def test_null_output(target: Target, variant: Variant) -> None:
    """A call whose output is NULL is INVALID_ARGUMENT, and neither crashes nor returns OK."""
    with Bench(target) as bench:
        arguments = bench.arguments(variant.slot)
        arguments[variant.position] = bench.null
        bench.refuse(variant.slot, "INVALID_ARGUMENT", *arguments)


@case("L0.null.desc", duties=("BASE-4", "BASE-8"), variants=_variants({"desc"}))
def test_null_desc(target: Target, variant: Variant) -> None:
    """A call whose desc is NULL is INVALID_ARGUMENT and writes no output."""
    with Bench(target) as bench:
        arguments = bench.arguments(variant.slot)
        arguments[variant.position] = bench.null
        bench.refuse(variant.slot, "INVALID_ARGUMENT", *arguments)
        for argument in signature(variant.slot):
            if argument.role == "output":
                assert not arguments[argument.position][0], f"{argument.name} was written [BASE-8]"


_ENDS = (
    "memory.free", "memory.host_free", "stream.destroy", "stream.abort", "event.destroy",
    "event.record", "kernel.destroy", "graph.destroy_graph", "graph.destroy_exec",
    "compile.destroy_module", "compile.destroy", "ccl.destroy", "profiler.stop",
)  # fmt: skip


@case(
    "L0.null.handle",
    duties=("BASE-8", "BASE-9"),
    variants=[
        Variant(name=slot.replace(".", "_"), needs=f"slot:{slot}", slot=slot, entry_points=(slot,))
        for slot in _ENDS
    ],
)
def test_null_handle(target: Target, variant: Variant) -> None:
    """What ends or uses a handle says INVALID_ARGUMENT to NULL, as its header does."""
    with Bench(target) as bench:
        first = [bench.device] if variant.slot.startswith("memory.") else []
        more = [bench.null] * (len(signature(variant.slot)) - len(first))
        bench.refuse(variant.slot, "INVALID_ARGUMENT", *first, *more)

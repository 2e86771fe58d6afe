# SPDX-License-Identifier: Apache-2.0
"""How fast, compared with another plugin or run: launches, copies, products, operators, models.

One case compares with what the device claims of itself, and needs nothing else.
"""

from __future__ import annotations

from chipdock.conformance.case import Variant, case
from chipdock.conformance.suite.perf.claim import bandwidth
from chipdock.conformance.suite.perf.compare import run
from chipdock.conformance.target import Target

_SIZES = (("4k", 1 << 12), ("256k", 1 << 18), ("4m", 1 << 22))
_COPIES = [Variant(name=name, size=size) for name, size in _SIZES]
_NEEDS = "process"


@case("P.launch.kernel", needs=f"op:Add:f32 and {_NEEDS}", tier="nightly", budget_ms=4000,
      variants=[Variant("f32", name=f"x{n}", n=n) for n in (1, 16, 128)])  # fmt: skip
def test_launch(target: Target, variant: Variant) -> None:
    """Kernels on one element, one after another, waited for once."""
    run(target, f"launch:{variant.n}")


@case("P.launch.sync", needs=_NEEDS, tier="nightly", budget_ms=4000)
def test_sync(target: Target, variant: Variant) -> None:
    """Waiting for a stream that is done."""
    run(target, "sync:256")


@case("P.copy.h2d", needs=_NEEDS, tier="nightly", budget_ms=4000, variants=_COPIES)
def test_h2d(target: Target, variant: Variant) -> None:
    """Bytes from the host to the device."""
    run(target, f"copy_h2d:{variant.size}")


@case("P.copy.d2h", needs=_NEEDS, tier="nightly", budget_ms=4000, variants=_COPIES)
def test_d2h(target: Target, variant: Variant) -> None:
    """Bytes from the device to the host."""
    run(target, f"copy_d2h:{variant.size}")


@case("P.copy.d2d", needs=_NEEDS, tier="nightly", budget_ms=4000, variants=_COPIES)
def test_d2d(target: Target, variant: Variant) -> None:
    """Bytes from one place of the device to another."""
    run(target, f"copy_d2d:{variant.size}")


@case("P.op.gemm", needs=f"op:MatMul:f32 and {_NEEDS}", op="MatMul", tier="nightly",
      budget_ms=6000,
      variants=[Variant("f32", name=f"n{n}", n=n) for n in (64, 256, 512)])  # fmt: skip
def test_gemm(target: Target, variant: Variant) -> None:
    """Square matrices times each other."""
    run(target, f"gemm:{variant.n}")


@case("P.op.elementwise",
      needs=f"op:Add:f32 and op:Mul:f32 and op:Relu:f32 and op:Softmax:f32 and {_NEEDS}",
      tier="nightly", budget_ms=4000,
      variants=[Variant("f32", name=f"n{n}", n=n) for n in (64, 65536)])  # fmt: skip
def test_elementwise(target: Target, variant: Variant) -> None:
    """Four operators by run_op, on few and on many numbers."""
    run(target, f"elementwise:{variant.n}")


@case("P.model.step", tier="nightly", budget_ms=4000,
      variants=[
          Variant("f32", name="mlp", model="mlp", needs=" and ".join(
              [*(f"op:{op}:f32" for op in ("MatMul", "Add", "Relu", "Softmax")), _NEEDS])),
          Variant("f32", name="neg64", model="64", needs=f"op:Neg:f32 and {_NEEDS}"),
      ])  # fmt: skip
def test_step(target: Target, variant: Variant) -> None:
    """A loaded model, with its inputs and outputs on the host."""
    run(target, f"step:{variant.model}")


@case("P.claim.bandwidth", tier="nightly", budget_ms=4000)
def test_bandwidth(target: Target, variant: Variant) -> None:
    """Copies on the device move no more bytes a second than it claims its memory can."""
    bandwidth(target)

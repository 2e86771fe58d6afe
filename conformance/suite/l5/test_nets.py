# SPDX-License-Identifier: Apache-2.0
"""Small networks, made by code, against fp64."""

from chipdock.conformance.case import Variant, case
from chipdock.conformance.models.nets import NETS
from chipdock.conformance.models.run_net import run_decoder, run_net
from chipdock.conformance.target import Target

_ENTRY_POINTS = ("kernel.list", "kernel.supports", "kernel.create", "kernel.launch")
_DTYPES = ("f32", "f16", "bf16")


@case("L5.net.whole", entry_points=_ENTRY_POINTS, tolerance="M", budget_ms=1500,
      variants=[Variant(dtype, name, mustpass=dtype == "f32")
                for name in NETS for dtype in _DTYPES])  # fmt: skip
def test_net(target: Target, variant: Variant) -> None:
    """A network gives what fp64 gives, with every set of shapes on one load."""
    run_net(target, variant)


@case("L5.net.decoder", entry_points=_ENTRY_POINTS, tolerance="M", budget_ms=1500,
      variants=[Variant(dtype, name, aliased=name == "aliased", mustpass=dtype == "f32")
                for name in ("aliased", "two_sets") for dtype in _DTYPES])  # fmt: skip
def test_decoder(target: Target, variant: Variant) -> None:
    """Twelve steps of decoding give what fp64 gives, with caches written in place or by turns."""
    run_decoder(target, variant)

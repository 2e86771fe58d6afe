# SPDX-License-Identifier: Apache-2.0
"""Bytes go to the device and come back; the smallest thing that can be true of a device."""

from __future__ import annotations

import numpy as np

import chipdock
from chipdock.conformance.case import Variant, case, fail
from chipdock.conformance.target import Target


@case(
    "L1.memory.round_trip",
    duties=("MEM-5",),
    entry_points=("memory.alloc", "memory.copy", "memory.free"),
    tolerance="E",
    mustpass=True,
    variants=[Variant("u8", name=f"n{size}", size=size) for size in (1, 4097)],
)
def test_round_trip(target: Target, variant: Variant) -> None:
    """Bytes copied to the device come back unchanged."""
    sent = target.rng.integers(0, 256, variant.size, dtype=np.uint8)
    back = chipdock.array(sent, device=target.device).copy_to_numpy()
    target.digest(back)
    wrong = np.flatnonzero(back != sent)
    if wrong.size:
        at = int(wrong[0])
        fail(
            f"{wrong.size} of {sent.size} bytes came back changed, the first at {at}",
            metric="bytes",
            value=int(wrong.size),
            limit=0,
            index=at,
            expected=int(sent[at]),
            got=int(back[at]),
        )

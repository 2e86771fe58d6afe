# SPDX-License-Identifier: Apache-2.0
"""Which operators a device has kernels for, and which the executor knows at all, by name alone."""

import functools

from chipdock import _core

__all__ = ["Target"]

_Ranges = dict[tuple[str, str], list[tuple[int, int]]]
_NEWEST = 2**31


def _ranges(entries: list[tuple[str, str, int, int]]) -> _Ranges:
    out: _Ranges = {}
    for domain, op, first, last in entries:
        out.setdefault((domain, op), []).append((first, last or _NEWEST))
    return out


@functools.cache
def _known() -> _Ranges:
    return _ranges(_core.known_operators(needs_kernel=True))


@functools.cache
def _without_kernel() -> _Ranges:
    """Views, shapes, control flow, strings, sequences: no device needs a kernel for them."""
    return _ranges(_core.known_operators(needs_kernel=False))


def _has(ranges: _Ranges, domain: str, op: str, since: int) -> bool:
    return any(first <= since <= last for first, last in ranges.get((domain, op), ()))


class Target:
    """What a device runs."""

    def __init__(self, device: "_core.Device") -> None:
        """Ask the device for its kernels."""
        self._kernels = _ranges([entry[:4] for entry in device.kernels()])

    def runs(self, domain: str, op: str, since: int) -> bool:
        """True if the operator can run on the device, for some dtypes and shapes."""
        if _has(_without_kernel(), domain, op, since):
            return True
        return _has(_known(), domain, op, since) and _has(self._kernels, domain, op, since)

    @staticmethod
    def knows(domain: str, op: str, since: int) -> bool:
        """True if the executor knows the operator's shapes."""
        return _has(_known(), domain, op, since) or _has(_without_kernel(), domain, op, since)

# SPDX-License-Identifier: Apache-2.0
"""Locks in a process that was forked: a thread that held one is not there to let it go.

What such a lock guards is of no use in the child, and says so (FORKED) once the lock lets it.
"""

import os
import threading
import weakref
from typing import Any

__all__ = ["lock_of"]

# Objects with an attribute `_lock`.
_owners: "weakref.WeakSet[Any]" = weakref.WeakSet()


def lock_of(owner: object) -> threading.Lock:
    """Make what `owner` is to keep as its `_lock`; a forked child finds another there, open."""
    _owners.add(owner)
    return threading.Lock()


def _renew() -> None:
    for owner in list(_owners):
        owner._lock = threading.Lock()


os.register_at_fork(after_in_child=_renew)

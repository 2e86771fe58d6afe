# SPDX-License-Identifier: Apache-2.0
"""References on disk: computed once a machine, as those of large products take the time.

A cached file is used only if its name is the hash of everything it was computed from and its own
checksum holds. Without the folder, or with CHIPDOCK_REFERENCE_CACHE=off, all is computed anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs
from numpy.typing import NDArray

from chipdock.conformance.numerics.judge import Expected

__all__ = ["cached", "folder", "key_of", "trim"]

_WORTH_SECONDS = 0.004
"""Reading a file takes about a millisecond; what is computed faster is not kept."""

_MOST_BYTES = 256 << 20
_stores = 0


def folder() -> Path | None:
    """Return where references lie, None if they are not to be kept."""
    named = os.environ.get("CHIPDOCK_REFERENCE_CACHE", "")
    if named == "off":
        return None
    return Path(named) if named else Path(platformdirs.user_cache_dir("chipdock")) / "references"


def key_of(texts: Sequence[str], arrays: Sequence[NDArray[Any] | None]) -> str:
    """Return the hash of what a reference is computed from.

    Args:
        texts: Operator, attributes, opset, digest of the code.
        arrays: The inputs.
    """
    digest = hashlib.sha256("\0".join(texts).encode())
    for array in arrays:
        if array is None:
            digest.update(b"\0absent")
            continue
        digest.update(f"\0{array.dtype.name}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def cached(key: str, compute: Callable[[], list[Expected]]) -> list[Expected]:
    """Return what `compute` gives, from the folder if it is there.

    Args:
        key: Of `key_of`.
        compute: Makes the reference.
    """
    place = folder()
    path = None if place is None else place / key[:2] / f"{key[2:]}.npz"
    if path is not None:
        found = _read(path)
        if found is not None:
            return found
    begin = time.perf_counter()
    made = compute()
    if path is not None and time.perf_counter() - begin > _WORTH_SECONDS:
        _write(path, made)
    return made


def _write(path: Path, rows: list[Expected]) -> None:
    global _stores  # noqa: PLW0603  counts the stores of this process
    arrays: dict[str, Any] = {"terms": np.array([row.terms for row in rows], np.int64)}
    for i, row in enumerate(rows):
        if row.value.dtype.isbuiltin != 1:
            return  # the file format has no names for ml_dtypes, even those of kind "f"
        arrays[f"value{i}"] = row.value
        if row.magnitude is not None:
            arrays[f"size{i}"] = row.magnitude
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    body = buffer.getvalue()
    # A full or read-only disk only costs time.
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(body).digest() + body)
        Path(name).replace(path)
        _stores += 1
        if _stores % 64 == 1:
            trim(path.parent.parent, _MOST_BYTES)


def _read(path: Path) -> list[Expected] | None:
    try:
        whole = path.read_bytes()
    except OSError:
        return None
    if hashlib.sha256(whole[32:]).digest() != whole[:32]:
        with contextlib.suppress(OSError):
            path.unlink()
        return None
    try:
        return _parse(whole[32:])
    except (ValueError, KeyError, TypeError):
        return None  # another numpy wrote it


def _parse(body: bytes) -> list[Expected]:
    with np.load(io.BytesIO(body), allow_pickle=False) as arrays:
        return [
            Expected(
                arrays[f"value{i}"],
                arrays.get(f"size{i}"),
                int(terms),
            )
            for i, terms in enumerate(arrays["terms"])
        ]


def trim(place: Path, most: int) -> None:
    """Remove the oldest files until the folder holds at most so many bytes.

    Args:
        place: The folder.
        most: Bytes.
    """
    found = []
    for path in place.glob("*/*"):
        with contextlib.suppress(OSError):
            facts = path.stat()
            found.append((facts.st_mtime, facts.st_size, path))
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found, key=lambda row: row[0]):
        if total <= most:
            break
        with contextlib.suppress(OSError):
            path.unlink()
            total -= size

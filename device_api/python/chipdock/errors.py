# SPDX-License-Identifier: Apache-2.0
"""Exceptions: one class per status code of the C ABI.

A message starts with the code's name and says what failed, the values, what was allowed, and what
to do.
"""

from typing import ClassVar

__all__ = [
    "AbortedError",
    "BusyError",
    "ChipdockError",
    "DeviceLostError",
    "FailedPreconditionError",
    "ForkedError",
    "InternalError",
    "InvalidArgumentError",
    "MismatchError",
    "NotReadyError",
    "OutOfMemoryError",
    "PeerFailedError",
    "ResetRequiredError",
    "RevokedError",
    "ShutdownError",
    "TimeoutError",
    "UnavailableError",
    "UnsupportedError",
    "VersionMismatchError",
    "make_error",
]

_SCOPES = ("call", "stream", "device", "process")


class ChipdockError(Exception):
    """Base of all errors of chipdock.

    Attributes:
        code: Name of the status code, such as "OUT_OF_MEMORY".
        vendor_code: The vendor library's own code, 0 if there is none.
        scope: What is unusable from here on: "call" (nothing), "stream", "device" or "process".
        correlation_id: Of the operation that failed first, 0 if unknown.
    """

    code: ClassVar[str] = "INTERNAL"
    vendor_code: int = 0
    scope: str = "call"
    correlation_id: int = 0


class NotReadyError(ChipdockError):
    """The work asked about has not finished."""

    code = "NOT_READY"


class UnsupportedError(ChipdockError):
    """The plugin or device does not offer it."""

    code = "UNSUPPORTED"


class InvalidArgumentError(ChipdockError, ValueError):
    """An argument broke a rule; nothing happened."""

    code = "INVALID_ARGUMENT"


class FailedPreconditionError(ChipdockError):
    """The right call in the wrong state, such as work on a failed stream."""

    code = "FAILED_PRECONDITION"


class OutOfMemoryError(ChipdockError, MemoryError):
    """Memory of a heap, the host or a limit is exhausted; a retry may succeed."""

    code = "OUT_OF_MEMORY"


class UnavailableError(ChipdockError):
    """A driver, device or library is absent or switched off."""

    code = "UNAVAILABLE"


class BusyError(ChipdockError):
    """Held by someone else; a retry may succeed."""

    code = "BUSY"


class TimeoutError(ChipdockError):  # noqa: A001  the ABI's word; only ever used qualified
    """The time limit ran out; the work goes on."""

    code = "TIMEOUT"


class AbortedError(ChipdockError):
    """Ended on request."""

    code = "ABORTED"


class DeviceLostError(ChipdockError):
    """The device is gone until it is opened anew."""

    code = "DEVICE_LOST"


class ResetRequiredError(ChipdockError):
    """The device faulted; a reset brings it back."""

    code = "RESET_REQUIRED"


class PeerFailedError(ChipdockError):
    """Another rank or device of a group failed."""

    code = "PEER_FAILED"


class MismatchError(ChipdockError):
    """Two sides disagree."""

    code = "MISMATCH"


class RevokedError(ChipdockError):
    """The communicator was revoked."""

    code = "REVOKED"


class VersionMismatchError(ChipdockError):
    """No common ABI version; the text names both and the fix."""

    code = "VERSION_MISMATCH"


class ShutdownError(ChipdockError):
    """The plugin or the host was shut down."""

    code = "SHUTDOWN"


class ForkedError(ChipdockError):
    """A handle of the parent was used in a forked child; start processes with "spawn"."""

    code = "FORKED"


class InternalError(ChipdockError):
    """A fault of the callee; the text says what it saw."""

    code = "INTERNAL"


# By status code of base.h; OK never becomes an error.
_BY_STATUS: tuple[type[ChipdockError], ...] = (
    InternalError,
    NotReadyError,
    UnsupportedError,
    InvalidArgumentError,
    FailedPreconditionError,
    OutOfMemoryError,
    UnavailableError,
    BusyError,
    TimeoutError,
    AbortedError,
    DeviceLostError,
    ResetRequiredError,
    PeerFailedError,
    MismatchError,
    RevokedError,
    VersionMismatchError,
    ShutdownError,
    ForkedError,
    InternalError,
)


def make_error(
    text: str, status: int, vendor_code: int = 0, scope: int = 0, correlation_id: int = 0
) -> ChipdockError:
    """Build the exception for a status; an unknown status is INTERNAL (duty BASE-7)."""
    known = 0 <= status < len(_BY_STATUS)
    error = (_BY_STATUS[status] if known else InternalError)(text)
    error.vendor_code = vendor_code
    error.scope = _SCOPES[scope] if 0 <= scope < len(_SCOPES) else "process"
    error.correlation_id = correlation_id
    return error

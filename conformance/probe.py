# SPDX-License-Identifier: Apache-2.0
"""Whether the device still lives: asked in a fresh worker after each abnormal end of another.

Right answers are what cases are for; here only a device that does not answer is ill.
"""

from __future__ import annotations

from chipdock.conformance.target import Session

__all__ = ["probe"]

_ILL = ("DEVICE_LOST", "RESET_REQUIRED", "UNAVAILABLE", "TIMEOUT", "BUSY", "SHUTDOWN")
_TIMEOUT_NS = 20_000_000_000


def probe(session: Session) -> str:
    """Open the device and send a few bytes there and back.

    Returns:
        What was seen, for the journal.

    Raises:
        ChipdockError: The device does not answer.
    """
    import numpy as np  # noqa: PLC0415  with chipdock, when asked

    import chipdock  # noqa: PLC0415

    device = session.device
    try:
        sent = np.arange(64, dtype=np.uint8)
        back = chipdock.array(sent, device=device).copy_to_numpy()
        device.sync(_TIMEOUT_NS)
    except chipdock.ChipdockError as error:
        if error.code in _ILL:
            raise
        return f"opened; a copy gave {error.code}"
    return "answers" if np.array_equal(sent, back) else "answers; a copy came back changed"

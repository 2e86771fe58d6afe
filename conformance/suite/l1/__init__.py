# SPDX-License-Identifier: Apache-2.0
"""Level 1: the runtime: devices, memory, streams, events."""

__all__ = []

# SPDX-License-Identifier: Apache-2.0
"""Cases of level L3."""

__all__ = []

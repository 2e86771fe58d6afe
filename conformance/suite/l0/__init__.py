# SPDX-License-Identifier: Apache-2.0
"""Cases of level L0."""

__all__ = []

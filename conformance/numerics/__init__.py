# SPDX-License-Identifier: Apache-2.0
"""How close is close enough: the tolerance classes, their references and their evidence."""

__all__ = []

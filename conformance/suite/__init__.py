# SPDX-License-Identifier: Apache-2.0
"""The cases, a folder a level; pytest files that only workers import."""

__all__ = []

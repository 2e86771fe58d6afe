# SPDX-License-Identifier: Apache-2.0
"""The networks of level 5: small ones made by code, training steps, and real models' goldens."""

__all__ = []

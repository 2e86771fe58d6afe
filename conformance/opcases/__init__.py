# SPDX-License-Identifier: Apache-2.0
"""Operator cases as data: one module a family, which yields (operator, Variant).

Nothing here imports numpy or onnx: the variants of all families are made when tests are collected.
What runs them is execute.py.
"""

__all__ = []

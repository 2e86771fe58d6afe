# SPDX-License-Identifier: Apache-2.0
"""The models that are measured: public ones of the package index, and built ones of known nets."""

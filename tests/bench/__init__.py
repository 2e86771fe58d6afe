# SPDX-License-Identifier: Apache-2.0
"""Benchmarks of chipdock against its peers; `python tests/bench --help`."""

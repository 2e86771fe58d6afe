# SPDX-License-Identifier: Apache-2.0
"""What a run leaves behind for people and machines: reports, comparisons, scripts that repeat.

Everything is made from one document, report.json (report.py); only that module reads the journal.
"""

__all__ = []

# SPDX-License-Identifier: Apache-2.0
"""Real ONNX models: where they come from, meaningful inputs, and a check against onnxruntime.

Importing this package needs only the standard library and NumPy; Pillow, matplotlib, onnx and
onnxruntime are imported when an input is drawn, a model converted or a reference run. Running a
model is left to `chipdock.load` or to any other runner that the caller hands in. Files are got by
`chipdock.models.fetch.fetch`.
"""

from chipdock.models.catalogue import Entry, entries, entry
from chipdock.models.check import CaseResult, OutputDifference, Runner, check_case, compare_outputs
from chipdock.models.fetch import ModelUnavailable
from chipdock.models.tasks import Case, cases

__all__ = [
    "Case",
    "CaseResult",
    "Entry",
    "ModelUnavailable",
    "OutputDifference",
    "Runner",
    "cases",
    "check_case",
    "compare_outputs",
    "entries",
    "entry",
]

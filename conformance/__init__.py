# SPDX-License-Identifier: Apache-2.0
"""The conformance and model-regression suite: judges any plugin by cases with stable ids.

`conformance-run --device NAME:N` is the way in. The process that owns a run never loads a vendor
library: cases run in worker processes. The suite knows no plugin's name.
"""

__all__ = []

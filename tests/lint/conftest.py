# SPDX-License-Identifier: Apache-2.0
"""Makes the checkers of this folder importable by their tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

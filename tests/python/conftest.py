# SPDX-License-Identifier: Apache-2.0
"""Makes api_support importable by the tests of this folder."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def torch():
    """PyTorch; without it the exchange with torch is reported as not shown."""
    return pytest.importorskip("torch", reason="torch is not installed: DLPack with torch not shown")

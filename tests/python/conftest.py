# SPDX-License-Identifier: Apache-2.0
"""Makes api_support importable by the tests of this folder."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def torch():
    """PyTorch; without it the exchange with torch is reported as not shown."""
    return pytest.importorskip(
        "torch", reason="torch is not installed: DLPack with torch not shown"
    )


# Files whose tests hold whatever optional slots a plugin has; `./dev mask` runs them under masks.
FUNCTIONAL = (
    "test_ops_",
    "test_array",
    "test_control_flow",
    "test_scan",
    "test_model.",
    "test_model_options",
    "test_binding",
    "test_streams",
)


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.name.startswith(FUNCTIONAL):
            item.add_marker(pytest.mark.functional)

# SPDX-License-Identifier: Apache-2.0
"""Makes the helpers of this folder and of tests/lint importable, and finds the C compiler."""

import os
import shutil
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
for folder in (HERE, HERE.parent / "lint"):
    sys.path.insert(0, str(folder))


@pytest.fixture(scope="session")
def cc():
    """The C compiler: $CC, else cc."""
    found = shutil.which(os.environ.get("CC", "cc"))
    if found is None:
        pytest.skip("no C compiler on this machine: layouts cannot be taken")
    return found


@pytest.fixture(scope="session")
def cxx():
    """The C++ compiler: $CXX, else c++."""
    found = shutil.which(os.environ.get("CXX", "c++"))
    if found is None:
        pytest.skip("no C++ compiler on this machine: headers cannot be compiled")
    return found

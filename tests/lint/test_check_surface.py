# SPDX-License-Identifier: Apache-2.0
"""What the package shows is an explicit list, and the list is the committed one."""

import json

import check_surface
import pytest


def test_every_public_module_has_an_exact_list():
    assert check_surface.check()[1] == []


def test_surface_equals_the_committed_one():
    """If the change is meant: `python tests/lint/check_surface.py --write`."""
    committed = json.loads(check_surface.LISTING.read_text(encoding="utf-8"))
    assert check_surface.check()[0] == committed


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("x = 1\n", "has no literal __all__"),
        ("__all__ = ['y']\n", "names y, which is not there"),
        ("__all__ = []\ndef f(): pass\n", "f is neither in __all__ nor private"),
        ("__all__ = []\nif True:\n    limit: int = 3\n", "limit is neither"),
    ],
)
def test_broken_module_is_found(text, finding):
    findings = check_surface.check_module("m", text)[1]
    assert len(findings) == 1
    assert finding in findings[0]


def test_good_module_has_no_findings():
    text = "import os\nfrom x import y as z\n__all__ = ['f', 'z']\ndef f(): pass\n_g = 1\n"
    assert check_surface.check_module("m", text) == (["f", "z"], [])

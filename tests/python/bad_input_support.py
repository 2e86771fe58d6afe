# SPDX-License-Identifier: Apache-2.0
"""What the tests of bad models share: loading that must be refused with a text in one form."""

import pytest

import chipdock

invalid = chipdock.errors.InvalidArgumentError


def refuses(source, match, error=invalid):
    with pytest.raises(error, match=match) as caught:
        chipdock.load(source)
    assert str(caught.value).startswith(error.code + ": ")
    assert not str(caught.value).endswith(".")
    return str(caught.value)

# SPDX-License-Identifier: Apache-2.0
"""The catalogue of real models is complete and its names lead somewhere."""

import re

import pytest

from chipdock.models import catalogue, tasks

ALL = (*catalogue.entries(), *catalogue.assets())


@pytest.mark.parametrize("item", ALL, ids=lambda item: item.name)
def test_entry_says_where_which_bytes_and_under_which_licence(item):
    assert re.fullmatch(r"[0-9a-f]{64}", item.sha256)
    assert item.licence
    assert item.domain
    assert item.file
    if item.package:
        assert item.version
        assert item.member
        assert item.requirement == f"{item.package}=={item.version}"
    for name, digest in item.wheels.items():
        assert name.endswith(".whl")
        assert re.fullmatch(r"[0-9a-f]{64}", digest)


def test_names_are_unique_and_the_first_set_is_the_published_one():
    names = [item.name for item in ALL]
    assert len(names) == len(set(names))
    assert [item.name for item in catalogue.entries(first_only=True)] == [
        "pp-ocrv6-det-small",
        "pp-ocrv6-rec-small",
        "ppocr-cls-mobile-v2",
        "efficientnet-lite0",
        "magika",
        "minilm-l3",
    ]


def test_every_first_model_can_be_had_from_the_package_index():
    assert all(item.package for item in catalogue.entries(first_only=True))


def test_every_model_has_a_task():
    assert set(tasks._TASKS) == {item.name for item in catalogue.entries()}


def test_unknown_name_suggests_the_closest():
    with pytest.raises(KeyError, match="did you mean 'magika'"):
        catalogue.entry("magica")

# SPDX-License-Identifier: Apache-2.0
"""chipdock.conformance.contract: duties and documented errors, as the headers have them."""

import re
from pathlib import Path

from chipdock.conformance import contract

ROOT = Path(__file__).resolve().parents[2]


def test_every_slot_of_the_runtime_list_is_read_with_its_need():
    text = (ROOT / "device_api" / "runtime" / "slots.inc").read_text(encoding="utf-8")
    wanted = {
        f"{table}.{slot}": need == "kRequired"
        for table, slot, need in re.findall(r"^CHIPDOCK_SLOT\((\w+), (\w+), (\w+)\)", text, re.M)
    }
    assert {name: slot.required for name, slot in contract.slots().items()} == wanted


def test_errors_of_a_slot_include_those_it_refers_to():
    slots = contract.slots()
    assert slots["memory.alloc"].errors == ("INVALID_ARGUMENT", "OUT_OF_MEMORY")
    # "as alloc; INVALID_ARGUMENT: NULL stream"
    assert set(slots["memory.alloc_async"].errors) >= set(slots["memory.alloc"].errors)
    assert "DEVICE_LOST" in slots["memory.copy_2d"].errors


def test_status_names_are_those_of_the_header_in_order():
    text = (ROOT / "device_api" / "include" / "chipdock" / "base.h").read_text(encoding="utf-8")
    found = dict(re.findall(r"^  CHIPDOCK_([A-Z_]+) = (\d+)", text, re.M))
    assert [found[name] for name in contract.STATUSES] == [
        str(n) for n in range(len(contract.STATUSES))
    ]


def test_duties_are_whole_sentences():
    text = contract.duties()["MEM-1"]
    assert text.startswith("alloc returns memory of at least")
    assert text.endswith("Contents are undefined.")


def test_headers_of_another_folder_are_read(tmp_path):
    folder = tmp_path / "chipdock"
    folder.mkdir()
    (folder / "x.h").write_text(
        "/**\n * X.\n *\n * Duties:\n *   X-1   one\n *         more\n */\n"
    )
    assert contract.duties(tmp_path) == {"X-1": "one more"}
    assert contract.slots(tmp_path) == {}

# SPDX-License-Identifier: Apache-2.0
"""What a plugin declares, and whether that satisfies what a case needs."""

import pytest

from chipdock import _registry
from chipdock.conformance.capabilities import Capabilities, Kernel, dtype_name, missing
from chipdock.conformance.target import Session, seed_of

HAS = Capabilities(
    slots=frozenset({"memory.copy", "stream.create"}),
    flags=frozenset({"HOST_VISIBLE"}),
    kernels=(
        Kernel("a", "", "Conv", 1, 0, 0, {0: ("f32", "f16"), -1: ("f32", "f16")}),
        Kernel("b", "com.acme", "Op", 1, 0, 0, {}),
    ),
    devices=2,
    memory=1 << 20,
)


@pytest.mark.parametrize(
    "needs",
    [
        "", "slot:memory.copy", "slot:memory.copy and slot:stream.create", "table:stream",
        "process", "flag:HOST_VISIBLE", "flag:host_visible", "op:Conv:f16", "op:com.acme::Op:i4",
        "devices:2", "memory:1048576", "tool:sh",
    ],
)  # fmt: skip
def test_what_is_there_satisfies(needs):
    assert missing(needs, HAS) == ("", True)


@pytest.mark.parametrize(
    ("needs", "term", "of_chip"),
    [
        ("slot:memory.copy and slot:memory.fill", "slot:memory.fill", True),
        ("table:graph", "table:graph", True),
        ("op:Conv:f64", "op:Conv:f64", True),
        ("op:Op:f32", "op:Op:f32", True),
        ("devices:3", "devices:3", True),
        ("memory:1048577", "memory:1048577", True),
        ("tool:no-such-tool and slot:x.y", "tool:no-such-tool", False),
    ],
)
def test_the_first_lack_is_named_with_whose_it_is(needs, term, of_chip):
    assert missing(needs, HAS) == (term, of_chip)


@pytest.mark.parametrize("needs", ["slot", "slot:", "speed:9", "slot:a.b or slot:c.d"])
def test_what_is_no_term_is_an_error(needs):
    with pytest.raises(ValueError, match="is no term"):
        missing(needs, HAS)


def test_capabilities_travel_as_plain_data():
    assert Capabilities.from_json(HAS.to_json()) == HAS


def test_dtypes_have_short_names():
    assert [dtype_name(2, 32), dtype_name(4, 16), dtype_name(10, 8)] == ["f32", "bf16", "f8e4m3fn"]
    assert dtype_name(3, 64) == "x3_64"


def test_a_session_describes_plugin_device_and_kernels():
    session = Session("cpu", seed=3)
    found = session.describe()
    assert found["device"] == "cpu:0"
    assert found["plugin"]["path"] == str(_registry._embedded_path())
    has = session.capabilities
    assert "memory.copy" in has.slots
    assert has.tables["memory"] == (1, 0)
    assert missing("op:MatMul:f32 and op:Cast:bf16", has) == ("", True)


def test_the_seed_of_a_case_hangs_on_suite_id_and_revision_alone():
    seeds = {
        seed_of(suite, case_id, revision)
        for suite in (0, 1) for case_id in ("L1.a.b.any.x", "L1.a.b.any.y") for revision in (1, 2)
    }  # fmt: skip
    assert len(seeds) == 8
    assert seed_of(0, "L1.a.b.any.x", 1) == 6101154602588797540

# SPDX-License-Identifier: Apache-2.0
"""What an instance says of itself, and its tables by name and version."""

from __future__ import annotations

import re

from packaging.version import Version

from chipdock._cabi import TABLES, RawError, constants
from chipdock.conformance.case import Variant, case, fail
from chipdock.conformance.suite.raw import STATUS, Raw, status_name
from chipdock.conformance.suite.variants import named
from chipdock.conformance.target import Target

_REQUIRED = ("device", "memory")


def _tables() -> list[Variant]:
    return [
        Variant(
            name=name,
            needs="" if name in _REQUIRED else f"table:{name}",
            table=name,
            mustpass=name in _REQUIRED,
        )
        for name in TABLES
    ]


def _version(table: str) -> tuple[int, int]:
    known = constants()
    return known[f"CHIPDOCK_{table.upper()}_MAJOR"], known[f"CHIPDOCK_{table.upper()}_MINOR"]


@case(
    "L0.plugin.identity",
    duties=("PLG-4",),
    mustpass=True,
    variants=named("struct_size abi_version id name version uuid get_table"),
)
def test_identity(target: Target, variant: Variant) -> None:
    """Each field of chipdock_plugin is what its comment says."""
    raw = Raw(target)
    plugin = raw.handle
    field = variant.name
    if field == "struct_size":
        assert plugin.struct_size >= raw.ffi.offsetof("chipdock_plugin", "shutdown")
    elif field == "abi_version":
        assert plugin.abi_version >> 16 == constants()["CHIPDOCK_ABI_MAJOR"]
    elif field == "id":
        assert re.fullmatch(r"[a-z0-9_-]+(\.[a-z0-9_-]+)+", raw.text(plugin.id))
        assert len(raw.text(plugin.id)) <= 63
    elif field == "name":
        assert re.fullmatch(r"[a-z][a-z0-9_]*", raw.text(plugin.name))
    elif field == "version":
        assert str(Version(raw.text(plugin.version)))
    elif field == "uuid":
        uuid = bytes(plugin.uuid)
        assert uuid[8] & 0xC0 == 0x80, "the variant bits are not RFC 9562's"
        assert 1 <= uuid[6] >> 4 <= 8, "the version nibble is not RFC 9562's"
    else:
        assert plugin.get_table != raw.null


@case("L0.plugin.same", duties=("PLG-4",), variants=named("id name version uuid"))
def test_identity_is_the_same_in_every_instance(target: Target, variant: Variant) -> None:
    """id, name, version and uuid do not depend on the instance."""
    seen = set()
    for _ in range(3):
        plugin = target.raw()
        value = getattr(plugin.plugin, variant.name)
        seen.add(bytes(value) if variant.name == "uuid" else plugin.text(value).encode())
        plugin.shutdown()
    assert len(seen) == 1


@case("L0.plugin.stable", duties=("PLG-5",), entry_points=("device.open", "device.close"))
def test_strings_stay(target: Target, variant: object) -> None:
    """Strings of an instance keep their address and bytes while devices come and go."""
    raw = Raw(target)
    fields = ("id", "name", "version")
    before = [(getattr(raw.handle, f), raw.text(getattr(raw.handle, f))) for f in fields]
    out = raw.block("chipdock_device**")
    for _ in range(3):
        raw.ok(
            "device.open", raw.handle, raw.new("chipdock_device_open_desc", index=raw.index), out
        )
        raw.ok("device.close", out[0])
    assert before == [(getattr(raw.handle, f), raw.text(getattr(raw.handle, f))) for f in fields]


@case("L0.table.header", duties=("BASE-1",), variants=_tables())
def test_header(target: Target, variant: Variant) -> None:
    """A table says its size and a version that is not 0.0, of the headers' major."""
    raw = Raw(target)
    header = raw.plugin.table(variant.table).header
    assert header.struct_size >= raw.ffi.sizeof("chipdock_table_header") + 8
    assert header.struct_size % 8 == 0
    assert (header.major, header.minor) != (0, 0), "the version was left zero"
    assert header.major == _version(variant.table)[0]


@case("L0.table.same", duties=("PLG-5",), variants=_tables())
def test_same_pointer(target: Target, variant: Variant) -> None:
    """The same table comes back each time, also while a device is open."""
    raw = Raw(target)
    first = raw.table(variant.table)
    content = bytes(raw.ffi.buffer(first, first.header.struct_size))
    out = raw.block("chipdock_device**")
    raw.ok("device.open", raw.handle, raw.new("chipdock_device_open_desc", index=raw.index), out)
    again = raw.table(variant.table)
    assert again == first
    assert bytes(raw.ffi.buffer(again, again.header.struct_size)) == content
    raw.ok("device.close", out[0])


@case("L0.table.newer_minor", duties=("PLG-3",), variants=_tables())
def test_newer_minor(target: Target, variant: Variant) -> None:
    """A caller that knows newer minors gets the table all the same."""
    raw = Raw(target)
    major = _version(variant.table)[0]
    assert raw.plugin.table(variant.table, (major, 65535)).header.major == major


@case("L0.table.other_major", duties=("BASE-8", "PLG-3"), variants=_tables())
def test_other_major(target: Target, variant: Variant) -> None:
    """A caller of another major gets VERSION_MISMATCH and no table."""
    raw = Raw(target)
    major = _version(variant.table)[0]
    try:
        raw.plugin.table(variant.table, (major + 1, 0))
    except RawError as error:
        if error.status != STATUS["VERSION_MISMATCH"]:
            fail(f"get_table returned {status_name(error.status)}: {error.text}")
    else:
        fail(f"get_table gave a table for major {major + 1}", expected="VERSION_MISMATCH")


def _get(raw: Raw, name: bytes | None, out: object, version: int = 1 << 16) -> str:
    label = raw.null if name is None else raw.block("char[]", name)
    error = raw.new("chipdock_error")
    return status_name(raw.handle.get_table(raw.handle, label, version, out, error))


@case(
    "L0.table.unknown",
    duties=("BASE-8",),
    mustpass=True,
    variants=[
        Variant(name=name, text=text)
        for name, text in (
            ("other", b"chipdock.nonsense"),
            ("empty", b""),
            ("prefix", b"chipdock.devic"),
            ("longer", b"chipdock.device2"),
            ("case", b"CHIPDOCK.DEVICE"),
            ("bare", b"device"),
            ("extension", b"com.example.chipdock.none"),
            ("long", b"chipdock." + b"x" * 4000),
        )
    ],
)
def test_unknown_name(target: Target, variant: Variant) -> None:
    """A name that is no table's is UNSUPPORTED, and the output stays as it was."""
    raw = Raw(target)
    out = raw.block("void const**")
    assert _get(raw, variant.text, out) == "UNSUPPORTED"
    assert out[0] == raw.null


@case("L0.table.null", duties=("BASE-8",), variants=named("name output"))
def test_null(target: Target, variant: Variant) -> None:
    """get_table with NULL for the name or the output is INVALID_ARGUMENT."""
    raw = Raw(target)
    out = raw.block("void const**")
    if variant.name == "name":
        assert _get(raw, None, out) == "INVALID_ARGUMENT"
    else:
        assert _get(raw, b"chipdock.device", raw.null) == "INVALID_ARGUMENT"


@case("L0.table.null_error", duties=("BASE-8",))
def test_null_error(target: Target, variant: object) -> None:
    """get_table fails without an error record as with one."""
    raw = Raw(target)
    out = raw.block("void const**")
    status = raw.handle.get_table(
        raw.handle, raw.block("char[]", b"chipdock.none"), 1 << 16, out, raw.null
    )
    assert status_name(status) == "UNSUPPORTED"

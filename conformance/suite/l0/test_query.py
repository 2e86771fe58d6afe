# SPDX-License-Identifier: Apache-2.0
"""The exported symbol: version windows, NULL, sizes, options, and several instances."""

from __future__ import annotations

from typing import Any

from chipdock._cabi import constants
from chipdock.conformance.case import Variant, case, fail
from chipdock.conformance.suite.elf import exported, wanted
from chipdock.conformance.suite.l0.sizes import FIRST_SIZE
from chipdock.conformance.suite.raw import STATUS, status_name
from chipdock.conformance.suite.variants import named
from chipdock.conformance.target import Target

_MAJOR = constants()["CHIPDOCK_ABI_MAJOR"]
_NEWEST = (_MAJOR, constants()["CHIPDOCK_ABI_MINOR"])


class Query:
    """chipdock_plugin_query with arguments of its own; every instance it gives is shut down."""

    def __init__(self, target: Target) -> None:
        """Opens the library without starting an instance."""
        self.plugin = target.raw(start=False)
        self.ffi = self.plugin.ffi
        self.function = self.plugin._query
        self.host = self.plugin.host
        self.desc = self.plugin.new(
            "chipdock_query_desc", abi_min=_MAJOR << 16, abi_max=_NEWEST[0] << 16 | _NEWEST[1]
        )
        self.out = self.ffi.new("chipdock_plugin**")
        self.error = self.plugin.new("chipdock_error")

    def call(self, **changed: Any) -> int:
        """Call query with some of host, desc, out and error changed; return the status."""
        given = {"host": self.host, "desc": self.desc, "out": self.out, "error": self.error}
        given |= changed
        status = int(self.function(*given.values()))
        if status == 0:
            if self.out[0] == self.ffi.NULL:
                fail("query returned OK and no instance [BASE-8]")
            self.shut(self.out[0])
        elif self.out[0] != self.ffi.NULL:
            fail("query failed and wrote out_plugin [BASE-8]")
        return status

    def shut(self, plugin: Any) -> None:
        """Shut an instance down."""
        if plugin.shutdown != self.ffi.NULL:
            self.plugin.call("shutdown", plugin.shutdown, plugin)

    def want(self, name: str, status: int) -> None:
        """Fail unless the status has this name."""
        if status_name(status) != name:
            said = self.plugin.text(self.error.text)
            text = f": {said}" if said else ""
            fail(f"query returned {status_name(status)}, {name} was due{text}", expected=name)


@case("L0.query.symbol", duties=("PLG-1",), mustpass=True)
def test_one_symbol_is_exported(target: Target, variant: object) -> None:
    """The library exports chipdock_plugin_query and nothing else."""
    names = exported(target.plugin_path)
    assert names == {"chipdock_plugin_query"}, f"it exports {sorted(names)[:8]}"


@case("L0.query.imports", duties=("PLG-1",), mustpass=True)
def test_nothing_of_the_host_is_imported(target: Target, variant: object) -> None:
    """The library expects no symbol of chipdock's of anybody."""
    names = {name for name in wanted(target.plugin_path) if "chipdock" in name.lower()}
    assert not names, f"it imports {sorted(names)[:8]}"


_GOOD = {
    "exact": (_NEWEST, _NEWEST),
    "newer_minor": ((_MAJOR, 0), (_MAJOR, 65535)),
    "newer_major": ((_MAJOR, 0), (_MAJOR + 1, 3)),
    "older_major": ((_MAJOR - 1, 9), _NEWEST),
    "widest": ((0, 0), (65535, 65535)),
    "future_minor_only": ((_MAJOR, 7), (_MAJOR, 9)),
}
_BAD = {
    "too_new": ((_MAJOR + 1, 0), (_MAJOR + 1, 4)),
    "much_too_new": ((65535, 0), (65535, 65535)),
    "too_old": ((0, 1), (_MAJOR - 1, 65535)),
    "reversed": ((_MAJOR + 1, 0), (_MAJOR - 1, 0)),
    "zero": ((0, 0), (0, 0)),
}


def _windows(table: dict[str, tuple[tuple[int, int], tuple[int, int]]]) -> list[Variant]:
    return [
        Variant(name=name, low=low[0] << 16 | low[1], high=high[0] << 16 | high[1])
        for name, (low, high) in table.items()
    ]


@case("L0.query.window", duties=("PLG-3",), mustpass=True, variants=_windows(_GOOD))
def test_window_with_the_major(target: Target, variant: Variant) -> None:
    """A host whose range holds the plugin's major is served, whatever the minors."""
    query = Query(target)
    query.desc.abi_min, query.desc.abi_max = variant.low, variant.high
    query.want("OK", query.call())


@case("L0.query.mismatch", duties=("PLG-3", "BASE-8"), mustpass=True, variants=_windows(_BAD))
def test_window_without_the_major(target: Target, variant: Variant) -> None:
    """A host of another major gets VERSION_MISMATCH, with both sides' versions in the text."""
    query = Query(target)
    query.desc.abi_min, query.desc.abi_max = variant.low, variant.high
    query.want("VERSION_MISMATCH", query.call())
    text = query.plugin.text(query.error.text)
    for number in (variant.low >> 16, variant.high >> 16, _MAJOR):
        assert f"{number}." in text, f"the text names no version {number}.x: {text}"


@case(
    "L0.query.null", duties=("BASE-8", "BASE-9"), mustpass=True,
    variants=[Variant(name=name, argument=name) for name in ("host", "desc", "out")],
)  # fmt: skip
def test_null(target: Target, variant: Variant) -> None:
    """NULL for host, desc or out_plugin is INVALID_ARGUMENT."""
    query = Query(target)
    query.want("INVALID_ARGUMENT", query.call(**{variant.argument: query.ffi.NULL}))


@case("L0.query.null_error", duties=("BASE-8",))
def test_null_error_record(target: Target, variant: object) -> None:
    """Both success and failure work without an error record."""
    query = Query(target)
    query.want("OK", query.call(error=query.ffi.NULL))
    query.out[0] = query.ffi.NULL
    query.desc.abi_min = query.desc.abi_max = (_MAJOR + 1) << 16
    query.want("VERSION_MISMATCH", query.call(error=query.ffi.NULL))


@case(
    "L0.query.short", duties=("BASE-4",),
    variants=[
        Variant(name=f"{what}_{size}", what=what, size=size)
        for what in ("host", "desc")
        for size in (0, 4)
    ],
)  # fmt: skip
def test_short_struct(target: Target, variant: Variant) -> None:
    """A host or desc too short to say its version is INVALID_ARGUMENT."""
    query = Query(target)
    getattr(query, variant.what).struct_size = variant.size
    query.want("INVALID_ARGUMENT", query.call())


@case(
    "L0.query.tail", duties=("BASE-3",),
    variants=[
        Variant(name="desc_zero", tail=0, status="OK"),
        Variant(name="desc_data", tail=1, status="UNSUPPORTED"),
    ],
)  # fmt: skip
def test_longer_desc(target: Target, variant: Variant) -> None:
    """A longer query desc is taken if its unknown rest is zero, else it is UNSUPPORTED."""
    query = Query(target)
    size = query.ffi.sizeof("chipdock_query_desc")
    block = query.ffi.new("char[]", bytes(query.ffi.buffer(query.desc)) + bytes(24))
    block[size + 23] = bytes([variant.tail])
    longer = query.ffi.cast("chipdock_query_desc*", block)
    longer.struct_size = size + 24
    query.want(variant.status, query.call(desc=longer))


@case("L0.query.first_size", duties=("BASE-2",))
def test_first_desc(target: Target, variant: object) -> None:
    """A query desc of its first published size works."""
    query = Query(target)
    query.desc.struct_size = FIRST_SIZE["chipdock_query_desc"]
    query.want("OK", query.call())


@case(
    "L0.query.host", duties=("BASE-2", "PLG-8"),
    variants=named("no_services first_fields_only longer"),
)  # fmt: skip
def test_host_without_services(target: Target, variant: Variant) -> None:
    """A host that offers no service, an older one and a newer one are all served."""
    query = Query(target)
    size = query.ffi.sizeof("chipdock_host")
    block = query.ffi.new("char[]", size + 64)
    host = query.ffi.cast("chipdock_host*", block)
    host.abi_version = query.host.abi_version
    host.struct_size = {
        "no_services": size,
        "first_fields_only": query.ffi.offsetof("chipdock_host", "log"),
        "longer": size + 64,
    }[variant.name]
    query.want("OK", query.call(host=host))


@case("L0.query.option", duties=("BASE-6",))
def test_unknown_option(target: Target, variant: object) -> None:
    """An option that the plugin does not know is INVALID_ARGUMENT, not ignored."""
    query = Query(target)
    texts = [query.ffi.new("char[]", text) for text in (b"com.example.no_such_option", b"1")]
    option = query.plugin.new("chipdock_option", key=texts[0], value=texts[1])
    array = query.ffi.new("const chipdock_option*[]", [option])
    query.desc.option_count, query.desc.options = 1, array
    query.want("INVALID_ARGUMENT", query.call())


@case(
    "L0.query.again",
    duties=("PLG-5", "PLG-6"),
    mustpass=True,
    variants=[Variant(name=f"n{count}", count=count) for count in (2, 20)],
)
def test_again_after_shutdown(target: Target, variant: Variant) -> None:
    """Query works again after the last instance was shut down."""
    query = Query(target)
    for _ in range(variant.count):
        query.out[0] = query.ffi.NULL
        query.want("OK", query.call())


@case(
    "L0.query.two",
    duties=("PLG-5",),
    entry_points=("device.count",),
    variants=named("first_ends_first second_ends_first"),
)
def test_two_instances(target: Target, variant: Variant) -> None:
    """Two instances live side by side: ending either leaves the other at work."""
    plugins = [target.raw() for _ in range(2)]
    handles = [plugin.plugin for plugin in plugins]
    ends = handles[0].shutdown != plugins[0].ffi.NULL
    # Without a shutdown there is nothing that could tell two instances apart.
    assert not ends or handles[0] != handles[1], "both queries gave the same instance"
    order = (0, 1) if variant.name == "first_ends_first" else (1, 0)
    plugins[order[0]].shutdown()
    left = plugins[order[1]]
    count = left.ffi.new("int32_t*")
    left.call("device.count", left.table("device").count, left.plugin, count)
    assert count[0] >= 1
    left.shutdown()


@case("L0.query.error", duties=("BASE-8",))
def test_error_record(target: Target, variant: object) -> None:
    """A refused query fills the record: code, scope, text and its length."""
    query = Query(target)
    query.desc.abi_min = query.desc.abi_max = (_MAJOR + 1) << 16
    query.call()
    error, text = query.error, query.ffi.string(query.error.text)
    assert error.code == STATUS["VERSION_MISMATCH"]
    assert error.scope in range(4)
    assert error.text_size == len(text) > 0

# SPDX-License-Identifier: Apache-2.0
"""Plugin binaries of other times, called below the runtime with the sizes of this time.

The same binaries through the runtime: test_skew.py.
"""

import platform
import subprocess
import sys

import layout
import pytest
from test_cabi import cabi

FROZEN = layout.HERE / "frozen"
PLUGINS = ["old", "new_zero", "new_data"]
UNSUPPORTED, INVALID_ARGUMENT, VERSION_MISMATCH = 2, 3, 15

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64",
    reason="the frozen binaries are x86-64 Linux ones",
)


class Session:
    """One started frozen plugin with its device open."""

    def __init__(self, name):
        self.raw = cabi.load_raw(FROZEN / f"{name}.so")
        self.ffi = self.raw.ffi
        self.raw.start()
        self.device_api = self.raw.table("device")
        self.memory_api = self.raw.table("memory")
        out = self.ffi.new("chipdock_device**")
        self.raw.call(
            "open",
            self.device_api.open,
            self.raw.plugin,
            self.raw.new("chipdock_device_open_desc"),
            out,
        )
        self.device = out[0]

    def sized(self, name, extra=0, tail=0, **values):
        """A struct of this time's layout with `extra` bytes more, the last of them `tail`."""
        size = self.ffi.sizeof(name) + extra
        self.block = self.ffi.new("char[]", size)
        made = self.ffi.cast(f"{name}*", self.block)
        made.struct_size = size
        for key, value in values.items():
            setattr(made, key, value)
        if extra:
            self.block[size - 1] = bytes([tail])
        return made

    def alloc(self, size=64, **more):
        out = self.ffi.new("chipdock_memory**")
        desc = self.sized("chipdock_alloc_desc", size=size, **more)
        self.raw.call("alloc", self.memory_api.alloc, self.device, desc, out)
        return out[0]

    def place(self, **values):
        return self.raw.new("chipdock_place", **values)

    def copy(self, source, target, size):
        desc = self.raw.new("chipdock_copy_desc", source=source, target=target, size=size)
        self.raw.call("copy", self.memory_api.copy, self.device, desc)


@pytest.fixture(params=PLUGINS)
def session(request):
    made = Session(request.param)
    yield made
    made.raw.call("close", made.device_api.close, made.device)
    made.raw.shutdown()


@pytest.mark.parametrize("name", [*PLUGINS, "major2"])
def test_binary_is_small_and_exports_one_symbol(name):
    path = FROZEN / f"{name}.so"
    assert path.stat().st_size < 20_000
    assert path.read_bytes().count(b"\0chipdock_plugin_query\0") == 1


def test_bytes_survive_a_round_trip(session):
    memory = session.alloc()
    sent = session.ffi.new("char[]", bytes(range(64)))
    back = session.ffi.new("char[]", 64)
    session.copy(session.place(host=sent), session.place(memory=memory), 64)
    session.copy(session.place(memory=memory, offset=16), session.place(host=back), 48)
    assert bytes(session.ffi.buffer(back, 48)) == bytes(range(16, 64))
    session.raw.call("free", session.memory_api.free, session.device, memory)


def test_optional_slots_are_absent_and_not_read_beyond_the_table(session):
    assert session.raw.slot(session.memory_api, "copy") is not None
    assert session.raw.slot(session.memory_api, "fill") is None
    assert session.raw.slot(session.device_api, "sync") is None


def test_larger_desc_with_zero_tail_is_taken(session):
    out = session.ffi.new("chipdock_memory**")
    desc = session.sized("chipdock_alloc_desc", extra=64, size=8)
    session.raw.call("alloc", session.memory_api.alloc, session.device, desc, out)
    session.raw.call("free", session.memory_api.free, session.device, out[0])


def test_larger_desc_with_data_in_its_tail_is_unsupported(session):
    out = session.ffi.new("chipdock_memory**")
    desc = session.sized("chipdock_alloc_desc", extra=64, tail=1, size=8)
    with pytest.raises(cabi.RawError, match="BASE-3") as caught:
        session.raw.call("alloc", session.memory_api.alloc, session.device, desc, out)
    assert caught.value.status == UNSUPPORTED
    assert out[0] == session.ffi.NULL


def test_field_that_an_older_plugin_lacks_is_refused_if_set_and_ignored_if_zero():
    made = Session("old")
    memory = made.alloc()
    other = made.place(memory=memory, device=made.device)
    host = made.place(host=made.ffi.new("char[]", 8))
    with pytest.raises(cabi.RawError) as caught:
        made.copy(other, host, 8)
    assert caught.value.status == UNSUPPORTED


def test_desc_without_size_is_invalid(session):
    desc = session.sized("chipdock_alloc_desc", size=8)
    desc.struct_size = 0
    out = session.ffi.new("chipdock_memory**")
    with pytest.raises(cabi.RawError, match="BASE-4") as caught:
        session.raw.call("alloc", session.memory_api.alloc, session.device, desc, out)
    assert caught.value.status == INVALID_ARGUMENT


def test_info_of_any_size_is_written_up_to_that_size(session):
    for extra in (0, 64):
        info = session.sized("chipdock_device_info", extra=extra)
        session.raw.call("info", session.device_api.info, session.raw.plugin, 0, info)
        assert info.struct_size == session.ffi.sizeof("chipdock_device_info") + extra
        assert session.raw.text(info.product).startswith("Frozen 1.")
        assert info.heap_count == 1
        assert info.heaps[0].bytes == 1 << 28
        assert info.heaps[0].struct_size in {24, 48, 56}


def test_error_record_of_another_size_is_respected(session):
    out = session.ffi.new("chipdock_memory**")
    desc = session.sized("chipdock_alloc_desc", size=1 << 40)
    block = session.ffi.new("char[]", 128)
    error = session.ffi.cast("chipdock_error*", block)
    error.struct_size = 64
    assert session.memory_api.alloc(session.device, desc, out, error) == 5
    assert error.struct_size == 64
    assert bytes(session.ffi.buffer(block, 128))[64:] == bytes(64)
    assert session.raw.text(error.text).startswith("OUT_OF_MEMORY")


def test_other_major_is_refused_naming_both_versions():
    raw = cabi.load_raw(FROZEN / "major2.so")
    with pytest.raises(cabi.RawError) as caught:
        raw.start()
    assert caught.value.status == VERSION_MISMATCH
    assert "the plugin speaks ABI 2.7, the host 1.0 to 1.0" in caught.value.text


def test_older_plugin_is_refused_by_a_host_that_dropped_its_major():
    raw = cabi.load_raw(FROZEN / "old.so")
    with pytest.raises(cabi.RawError, match=r"the plugin speaks ABI 1.0, the host 2.0 to 2.4"):
        raw.start(abi_min=(2, 0), abi_max=(2, 4))


def test_two_instances_of_one_library_are_independent():
    first, second = Session("old"), Session("old")
    assert first.raw.plugin != second.raw.plugin
    first.raw.call("close", first.device_api.close, first.device)
    first.raw.shutdown()
    second.alloc()


def test_query_check_of_the_headers_names_both_versions(cc, tmp_path):
    """CHIPDOCK_QUERY_CHECK, with which every plugin starts, for a host on either side of it."""
    source = tmp_path / "p.c"
    source.write_text(
        "#define CHIPDOCK_PLUGIN_BUILD\n"
        '#include "chipdock/plugin.h"\n'
        "chipdock_status chipdock_plugin_query(const chipdock_host* host,\n"
        "    const chipdock_query_desc* desc, chipdock_plugin** out_plugin,\n"
        "    chipdock_error* error) {\n"
        "  CHIPDOCK_QUERY_CHECK(host, desc, out_plugin, error);\n"
        '  return chipdock_fail(error, CHIPDOCK_UNAVAILABLE, "UNAVAILABLE: passed the check");\n'
        "}\n"
    )
    binary = tmp_path / "p.so"
    command = [cc, "-std=c99", f"-I{layout.INCLUDE}", "-shared", "-fPIC", source, "-o", binary]
    subprocess.run(command, check=True)
    raw = cabi.load_raw(binary)
    major = cabi.constants()["CHIPDOCK_ABI_MAJOR"]
    own = f"{major}.{cabi.constants()['CHIPDOCK_ABI_MINOR']}"
    with pytest.raises(cabi.RawError, match="passed the check"):
        raw.start(abi_max=(major, 65535))
    with pytest.raises(
        cabi.RawError,
        match=f"speaks ABI {own}, the host {major + 1}.0 to {major + 1}.12; update the plugin",
    ):
        raw.start(abi_min=(major + 1, 0), abi_max=(major + 1, 12))
    with pytest.raises(
        cabi.RawError, match=rf"plugin speaks ABI {own}, the host 0.1 to 0.65535; update the host"
    ):
        raw.start(abi_min=(0, 1), abi_max=(0, 65535))


def test_smaller_desc_takes_defaults():
    """A host of today calls a plugin whose desc has a field more: that field is its default, 0."""
    made = Session("new_zero")
    memory = made.alloc(size=16)
    back = made.ffi.new("char[]", b"\1" * 16)
    made.copy(made.place(memory=memory), made.place(host=back), 16)
    assert bytes(made.ffi.buffer(back, 16)) == bytes(16)
    with_fill = made.sized("chipdock_alloc_desc", extra=8, size=16)
    made.block[made.ffi.sizeof("chipdock_alloc_desc")] = b"\x2a"
    out = made.ffi.new("chipdock_memory**")
    made.raw.call("alloc", made.memory_api.alloc, made.device, with_fill, out)
    made.copy(made.place(memory=out[0]), made.place(host=back), 16)
    assert bytes(made.ffi.buffer(back, 16)) == b"\x2a" * 16


def test_desc_cut_to_its_first_published_size_is_taken(session):
    desc = session.sized("chipdock_alloc_desc", size=8)
    desc.struct_size = session.ffi.offsetof("chipdock_alloc_desc", "usage")
    out = session.ffi.new("chipdock_memory**")
    session.raw.call("alloc", session.memory_api.alloc, session.device, desc, out)
    session.raw.call("free", session.memory_api.free, session.device, out[0])


def test_null_output_is_invalid(session):
    desc = session.sized("chipdock_alloc_desc", size=8)
    with pytest.raises(cabi.RawError) as caught:
        session.raw.call("alloc", session.memory_api.alloc, session.device, desc, session.ffi.NULL)
    assert caught.value.status == INVALID_ARGUMENT


def test_null_error_record_is_allowed(session):
    out = session.ffi.new("chipdock_memory**")
    desc = session.sized("chipdock_alloc_desc", size=1 << 40)
    assert session.memory_api.alloc(session.device, desc, out, session.ffi.NULL) == 5


def test_table_of_an_unknown_name_is_unsupported(session):
    with pytest.raises(cabi.RawError) as caught:
        session.raw.table("graph")
    assert caught.value.status == UNSUPPORTED


def test_table_of_another_major_is_refused(session):
    with pytest.raises(cabi.RawError) as caught:
        session.raw.table("memory", version=(2, 0))
    assert caught.value.status == VERSION_MISMATCH


def test_newer_table_begins_with_todays_slots():
    made = Session("new_zero")
    assert made.memory_api.header.minor == 7
    assert made.memory_api.header.struct_size > made.ffi.sizeof("chipdock_memory_api")

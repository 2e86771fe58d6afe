# SPDX-License-Identifier: Apache-2.0
"""Failures of other ABIs that show in headers alone; device_api/ABI.md section 3 lists them all."""

import re
import subprocess

import c_headers
import layout
import pytest

HEADERS = {header.name: header for header in c_headers.load_all()}
STRUCTS = {struct.name: struct for header in HEADERS.values() for struct in header.structs}
CODE = {name: c_headers.strip_comments(header.text) for name, header in HEADERS.items()}


def slot(table, name):
    return next(s for s in STRUCTS[f"chipdock_{table}_api"].slots if s.name == name)


def fields(struct):
    return {name for _, name in STRUCTS[struct].fields}


def test_kernels_come_through_a_stable_table():
    """A custom operator needs no vendor extension."""
    assert "#define CHIPDOCK_KERNEL_MAJOR 1" in HEADERS["kernel.h"].text
    assert {"list", "supports", "create", "launch"} <= {
        s.name for s in STRUCTS["chipdock_kernel_api"].slots
    }


def test_every_slot_takes_c_types_only():
    """No C++ type crosses, so compilers may be mixed."""
    for name, code in CODE.items():
        assert not re.search(r"\b(std|class|template|typename|reinterpret_cast)\b", code), name


def test_no_status_is_negative_or_reused():
    statuses = re.search(r"enum \{\s*CHIPDOCK_OK.*?\}", CODE["base.h"], re.DOTALL).group(0)
    values = [int(value) for value in re.findall(r"= (-?\d+)", statuses)]
    assert values == list(range(len(values)))


@pytest.mark.parametrize(
    "desc",
    ["copy_desc", "copy_2d_desc", "fill_desc", "launch_desc", "prepack_desc", "execute_desc",
     "function_launch_desc", "graph_launch_desc", "ccl_enqueue_desc"],
)  # fmt: skip
def test_every_enqueue_names_its_stream_and_operation(desc):
    """No implicit default stream, and an asynchronous failure can name what failed."""
    assert {"stream", "correlation_id"} <= fields(f"chipdock_{desc}")


def test_no_current_device_and_no_last_error():
    for name, code in CODE.items():
        assert not re.search(r"\w*(current_device|set_device|last_error)\w*", code), name


def test_destroying_a_pending_event_never_blocks():
    doc = "\n".join(slot("event", "destroy").doc)
    assert re.search(r"^Blocking:  never\.$", doc, re.MULTILINE)
    assert "[EVT-3]" in doc


def test_sharing_between_processes_is_part_of_the_tables():
    assert {"export_memory", "import_memory"} <= {
        s.name for s in STRUCTS["chipdock_memory_api"].slots
    }
    assert "export_ipc" in {s.name for s in STRUCTS["chipdock_event_api"].slots}


def test_capture_and_replay_have_a_table():
    assert {"begin_capture", "end_capture", "instantiate", "update", "launch"} <= {
        s.name for s in STRUCTS["chipdock_graph_api"].slots
    }


def test_plugins_and_chips_are_identified_by_uuid_not_by_a_central_enum():
    assert {"id", "uuid"} <= fields("chipdock_plugin")
    assert "uuid" in fields("chipdock_device_info")
    for name, code in CODE.items():
        assert not re.search(r"DEVICE_(TYPE|KIND)_\w+ = \d", code), name


def test_profiler_records_carry_device_times():
    assert {"start_ns", "end_ns", "correlation_id"} <= fields("chipdock_profiler_record")
    assert dict(HEADERS["profiler.h"].duties)["PRF-1"].startswith(
        "start_ns and end_ns are taken by"
    )


def test_timeouts_are_signed_nanoseconds_everywhere():
    for name, code in CODE.items():
        for ctype, parameter in re.findall(r"(\w+) (timeout\w*)", code):
            assert (ctype, parameter.endswith("_ns")) == ("int64_t", True), f"{name}: {parameter}"


@pytest.mark.slow
def test_the_kit_adds_no_static_constructor(cxx, tmp_path):
    """Loading a plugin runs no code of ours, and there is no order of destructors to get wrong."""
    source = '#include "chipdock/plugin_kit.hpp"\nint anchor() { return 1; }\n'
    binary = tmp_path / "kit.o"
    command = [cxx, "-std=c++17", f"-I{layout.INCLUDE}", "-c", "-x", "c++", "-", "-o", binary]
    subprocess.run(command, input=source, text=True, check=True)
    data = binary.read_bytes()
    assert b".init_array" not in data
    assert b"_GLOBAL__sub_I" not in data


def test_table_macro_fills_size_and_version(cc, tmp_path):
    """The version is never written by hand, so it is never left 0."""
    source = """
#include "chipdock/chipdock.h"
static const chipdock_memory_api kApi = {CHIPDOCK_TABLE(MEMORY, memory), 0};
int main(void) {
  const chipdock_table_header* h = &kApi.header;
  return !(h->struct_size == sizeof(kApi) && h->major == CHIPDOCK_MEMORY_MAJOR &&
           h->minor == CHIPDOCK_MEMORY_MINOR && h->major + h->minor != 0);
}
"""
    binary = tmp_path / "table"
    command = [cc, "-std=c99", "-Wno-missing-field-initializers", f"-I{layout.INCLUDE}", "-x", "c"]
    subprocess.run([*command, "-", "-o", binary], input=source, text=True, check=True)
    assert subprocess.run([binary], check=False).returncode == 0

# SPDX-License-Identifier: Apache-2.0
"""The ABI headers pass check_headers.py, and each of its rules catches a header that breaks it."""

import re

import c_headers
import check_headers
import pytest

HEADERS = c_headers.load_all()
BY_NAME = {header.name: header for header in HEADERS}


def test_headers_have_no_findings():
    assert check_headers.check(HEADERS) == []


def test_every_table_is_seen_with_all_its_slots():
    """A slot that the parser misses is a slot that nothing checks."""
    for header in HEADERS:
        for struct in header.structs:
            if struct.is_table:
                body = header.text.split(f"struct {struct.name} {{")[1].split(f"}} {struct.name};")[
                    0
                ]
                assert len(struct.slots) == body.count("(CHIPDOCK_CALL*"), struct.name
    tables = [s.name for h in HEADERS for s in h.structs if s.is_table]
    assert len(tables) == 9


def test_every_function_of_the_library_is_seen():
    for header in HEADERS:
        marks = len(re.findall(r"^CHIPDOCK_HOST_API ", header.text, re.MULTILINE))
        assert len(header.functions) == marks, header.name
    assert sum(len(header.functions) for header in HEADERS) > 30


def test_seven_slots_are_required():
    required = [
        (struct.name, slot.name)
        for header in HEADERS
        for struct in header.structs
        for slot in struct.slots
        if struct.is_table and "required." in "\n".join(slot.doc)
    ]
    assert len(required) == 7


def test_list_of_slots_is_that_of_the_headers():
    text = check_headers.SLOTS.read_text(encoding="utf-8")
    assert list(check_headers.check_slot_list(HEADERS, text)) == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("CHIPDOCK_SLOT(stream, abort, kOptional)\n", "", "('stream', 'abort', 'kOptional')"),
        ("(memory, free, kRequired)", "(memory, free, kOptional)", "'free', 'kRequired'"),
        ("(event, sync, kOptional)", "(event, sync)", "a line is not"),
        ("(graph, launch, kOptional)", "(graph, launched, kOptional)", "'launched'"),
    ],
)
def test_broken_list_of_slots_is_found(old, new, message):
    text = check_headers.SLOTS.read_text(encoding="utf-8")
    assert old in text, "the list changed: choose another place to break"
    findings = list(check_headers.check_slot_list(HEADERS, text.replace(old, new)))
    assert any(message in finding for finding in findings)


# file, text to replace, replacement, what the finding says
BREAKS = [
    ("memory.h", "   * Threading: any thread. [MEM-8]\n", "", "labels are"),
    ("memory.h", "@param desc       Heap", "@param dsc       Heap", "documents parameters"),
    ("memory.h", "Since:     ABI 1.0, required.", "Since:     ABI 1.0, optional: none.", "seven"),
    ("stream.h", "ABI 1.0, optional: UNSUPPORTED.", "ABI 1.0, optional.", "NULL"),
    ("stream.h", "Since:     ABI 1.0, optional", "Since:     1.0, optional", "expected 'ABI x.y"),
    ("graph.h", "Since:     graph 0.1", "Since:     ABI 1.0", "counts in"),
    ("graph.h", "#define CHIPDOCK_GRAPH_MAJOR 0", "#define CHIPDOCK_GRAPH_MAJOR 1", "does not fit"),
    ("graph.h", "#if defined(CHIPDOCK_UNSTABLE)", "#if 1", "stands inside"),
    ("event.h", "event_desc {\n  uint32_t struct_size;\n", "event_desc {\n", "BASE-1"),
    ("event.h", "int64_t timeout_ns", "long timeout_ns", "may not cross"),
    ("event.h", "  void* native;", "  size_t native;", "may not cross"),
    ("event.h", "uint64_t ipc_blob_size;", "uint64_t reserved[4];", "nothing is reserved"),
    ("event.h", "chipdock_table_header header;\n", "", "a table starts with"),
    ("event.h", " *   EVT-3  ", " *   EVT-2  ", "numbered"),
    ("event.h", "[EVT-5]", "", "named by no slot"),
    ("event.h", "[EVT-6]", "[EVT-66]", "defined nowhere"),
    ("event.h", "#define CHIPDOCK_EVENT_MINOR 0", "#define EVENT_MINOR 0", "lacks the prefix"),
    ("event.h", " CHIPDOCK_EVENT_TIMING = 1", " EVENT_TIMING = 1", "lacks the prefix"),
    ("event.h", "CHIPDOCK_EVENT_IPC = 1 << 1 ", "CHIPDOCK_EVENT_IPC ", "no written value"),
    ("event.h", "enum {", "enum chipdock_event_flags {", "unnamed"),
    ("event.h", "/* SPDX", "/* Spdx", "SPDX"),
    ("event.h", "#ifndef CHIPDOCK_EVENT_H_", "#ifndef CHIPDOCK_EVENTS_H_", "include guard"),
    ("host_stream.h", " * Threading: any thread.\n", "", "labels are"),
    ("host_stream.h", " * Since:     host 0.1.", " * Since:     host 9.0.", "expected 'host x.y.'"),
    ("host_stream.h", "int64_t timeout_ns, chipdock_error* error", "int64_t timeout_ns",
     "documents parameters"),
    ("host_stream.h", "void CHIPDOCK_CALL chipdock_host_event_destroy",
     "int32_t CHIPDOCK_CALL chipdock_host_event_destroy", "cannot fail"),
    ("host_stream.h", "chipdock_host_stream_sync(", "chipdock_stream_sync(", "lacks the prefix"),
    ("event.h", "query)(chipdock_event* event, chipdock_error* error)",
     "query)(chipdock_event* event, ...)", "varargs"),
    ("event.h", "query)(chipdock_event* event, chipdock_error* error)",
     "query)(chipdock_error* error, chipdock_event* event)", "last parameter"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    BREAKS,
    ids=[f"{b[0]}-{b[3]}-{i}" for i, b in enumerate(BREAKS)],
)
def test_broken_header_is_found(name, old, new, message):
    text = BY_NAME[name].text
    assert old in text, "the header changed: choose another place to break"
    broken = c_headers.parse(name, text.replace(old, new))
    headers = [broken if header.name == name else header for header in HEADERS]
    assert any(message in finding for finding in check_headers.check(headers))


def test_sparse_comments_are_found():
    text = c_headers.strip_comments(BY_NAME["memory.h"].text)
    assert any(
        "carry comment" in f for f in check_headers.check_header(c_headers.parse("memory.h", text))
    )


def test_references_read_ranges():
    assert c_headers.references("see [KRN-3] to [KRN-5] and MEM-1") == {
        "KRN-3", "KRN-4", "KRN-5", "MEM-1",
    }  # fmt: skip

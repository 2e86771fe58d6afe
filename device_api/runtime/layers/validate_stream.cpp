// SPDX-License-Identifier: Apache-2.0
// Checks of the stream, event and graph tables.
#include "validate.hpp"

namespace chipdock::runtime {
namespace {

using Book = Validator;

Handle of_device(const void* device) {
  Handle entry;
  entry.device = device;
  return entry;
}

void create(Book& book, chipdock_device* device, const chipdock_stream_desc* desc,
            chipdock_stream** out_stream, chipdock_error*) {
  book.live(Kind::kDevice, device, "device");
  want(out_stream != nullptr, book, "BASE-8", "out_stream is NULL");
  const auto given = in_struct(book, desc, "desc");
  no_flags(book, given.flags, CHIPDOCK_STREAM_IMPORT, "flags");
}
void created(Book& book, chipdock_device* device, const chipdock_stream_desc*,
             chipdock_stream** out_stream, chipdock_error*) {
  book.add(Kind::kStream, *out_stream, of_device(device), "stream");
}
void destroy(Book& book, chipdock_stream* stream, chipdock_error*) {
  book.end(Kind::kStream, stream, "stream");
}
void use(Book& book, chipdock_stream* stream, chipdock_error*) {
  book.live(Kind::kStream, stream, "stream");
}
void sync(Book& book, chipdock_stream* stream, int64_t timeout_ns, chipdock_error*) {
  book.live(Kind::kStream, stream, "stream");
  valid_timeout(book, timeout_ns);
}
void wait_event(Book& book, chipdock_stream* stream, chipdock_event* event, chipdock_error*) {
  book.live(Kind::kStream, stream, "stream");
  book.live(Kind::kEvent, event, "event");
}
void host_function(Book& book, chipdock_stream* stream, const chipdock_host_function_desc* desc,
                   chipdock_error*) {
  book.live(Kind::kStream, stream, "stream");
  const auto given = in_struct(book, desc, "desc");
  no_flags(book, given.flags, 0, "flags");
  want(given.function != nullptr, book, "STR-7", "function is NULL");
}
void value(Book& book, chipdock_stream* stream, const chipdock_value_desc* desc, chipdock_error*) {
  const void* device = book.live(Kind::kStream, stream, "stream").device;
  const auto given = in_struct(book, desc, "desc");
  if (given.operation < CHIPDOCK_VALUE_WRITE || given.operation > CHIPDOCK_VALUE_WAIT_AND) {
    raise(CHIPDOCK_UNSUPPORTED, book.slot(), " operation ", given.operation,
          " is not known [BASE-7]");
  }
  want(given.offset % 8 == 0, book, "MEM-3", "offset ", given.offset, " is not a multiple of 8");
  book.range(device, given.memory, given.offset, 8, "memory");
}
void native(Book& book, chipdock_stream* stream, void** out_native, chipdock_error*) {
  book.live(Kind::kStream, stream, "stream");
  want(out_native != nullptr, book, "BASE-8", "out_native is NULL");
}

void create_event(Book& book, chipdock_device* device, const chipdock_event_desc* desc,
                  chipdock_event** out_event, chipdock_error*) {
  book.live(Kind::kDevice, device, "device");
  want(out_event != nullptr, book, "BASE-8", "out_event is NULL");
  const auto given = in_struct(book, desc, "desc");
  no_flags(book, given.flags, CHIPDOCK_EVENT_TIMING | CHIPDOCK_EVENT_IPC, "flags");
}
void created_event(Book& book, chipdock_device* device, const chipdock_event_desc* desc,
                   chipdock_event** out_event, chipdock_error*) {
  Handle entry = of_device(device);
  entry.flags = desc->flags;
  entry.recorded = desc->native != nullptr || desc->ipc_blob != nullptr;
  book.add(Kind::kEvent, *out_event, entry, "event");
}
void destroy_event(Book& book, chipdock_event* event, chipdock_error*) {
  book.end(Kind::kEvent, event, "event");
}
void record(Book& book, chipdock_event* event, chipdock_stream* stream, chipdock_error*) {
  const Handle& entry = book.live(Kind::kEvent, event, "event");
  book.stream_or_null(stream, entry.device);
}
void recorded(Book& book, chipdock_event* event, chipdock_stream*, chipdock_error*) {
  book.live(Kind::kEvent, event, "event").recorded = true;
}
void use_event(Book& book, chipdock_event* event, chipdock_error*) {
  book.live(Kind::kEvent, event, "event");
}
void sync_event(Book& book, chipdock_event* event, int64_t timeout_ns, chipdock_error*) {
  book.live(Kind::kEvent, event, "event");
  valid_timeout(book, timeout_ns);
}
void elapsed(Book& book, chipdock_event* start, chipdock_event* end, int64_t* out_nanoseconds,
             chipdock_error*) {
  const Handle& first = book.live(Kind::kEvent, start, "start");
  const Handle& second = book.live(Kind::kEvent, end, "end");
  want(out_nanoseconds != nullptr, book, "BASE-8", "out_nanoseconds is NULL");
  want((first.flags & second.flags & CHIPDOCK_EVENT_TIMING) != 0, book, "EVT-5",
       "an event was made without TIMING");
  want(first.recorded && second.recorded, book, "EVT-5", "an event was never recorded");
  want(first.device == second.device, book, "EVT-5", "the events are of two devices");
}
void native_event(Book& book, chipdock_event* event, void** out_native, chipdock_error*) {
  book.live(Kind::kEvent, event, "event");
  want(out_native != nullptr, book, "BASE-8", "out_native is NULL");
}
void export_ipc(Book& book, chipdock_event* event, void* blob, uint64_t size, uint64_t* out_size,
                chipdock_error*) {
  const Handle& entry = book.live(Kind::kEvent, event, "event");
  want((entry.flags & CHIPDOCK_EVENT_IPC) != 0, book, "EVT-1", "event was made without IPC");
  want(out_size != nullptr, book, "BASE-8", "out_size is NULL");
  want(blob != nullptr || size == 0, book, "BASE-8", "blob is NULL and size ", size);
}

void begin_capture(Book& book, chipdock_stream* stream, const chipdock_capture_desc* desc,
                   chipdock_error*) {
  book.live(Kind::kStream, stream, "stream");
  no_flags(book, in_struct(book, desc, "desc").flags, 0, "flags");
}
void end_capture(Book& book, chipdock_stream* stream, chipdock_graph** out_graph, chipdock_error*) {
  book.live(Kind::kStream, stream, "stream");
  want(out_graph != nullptr, book, "BASE-8", "out_graph is NULL");
}
void captured(Book& book, chipdock_stream* stream, chipdock_graph** out_graph, chipdock_error*) {
  const void* device = book.live(Kind::kStream, stream, "stream").device;
  book.add(Kind::kGraph, *out_graph, of_device(device), "graph");
}
void capture_state(Book& book, chipdock_stream* stream, int32_t* out_state, chipdock_error*) {
  book.live(Kind::kStream, stream, "stream");
  want(out_state != nullptr, book, "BASE-8", "out_state is NULL");
}
void captured_state(Book& book, chipdock_stream*, int32_t* out_state, chipdock_error*) {
  expect(*out_state >= CHIPDOCK_CAPTURE_NONE && *out_state <= CHIPDOCK_CAPTURE_DOOMED, book,
         "BASE-7", "answered state ", *out_state);
}
void graph_info(Book& book, chipdock_graph* graph, chipdock_graph_info* out_info, chipdock_error*) {
  book.live(Kind::kGraph, graph, "graph");
  out_struct(book, out_info, "out_info");
}
void instantiate(Book& book, chipdock_graph* graph, const chipdock_instantiate_desc* desc,
                 chipdock_graph_exec** out_exec, chipdock_error*) {
  book.live(Kind::kGraph, graph, "graph");
  want(out_exec != nullptr, book, "BASE-8", "out_exec is NULL");
  no_flags(book, in_struct(book, desc, "desc").flags, 0, "flags");
}
void instantiated(Book& book, chipdock_graph* graph, const chipdock_instantiate_desc*,
                  chipdock_graph_exec** out_exec, chipdock_error*) {
  const void* device = book.live(Kind::kGraph, graph, "graph").device;
  book.add(Kind::kExec, *out_exec, of_device(device), "exec");
}
void update(Book& book, chipdock_graph_exec* exec, const chipdock_graph_update_desc* desc,
            chipdock_error*) {
  const void* device = book.live(Kind::kExec, exec, "exec").device;
  const auto given = in_struct(book, desc, "desc");
  want(given.change_count == 0 || given.changes != nullptr, book, "BASE-6", "changes is NULL");
  for (uint32_t i = 0; i < given.change_count; ++i) {
    const auto change = in_struct(book, given.changes[i], "change");
    want(change.target != 0, book, "GRA-7", "change ", i, " has target 0");
    if (change.memory == nullptr) continue;
    want(change.host == nullptr, book, "MEM-3", "change ", i, " has memory and host");
    book.range(device, change.memory, change.offset, 0, "change");
  }
}
void launch(Book& book, chipdock_graph_exec* exec, const chipdock_graph_launch_desc* desc,
            chipdock_error*) {
  const void* device = book.live(Kind::kExec, exec, "exec").device;
  const auto given = in_struct(book, desc, "desc");
  no_flags(book, given.flags, 0, "flags");
  book.stream_or_null(given.stream, device);
}
void destroy_graph(Book& book, chipdock_graph* graph, chipdock_error*) {
  book.end(Kind::kGraph, graph, "graph");
}
void destroy_exec(Book& book, chipdock_graph_exec* exec, chipdock_error*) {
  book.end(Kind::kExec, exec, "exec");
}

}  // namespace

void add_stream_checks(Validator::Checks& checks) {
  CHIPDOCK_BEFORE(checks, stream_create, create);
  CHIPDOCK_SUCCESS(checks, stream_create, created);
  CHIPDOCK_BEFORE(checks, stream_destroy, destroy);
  CHIPDOCK_BEFORE(checks, stream_sync, sync);
  CHIPDOCK_BEFORE(checks, stream_query, use);
  CHIPDOCK_BEFORE(checks, stream_wait_event, wait_event);
  CHIPDOCK_BEFORE(checks, stream_host_function, host_function);
  CHIPDOCK_BEFORE(checks, stream_value, value);
  CHIPDOCK_BEFORE(checks, stream_native, native);
  CHIPDOCK_BEFORE(checks, stream_abort, use);
  CHIPDOCK_BEFORE(checks, event_create, create_event);
  CHIPDOCK_SUCCESS(checks, event_create, created_event);
  CHIPDOCK_BEFORE(checks, event_destroy, destroy_event);
  CHIPDOCK_BEFORE(checks, event_record, record);
  CHIPDOCK_SUCCESS(checks, event_record, recorded);
  CHIPDOCK_BEFORE(checks, event_query, use_event);
  CHIPDOCK_BEFORE(checks, event_sync, sync_event);
  CHIPDOCK_BEFORE(checks, event_elapsed, elapsed);
  CHIPDOCK_BEFORE(checks, event_native, native_event);
  CHIPDOCK_BEFORE(checks, event_export_ipc, export_ipc);
}

void add_graph_checks(Validator::Checks& checks) {
  CHIPDOCK_BEFORE(checks, graph_begin_capture, begin_capture);
  CHIPDOCK_BEFORE(checks, graph_end_capture, end_capture);
  CHIPDOCK_SUCCESS(checks, graph_end_capture, captured);
  CHIPDOCK_BEFORE(checks, graph_capture_state, capture_state);
  CHIPDOCK_SUCCESS(checks, graph_capture_state, captured_state);
  CHIPDOCK_BEFORE(checks, graph_info, graph_info);
  CHIPDOCK_BEFORE(checks, graph_instantiate, instantiate);
  CHIPDOCK_SUCCESS(checks, graph_instantiate, instantiated);
  CHIPDOCK_BEFORE(checks, graph_update, update);
  CHIPDOCK_BEFORE(checks, graph_launch, launch);
  CHIPDOCK_BEFORE(checks, graph_destroy_graph, destroy_graph);
  CHIPDOCK_BEFORE(checks, graph_destroy_exec, destroy_exec);
}

}  // namespace chipdock::runtime

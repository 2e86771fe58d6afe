// SPDX-License-Identifier: Apache-2.0
// The event table. An event is a reference to its latest Point; waiters hold the Point itself, so
// an event may be recorded anew or destroyed under them. [EVT-1] [EVT-3]
#include <memory>
#include <utility>

#include "device.hpp"
#include "graph.hpp"  // IWYU pragma: keep, for the Capture of a stream

namespace chipdock::plugin::cpu {
namespace {

chipdock_status create(chipdock_device* device, const chipdock_event_desc* given,
                       chipdock_event** out_event, chipdock_error* error) {
  return kit::guard(error, [&] {
    deref(device, "device");
    chipdock_event*& out = deref(out_event, "out_event");
    const auto desc = kit::read_struct(
        given, CHIPDOCK_CPU_FIRST(chipdock_event_desc, ipc_blob_size), "event desc");
    check_flags(desc.flags, CHIPDOCK_EVENT_TIMING, "event desc (the CPU has no IPC events)");
    if (desc.native != nullptr || desc.ipc_blob != nullptr) {
      kit::fail(CHIPDOCK_UNSUPPORTED, "the CPU has no native and no IPC events to import");
    }
    out = new chipdock_event(*device, desc.flags);
    device->others.fetch_add(1);
  });
}

chipdock_status destroy(chipdock_event* event, chipdock_error* error) {
  return kit::guard(error, [&] {
    deref(event, "event").device.others.fetch_sub(1);
    delete event;
  });
}

chipdock_status record(chipdock_event* event, chipdock_stream* stream, chipdock_error* error) {
  return kit::guard(error, [&] {
    deref(event, "event");
    auto point = std::make_shared<Point>();
    if (stream == nullptr) {
      point->reach(nullptr);
    } else if (const auto capture = stream->capture()) {
      point->captured = true;
      point->capture = capture;
      capture->record(*stream, point);
    } else {
      stream->push(std::make_shared<RecordTask>(point));
    }
    const std::lock_guard<std::mutex> lock(event->mutex);
    event->last = std::move(point);
  });
}

/// Asking for an event of a capture has no answer, and dooms the capture if it is still open.
/// [GRA-3]
void refuse_captured(const PointPtr& point, const char* what) {
  if (point == nullptr || !point->captured) return;
  const std::string text =
      std::string(what) + " of an event that was recorded in a capture [GRA-3]";
  if (const auto capture = point->capture.lock()) capture->doom(text);
  kit::fail(CHIPDOCK_FAILED_PRECONDITION, text);
}

chipdock_status query(chipdock_event* event, chipdock_error* error) {
  chipdock_status status = CHIPDOCK_OK;
  const chipdock_status guarded = kit::guard(error, [&] {
    const PointPtr point = deref(event, "event").point();
    refuse_captured(point, "query");
    if (point == nullptr) return;  // [EVT-2]
    if (!point->reached()) {
      status = CHIPDOCK_NOT_READY;
    } else if (point->cause() != nullptr) {
      status = report(*point->cause(), CHIPDOCK_SCOPE_STREAM, error);
    }
  });
  return guarded != CHIPDOCK_OK ? guarded : status;
}

chipdock_status sync(chipdock_event* event, int64_t timeout_ns, chipdock_error* error) {
  chipdock_status status = CHIPDOCK_OK;
  const chipdock_status guarded = kit::guard(error, [&] {
    const PointPtr point = deref(event, "event").point();
    kit::require(timeout_ns >= -1, "timeout_ns ", timeout_ns, " is neither -1 nor a time [DEV-8]");
    refuse_captured(point, "sync");
    if (point == nullptr) return;  // [EVT-2]
    if (!point->wait(timeout_ns)) {
      kit::fail(CHIPDOCK_TIMEOUT, "the event was not reached within ", timeout_ns, " ns");
    }
    if (point->cause() != nullptr) status = report(*point->cause(), CHIPDOCK_SCOPE_STREAM, error);
  });
  return guarded != CHIPDOCK_OK ? guarded : status;
}

chipdock_status elapsed(chipdock_event* start, chipdock_event* end, int64_t* out_nanoseconds,
                        chipdock_error* error) {
  chipdock_status status = CHIPDOCK_OK;
  const chipdock_status guarded = kit::guard(error, [&] {
    int64_t& out = deref(out_nanoseconds, "out_nanoseconds");
    kit::require(
        ((deref(start, "start").flags & deref(end, "end").flags) & CHIPDOCK_EVENT_TIMING) != 0,
        "elapsed needs events made with CHIPDOCK_EVENT_TIMING");
    const PointPtr first = start->point();
    const PointPtr second = end->point();
    kit::require(first != nullptr && second != nullptr, "elapsed needs events that were recorded");
    refuse_captured(first, "elapsed");
    refuse_captured(second, "elapsed");
    if (!first->reached() || !second->reached()) {
      status = CHIPDOCK_NOT_READY;
      return;
    }
    out = second->time_ns() - first->time_ns();
  });
  return guarded != CHIPDOCK_OK ? guarded : status;
}

}  // namespace

// native, export_ipc: threads of one process need neither.
const chipdock_event_api kEventApi = {
    CHIPDOCK_TABLE(EVENT, event), create, destroy, record, query, sync, elapsed, nullptr, nullptr};

}  // namespace chipdock::plugin::cpu

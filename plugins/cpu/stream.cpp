// SPDX-License-Identifier: Apache-2.0
// The stream table. How tasks run is queue.cpp's.
#include "stream.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "device.hpp"
#include "graph.hpp"
#include "profiler.hpp"
#include "spin.hpp"

namespace chipdock::plugin::cpu {
namespace {

class HostFunctionTask : public Task {
 public:
  explicit HostFunctionTask(const chipdock_host_function_desc& desc)
      : Task(desc.correlation_id), function_(desc.function), context_(desc.context) {}
  void run(const RunContext&) override { function_(context_, CHIPDOCK_OK); }
  void skip(const CausePtr& cause) override { function_(context_, cause->status); }

 private:
  void(CHIPDOCK_CALL* const function_)(void*, chipdock_status);
  void* const context_;
};

class WaitTask : public Task {
 public:
  explicit WaitTask(PointPtr point) : Task(0), point_(std::move(point)) {}
  void run(const RunContext& context) override {
    const ProfileScope scope(context.stream->device(), CHIPDOCK_PROFILER_WAIT, nullptr, 0, 0,
                             context);
    context.stream->wait_point(point_);
  }

 private:
  const PointPtr point_;
};

class ValueTask : public Task {
 public:
  ValueTask(chipdock_device& device, const chipdock_value_desc& desc)
      : Task(desc.correlation_id), device_(device), operation_(desc.operation), value_(desc.value) {
    kit::require(desc.offset % 8 == 0, "offset ", desc.offset,
                 " of a value is not a multiple of 8");
    address_ = reinterpret_cast<uint64_t*>(
        resolve(deref(desc.memory, "memory of value"), desc.offset, 8, "value"));
    if (operation_ < CHIPDOCK_VALUE_WRITE || operation_ > CHIPDOCK_VALUE_WAIT_AND) {
      kit::fail(CHIPDOCK_UNSUPPORTED, "value operation ", operation_, " is unknown");
    }
  }

  void run(const RunContext& context) override {
    if (operation_ == CHIPDOCK_VALUE_WRITE) {
      __atomic_store_n(address_, value_, __ATOMIC_RELEASE);
      return;
    }
    const ProfileScope scope(device_, CHIPDOCK_PROFILER_WAIT, nullptr, correlation_id(), 0,
                             context);
    // Nobody tells when memory changes: look often at first, then now and then.
    std::chrono::microseconds pause{10};
    while (!spin_until([&] { return holds(); })) {
      if (context.stream != nullptr && context.stream->aborted()) {
        kit::fail(CHIPDOCK_ABORTED, "the stream was aborted while it waited for a value");
      }
      std::this_thread::sleep_for(pause);
      pause = std::min(pause * 2, std::chrono::microseconds(500));
    }
  }

 private:
  bool holds() const {
    const uint64_t now = __atomic_load_n(address_, __ATOMIC_ACQUIRE);
    switch (operation_) {
      case CHIPDOCK_VALUE_WAIT_EQUAL:
        return now == value_;
      case CHIPDOCK_VALUE_WAIT_GREATER_EQUAL:
        return static_cast<int64_t>(now - value_) >= 0;
      default:
        return (now & value_) != 0;
    }
  }

  chipdock_device& device_;
  const int32_t operation_;
  const uint64_t value_;
  uint64_t* address_;
};

chipdock_status create(chipdock_device* device, const chipdock_stream_desc* given,
                       chipdock_stream** out_stream, chipdock_error* error) {
  return kit::guard(error, [&] {
    deref(device, "device");
    chipdock_stream*& out = deref(out_stream, "out_stream");
    const auto desc =
        kit::read_struct(given, CHIPDOCK_CPU_FIRST(chipdock_stream_desc, native), "stream desc");
    check_flags(desc.flags, 0, "stream desc");
    if (desc.native != nullptr || desc.native_kind != 0) {
      kit::fail(CHIPDOCK_UNSUPPORTED, "a CPU has no native streams to import");
    }
    out = device->streams.add(std::make_unique<chipdock_stream>(*device));
  });
}

chipdock_status destroy(chipdock_stream* stream, chipdock_error* error) {
  return kit::guard(error, [&] { deref(stream, "stream").device().streams.take(stream).reset(); });
}

/// sync and query of a captured stream doom the capture. [GRA-3]
void refuse_capture(const chipdock_stream& stream, const char* what) {
  if (const auto capture = stream.capture()) {
    capture->doom(std::string(what) + " was called on a captured stream [GRA-3]");
  }
}

chipdock_status sync(chipdock_stream* stream, int64_t timeout_ns, chipdock_error* error) {
  chipdock_status status = CHIPDOCK_OK;
  const chipdock_status guarded = kit::guard(error, [&] {
    refuse_capture(deref(stream, "stream"), "sync");
    kit::require(timeout_ns >= -1, "timeout_ns ", timeout_ns, " is neither -1 nor a time [DEV-8]");
    if (!stream->sync(timeout_ns)) {
      kit::fail(CHIPDOCK_TIMEOUT, "the stream did not end its work within ", timeout_ns,
                " ns; it goes on");
    }
    const CausePtr cause = stream->failure();
    if (cause != nullptr) status = report(*cause, CHIPDOCK_SCOPE_STREAM, error);
  });
  return guarded != CHIPDOCK_OK ? guarded : status;
}

chipdock_status query(chipdock_stream* stream, chipdock_error* error) {
  chipdock_status status = CHIPDOCK_OK;
  const chipdock_status guarded = kit::guard(error, [&] {
    refuse_capture(deref(stream, "stream"), "query");
    if (!stream->idle()) {
      status = CHIPDOCK_NOT_READY;
      return;
    }
    const CausePtr cause = stream->failure();
    if (cause != nullptr) status = report(*cause, CHIPDOCK_SCOPE_STREAM, error);
  });
  return guarded != CHIPDOCK_OK ? guarded : status;
}

chipdock_status wait_event(chipdock_stream* stream, chipdock_event* event, chipdock_error* error) {
  return kit::guard(error, [&] {
    deref(stream, "stream");
    const PointPtr point = deref(event, "event").point();
    const auto capture = stream->capture();
    if (point != nullptr && point->captured) {
      const auto other = point->capture.lock();
      if (other == nullptr || (capture != nullptr && capture != other)) {
        const char* text = "wait_event on an event that was recorded in another capture [GRA-3]";
        if (capture != nullptr) capture->doom(text);
        kit::fail(CHIPDOCK_FAILED_PRECONDITION, text);
      }
      if (capture == nullptr) stream->enqueue_check("wait_event");
      other->wait(*stream, point);
      return;
    }
    if (capture != nullptr && point != nullptr) {
      capture->doom("wait_event in a capture on an event recorded outside of it [GRA-3]");
    }
    if (point == nullptr || capture != nullptr) {
      if (capture == nullptr) stream->enqueue_check("wait_event");
      return;
    }
    stream->push(std::make_shared<WaitTask>(point));
  });
}

chipdock_status host_function(chipdock_stream* stream, const chipdock_host_function_desc* given,
                              chipdock_error* error) {
  return kit::guard(error, [&] {
    deref(stream, "stream");
    const auto desc =
        kit::read_struct(given, CHIPDOCK_CPU_FIRST(chipdock_host_function_desc, correlation_id),
                         "host function desc");
    check_flags(desc.flags, 0, "host function desc");
    kit::require(desc.function != nullptr, "function is NULL");
    stream->push(std::make_shared<HostFunctionTask>(desc));
  });
}

chipdock_status value(chipdock_stream* stream, const chipdock_value_desc* given,
                      chipdock_error* error) {
  return kit::guard(error, [&] {
    deref(stream, "stream");
    const auto desc = kit::read_struct(
        given, CHIPDOCK_CPU_FIRST(chipdock_value_desc, correlation_id), "value desc");
    stream->push(std::make_shared<ValueTask>(stream->device(), desc));
  });
}

chipdock_status abort_stream(chipdock_stream* stream, chipdock_error* error) {
  return kit::guard(error, [&] { deref(stream, "stream").abort(); });
}

}  // namespace

// native: a CPU has no stream of its own to show.
const chipdock_stream_api kStreamApi = {CHIPDOCK_TABLE(STREAM, stream),
                                        create,
                                        destroy,
                                        sync,
                                        query,
                                        wait_event,
                                        host_function,
                                        value,
                                        nullptr,
                                        abort_stream};

}  // namespace chipdock::plugin::cpu

// SPDX-License-Identifier: Apache-2.0
// host_stream.h: streams and events.
#include "embed/embed.hpp"

namespace chipdock::embed {
namespace {

using runtime::Event;
using runtime::Stream;

std::shared_ptr<Stream> make_stream(const std::shared_ptr<runtime::Device>& device,
                                    const chipdock_stream_desc& desc) {
  only_flags(desc.flags, CHIPDOCK_STREAM_IMPORT, "desc");
  if (desc.native == nullptr && desc.flags == 0) return Stream::create(device, desc.priority);
  if (desc.native_kind != 0) {
    runtime::raise(CHIPDOCK_UNSUPPORTED, "native_kind is ", desc.native_kind,
                   ", only 0, the vendor's ordinary stream type, can be imported");
  }
  return Stream::import(device, desc.native);
}

}  // namespace
}  // namespace chipdock::embed

using namespace chipdock::embed;  // NOLINT(google-build-using-namespace): C functions only below

chipdock_status CHIPDOCK_CALL chipdock_host_stream_create(chipdock_host_device* device,
                                                          const chipdock_stream_desc* desc,
                                                          chipdock_host_stream** out_stream,
                                                          chipdock_error* error) {
  return guard(error, [&] {
    need(device, "device");
    need(out_stream, "out_stream");
    chipdock_stream_desc given{};
    if (desc != nullptr) given = take(desc, "desc");
    auto made = std::make_unique<chipdock_host_stream>();
    made->stream = make_stream(device->device, given);
    *out_stream = made.release();
  });
}

void CHIPDOCK_CALL chipdock_host_stream_destroy(chipdock_host_stream* stream) { delete stream; }

chipdock_status CHIPDOCK_CALL chipdock_host_stream_sync(chipdock_host_stream* stream,
                                                        int64_t timeout_ns, chipdock_error* error) {
  return guard(error, [&] { need(stream, "stream").stream->sync(timeout_ns); });
}

chipdock_status CHIPDOCK_CALL chipdock_host_stream_wait(chipdock_host_stream* stream,
                                                        chipdock_host_event* event,
                                                        chipdock_error* error) {
  return guard(error, [&] { need(stream, "stream").stream->wait(*need(event, "event").event); });
}

chipdock_status CHIPDOCK_CALL chipdock_host_stream_call(chipdock_host_stream* stream,
                                                        const chipdock_host_function_desc* desc,
                                                        chipdock_error* error) {
  return guard(error, [&] {
    const auto& own = need(stream, "stream").stream;
    const chipdock_host_function_desc given = take(desc, "desc");
    only_flags(given.flags, 0, "desc");
    require(given.function != nullptr, "function is NULL");
    own->host_function([given](chipdock_status state) { given.function(given.context, state); });
  });
}

chipdock_status CHIPDOCK_CALL chipdock_host_event_create(chipdock_host_device* device,
                                                         const chipdock_event_desc* desc,
                                                         chipdock_host_event** out_event,
                                                         chipdock_error* error) {
  return guard(error, [&] {
    need(device, "device");
    need(out_event, "out_event");
    chipdock_event_desc given{};
    if (desc != nullptr) given = take(desc, "desc");
    only_flags(given.flags, CHIPDOCK_EVENT_TIMING, "desc");
    if (given.native != nullptr || given.ipc_blob != nullptr) {
      chipdock::runtime::raise(CHIPDOCK_UNSUPPORTED,
                               "events cannot be imported through host.h yet");
    }
    auto made = std::make_unique<chipdock_host_event>();
    made->event = Event::create(device->device, (given.flags & CHIPDOCK_EVENT_TIMING) != 0);
    *out_event = made.release();
  });
}

void CHIPDOCK_CALL chipdock_host_event_destroy(chipdock_host_event* event) { delete event; }

chipdock_status CHIPDOCK_CALL chipdock_host_event_record(chipdock_host_event* event,
                                                         chipdock_host_stream* stream,
                                                         chipdock_error* error) {
  return guard(error, [&] {
    Event& own = *need(event, "event").event;
    Stream& on = *need(stream, "stream").stream;
    require(own.device() == on.device(), "the event is one of ", own.device()->name(),
            ", the stream one of ", on.device()->name(), ", opened apart");
    own.record(&on);
  });
}

chipdock_status CHIPDOCK_CALL chipdock_host_event_sync(chipdock_host_event* event,
                                                       int64_t timeout_ns, chipdock_error* error) {
  return guard(error, [&] { need(event, "event").event->sync(timeout_ns); });
}

chipdock_status CHIPDOCK_CALL chipdock_host_event_elapsed(chipdock_host_event* start,
                                                          chipdock_host_event* end,
                                                          int64_t* out_elapsed_ns,
                                                          chipdock_error* error) {
  return guard(error, [&] {
    Event& first = *need(start, "start").event;
    Event& last = *need(end, "end").event;
    need(out_elapsed_ns, "out_elapsed_ns");
    require(first.device() == last.device(), "the events are of ", first.device()->name(), " and ",
            last.device()->name(), ", opened apart");
    *out_elapsed_ns = last.elapsed_since(first);
  });
}

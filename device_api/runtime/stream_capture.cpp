// SPDX-License-Identifier: Apache-2.0
// The part of Stream that records: begin and end, and what other calls do meanwhile. The operations
// are kept by the host in both kinds of capture, so that a device which refuses a graph can still
// be replayed.
#include <utility>

#include "allocator.hpp"
#include "graph_capture.hpp"
#include "host_queue.hpp"
#include "operation.hpp"
#include "stream.hpp"

namespace chipdock::runtime {

void Stream::begin_capture() {
  device_->check_alive();
  const bool native = handle_ != nullptr && device_->tables().graph.begin_capture != nullptr;
  std::lock_guard<std::mutex> lock(mutex_);
  if (capture_)
    raise(CHIPDOCK_FAILED_PRECONDITION, "begin_capture: ", label_, " is being captured already");
  raise_if_failed("begin_capture");
  if (native) {
    chipdock_capture_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.correlation_id = device_->next_correlation_id();
    ErrorRecord error;
    device_->check_call(device_->tables().graph.begin_capture(handle_, &desc, &error), error,
                        "graph.begin_capture");
  }
  enter_capture(std::make_shared<Capture>(shared_from_this(), native));
}

std::shared_ptr<Graph> Stream::end_capture() {
  std::shared_ptr<Capture> capture;
  chipdock_graph* graph = nullptr;
  ErrorRecord error;
  chipdock_status status = CHIPDOCK_OK;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    capture = capture_;
    if (!capture || !capture->begun_by(*this)) {
      raise(CHIPDOCK_FAILED_PRECONDITION, "end_capture: no capture was begun on ", label_);
    }
    if (capture->native()) status = device_->tables().graph.end_capture(handle_, &graph, &error);
  }
  for (const auto& stream : capture->streams()) stream->leave_capture();
  std::shared_ptr<GraphBody> body;
  try {
    body = capture->finish(*this);
    device_->check_call(status, error, "graph.end_capture");
  } catch (const Error&) {
    ErrorRecord ignored;
    if (graph != nullptr) device_->tables().graph.destroy_graph(graph, &ignored);
    throw;
  }
  if (!capture->recorded()) {
    ErrorRecord ignored;
    if (graph != nullptr) device_->tables().graph.destroy_graph(graph, &ignored);
    return make_host_graph(device_, std::move(body));
  }
  return make_native_graph(device_, std::move(body), graph);
}

/// Called with the stream's lock.
void Stream::enter_capture(std::shared_ptr<Capture> capture) {
  Capture& session = *capture;
  capture_ = std::move(capture);
  captured_.store(true, std::memory_order_release);
  session.retain(device_->allocator().enter_private_pool(*this));
}

void Stream::leave_capture() {
  device_->allocator().leave_private_pool(*this);
  std::shared_ptr<Capture> dropped;  // Goes after the lock: it may free memory.
  std::lock_guard<std::mutex> lock(mutex_);
  dropped.swap(capture_);
  captured_.store(false, std::memory_order_release);
}

void Stream::capture_operation(Operation& operation) {
  if (!operation.capturable()) {
    std::ostringstream text;
    text << "FAILED_PRECONDITION: " << operation.name()
         << " cannot be captured: the caller needs its result "
         << "at once, or it is a graph of the device [GRA-3]";
    capture_->doom(Error(CHIPDOCK_FAILED_PRECONDITION, text.str()));
  }
  const uint64_t id = device_->next_correlation_id();
  device_->note_operation(id, operation.name());
  std::shared_ptr<Operation> kept = operation.keep();
  if (!kept->recordable(*device_)) capture_->record_by_host();
  if (capture_->recorded()) {
    // The kept one is issued: what it owns lives as long as the graph.
    Issue issue{*device_, handle_, id, {}, CHIPDOCK_OK, {}, true};
    kept->issue(issue);
    for (auto& memory : issue.keep) capture_->retain(std::move(memory));
  }
  capture_->add(*this, std::move(kept), id);
}

void Stream::refuse_captured(const char* what) {
  if (!capturing()) return;
  std::shared_ptr<Capture> capture;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    capture = capture_;
  }
  if (!capture) return;
  capture->doom(Error(CHIPDOCK_FAILED_PRECONDITION, std::string("FAILED_PRECONDITION: ") + what +
                                                        " of " + label_ +
                                                        " while it is being captured [GRA-3]"));
}

void Stream::doom_capture(const Error& error) noexcept {
  try {
    std::lock_guard<std::mutex> lock(mutex_);
    if (capture_) capture_->doom(error);
  } catch (const Error&) {  // what doom throws; end_capture will again
  }
}

void Stream::wait(Event& event) {
  device_->check_alive();
  std::shared_ptr<EventState> point;
  std::shared_ptr<Capture> session;
  Capture::Clock clock;
  {
    std::lock_guard<std::mutex> lock(event.mutex_);
    point = event.state_;
    clock = event.capture_point_;
    session = event.capture_.lock();
  }
  if (!clock.empty() && (!session || session->finished())) {
    raise(CHIPDOCK_FAILED_PRECONDITION, "wait of ", label_,
          ": the event was recorded in a capture that has ", "ended, record it anew");
  }
  const bool together = event.device_->plugin() == device_->plugin() &&
                        (event.handle_ == nullptr) == (handle_ == nullptr);
  std::unique_lock<std::mutex> lock(mutex_);
  if (capture_ && clock.empty()) {
    if (event.handle_ == nullptr && !point) return;  // Never recorded: no wait. [EVT-2]
    capture_->doom(Error(CHIPDOCK_FAILED_PRECONDITION,
                         "FAILED_PRECONDITION: wait of " + label_ +
                             " inside a capture on an event recorded outside of it [GRA-3]"));
  }
  if (!clock.empty() && (!together || (capture_ && capture_ != session))) {
    const Error refused(
        CHIPDOCK_FAILED_PRECONDITION,
        "FAILED_PRECONDITION: wait of " + label_ + " on an event of another capture [GRA-3]");
    if (capture_) capture_->doom(refused);
    session->doom(refused);
  }
  if (!clock.empty()) {
    if (handle_ != nullptr && session->native()) {
      ErrorRecord error;
      device_->check_call(device_->tables().stream.wait_event(handle_, event.handle_, &error),
                          error, "stream.wait_event");
    }
    session->wait(shared_from_this(), clock);
    if (!capture_) enter_capture(session);
    return;
  }
  raise_if_failed("wait for an event");
  if (!together) {
    // No plugin and no queue of ours knows both sides, so the caller stands in for them.
    lock.unlock();
    try {
      event.sync(-1);
    } catch (const Error& error) {
      fail(error);
    }
    return;
  }
  if (queue_) {
    if (point) queue_->wait(point);
    return;
  }
  ErrorRecord error;
  device_->check_call(device_->tables().stream.wait_event(handle_, event.handle_, &error), error,
                      "stream.wait_event");
}

}  // namespace chipdock::runtime

// SPDX-License-Identifier: Apache-2.0
// Events, and the marks by which the allocator follows streams. See stream.hpp.
#include <utility>

#include "graph_capture.hpp"
#include "host_queue.hpp"
#include "operation.hpp"
#include "stream.hpp"

namespace chipdock::runtime {

std::shared_ptr<Event> Event::create(std::shared_ptr<Device> device, bool timing) {
  device->check_alive();
  std::shared_ptr<Event> event(new Event());
  event->device_ = std::move(device);
  event->timing_ = timing;
  Device& owner = *event->device_;
  if (owner.tables().stream.create != nullptr && owner.tables().event.create != nullptr) {
    chipdock_event_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.flags = timing ? CHIPDOCK_EVENT_TIMING : 0;
    ErrorRecord error;
    const chipdock_status status =
        owner.tables().event.create(owner.handle(), &desc, &event->handle_, &error);
    owner.check_call(status, error, "event.create");
    if (event->handle_ == nullptr) {
      raise(CHIPDOCK_INTERNAL, owner.name(), " event.create returned OK and no event [BASE-8]");
    }
  }
  return event;
}

Event::~Event() {
  if (handle_ == nullptr || !device_->callable()) return;
  ErrorRecord error;
  device_->tables().event.destroy(handle_, &error);
}

void Event::record(Stream* stream) {
  device_->check_alive();
  if (stream != nullptr && stream->device() != device_) {
    raise(CHIPDOCK_INVALID_ARGUMENT, "an event of ", device_->name(), " cannot be recorded on ",
          stream->label(), ", it takes streams of its own device");
  }
  std::unique_lock<std::mutex> enqueue;
  if (stream != nullptr) enqueue = std::unique_lock<std::mutex>(stream->mutex_);
  const std::shared_ptr<Capture> capture = stream != nullptr ? stream->capture_ : nullptr;
  if (stream != nullptr && !capture) stream->raise_if_failed("record of an event");
  auto point = std::make_shared<EventState>();
  if (handle_ != nullptr && (!capture || capture->native())) {
    ErrorRecord error;
    chipdock_stream* native = stream != nullptr ? stream->handle() : nullptr;
    device_->check_call(device_->tables().event.record(handle_, native, &error), error,
                        "event.record");
  } else if (!capture) {
    if (stream == nullptr) {
      point->reach(nullptr);
    } else {
      stream->queue_->record(point);
    }
  }
  std::lock_guard<std::mutex> lock(mutex_);
  capture_point_.clear();
  capture_.reset();
  if (capture) {
    capture_ = capture;
    capture_point_ = capture->point(*stream);
  } else if (handle_ == nullptr) {
    state_ = std::move(point);
  } else if (timing_ && device_->tables().event.elapsed == nullptr) {
    state_ = std::move(point);
    stamp(stream);
  }
}

/// Takes the host's time when a native stream reaches the event. Called with the stream's lock.
void Event::stamp(Stream* stream) {
  const std::shared_ptr<EventState> point = state_;
  if (stream == nullptr) {
    point->reach(nullptr);
    return;
  }
  HostFunctionOperation reach([point](chipdock_status) { point->reach(nullptr); });
  Issue issue{*device_, stream->handle(), device_->next_correlation_id(), {}, CHIPDOCK_OK, {},
              false};
  reach.issue(issue);
}

void Event::refuse_captured(const char* what) {
  std::shared_ptr<Capture> capture;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (capture_point_.empty()) return;
    capture = capture_.lock();
  }
  const Error refused(CHIPDOCK_FAILED_PRECONDITION,
                      std::string("FAILED_PRECONDITION: ") + what +
                          " of an event that was recorded in a " +
                          "capture; nothing runs there that could reach it [GRA-3]");
  if (capture && !capture->finished()) capture->doom(refused);
  throw Error(refused);
}

bool Event::query() {
  device_->check_alive();
  refuse_captured("query");
  if (handle_ != nullptr) {
    ErrorRecord error;
    const chipdock_status status = device_->tables().event.query(handle_, &error);
    if (status == CHIPDOCK_NOT_READY) return false;
    device_->check_call(status, error, "event.query");
    return true;
  }
  std::shared_ptr<EventState> point;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    point = state_;
  }
  if (!point) return true;  // Never recorded counts as reached. [EVT-2]
  if (!point->reached()) return false;
  if (point->cause()) throw Error(*point->cause());
  return true;
}

void Event::sync(int64_t timeout_ns) {
  check_timeout(timeout_ns);
  device_->check_alive();
  refuse_captured("sync");
  if (handle_ != nullptr) {
    ErrorRecord error;
    device_->check_call(device_->tables().event.sync(handle_, timeout_ns, &error), error,
                        "event.sync");
    return;
  }
  std::shared_ptr<EventState> point;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    point = state_;
  }
  if (!point) return;
  if (!point->wait(timeout_ns)) {
    raise(CHIPDOCK_TIMEOUT, "sync of an event of ", device_->name(), " ran out of its ", timeout_ns,
          " ns; the work goes on");
  }
  if (point->cause()) throw Error(*point->cause());
}

int64_t Event::elapsed_since(Event& start) {
  device_->check_alive();
  if (!timing_ || !start.timing_) {
    raise(CHIPDOCK_INVALID_ARGUMENT, "elapsed needs two events made with timing");
  }
  if (handle_ != nullptr && start.handle_ != nullptr &&
      device_->tables().event.elapsed != nullptr) {
    int64_t nanoseconds = 0;
    ErrorRecord error;
    device_->check_call(
        device_->tables().event.elapsed(start.handle_, handle_, &nanoseconds, &error), error,
        "event.elapsed");
    return nanoseconds;
  }
  std::shared_ptr<EventState> points[2];
  Event* events[2] = {&start, this};
  for (int i = 0; i < 2; ++i) {
    std::lock_guard<std::mutex> lock(events[i]->mutex_);
    points[i] = events[i]->state_;
  }
  if (!points[0] || !points[1]) {
    raise(CHIPDOCK_INVALID_ARGUMENT, "elapsed needs two recorded events, one was never recorded");
  }
  if (!points[0]->reached() || !points[1]->reached()) {
    raise(CHIPDOCK_NOT_READY, "elapsed: an event is not reached yet, sync it first");
  }
  return points[1]->time_ns() - points[0]->time_ns();
}

StreamMark::~StreamMark() {
  if (event_ != nullptr) device_->give_event(event_);
}

StreamMark::StreamMark(StreamMark&& other) noexcept { *this = std::move(other); }

StreamMark& StreamMark::operator=(StreamMark&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(event_, other.event_);
  std::swap(point_, other.point_);
  return *this;
}

std::unique_ptr<StreamMark> StreamMark::record(Stream& stream) {
  std::lock_guard<std::mutex> lock(stream.mutex_);
  if (stream.capture_) return nullptr;
  return std::make_unique<StreamMark>(record_locked(stream));
}

StreamMark StreamMark::record_locked(Stream& stream) {
  StreamMark mark;
  mark.device_ = stream.device_.get();
  if (stream.queue_) {
    mark.point_ = stream.queue_->record();
    return mark;
  }
  mark.event_ = mark.device_->take_event();
  ErrorRecord error;
  if (mark.event_ == nullptr ||
      mark.device_->tables().event.record(mark.event_, stream.handle_, &error) != CHIPDOCK_OK) {
    // No event is to be had, or the stream has failed: once it stands still, nothing uses the
    // memory.
    mark.device_->tables().stream.sync(stream.handle_, -1, &error);
    if (mark.event_ != nullptr) mark.device_->give_event(std::exchange(mark.event_, nullptr));
  }
  return mark;
}

bool StreamMark::reached() {
  if (point_) return point_->reached();
  if (event_ == nullptr || !device_->callable()) return true;
  ErrorRecord error;
  return device_->tables().event.query(event_, &error) != CHIPDOCK_NOT_READY;
}

void StreamMark::wait() {
  if (point_) {
    point_->wait(-1);
  } else if (event_ != nullptr && device_->callable()) {
    ErrorRecord error;
    device_->tables().event.sync(event_, -1, &error);
  }
}

}  // namespace chipdock::runtime

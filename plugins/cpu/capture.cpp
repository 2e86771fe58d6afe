// SPDX-License-Identifier: Apache-2.0
// The rules of a capture: who takes part, what is forbidden, whether every fork was joined. The
// tasks themselves are only collected. Lock order: a capture's mutex, then a stream's.
#include <string>
#include <utility>

#include "graph.hpp"

namespace chipdock::plugin::cpu {

Capture::Capture(chipdock_stream& origin) : origin_(&origin) { streams_[&origin]; }

void Capture::doom_locked(const std::string& what) {
  if (doom_ != nullptr) return;
  auto cause = std::make_shared<Cause>();
  cause->status = CHIPDOCK_FAILED_PRECONDITION;
  cause->text = "FAILED_PRECONDITION: " + what;
  doom_ = std::move(cause);
}

void Capture::doom(const std::string& what) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    doom_locked(what);
  }
  kit::fail(CHIPDOCK_FAILED_PRECONDITION, what);
}

bool Capture::doomed() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return doom_ != nullptr;
}

void Capture::check_locked() const {
  if (doom_ != nullptr) {
    kit::fail(CHIPDOCK_FAILED_PRECONDITION,
              "the capture is doomed, end it. First cause: ", doom_->text);
  }
}

/// Something was queued on `stream`: it has seen one more step of its own.
void Capture::step_locked(chipdock_stream& stream) { ++streams_[&stream][&stream]; }

void Capture::add(chipdock_stream& stream, TaskPtr task) {
  const std::lock_guard<std::mutex> lock(mutex_);
  check_locked();
  if (const char* what = task->uncapturable()) {
    doom_locked(std::string(what) + " was called on a captured stream [GRA-3]");
    check_locked();
  }
  tasks_.push_back(std::move(task));
  step_locked(stream);
}

void Capture::record(chipdock_stream& stream, const PointPtr& point) {
  const std::lock_guard<std::mutex> lock(mutex_);
  check_locked();
  step_locked(stream);
  points_[point] = streams_[&stream];
}

void Capture::wait(chipdock_stream& stream, const PointPtr& point) {
  const std::lock_guard<std::mutex> lock(mutex_);
  check_locked();
  if (streams_.count(&stream) == 0) stream.set_capture(shared_from_this());
  Seen& seen = streams_[&stream];
  for (const auto& [other, steps] : points_[point]) {
    if (seen[other] < steps) seen[other] = steps;
  }
  step_locked(stream);
}

void Capture::lose(chipdock_stream& stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  doom_locked("a stream was destroyed while it was captured");
  streams_.erase(&stream);
}

std::pair<TaskList, uint64_t> Capture::end(chipdock_stream& stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (&stream != origin_) {
    doom_locked("end_capture was called on a stream that did not begin the capture [GRA-2]");
  }
  const Seen& joined = streams_[origin_];
  for (const auto& [other, seen] : streams_) {
    const auto known = joined.find(other);
    const uint64_t steps = known != joined.end() ? known->second : 0;
    const auto own = seen.find(other);
    if (own != seen.end() && own->second > steps) {
      doom_locked(
          "a stream that was forked into the capture is not joined; record an event on it behind "
          "its work and let the first stream wait for it [GRA-2]");
    }
  }
  for (const auto& entry : streams_) {
    // A lost origin is no stream any more, and its entry was made anew just now.
    if (entry.first != origin_ || &stream == origin_) entry.first->set_capture(nullptr);
  }
  if (doom_ != nullptr) throw Poisoned{doom_};
  return {std::move(tasks_), streams_.size()};
}

}  // namespace chipdock::plugin::cpu

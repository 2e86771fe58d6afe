// SPDX-License-Identifier: Apache-2.0
// See graph_capture.hpp.
#include "graph_capture.hpp"

#include <algorithm>
#include <utility>

namespace chipdock::runtime {

Capture::Capture(const std::shared_ptr<Stream>& origin, bool native)
    : origin_(origin->id()), native_(native), recorded_(native) {
  streams_[origin_] = origin;
  clocks_[origin_][origin_] = 1;
}

void Capture::add(const Stream& stream, std::shared_ptr<Operation> operation,
                  uint64_t correlation_id) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (doomed_) throw Error(*doomed_);
  body_->nodes.push_back({std::move(operation), correlation_id});
  ++clocks_[stream.id()][stream.id()];
}

Capture::Clock Capture::point(const Stream& stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  return clocks_[stream.id()];
}

void Capture::wait(const std::shared_ptr<Stream>& stream, const Clock& point) {
  std::lock_guard<std::mutex> lock(mutex_);
  streams_[stream->id()] = stream;
  Clock& clock = clocks_[stream->id()];
  // A fork counts as work: a stream that was only forked must be joined too.
  if (clock.empty()) clock[stream->id()] = 1;
  for (const auto& [id, position] : point) clock[id] = std::max(clock[id], position);
}

void Capture::retain(std::shared_ptr<void> memory) {
  std::lock_guard<std::mutex> lock(mutex_);
  body_->memory.push_back(std::move(memory));
}

void Capture::doom(const Error& error) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!doomed_) doomed_ = std::make_shared<Error>(error);
  }
  throw Error(error);
}

std::shared_ptr<GraphBody> Capture::finish(const Stream& stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  finished_ = true;
  if (doomed_) throw Error(*doomed_);
  Clock& known = clocks_[stream.id()];
  for (const auto& [id, clock] : clocks_) {
    if (known[id] < clock.at(id)) {
      raise(CHIPDOCK_FAILED_PRECONDITION, "end_capture on ", stream.label(), ": stream ", id,
            " was forked and is not joined; record an event on it and wait for that on the stream "
            "that "
            "began [GRA-2]");
    }
  }
  return body_;
}

bool Capture::finished() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return finished_;
}

std::vector<std::shared_ptr<Stream>> Capture::streams() const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::shared_ptr<Stream>> out;
  for (const auto& entry : streams_) {
    if (auto stream = entry.second.lock()) out.push_back(std::move(stream));
  }
  return out;
}

}  // namespace chipdock::runtime

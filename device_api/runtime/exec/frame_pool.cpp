// SPDX-License-Identifier: Apache-2.0
// The frames of a signature that wait for their next run, so that a repeated run allocates nothing.
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "exec/frame.hpp"
#include "exec/specialize.hpp"

namespace chipdock::runtime {
namespace {

constexpr size_t kIdleFrames = 4;  // per signature; more are made when more threads run at once

}  // namespace

Specialization::Specialization(Plan& given) : plan(given) {}

Specialization::~Specialization() = default;

std::unique_ptr<Frame> Specialization::take_frame() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Frame> frame = std::move(idle_.back());
      idle_.pop_back();
      return frame;
    }
  }
  return std::make_unique<Frame>(*this);
}

void Specialization::give_frame(std::unique_ptr<Frame> frame) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (idle_.size() < kIdleFrames) idle_.push_back(std::move(frame));
}

std::unique_ptr<Recording> Specialization::take_recording() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& frame : idle_) {
    if (std::unique_ptr<Recording> recording = frame->take_recording()) {
      segments_.clear();
      return recording;
    }
  }
  return nullptr;
}

void Specialization::note_segments(const Recording& recording) {
  std::vector<SegmentReport> lines;
  for (const Segment& segment : recording.segments) {
    lines.push_back({key, {}});
    for (size_t r = segment.first; r < segment.first + segment.count; ++r)
      lines.back().nodes.push_back(steps[r].step->node);
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  segments_ = std::move(lines);
}

std::vector<SegmentReport> Specialization::segments() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return segments_;
}

}  // namespace chipdock::runtime

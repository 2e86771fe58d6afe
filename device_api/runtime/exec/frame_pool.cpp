// SPDX-License-Identifier: Apache-2.0
// The frames of a signature that wait for their next run, so that a repeated run allocates nothing.
#include <memory>
#include <mutex>
#include <utility>

#include "exec/frame.hpp"
#include "exec/specialize.hpp"

namespace chipdock::runtime {
namespace {

constexpr size_t kIdleFrames = 4;  // per signature; more are made when more threads run at once

}  // namespace

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

}  // namespace chipdock::runtime

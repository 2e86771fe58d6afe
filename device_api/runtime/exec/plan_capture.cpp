// SPDX-License-Identifier: Apache-2.0
// What a plan decides about capture: whether its device gains by it, how much memory graphs may
// hold, what explain() tells; and runs that the caller captures.
#include <utility>

#include "exec/frame.hpp"
#include "exec/node_runner.hpp"
#include "exec/plan.hpp"
#include "exec/segments.hpp"

namespace chipdock::runtime {
namespace {

// Frames of one plan that hold graphs, and with them an arena, at once.
constexpr size_t kMostRecordings = 8;

/// Memory and kernels that a graph of the caller names.
struct Held {
  std::shared_ptr<Plan> plan;
  std::shared_ptr<Specialization> spec;
  std::vector<std::shared_ptr<Buffer>> buffers;
};

}  // namespace

void Plan::decide_capture() {
  const Tables& tables = device_->tables();
  const bool able = tables.graph.begin_capture != nullptr && tables.stream.create != nullptr &&
                    tables.event.create != nullptr && tables.kernel.launch != nullptr;
  // Where a launch costs no round trip to the device there is nothing to save by a graph.
  captures_ = able && (options_.capture == CapturePolicy::kOn ||
                       (options_.capture == CapturePolicy::kAuto && !device_->prefers_inline()));
}

std::shared_ptr<void> Plan::pin(uint64_t bytes) {
  const auto fits = [&] {
    const uint64_t limit = options_.memory_limit;
    return recordings_ < kMostRecordings &&
           (limit == 0 || weight_bytes_ + pinned_bytes_ + bytes <= limit);
  };
  // The least recently used ones go first; what other threads run with just now stays.
  std::vector<std::unique_ptr<Recording>> dropped;
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::shared_ptr<Specialization>> specs(specializations_.rbegin(),
                                                     specializations_.rend());
  for (const auto& spec : specs) {
    while (!fits()) {
      std::unique_ptr<Recording> recording = spec->take_recording();
      if (recording == nullptr) break;
      recording->pin.reset();
      dropped.push_back(std::move(recording));
    }
  }
  if (!fits()) return nullptr;
  ++recordings_;
  pinned_bytes_ += bytes;
  return {this, [bytes](void* plan) {
            auto* owner = static_cast<Plan*>(plan);
            --owner->recordings_;
            owner->pinned_bytes_ -= bytes;
          }};
}

void Plan::make_room(uint64_t bytes) {
  const uint64_t limit = options_.memory_limit;
  if (limit != 0 && weight_bytes_ + pinned_bytes_ + bytes > limit) drop_recordings();
}

bool Plan::drop_recordings() {
  std::vector<std::unique_ptr<Recording>> dropped;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& spec : specializations_) {
    while (auto recording = spec->take_recording()) dropped.push_back(std::move(recording));
  }
  return !dropped.empty();
}

std::vector<SegmentReport> Plan::segments() {
  std::vector<SegmentReport> out;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& spec : specializations_) {
    for (SegmentReport& line : spec->segments()) out.push_back(std::move(line));
  }
  return out;
}

void Plan::check_capturable(const Specialization& spec, const std::vector<TensorRef>& inputs,
                            const RunOptions& options) const {
  const std::string& stream = options.stream->label();
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].buffer == nullptr) continue;
    if (usable_on(inputs[i], *device_) && inputs[i].buffer->memory() != nullptr) continue;
    raise(CHIPDOCK_FAILED_PRECONDITION, stream, " is being captured, and input '",
          graph_->values[static_cast<size_t>(graph_->inputs[i])].name, "' is not in memory of ",
          device_->name(),
          "; a graph reads its inputs anew at each launch, give an Array on that device");
  }
  const auto name_of = [&](int32_t slot) {
    const auto at = static_cast<size_t>(slot);
    if (at >= slots_.size()) return std::string("a value of a branch");
    return "'" + graph_->values[static_cast<size_t>(slots_[at].value)].name + "'";
  };
  for (const RunStep& run : spec.steps) {
    const char* reason = why_not_capturable(spec, run, options.seeded);
    if (reason == nullptr) continue;
    const Step& step = *run.step;
    const bool random = step.op != nullptr && (step.op->flags & kOpRandom) != 0 && !run.dynamic;
    raise(CHIPDOCK_FAILED_PRECONDITION, stream, " is being captured, and ",
          step.node == nullptr ? "the move of " + name_of(step.inputs[0]) : describe(*step.node),
          " ", reason,
          random ? "; give a seed to have the same numbers at each launch"
                 : "; end the capture and run the model outside of it");
  }
}

std::vector<TensorRef> Plan::run_captured(const std::shared_ptr<Specialization>& spec,
                                          const std::vector<TensorRef>& inputs,
                                          const RunOptions& options) {
  check_capturable(*spec, inputs, options);
  auto held = std::make_shared<Held>();
  held->plan = shared_from_this();
  held->spec = spec;
  for (const TensorRef& input : inputs) held->buffers.push_back(input.buffer);
  if (options.bound_outputs != nullptr) {
    for (const TensorRef& output : *options.bound_outputs) held->buffers.push_back(output.buffer);
  }
  // A frame of its own: memory of a capture is the graph's, and those that wait may hold graphs.
  Frame frame(*spec);
  std::vector<TensorRef> outputs = frame.run_captured(inputs, options);
  options.stream->keep_in_capture(std::move(held));
  return outputs;
}

}  // namespace chipdock::runtime

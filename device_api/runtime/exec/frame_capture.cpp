// SPDX-License-Identifier: Apache-2.0
// Segments of a frame: when they are captured, whether they fit this run, their replay. The first
// run of a frame is an ordinary one (kernels may make themselves ready then), the second captures.
#include <algorithm>
#include <utility>

#include "exec/frame.hpp"
#include "exec/segments.hpp"

namespace chipdock::runtime {
namespace {

// So many runs in a row that the recording does not serve, or not well, and it is made anew.
constexpr uint32_t kMisses = 3;
// An inline launch cannot be interrupted.
constexpr size_t kLongestInline = 32;

}  // namespace

bool Frame::stays(int32_t slot, const RunOptions& options) const {
  if (options.bound_outputs == nullptr) return false;
  const SlotState& s = state(slot);
  if (s.kind == SlotKind::kInput) {
    const auto index = static_cast<size_t>(s.index);
    if (!is_copy_.empty() && is_copy_[index]) return false;
    const TensorRef& input = inputs_[index];
    return input.buffer == nullptr || input.buffer->memory() != nullptr;
  }
  const TensorRef& output = produced_[static_cast<size_t>(s.root)];
  const TensorRef& bound = (*options.bound_outputs)[static_cast<size_t>(s.index)];
  return output.buffer == nullptr || output.buffer == bound.buffer;
}

void Frame::prepare_segments(const RunOptions& options) {
  replays_ = false;
  if (!plan_.captures() || refuses_capture_ || options.profiler != nullptr) return;
  if (recording_ != nullptr) {
    replays_ = follow_memory(options);
    const bool serves = replays_ && recording_->bound == (options.bound_outputs != nullptr);
    misses_ = serves ? 0 : misses_ + 1;
    if (misses_ < kMisses) return;
    replays_ = false;
    recording_.reset();
    misses_ = 0;
  } else if (!ran_before_) {
    ran_before_ = true;
    return;
  }
  try {
    replays_ = capture_segments(options);
  } catch (const Error&) {
    plan_.device()->check_alive();
    recording_.reset();
    renew_stream();
  }
  refuses_capture_ = recording_ == nullptr;
}

/// The plugin may take a stream whose capture failed for captured still. Nothing of this run is
/// queued yet.
void Frame::renew_stream() {
  const bool in_use = stream_ != nullptr && stream_ == own_stream_;
  if (in_use) stream_.reset();
  own_stream_.reset();
  if (!in_use) return;
  own_stream_ = Stream::create(plan_.device());
  stream_ = own_stream_;
}

bool Frame::capture_segments(const RunOptions& options) {
  const auto stays_here = [&](int32_t slot) { return stays(slot, options); };
  const size_t longest = stream_ == nullptr ? kLongestInline : spec_.steps.size();
  std::vector<Segment> segments = find_segments(spec_, longest, stays_here);
  if (segments.empty()) return false;
  auto recording = std::make_unique<Recording>();
  recording->pin = plan_.pin(spec_.memory[static_cast<size_t>(Side::kDevice)].arena_bytes);
  if (recording->pin == nullptr) return false;
  // Not on the caller's stream: others may queue work there meanwhile.
  if (own_stream_ == nullptr) own_stream_ = Stream::create(plan_.device());
  for (Segment& segment : segments) {
    capture_segment(segment);
    if (segment.graph == nullptr) return false;
  }
  recording->arena = arenas_[static_cast<size_t>(Side::kDevice)];
  recording->bound = options.bound_outputs != nullptr;
  recording->beginning.assign(spec_.steps.size(), -1);
  for (size_t i = 0; i < segments.size(); ++i) {
    recording->beginning[segments[i].first] = static_cast<int32_t>(i);
    for (size_t r = segments[i].first; r < segments[i].first + segments[i].count; ++r) {
      const Step& step = *spec_.steps[r].step;
      for (const auto* slots : {&step.inputs, &step.outputs}) {
        for (const int32_t slot : *slots) name_memory(*recording, slot);
      }
    }
  }
  recording->segments = std::move(segments);
  recording_ = std::move(recording);
  spec_.note_segments(*recording_);
  return true;
}

/// Leaves `graph` NULL if the device gave none of its own: a replay by the host brings nothing.
void Frame::capture_segment(Segment& segment) {
  own_stream_->begin_capture();
  try {
    for (size_t i = 0; i < segment.count; ++i) {
      launch_step(segment.first + i, own_stream_.get());
    }
  } catch (const Error&) {
    try {
      own_stream_->end_capture();
    } catch (const Error&) {  // the first error is the one to report
    }
    throw;
  }
  std::shared_ptr<Graph> graph = own_stream_->end_capture();
  if (!graph->native()) return;
  for (const GraphNode& node : graph->nodes()) segment.ids.push_back(node.correlation_id);
  segment.graph = std::move(graph);
}

std::shared_ptr<Buffer> Frame::callers_buffer(int32_t slot) const {
  const SlotState& s = state(slot);
  if (s.kind == SlotKind::kInput) return inputs_[static_cast<size_t>(s.index)].buffer;
  return produced_[static_cast<size_t>(s.root)].buffer;
}

void Frame::name_memory(Recording& recording, int32_t slot) const {
  if (slot < 0) return;
  const SlotKind kind = state(slot).kind;
  if (kind != SlotKind::kInput && kind != SlotKind::kOutput) return;
  for (const NamedMemory& known : recording.named) {
    if (known.slot == slot) return;
  }
  const chipdock_tensor& tensor = tensors_[static_cast<size_t>(slot)];
  recording.named.push_back({slot, tensor.memory, tensor.offset, callers_buffer(slot)});
}

bool Frame::follow_memory(const RunOptions& options) {
  std::vector<NamedMemory> now = recording_->named;
  std::vector<int32_t> moved;
  for (NamedMemory& place : now) {
    const chipdock_tensor& tensor = tensors_[static_cast<size_t>(place.slot)];
    if (tensor.memory == place.memory && tensor.offset == place.offset) continue;
    // A fresh output is the caller's to let go: no graph may hold on to it.
    if (!stays(place.slot, options)) return false;
    place = {place.slot, tensor.memory, tensor.offset, callers_buffer(place.slot)};
    moved.push_back(place.slot);
  }
  if (moved.empty()) return true;
  if (plan_.device()->tables().graph.update == nullptr) return false;
  bool any = false;
  try {
    for (Segment& segment : recording_->segments) {
      const std::vector<GraphChange> changes = changes_of(segment, moved);
      if (changes.empty()) continue;
      segment.graph->update(changes);
      any = true;
    }
  } catch (const Error&) {
    plan_.device()->check_alive();
    // Half of the segments may be changed: together they fit no run any more.
    if (any) misses_ = kMisses;
    return false;
  }
  recording_->named = std::move(now);
  return true;
}

std::vector<GraphChange> Frame::changes_of(const Segment& segment,
                                           const std::vector<int32_t>& moved) const {
  std::vector<GraphChange> changes;
  for (size_t i = 0; i < segment.count; ++i) {
    const RunStep& run = spec_.steps[segment.first + i];
    const Step& step = *run.step;
    const auto add = [&](int32_t slot, int32_t argument) {
      if (std::find(moved.begin(), moved.end(), slot) == moved.end()) return;
      const chipdock_tensor& tensor = tensors_[static_cast<size_t>(slot)];
      GraphChange change;
      change.target = segment.ids[i];
      change.argument = argument;
      change.place = {tensor.memory, tensor.offset, nullptr, plan_.device().get(), false};
      changes.push_back(change);
    };
    for (size_t k = 0; k < step.inputs.size(); ++k) add(step.inputs[k], static_cast<int32_t>(k));
    for (size_t k = 0; k < step.outputs.size(); ++k)
      add(step.outputs[k], -1 - static_cast<int32_t>(k));
  }
  return changes;
}

const Segment* Frame::segment_at(size_t run_index) const {
  if (!replays_) return nullptr;
  const int32_t index = recording_->beginning[run_index];
  return index < 0 ? nullptr : &recording_->segments[static_cast<size_t>(index)];
}

const IrNode* Frame::captured_node(uint64_t correlation_id) const {
  if (recording_ == nullptr || correlation_id == 0) return nullptr;
  for (const Segment& segment : recording_->segments) {
    const auto found = std::find(segment.ids.begin(), segment.ids.end(), correlation_id);
    if (found == segment.ids.end()) continue;
    const auto at = segment.first + static_cast<size_t>(found - segment.ids.begin());
    return spec_.steps[at].step->node;
  }
  return nullptr;
}

std::unique_ptr<Recording> Frame::take_recording() {
  misses_ = 0;
  return std::move(recording_);
}

}  // namespace chipdock::runtime

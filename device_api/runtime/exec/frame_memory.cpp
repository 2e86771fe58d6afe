// SPDX-License-Identifier: Apache-2.0
// Where the tensors of a run lie: the arenas of a frame, the caller's inputs and outputs, and the
// tensors and descs that point there.
#include <algorithm>

#include "exec/frame.hpp"

namespace chipdock::runtime {

TensorRef Frame::tensor(int32_t slot) const {
  const SlotState& s = state(slot);
  switch (s.kind) {
    case SlotKind::kConstant:
    case SlotKind::kStatic:
      return s.fixed;
    case SlotKind::kDynamic:
      return produced_[static_cast<size_t>(slot)];
    default:
      break;
  }
  TensorRef out;
  out.dtype = s.dtype;
  out.dims = s.dims;
  out.layout = s.layout;
  out.layout_bytes = s.layout_bytes;
  if (s.kind == SlotKind::kInput) {
    const TensorRef& input = inputs_[static_cast<size_t>(s.index)];
    if (is_host_dtype(s.dtype)) return input;
    out.buffer = input.buffer;
    out.offset = input.offset;
  } else if (s.kind == SlotKind::kOutput) {
    const TensorRef& output = produced_[static_cast<size_t>(s.root)];
    out.buffer = output.buffer;
    out.offset = output.offset;
  } else if (s.kind == SlotKind::kArena && s.bytes() > 0) {
    out.buffer = arenas_[static_cast<size_t>(side(slot))];
    out.offset = s.offset;
  }
  return out;
}

void Frame::point(size_t slot) {
  // As tensor(), without a copy of the shape: this runs for each input and output of each run.
  const SlotState& s = spec_.slots[slot];
  const TensorRef* whole = nullptr;
  const Buffer* buffer = nullptr;
  uint64_t offset = 0;
  switch (s.kind) {
    case SlotKind::kConstant:
    case SlotKind::kStatic:
      whole = &s.fixed;
      break;
    case SlotKind::kDynamic:
      whole = &produced_[slot];
      break;
    case SlotKind::kInput:
      whole = &inputs_[static_cast<size_t>(s.index)];
      break;
    case SlotKind::kOutput:
      whole = &produced_[static_cast<size_t>(s.root)];
      break;
    case SlotKind::kArena:
      if (s.bytes() > 0)
        buffer = arenas_[static_cast<size_t>(side(static_cast<int32_t>(slot)))].get();
      offset = s.offset;
      break;
    default:
      break;
  }
  if (whole != nullptr) {
    buffer = whole->buffer.get();
    offset = whole->offset;
  }
  char* address = buffer == nullptr ? nullptr : static_cast<char*>(buffer->host_address());
  if (address != nullptr) address += offset;
  chipdock_tensor& device = tensors_[slot];
  host_tensors_[slot].host = address;
  const bool on_device = buffer != nullptr && buffer->memory() != nullptr;
  device.memory = on_device ? buffer->memory() : nullptr;
  device.offset = on_device ? buffer->offset() + offset : 0;
  device.host = on_device ? nullptr : address;
}

void Frame::bind(const std::vector<TensorRef>& inputs, const RunOptions& options) {
  stream_ = options.stream;
  if (stream_ == nullptr && !plan_.device()->prefers_inline() &&
      plan_.device()->tables().kernel.launch != nullptr) {
    if (own_stream_ == nullptr) own_stream_ = Stream::create(plan_.device());
    stream_ = own_stream_;
  }
  inputs_ = inputs;
  allocate_or_make_room(options);
  bool moved[2] = {false, false};
  for (const Side s : {Side::kDevice, Side::kHost}) {
    const auto i = static_cast<size_t>(s);
    if (arenas_[i] == nullptr) continue;
    // A handle may come back with other memory behind it, so the host address counts as well.
    moved[i] = arenas_[i]->memory() != pointed_memory_[i] ||
               arenas_[i]->offset() != pointed_offset_[i] ||
               arenas_[i]->host_address() != pointed_host_[i];
    pointed_host_[i] = arenas_[i]->host_address();
    pointed_memory_[i] = arenas_[i]->memory();
    pointed_offset_[i] = arenas_[i]->offset();
  }
  for (size_t s = 0; s < spec_.slots.size(); ++s) {
    const SlotKind kind = spec_.slots[s].kind;
    const bool arena = kind == SlotKind::kArena && moved[static_cast<size_t>(spec_.slots[s].side)];
    if (arena || kind == SlotKind::kInput || kind == SlotKind::kOutput) point(s);
  }
  for (size_t r = 0; r < launches_.size(); ++r) {
    const RunStep& run = spec_.steps[r];
    if (run.workspace_bytes == 0 || run.dynamic) continue;
    const auto i = static_cast<size_t>(run.step->side);
    if (!moved[i]) continue;
    launches_[r].desc.workspace = pointed_memory_[i];
    launches_[r].desc.workspace_offset = pointed_offset_[i] + run.workspace_offset;
  }
}

void Frame::allocate(const RunOptions& options) {
  for (const Side s : {Side::kDevice, Side::kHost}) {
    const auto i = static_cast<size_t>(s);
    if (spec_.memory[i].arena_bytes == 0 || arenas_[i] != nullptr) continue;
    if (s == Side::kDevice && recording_ != nullptr) {
      arenas_[i] = recording_->arena;
      continue;
    }
    if (s == Side::kDevice) plan_.make_room(spec_.memory[i].arena_bytes);
    arenas_[i] = plan_.side_device(s).allocate(spec_.memory[i].arena_bytes,
                                               s == Side::kDevice ? stream_ : nullptr);
  }
  bind_outputs(options);
}

/// Graphs that wait for their next run hold memory, which this run needs more.
void Frame::allocate_or_make_room(const RunOptions& options) {
  try {
    return allocate(options);
  } catch (const Error& error) {
    if (error.code() != CHIPDOCK_OUT_OF_MEMORY || captured_ || !plan_.drop_recordings()) throw;
  }
  allocate(options);
}

void Frame::bind_outputs(const RunOptions& options) {
  for (const int32_t slot : plan_.output_slots_) {
    const SlotState& root = state(state(slot).root);
    if (root.kind != SlotKind::kOutput) continue;
    TensorRef& target = produced_[static_cast<size_t>(state(slot).root)];
    if (target.buffer != nullptr) continue;  // a second name of the same memory
    if (options.bound_outputs != nullptr) {
      const TensorRef& bound = (*options.bound_outputs)[static_cast<size_t>(root.index)];
      const bool aliases_input = std::any_of(
          inputs_.begin(), inputs_.end(), [&](const TensorRef& in) { return overlap(in, bound); });
      // An output that lies over an input is written at the end, when nothing reads that input any
      // more.
      const int32_t shown = plan_.output_slots_[static_cast<size_t>(root.index)];
      if (bound.buffer != nullptr && bound.dims == state(shown).dims &&
          usable_on(bound, *plan_.device()) && !aliases_input) {
        target = bound;
        continue;
      }
    }
    target = make_tensor(*plan_.device(), root.dtype, root.dims, stream_);
  }
}

}  // namespace chipdock::runtime

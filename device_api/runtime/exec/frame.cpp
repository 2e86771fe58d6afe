// SPDX-License-Identifier: Apache-2.0
#include "exec/frame.hpp"

#include <algorithm>
#include <cstring>

#include "exec/node_runner.hpp"
#include "host_queue.hpp"

namespace chipdock::runtime {
namespace {

constexpr std::chrono::milliseconds kInterruptInterval{50};

/// A bound output without elements has no buffer; one that is not bound has no dtype either.
bool is_bound(const TensorRef& tensor) { return tensor.dtype.bits != 0; }

}  // namespace

Frame::Frame(Specialization& spec) : spec_(spec), plan_(spec.plan) {
  const size_t count = spec_.slots.size();
  tensors_.resize(count);
  host_tensors_.resize(count);
  produced_.resize(count);
  for (size_t s = 0; s < count; ++s) {
    const SlotState& slot = spec_.slots[s];
    for (chipdock_tensor* tensor : {&tensors_[s], &host_tensors_[s]}) {
      tensor->struct_size = sizeof(chipdock_tensor);
      tensor->dtype = slot.dtype;
      tensor->rank = static_cast<int32_t>(slot.dims.size());
      tensor->shape = slot.dims.data();
    }
    if (slot.kind == SlotKind::kConstant || slot.kind == SlotKind::kStatic) point(s);
  }
  launches_.resize(spec_.steps.size());
  for (size_t r = 0; r < launches_.size(); ++r) {
    if (!spec_.steps[r].dynamic && spec_.steps[r].instance != nullptr) prepare_launch(r);
  }
}

Side Frame::side(int32_t slot) const { return plan_.slots()[static_cast<size_t>(slot)].side; }

void Frame::prepare_launch(size_t run_index) {
  const RunStep& run = spec_.steps[run_index];
  const Step& step = plan_.steps()[static_cast<size_t>(run.step)];
  Launch& launch = launches_[run_index];
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    const int32_t s = step.inputs[i];
    auto& table = has_bit(step.host_inputs, i) ? host_tensors_ : tensors_;
    launch.inputs.push_back(s < 0 ? nullptr : &table[static_cast<size_t>(s)]);
  }
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    const int32_t s = step.outputs[i];
    auto& table = has_bit(step.host_outputs, i) ? host_tensors_ : tensors_;
    launch.outputs.push_back(s < 0 ? nullptr : &table[static_cast<size_t>(s)]);
  }
  if (!step.packed.empty()) {
    launch.packed_tensors.resize(step.packed.size());
    launch.packed.resize(step.packed.size(), nullptr);
    for (size_t i = 0; i < step.packed.size(); ++i) {
      if (step.packed[i] == nullptr) continue;
      chipdock_tensor& form = launch.packed_tensors[i];
      form.struct_size = sizeof(chipdock_tensor);
      form.dtype = kit::kUint8;
      form.memory = step.packed[i]->memory();
      form.offset = step.packed[i]->offset();
      launch.packed[i] = &form;
    }
  }
  chipdock_launch_desc& desc = launch.desc;
  desc.struct_size = sizeof(desc);
  desc.input_count = static_cast<uint32_t>(launch.inputs.size());
  desc.output_count = static_cast<uint32_t>(launch.outputs.size());
  desc.math_mode = plan_.options().math_mode;
  desc.inputs = launch.inputs.data();
  desc.outputs = launch.outputs.data();
  desc.packed = launch.packed.empty() ? nullptr : launch.packed.data();
  desc.workspace_size = run.workspace_bytes;
  desc.deterministic = plan_.options().deterministic ? 1 : 0;
  desc.max_threads = plan_.options().max_threads;
}

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
  if (s.kind == SlotKind::kInput) {
    const TensorRef& input = inputs_[static_cast<size_t>(s.index)];
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
  bool moved[2] = {false, false};
  for (const Side s : {Side::kDevice, Side::kHost}) {
    const auto i = static_cast<size_t>(s);
    if (spec_.memory[i].arena_bytes == 0) continue;
    arenas_[i] = plan_.side_device(s).allocate(spec_.memory[i].arena_bytes,
                                               s == Side::kDevice ? stream_ : nullptr);
    // A handle may come back with other memory behind it, so the host address counts as well.
    moved[i] = arenas_[i]->memory() != pointed_memory_[i] ||
               arenas_[i]->offset() != pointed_offset_[i] ||
               arenas_[i]->host_address() != pointed_host_[i];
    pointed_host_[i] = arenas_[i]->host_address();
    pointed_memory_[i] = arenas_[i]->memory();
    pointed_offset_[i] = arenas_[i]->offset();
  }
  bind_outputs(options);
  for (size_t s = 0; s < spec_.slots.size(); ++s) {
    const SlotKind kind = spec_.slots[s].kind;
    const bool arena =
        kind == SlotKind::kArena && moved[static_cast<size_t>(plan_.slots()[s].side)];
    if (arena || kind == SlotKind::kInput || kind == SlotKind::kOutput) point(s);
  }
  for (size_t r = 0; r < launches_.size(); ++r) {
    const RunStep& run = spec_.steps[r];
    if (run.workspace_bytes == 0 || run.dynamic) continue;
    const auto i = static_cast<size_t>(plan_.steps()[static_cast<size_t>(run.step)].side);
    if (!moved[i]) continue;
    launches_[r].desc.workspace = pointed_memory_[i];
    launches_[r].desc.workspace_offset = pointed_offset_[i] + run.workspace_offset;
  }
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

std::vector<TensorRef> Frame::run(const std::vector<TensorRef>& inputs, const RunOptions& options) {
  try {
    bind(inputs, options);
    execute(options);
    std::vector<TensorRef> outputs = collect(options);
    wait(options);
    release();
    return outputs;
  } catch (...) {
    // Queued work may still use the buffers: they are let go only when the stream is quiet.
    if (stream_ != nullptr) {
      try {
        stream_->sync();
      } catch (const Error&) {  // the first error is the one to report
      }
    }
    release();
    throw;
  }
}

void Frame::wait(const RunOptions& options) {
  if (stream_ == nullptr) return;
  if (options.interrupt == nullptr) return stream_->sync();
  for (;;) {
    try {
      return stream_->sync(std::chrono::nanoseconds(kInterruptInterval).count());
    } catch (const Error& error) {
      if (error.code() != CHIPDOCK_TIMEOUT) throw;
    }
    (*options.interrupt)();
  }
}

void Frame::release() {
  arenas_[0].reset();
  arenas_[1].reset();
  inputs_.clear();
  for (TensorRef& tensor : produced_) {
    if (tensor.buffer != nullptr) tensor = TensorRef{};
  }
  stream_.reset();
}

void Frame::execute(const RunOptions& options) {
  const size_t count = spec_.steps.size();
  auto next_check = std::chrono::steady_clock::now() + kInterruptInterval;
  const Plugin& plugin = *plan_.device()->plugin();
  for (size_t r = 0; r < count; ++r) {
    plugin.check_usable();  // a process that ends does not wait for the rest of a run
    if (options.profiler == nullptr) {
      execute_step(r, options);
    } else {
      const int64_t start = now_ns();
      execute_step(r, options);
      if (stream_ != nullptr) stream_->sync();
      record(spec_.steps[r], options, start);
    }
    if (options.interrupt != nullptr && (r & 3) == 3) {
      const auto now = std::chrono::steady_clock::now();
      if (now < next_check) continue;
      (*options.interrupt)();
      next_check = now + kInterruptInterval;
    }
  }
}

void Frame::execute_step(size_t run_index, const RunOptions& options) {
  const RunStep& run = spec_.steps[run_index];
  const Step& step = plan_.steps()[static_cast<size_t>(run.step)];
  if (run.dynamic) return execute_dynamic(run, options);
  if (step.kind == StepKind::kCopy) return execute_copy(step);
  chipdock_launch_desc& desc = launches_[run_index].desc;
  if ((step.op->flags & kOpRandom) != 0) {
    desc.seed = options.seed;
    desc.seed_offset = static_cast<uint64_t>(run.step) << 40;  // streams of numbers that never meet
  }
  Device& device = *run.instance->device();
  const bool on_device = step.side == Side::kDevice;
  try {
    device.launch(run.instance->handle(), desc, on_device ? stream_.get() : nullptr,
                  step.node->op.c_str());
  } catch (const Error& error) {
    throw Error(error.code(), std::string(error.what()) + " (in " + describe(*step.node) + ")",
                error.vendor_code(), error.scope(), error.correlation_id());
  }
}

void Frame::execute_copy(const Step& step) {
  const TensorRef from = tensor(step.inputs[0]);
  const TensorRef to = tensor(step.outputs[0]);
  const uint64_t bytes = to.bytes();
  if (bytes == 0) return;
  if (from.host() != nullptr && to.host() != nullptr) {
    if (stream_ != nullptr) stream_->sync();
    std::memcpy(to.host(), from.host(), bytes);
    return;
  }
  Device& device = *plan_.device();
  Place source = from.place();
  Place target = to.place();
  // Memory of the host side is another plugin's: for this device it is plain host memory.
  if (source.memory != nullptr && source.device != &device) source = Place{nullptr, 0, from.host()};
  if (target.memory != nullptr && target.device != &device) target = Place{nullptr, 0, to.host()};
  device.copy(source, target, bytes, stream_.get());
  if (stream_ != nullptr) stream_->sync();  // the host side goes on at once
}

std::vector<TensorRef> Frame::collect(const RunOptions& options) {
  std::vector<TensorRef> outputs;
  for (size_t i = 0; i < plan_.output_slots_.size(); ++i) {
    const int32_t slot = plan_.output_slots_[i];
    TensorRef out = tensor(slot);
    const SlotKind kind = state(slot).kind;
    // A loop that makes no trip hands its inputs through; what run() returns is the caller's own
    // all the same.
    const bool shared = kind == SlotKind::kStatic || kind == SlotKind::kConstant ||
                        (kind == SlotKind::kDynamic &&
                         std::any_of(inputs_.begin(), inputs_.end(),
                                     [&](const TensorRef& in) { return overlap(in, out); }));
    if (shared || !usable_on(out, *plan_.device()) ||
        (out.buffer != nullptr && out.buffer->memory() == nullptr)) {
      out = move_tensor(out, *plan_.device(), stream_);
    }
    if (options.bound_outputs != nullptr && is_bound((*options.bound_outputs)[i])) {
      TensorRef bound = (*options.bound_outputs)[i];
      if (bound.dims != out.dims) {
        raise(CHIPDOCK_INVALID_ARGUMENT, "output '",
              plan_.graph().values[static_cast<size_t>(plan_.graph().outputs[i])].name,
              "' has shape ", to_string(out.dims), ", the bound array has ", to_string(bound.dims));
      }
      const bool in_place = bound.buffer == out.buffer && bound.offset == out.offset;
      if (!in_place && bound.bytes() > 0) {
        plan_.device()->copy(out.place(), bound.place(), bound.bytes(), stream_.get());
      }
      out = bound;
    }
    outputs.push_back(std::move(out));
  }
  return outputs;
}

}  // namespace chipdock::runtime

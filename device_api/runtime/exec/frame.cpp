// SPDX-License-Identifier: Apache-2.0
// The steps of a run. Where its tensors lie: frame_memory.cpp; segments: frame_capture.cpp.
#include "exec/frame.hpp"

#include <algorithm>
#include <cstring>

#include "exec/interrupt.hpp"
#include "exec/node_runner.hpp"
#include "host_queue.hpp"

namespace chipdock::runtime {
namespace {

// How long a failed run waits for what it queued before it leaves that behind.
constexpr std::chrono::milliseconds kSettleTime{50};

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
      tensor->layout = slot.layout;
      tensor->shape = slot.dims.data();
    }
    if (slot.kind == SlotKind::kConstant || slot.kind == SlotKind::kStatic) point(s);
  }
  launches_.resize(spec_.steps.size());
  for (size_t r = 0; r < launches_.size(); ++r) {
    if (!spec_.steps[r].dynamic && spec_.steps[r].instance != nullptr) prepare_launch(r);
  }
}

void Frame::prepare_launch(size_t run_index) {
  const RunStep& run = spec_.steps[run_index];
  const Step& step = *run.step;
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
      launch.packed_tensors[i] = packed_tensor(*step.packed[i]);
      launch.packed[i] = &launch.packed_tensors[i];
    }
  }
  const PlanOptions& options = plan_.options();
  launch.desc = launch_desc(launch.inputs, launch.outputs, options.math_mode, options.deterministic,
                            options.max_threads);
  launch.desc.packed = launch.packed.empty() ? nullptr : launch.packed.data();
  launch.desc.workspace_size = run.workspace_bytes;
}

std::vector<TensorRef> Frame::run(const std::vector<TensorRef>& inputs, std::vector<bool> is_copy,
                                  const RunOptions& options) {
  try {
    is_copy_ = std::move(is_copy);
    bind(inputs, options);
    before_ = plan_.device()->last_correlation_id();
    prepare_segments(options);
    execute(options);
    std::vector<TensorRef> outputs = collect(options);
    wait(options);
    release();
    return outputs;
  } catch (const Error& error) {
    const Error first = first_failure(error);
    abandon(options);
    throw named(first);
  } catch (...) {
    abandon(options);
    throw;
  }
}

std::vector<TensorRef> Frame::run_captured(const std::vector<TensorRef>& inputs,
                                           const RunOptions& options) {
  captured_ = true;
  try {
    bind(inputs, options);
    execute(options);
    std::vector<TensorRef> outputs = collect(options);
    release();
    return outputs;
  } catch (const Error& error) {
    options.stream->doom_capture(error);  // it holds half a run
    release();
    throw;
  }
}

/// Queued work may still use the buffers: they are let go only when the stream is quiet. The frame
/// of a failed run is not used again, so its own stream may be ended early.
void Frame::abandon(const RunOptions& options) noexcept {
  if (stream_ != nullptr && stream_ == own_stream_) {
    try {
      stream_->abort();
      // Nothing queued starts any more; what runs just now ends before the stream does.
      stream_.reset();
      own_stream_.reset();
    } catch (const Error&) {  // the device has no abort, or is lost
    }
  }
  if (settle(std::chrono::nanoseconds(kSettleTime).count())) return;
  if (options.keep_inputs != nullptr) held_inputs_ = (*options.keep_inputs)();
}

bool Frame::settle(int64_t timeout_ns) noexcept {
  if (stream_ != nullptr) {
    try {
      stream_->sync(timeout_ns);
    } catch (const Error& error) {  // the first error is the one to report
      if (error.code() == CHIPDOCK_TIMEOUT) return false;
      if (stream_->emulated() && !stream_->queue()->quiet()) return false;
    }
  }
  release();
  held_inputs_.reset();
  return true;
}

/// A step that fails while a later one is being queued fails the stream, which refuses the later one;
/// whichever comes first, the run ends with the same error. [STR-3]
Error Frame::first_failure(const Error& error) const {
  if (stream_ == nullptr || error.code() != CHIPDOCK_FAILED_PRECONDITION) return error;
  try {
    stream_->sync(std::chrono::nanoseconds(kSettleTime).count());
  } catch (const Error& cause) {
    // What failed before this run began is why the run was refused, not what failed in it.
    const uint64_t id = cause.correlation_id();
    if (cause.code() != CHIPDOCK_TIMEOUT && (id > before_ || captured_node(id) != nullptr))
      return cause;
  }
  return error;
}

Error Frame::named(const Error& error) const {
  const IrNode* node = captured_node(error.correlation_id());
  if (node == nullptr) return error;
  return Error(error.code(),
               std::string(error.what()) + " (in " + describe(*node) + ", captured in a segment)",
               error.vendor_code(), error.scope(), error.correlation_id());
}

void Frame::wait(const RunOptions& options) {
  if (stream_ != nullptr && !captured_) wait_for(*stream_, options.interrupt);
}

void Frame::release() {
  arenas_[0].reset();
  arenas_[1].reset();
  inputs_.clear();
  for (TensorRef& tensor : produced_) {
    if (tensor.buffer != nullptr || tensor.object != nullptr) tensor = TensorRef{};
  }
  stream_.reset();
}

void Frame::execute(const RunOptions& options) {
  const size_t count = spec_.steps.size();
  auto next_check = std::chrono::steady_clock::now() + kInterruptInterval;
  const Plugin& plugin = *plan_.device()->plugin();
  for (size_t r = 0; r < count; ++r) {
    plugin.check_usable();  // a process that ends does not wait for the rest of a run
    const Segment* segment = segment_at(r);
    if (segment != nullptr) {
      segment->graph->launch(stream_.get());
      r += segment->count - 1;
    } else if (options.profiler == nullptr || captured_) {
      execute_step(r, options);
    } else {
      const int64_t start = now_ns();
      execute_step(r, options);
      wait(options);
      record(spec_.steps[r], options, start);
    }
    if (options.interrupt != nullptr && (segment != nullptr || (r & 3) == 3)) {
      const auto now = std::chrono::steady_clock::now();
      if (now < next_check) continue;
      (*options.interrupt)();
      next_check = now + kInterruptInterval;
    }
  }
}

void Frame::execute_step(size_t run_index, const RunOptions& options) {
  const RunStep& run = spec_.steps[run_index];
  const Step& step = *run.step;
  if (run.dynamic) return execute_dynamic(run, options);
  if (step.kind == StepKind::kCopy) return execute_copy(step, options);
  if ((step.op->flags & kOpRandom) != 0) {
    chipdock_launch_desc& desc = launches_[run_index].desc;
    desc.seed = options.seed;
    desc.seed_offset = run.seed_offset;
  }
  launch_step(run_index, step.side == Side::kDevice ? stream_.get() : nullptr);
}

void Frame::launch_step(size_t run_index, Stream* stream) {
  const RunStep& run = spec_.steps[run_index];
  const Step& step = *run.step;
  try {
    run.instance->device()->launch(run.instance->handle(), launches_[run_index].desc, stream,
                                   step.node->op.c_str());
  } catch (const Error& error) {
    throw Error(error.code(), std::string(error.what()) + " (in " + describe(*step.node) + ")",
                error.vendor_code(), error.scope(), error.correlation_id());
  }
}

void Frame::execute_copy(const Step& step, const RunOptions& options) {
  const TensorRef from = tensor(step.inputs[0]);
  const TensorRef to = tensor(step.outputs[0]);
  const uint64_t bytes = to.bytes();
  if (bytes == 0) return;
  if (from.host() != nullptr && to.host() != nullptr) {
    wait(options);
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
  wait(options);  // the host side goes on at once
}

/// A constant as an output of its own at each launch; the graph keeps the plan and so the constant.
TensorRef Frame::copy_captured(const TensorRef& from) {
  TensorRef to = make_tensor(*plan_.device(), from.dtype, from.dims, stream_);
  Place source = from.place();
  if (source.memory != nullptr && !usable_on(from, *plan_.device())) {
    source = Place{nullptr, 0, from.host()};
  }
  if (to.bytes() > 0) plan_.device()->copy(source, to.place(), to.bytes(), stream_.get());
  return to;
}

std::vector<TensorRef> Frame::collect(const RunOptions& options) {
  std::vector<TensorRef> outputs;
  for (size_t i = 0; i < plan_.output_slots_.size(); ++i) {
    const int32_t slot = plan_.output_slots_[i];
    TensorRef out = tensor(slot);
    const SlotKind kind = state(slot).kind;
    // A loop that makes no trip and a branch hand their inputs through; what run() returns is the
    // caller's own all the same.
    const bool shared = kind == SlotKind::kStatic || kind == SlotKind::kConstant ||
                        kind == SlotKind::kInput ||
                        (kind == SlotKind::kDynamic &&
                         std::any_of(inputs_.begin(), inputs_.end(),
                                     [&](const TensorRef& in) { return overlap(in, out); }));
    if (shared || !usable_on(out, *plan_.device()) ||
        (out.buffer != nullptr && out.buffer->memory() == nullptr)) {
      wait(options);
      out = captured_ ? copy_captured(out) : move_tensor(out, *plan_.device(), stream_);
    }
    outputs.push_back(std::move(out));
  }
  if (options.bound_outputs != nullptr) fill_bound(outputs, *options.bound_outputs);
  return outputs;
}

/// Behind everything that is read: what is bound may lie over an input.
void Frame::fill_bound(std::vector<TensorRef>& outputs, const std::vector<TensorRef>& given) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const TensorRef& bound = given[i];
    TensorRef& out = outputs[i];
    if (!is_bound(bound)) continue;
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
}

}  // namespace chipdock::runtime

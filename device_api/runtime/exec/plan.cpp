// SPDX-License-Identifier: Apache-2.0
#include "exec/plan.hpp"

#include <algorithm>
#include <iterator>

#include "exec/frame.hpp"
#include "exec/plan_compiler.hpp"
#include "exec/specialize.hpp"

namespace chipdock::runtime {
namespace {

bool matches(const std::vector<int64_t>& key, const std::vector<TensorRef>& inputs) {
  size_t at = 0;
  for (const TensorRef& input : inputs) {
    const size_t rank = input.dims.size();
    // Equal ranks so far keep `at` inside the key: it was built from as many inputs.
    if (key[at] != static_cast<int64_t>(rank)) return false;
    if (!std::equal(input.dims.begin(), input.dims.end(),
                    key.begin() + static_cast<std::ptrdiff_t>(at) + 1)) {
      return false;
    }
    at += rank + 1;
  }
  return true;
}

uint64_t mixed(uint64_t hash, int64_t value) {
  hash = (hash ^ static_cast<uint64_t>(value)) * 0x9e3779b97f4a7c15ULL;
  return hash ^ (hash >> 32);
}

uint64_t hash_of(const std::vector<int64_t>& key) {
  uint64_t hash = 0;
  for (const int64_t entry : key) hash = mixed(hash, entry);
  return hash;
}

/// Of the key that a specialization for these inputs has.
uint64_t hash_of(const std::vector<TensorRef>& inputs) {
  uint64_t hash = 0;
  for (const TensorRef& input : inputs) {
    hash = mixed(hash, static_cast<int64_t>(input.dims.size()));
    for (const int64_t extent : input.dims) hash = mixed(hash, extent);
  }
  return hash;
}

/// The model's declared shape is a promise of the caller: rank and fixed dims have to hold.
void check_declared(const IrValue& value, const Dims& dims) {
  if (value.rank < 0) return;
  bool fits = static_cast<size_t>(value.rank) == dims.size();
  for (size_t i = 0; fits && i < dims.size(); ++i)
    fits = value.dims[i] < 0 || value.dims[i] == dims[i];
  if (fits) return;
  std::string wanted = "[";
  for (size_t i = 0; i < value.dims.size(); ++i) {
    const std::string named = i < value.symbols.size() ? value.symbols[i] : std::string();
    wanted += (i == 0 ? "" : ",") + (value.dims[i] >= 0 ? std::to_string(value.dims[i])
                                     : named.empty()    ? std::string("?")
                                                        : named);
  }
  raise(CHIPDOCK_INVALID_ARGUMENT, "input '", value.name, "' has shape ", to_string(dims),
        ", the model wants ", wanted, "]");
}

/// One name stands for one extent, whichever inputs it is written on.
void check_symbols(const IrGraph& graph, const std::vector<TensorRef>& inputs) {
  struct Bound {
    int64_t extent;
    const IrValue* value;
    size_t axis;
  };
  std::map<std::string, Bound> bound;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const IrValue& value = graph.values[static_cast<size_t>(graph.inputs[i])];
    const size_t rank = std::min(value.symbols.size(), inputs[i].dims.size());
    for (size_t axis = 0; axis < rank; ++axis) {
      if (value.symbols[axis].empty()) continue;
      const int64_t extent = inputs[i].dims[axis];
      const auto [first, fresh] =
          bound.try_emplace(value.symbols[axis], Bound{extent, &value, axis});
      if (fresh || first->second.extent == extent) continue;
      raise(CHIPDOCK_INVALID_ARGUMENT, "dim '", value.symbols[axis], "' is ", first->second.extent,
            " on axis ", first->second.axis, " of input '", first->second.value->name, "' and ",
            extent, " on axis ", axis, " of input '", value.name, "'; the model wants one extent");
    }
  }
}

}  // namespace

std::shared_ptr<Plan> Plan::compile(std::shared_ptr<IrGraph> graph, std::shared_ptr<Device> device,
                                    std::shared_ptr<Device> host, const PlanOptions& options) {
  device->plugin()->check_usable();
  auto plan = PlanCompiler(std::move(graph), std::move(device), std::move(host), options).compile();
  plan->decide_capture();
  return plan;
}

Plan::Plan() = default;

Plan::~Plan() {
  // Work that an interrupted run left behind uses weights and kernels of this plan.
  for (auto& entry : busy_) entry.second->settle(-1);
}

void Plan::sweep() {
  if (busy_count_ == 0) return;
  decltype(busy_) frames;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    frames.swap(busy_);
    busy_count_ = 0;
  }
  // Without the lock: what a frame lets go may be anybody's, and want locks of its own.
  for (auto& entry : frames) {
    if (entry.second->settle(0)) continue;
    const std::lock_guard<std::mutex> lock(mutex_);
    busy_.push_back(std::move(entry));
    busy_count_ = busy_.size();
  }
}

std::vector<TensorRef> Plan::run(const std::vector<TensorRef>& given, const RunOptions& options) {
  const Plugin::Use device_use(*device_->plugin());
  const Plugin::Use host_use(*host_->plugin());
  device_->check_alive();
  if (given.size() != graph_->inputs.size()) {
    raise(CHIPDOCK_INVALID_ARGUMENT, "the graph has ", graph_->inputs.size(), " inputs, ",
          given.size(), " were given");
  }
  if (options.stream != nullptr && options.stream->device() != device_) {
    raise(CHIPDOCK_INVALID_ARGUMENT, "the model is on ", device_->name(), ", the stream is one of ",
          options.stream->device()->name(), "; make it with Stream(model.device)");
  }
  if (options.stream != nullptr) options.stream->refuse_inside_function("run");
  const bool captured = options.stream != nullptr && options.stream->capturing();
  sweep();
  std::vector<TensorRef> moved;
  std::vector<bool> is_copy;
  const std::vector<TensorRef>* inputs = &given;
  for (size_t i = 0; i < given.size(); ++i) {
    const IrValue& value = graph_->values[static_cast<size_t>(graph_->inputs[i])];
    // An optional may be given as the plain tensor that it holds.
    if (!kit::operator==(given[i].dtype, value.dtype) && !is_host_dtype(value.dtype)) {
      raise(CHIPDOCK_INVALID_ARGUMENT, "input '", value.name, "' is ",
            kit::dtype_name(given[i].dtype), ", the model wants ", kit::dtype_name(value.dtype));
    }
    if (usable_on(given[i], *device_) || captured) continue;
    if (moved.empty()) {
      moved = given;
      is_copy.resize(given.size());
      // The copies are waited for: of what is before them an interrupt may end the wait.
      if (options.stream != nullptr) wait_for(*options.stream, options.interrupt);
    }
    moved[i] = move_tensor(given[i], *device_, options.stream);
    is_copy[i] = true;
    inputs = &moved;
  }
  const std::shared_ptr<Specialization> spec = specialization(*inputs);
  if (captured) return run_captured(spec, *inputs, options);
  std::unique_ptr<Frame> frame = spec->take_frame();
  try {
    std::vector<TensorRef> outputs = frame->run(*inputs, is_copy, options);
    spec->give_frame(std::move(frame));
    return outputs;
  } catch (...) {
    // A frame whose run failed is thrown away, but not while work uses what it holds.
    if (frame != nullptr && frame->busy()) {
      const std::lock_guard<std::mutex> lock(mutex_);
      busy_.emplace_back(spec, std::move(frame));
      busy_count_ = busy_.size();
    }
    throw;
  }
}

std::shared_ptr<Specialization> Plan::find_specialization(const std::vector<TensorRef>& inputs) {
  if (specializations_.empty()) return nullptr;
  // Most models run the shapes again that they ran last.
  if (matches(specializations_.front()->key, inputs)) return specializations_.front();
  const auto [first, last] = by_key_.equal_range(hash_of(inputs));
  for (auto at = first; at != last; ++at) {
    if (!matches((*at->second)->key, inputs)) continue;
    specializations_.splice(specializations_.begin(), specializations_, at->second);
    return specializations_.front();
  }
  return nullptr;
}

std::shared_ptr<Specialization> Plan::keep_specialization(std::shared_ptr<Specialization> spec) {
  const uint64_t hash = hash_of(spec->key);
  specializations_.push_front(std::move(spec));
  by_key_.emplace(hash, specializations_.begin());
  if (specializations_.size() <= options_.cached_signatures) return nullptr;
  const auto oldest = std::prev(specializations_.end());
  const auto [first, last] = by_key_.equal_range(hash_of((*oldest)->key));
  by_key_.erase(
      std::find_if(first, last, [&](const auto& entry) { return entry.second == oldest; }));
  std::shared_ptr<Specialization> evicted = std::move(*oldest);
  specializations_.erase(oldest);
  return evicted;
}

std::shared_ptr<Specialization> Plan::specialization(const std::vector<TensorRef>& inputs) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (auto known = find_specialization(inputs)) return known;
  }
  std::vector<Dims> dims;
  for (size_t i = 0; i < inputs.size(); ++i) {
    check_declared(graph_->values[static_cast<size_t>(graph_->inputs[i])], inputs[i].dims);
    dims.push_back(inputs[i].dims);
  }
  check_symbols(*graph_, inputs);
  std::shared_ptr<Specialization> spec = specialize(*this, dims);
  std::shared_ptr<Specialization> evicted;  // ends after the lock: its graphs may wait for a device
  const std::lock_guard<std::mutex> lock(mutex_);
  if (auto known = find_specialization(inputs)) return known;  // another thread was faster
  evicted = keep_specialization(spec);
  return spec;
}

}  // namespace chipdock::runtime

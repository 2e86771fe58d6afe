// SPDX-License-Identifier: Apache-2.0
// See operation.hpp.
#include "operation.hpp"

#include <chrono>
#include <cstring>
#include <new>
#include <thread>

#include "transfer.hpp"

namespace chipdock::runtime {
namespace {

[[noreturn]] void refuse_argument(const char* name, const GraphChange& change) {
  raise(CHIPDOCK_INVALID_ARGUMENT, "graph.update: ", name, " with correlation id ", change.target,
        " has no argument ", change.argument, " that a change of kind ", change.kind, " fits");
}

void change_place(Place& place, const GraphChange& change) {
  if ((change.place.memory == nullptr) == (change.place.host == nullptr)) {
    raise(CHIPDOCK_INVALID_ARGUMENT,
          "graph.update: a place needs device memory or a host address, not ",
          "both and not neither (correlation id ", change.target, ")");
  }
  place = change.place;
}

/// The two ends of a copy, as graph changes count them.
void change_copy(const char* name, Place& source, Place& target, const GraphChange& change) {
  const bool known = change.argument == 0 || change.argument == -1;
  if (change.kind != CHIPDOCK_GRAPH_CHANGE_MEMORY || !known) refuse_argument(name, change);
  change_place(change.argument == 0 ? source : target, change);
}

uint64_t tensor_span_bytes(const chipdock_tensor& tensor) {
  uint64_t last = 0;
  uint64_t count = 1;
  for (int32_t i = 0; i < tensor.rank; ++i) {
    count *= static_cast<uint64_t>(tensor.shape[i]);
    if (tensor.strides != nullptr && tensor.shape[i] > 0) {
      last += static_cast<uint64_t>(tensor.shape[i] - 1) * static_cast<uint64_t>(tensor.strides[i]);
    }
  }
  if (count == 0) return 0;
  return kit::dtype_bytes(tensor.dtype, tensor.strides != nullptr ? last + 1 : count);
}

/// A launch desc with everything it points to except device memory. [KRN-6]
class LaunchCopy : public LaunchOperation {
 public:
  LaunchCopy(chipdock_kernel_instance* instance, const chipdock_launch_desc& desc, const char* what)
      : LaunchOperation(instance, copy_, what), copy_(desc), text_(what) {
    what_ = text_.c_str();
    copy_.inputs = keep_list(desc.inputs, desc.input_count, true);
    copy_.outputs = keep_list(desc.outputs, desc.output_count, false);
    copy_.packed = keep_list(desc.packed, desc.input_count, true);
    copy_.extents = keep_list(desc.extents, desc.output_count, false);
  }
  LaunchCopy(const LaunchCopy& other) : LaunchCopy(other.instance_, other.copy_, other.what_) {}

  std::shared_ptr<Operation> keep() const override { return std::make_shared<LaunchCopy>(*this); }

  void change(const GraphChange& change) override {
    if (change.kind == CHIPDOCK_GRAPH_CHANGE_SEED) {
      copy_.seed_offset = change.value;
      return;
    }
    chipdock_tensor* tensor = argument(change.argument);
    if (tensor == nullptr) refuse_argument(what_, change);
    if (change.kind == CHIPDOCK_GRAPH_CHANGE_MEMORY) {
      Place place{tensor->memory, tensor->offset, tensor->host, nullptr, false};
      change_place(place, change);
      tensor->memory = place.memory;
      tensor->offset = place.offset;
      tensor->host = place.memory != nullptr ? nullptr : place.host;
      return;
    }
    if (change.kind != CHIPDOCK_GRAPH_CHANGE_SCALAR) {
      raise(CHIPDOCK_UNSUPPORTED, "graph.update: unknown kind of change ", change.kind);
    }
    const uint64_t size = tensor_span_bytes(*tensor);
    if (change.argument < 0 || tensor->host == nullptr || size != change.scalar_size || size > 8) {
      raise(CHIPDOCK_INVALID_ARGUMENT, "graph.update: argument ", change.argument, " of ", what_,
            " has ", size, " bytes, the change has ", change.scalar_size,
            "; a scalar is a host input of 1 to 8 bytes");
    }
    std::memcpy(tensor->host, &change.value, size);
  }

 private:
  const chipdock_tensor* const* keep_list(const chipdock_tensor* const* given, uint32_t count,
                                          bool input) {
    if (given == nullptr) return nullptr;
    lists_.push_back(std::make_unique<const chipdock_tensor*[]>(count));
    for (uint32_t i = 0; i < count; ++i) lists_.back()[i] = keep_tensor(given[i], input);
    return lists_.back().get();
  }

  const chipdock_tensor* keep_tensor(const chipdock_tensor* given, bool input) {
    if (given == nullptr) return nullptr;
    tensors_.push_back(std::make_unique<chipdock_tensor>(*given));
    chipdock_tensor& tensor = *tensors_.back();
    tensor.shape = keep_dims(given->shape, given->rank);
    tensor.strides = keep_dims(given->strides, given->rank);
    if (input && given->memory == nullptr && given->host != nullptr) {
      const uint64_t bytes = tensor_span_bytes(*given);
      // As aligned as any host allocation of the runtime; kernels may use vector loads.
      std::shared_ptr<void> data(::operator new(bytes + 64, std::align_val_t(64)),
                                 [](void* p) { ::operator delete(p, std::align_val_t(64)); });
      if (bytes != 0) std::memcpy(data.get(), given->host, bytes);
      tensor.host = data.get();
      data_.push_back(std::move(data));
    }
    return &tensor;
  }

  const int64_t* keep_dims(const int64_t* given, int32_t rank) {
    if (given == nullptr) return nullptr;
    dims_.emplace_back(given, given + rank);
    return dims_.back().data();
  }

  chipdock_tensor* argument(int32_t index) {
    const bool input = index >= 0;
    const uint32_t at = input ? static_cast<uint32_t>(index) : static_cast<uint32_t>(-1 - index);
    if (at >= (input ? copy_.input_count : copy_.output_count)) return nullptr;
    const chipdock_tensor* found = input ? copy_.inputs[at] : copy_.outputs[at];
    for (const auto& tensor : tensors_) {
      if (tensor.get() == found) return tensor.get();
    }
    return nullptr;
  }

  chipdock_launch_desc copy_;
  std::string text_;
  std::vector<std::unique_ptr<const chipdock_tensor*[]>> lists_;
  std::vector<std::unique_ptr<chipdock_tensor>> tensors_;
  std::vector<std::vector<int64_t>> dims_;
  std::vector<std::shared_ptr<void>> data_;
};

/// The 64-bit word that a value operation works on.
uint64_t* value_word(Device& device, const Place& where) {
  if (where.offset % 8 != 0) {
    raise(CHIPDOCK_INVALID_ARGUMENT, "a value stands at offset ", where.offset,
          ", a multiple of 8 is needed");
  }
  void* base = where.memory != nullptr ? device.heap_address(where.memory) : nullptr;
  if (base == nullptr) {
    raise(CHIPDOCK_UNSUPPORTED, device.name(),
          " has no stream.value, and the host cannot reach its memory ", "to do it instead");
  }
  return reinterpret_cast<uint64_t*>(static_cast<char*>(base) + where.offset);
}

bool value_holds(int32_t operation, uint64_t now, uint64_t value) {
  switch (operation) {
    case CHIPDOCK_VALUE_WAIT_EQUAL:
      return now == value;
    case CHIPDOCK_VALUE_WAIT_GREATER_EQUAL:
      return static_cast<int64_t>(now - value) >= 0;
    case CHIPDOCK_VALUE_WAIT_AND:
      return (now & value) != 0;
    default:
      raise(CHIPDOCK_UNSUPPORTED, "unknown value operation ", operation);
  }
}

/// What a plugin calls a queued host function with; it runs exactly once.
void CHIPDOCK_CALL call_host_function(void* context, chipdock_status state) {
  const std::unique_ptr<std::shared_ptr<std::function<void(chipdock_status)>>> function(
      static_cast<std::shared_ptr<std::function<void(chipdock_status)>>*>(context));
  try {
    (**function)(state);
  } catch (...) {
    // There is no one to tell, and no exception may pass through the plugin's frames. [BASE-9]
  }
}

/// The same for a captured one, whose context the graph owns. [GRA-4]
void CHIPDOCK_CALL call_captured_function(void* context, chipdock_status state) {
  try {
    (*static_cast<std::function<void(chipdock_status)>*>(context))(state);
  } catch (...) {
    // As above.
  }
}

}  // namespace

void Operation::change(const GraphChange& change) { refuse_argument(name(), change); }

void CopyOperation::issue(Issue& issue) { issue_copy(issue, source_, target_, size_); }

void CopyOperation::change(const GraphChange& change) {
  change_copy(name(), source_, target_, change);
}

void Copy2dOperation::issue(Issue& issue) {
  issue_copy_2d(issue, source_, source_pitch_, target_, target_pitch_, row_bytes_, rows_);
}

void Copy2dOperation::change(const GraphChange& change) {
  change_copy(name(), source_, target_, change);
}

FillOperation::FillOperation(const Place& target, uint64_t size, const void* pattern,
                             uint32_t pattern_size)
    : target_(target), size_(size), pattern_size_(pattern_size) {
  const bool known = pattern_size == 1 || pattern_size == 2 || pattern_size == 4 ||
                     pattern_size == 8 || pattern_size == 16;
  if (!known || size % pattern_size != 0 || target.offset % pattern_size != 0) {
    raise(CHIPDOCK_INVALID_ARGUMENT, "fill of ", size, " bytes at offset ", target.offset,
          " with a pattern of ", pattern_size,
          " bytes: 1, 2, 4, 8 or 16 are allowed, dividing both");
  }
  std::memcpy(pattern_.data(), pattern, pattern_size);
}

void FillOperation::issue(Issue& issue) {
  issue_fill(issue, target_, size_, pattern_.data(), pattern_size_);
}

void FillOperation::change(const GraphChange& change) {
  if (change.kind != CHIPDOCK_GRAPH_CHANGE_MEMORY || change.argument != -1)
    refuse_argument(name(), change);
  change_place(target_, change);
}

void LaunchOperation::issue(Issue& issue) {
  // A copy of the flat part: one captured desc may be issued by several launches at once.
  chipdock_launch_desc desc = *desc_;
  desc.stream = issue.stream;
  desc.correlation_id = issue.correlation_id;
  ErrorRecord error;
  const chipdock_status status = issue.device.tables().kernel.launch(instance_, &desc, &error);
  if (status != CHIPDOCK_OK) {
    issue.device.check_call(status, error, (std::string("kernel.launch of ") + what_).c_str());
  }
}

std::shared_ptr<Operation> LaunchOperation::keep() const {
  return std::make_shared<LaunchCopy>(instance_, *desc_, what_);
}

bool LaunchOperation::synchronizes() const {
  if (desc_->allocator != nullptr) return true;
  for (uint32_t i = 0; i < desc_->output_count; ++i) {
    const chipdock_tensor* output = desc_->outputs[i];
    if (output != nullptr && output->memory == nullptr && output->host != nullptr) return true;
  }
  return false;
}

void HostFunctionOperation::issue(Issue& issue) {
  if (issue.stream == nullptr) {
    (*function_)(issue.state);
    return;
  }
  const chipdock_stream_api& api = issue.device.tables().stream;
  ErrorRecord error;
  if (api.host_function != nullptr) {
    auto context =
        std::make_unique<std::shared_ptr<std::function<void(chipdock_status)>>>(function_);
    chipdock_host_function_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.function = issue.captured ? call_captured_function : call_host_function;
    desc.context = issue.captured ? static_cast<void*>(function_.get()) : context.get();
    desc.correlation_id = issue.correlation_id;
    const chipdock_status status = api.host_function(issue.stream, &desc, &error);
    if (status == CHIPDOCK_OK) {
      if (issue.captured) {
        issue.keep.push_back(function_);
      } else {
        static_cast<void>(context.release());  // call_host_function frees it
      }
      return;
    }
    if (status != CHIPDOCK_UNSUPPORTED)
      issue.device.check_call(status, error, "stream.host_function");
  }
  // Without the slot the stream cannot be held up from outside: the caller waits for it instead.
  issue.device.check_call(api.sync(issue.stream, -1, &error), error, "stream.sync");
  (*function_)(CHIPDOCK_OK);
}

const char* ValueOperation::name() const {
  return operation_ == CHIPDOCK_VALUE_WRITE ? "write of a value" : "wait for a value";
}

void ValueOperation::issue(Issue& issue) {
  if (operation_ < CHIPDOCK_VALUE_WRITE || operation_ > CHIPDOCK_VALUE_WAIT_AND) {
    raise(CHIPDOCK_UNSUPPORTED, "unknown value operation ", operation_);
  }
  Device& device = issue.device;
  if (issue.stream != nullptr && device.tables().stream.value != nullptr) {
    chipdock_value_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.operation = operation_;
    desc.memory = where_.memory;
    desc.offset = where_.offset;
    desc.value = value_;
    desc.correlation_id = issue.correlation_id;
    ErrorRecord error;
    const chipdock_status status = device.tables().stream.value(issue.stream, &desc, &error);
    if (status != CHIPDOCK_UNSUPPORTED) {
      device.check_call(status, error, "stream.value");
      return;
    }
  }
  uint64_t* word = value_word(device, where_);
  const int32_t operation = operation_;
  const uint64_t value = value_;
  const auto cancelled = issue.cancelled;
  const auto work = [word, operation, value, cancelled](chipdock_status state) {
    if (state != CHIPDOCK_OK) return;
    if (operation == CHIPDOCK_VALUE_WRITE) {
      __atomic_store_n(word, value, __ATOMIC_RELEASE);
      return;
    }
    // Memory can be written by anyone, so there is nothing to be woken by; the pause bounds the
    // load.
    for (int round = 0; !value_holds(operation, __atomic_load_n(word, __ATOMIC_ACQUIRE), value);
         ++round) {
      if (cancelled && cancelled()) return;
      if (round < 1000) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      }
    }
  };
  if (issue.stream == nullptr) {
    work(issue.state);
  } else {
    HostFunctionOperation(work).issue(issue);
  }
}

void ValueOperation::change(const GraphChange& change) {
  if (change.kind == CHIPDOCK_GRAPH_CHANGE_SCALAR && change.argument == 1 &&
      change.scalar_size == 8) {
    value_ = change.value;
    return;
  }
  if (change.kind != CHIPDOCK_GRAPH_CHANGE_MEMORY || change.argument != 0)
    refuse_argument(name(), change);
  change_place(where_, change);
}

}  // namespace chipdock::runtime

// SPDX-License-Identifier: Apache-2.0
// Launches of compiled functions: a grid of blocks over the thread pool.
#include "function.hpp"

#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "profiler.hpp"

namespace chipdock::plugin::cpu {
namespace {

class FunctionTask : public Task {
 public:
  FunctionTask(const chipdock_function& function, const chipdock_function_launch_desc& desc)
      : Task(desc.correlation_id), function_(function) {
    uint64_t threads = 1;
    for (int i = 0; i < 3; ++i) {
      kit::require(desc.grid[i] >= 1 && desc.grid[i] <= kMaxGrid, "grid[", i, "] is ", desc.grid[i],
                   ", allowed are 1 to ", kMaxGrid);
      kit::require(desc.block[i] >= 1 && desc.block[i] <= kMaxBlock, "block[", i, "] is ",
                   desc.block[i], ", allowed are 1 to ", kMaxBlock);
      threads *= desc.block[i];
      kit::require(threads <= kMaxBlock, "a block of more than ", kMaxBlock, " threads");
      shape_.grid[i] = desc.grid[i];
      shape_.block[i] = desc.block[i];
    }
    kit::require(static_cast<__int128_t>(desc.grid[0]) * static_cast<__int128_t>(desc.grid[1]) *
                         static_cast<__int128_t>(desc.grid[2]) <=
                     INT64_MAX,
                 "the grid has more than 2^63 - 1 blocks");
    kit::require(desc.argument_count <= kMaxArguments, desc.argument_count, " arguments, at most ",
                 kMaxArguments, " are taken");
    kit::require(desc.argument_count == 0 || desc.arguments != nullptr, "arguments is NULL");
    shape_.local_bytes = desc.local_bytes;
    for (uint32_t i = 0; i < desc.argument_count; ++i) add(desc.arguments[i], i);
    kit::require(local_bytes() <= kMaxLocal, local_bytes(), " bytes of local memory, at most ",
                 kMaxLocal, " are given");
  }
  FunctionTask(const FunctionTask& other)
      : Task(other.correlation_id()),
        function_(other.function_),
        shape_(other.shape_),
        arguments_(other.arguments_) {}

  void run(const RunContext& context) override {
    const ProfileScope scope(function_.device, CHIPDOCK_PROFILER_KERNEL, function_.name.c_str(),
                             correlation_id(), 0, context);
    function_.device.launches.fetch_add(1, std::memory_order_relaxed);
    const int64_t blocks = static_cast<int64_t>(shape_.grid[0] * shape_.grid[1] * shape_.grid[2]);
    function_.device.pool->parallel_for(
        blocks, 1, function_.device.settings.threads,
        [&](int64_t begin, int64_t end) { run_blocks(begin, end); });
  }

  TaskPtr changed(const chipdock_graph_change& change) const override {
    kit::require(change.argument >= 0 && static_cast<size_t>(change.argument) < arguments_.size(),
                 "the captured launch ", correlation_id(), " of ", function_.name,
                 " has no argument ", change.argument);
    auto copy = std::make_shared<FunctionTask>(*this);
    Argument& argument = copy->arguments_[static_cast<size_t>(change.argument)];
    if (change.kind == CHIPDOCK_GRAPH_CHANGE_MEMORY && argument.kind == CHIPDOCK_ARGUMENT_BUFFER) {
      argument.buffer = change.memory != nullptr
                            ? resolve(*change.memory, change.offset, 0, "change of a buffer")
                            : nullptr;
    } else if (change.kind == CHIPDOCK_GRAPH_CHANGE_SCALAR &&
               argument.kind == CHIPDOCK_ARGUMENT_SCALAR) {
      kit::require(change.scalar_size == argument.size, "scalar ", change.argument, " has ",
                   argument.size, " bytes, the change ", change.scalar_size);
      argument.bits = change.value;
    } else {
      kit::fail(CHIPDOCK_INVALID_ARGUMENT, "argument ", change.argument, " of ", function_.name,
                " is of kind ", argument.kind, ", the change is of kind ", change.kind);
    }
    return copy;
  }

 private:
  struct Argument {
    int32_t kind = 0;
    uint64_t size = 0;
    uint64_t bits = 0;
    char* buffer = nullptr;
  };

  void add(const chipdock_argument* given, uint32_t index) {
    const auto read =
        kit::read_struct(given, CHIPDOCK_CPU_FIRST(chipdock_argument, size), "argument");
    Argument argument{read.kind, read.size, read.bits, nullptr};
    if (read.kind == CHIPDOCK_ARGUMENT_BUFFER) {
      if (read.memory != nullptr)
        argument.buffer = resolve(*read.memory, read.offset, 0, "argument");
    } else if (read.kind == CHIPDOCK_ARGUMENT_SCALAR) {
      kit::require(read.size == 1 || read.size == 2 || read.size == 4 || read.size == 8, "scalar ",
                   index, " has ", read.size, " bytes, allowed are 1, 2, 4 and 8");
    } else if (read.kind == CHIPDOCK_ARGUMENT_LOCAL) {
      kit::require(read.size <= kMaxLocal, "local argument ", index, " has ", read.size,
                   " bytes, at most ", kMaxLocal, " are given");
    } else {
      kit::fail(CHIPDOCK_UNSUPPORTED, "argument ", index, " has the unknown kind ", read.kind);
    }
    arguments_.push_back(argument);
  }

  static uint64_t padded(uint64_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

  uint64_t local_bytes() const {
    uint64_t bytes = padded(shape_.local_bytes);
    for (const Argument& argument : arguments_) {
      if (argument.kind == CHIPDOCK_ARGUMENT_LOCAL) bytes += padded(argument.size);
    }
    return bytes;
  }

  /// Blocks run one after another here, so one piece of local memory serves all of them.
  void run_blocks(int64_t begin, int64_t end) const {
    Block block = shape_;
    std::unique_ptr<char, decltype(&std::free)> local(nullptr, &std::free);
    if (const uint64_t bytes = local_bytes()) {
      local.reset(static_cast<char*>(std::aligned_alloc(kAlignment, bytes)));
      if (local == nullptr) throw std::bad_alloc();
    }
    block.local = local.get();
    char* next = local.get() + padded(shape_.local_bytes);
    std::vector<uint64_t> scalars(arguments_.size());
    std::vector<void*> pointers(arguments_.size());
    for (size_t i = 0; i < arguments_.size(); ++i) {
      const Argument& argument = arguments_[i];
      if (argument.kind == CHIPDOCK_ARGUMENT_BUFFER) {
        pointers[i] = argument.buffer;
      } else if (argument.kind == CHIPDOCK_ARGUMENT_LOCAL) {
        pointers[i] = next;
        next += padded(argument.size);
      } else {
        scalars[i] = argument.bits;
        pointers[i] = &scalars[i];
      }
    }
    for (int64_t i = begin; i < end; ++i) {
      const uint64_t flat = static_cast<uint64_t>(i);
      block.index[0] = flat % block.grid[0];
      block.index[1] = flat / block.grid[0] % block.grid[1];
      block.index[2] = flat / block.grid[0] / block.grid[1];
      function_.entry(pointers.data(), &block);
    }
  }

  const chipdock_function& function_;
  Block shape_{};
  std::vector<Argument> arguments_;
};

}  // namespace

chipdock_status launch_function(chipdock_function* function,
                                const chipdock_function_launch_desc* given, chipdock_error* error) {
  return kit::guard(error, [&] {
    deref(function, "function");
    const auto desc =
        kit::read_struct(given, CHIPDOCK_CPU_FIRST(chipdock_function_launch_desc, correlation_id),
                         "function launch desc");
    if (desc.stream == nullptr) {
      FunctionTask(*function, desc).run({});
    } else {
      desc.stream->push(std::make_shared<FunctionTask>(*function, desc));
    }
  });
}

}  // namespace chipdock::plugin::cpu

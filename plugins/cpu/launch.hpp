// SPDX-License-Identifier: Apache-2.0
// From the tensors of a launch desc to what a kernel sees. Inline launches use BoundTensors on the
// stack, launches on a stream an OwnedLaunch that outlives the caller's desc.
#ifndef CHIPDOCK_PLUGIN_CPU_LAUNCH_HPP_
#define CHIPDOCK_PLUGIN_CPU_LAUNCH_HPP_

#include <memory>
#include <new>
#include <vector>

#include "device.hpp"
#include "kernel.hpp"

struct chipdock_kernel_instance {
  chipdock_kernel_instance(chipdock_device& device_, const chipdock_kernel& kernel_,
                           const chipdock_node& node);
  ~chipdock_kernel_instance() { device.others.fetch_sub(1); }
  chipdock_kernel_instance(const chipdock_kernel_instance&) = delete;
  chipdock_kernel_instance& operator=(const chipdock_kernel_instance&) = delete;

  chipdock_device& device;
  const chipdock_kernel& kernel;
  const uint32_t input_count;
  const uint32_t output_count;
  std::vector<chipdock_dtype> dtypes;  ///< Of inputs, then outputs; bits 0 where the node has none.
  std::vector<uint32_t> layouts;       ///< Likewise.
  std::unique_ptr<chipdock::plugin::cpu::Kernel> body;

  /// Throws INVALID_ARGUMENT unless the launch has no more arguments than the node.
  void check_counts(const chipdock_launch_desc& desc) const;
};

namespace chipdock::plugin::cpu {

inline bool same(chipdock_dtype a, chipdock_dtype b) {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}

[[noreturn]] void bad_tensor(const chipdock_kernel_instance& instance, uint32_t argument,
                             const chipdock_tensor& tensor);

/// One tensor of a launch. `argument` counts inputs, then outputs.
inline Tensor bind_tensor(const chipdock_kernel_instance& instance, uint32_t argument,
                          const chipdock_tensor& given) {
  // A struct of another size has the fields of 1.0 in the same place; only its tail needs a look.
  if (given.struct_size != sizeof(chipdock_tensor)) {
    kit::read_struct(&given, CHIPDOCK_CPU_FIRST(chipdock_tensor, host), "tensor");
  }
  const chipdock_dtype expected = instance.dtypes[argument];
  const bool fits = same(given.dtype, expected) && expected.bits != 0 &&
                    given.layout == instance.layouts[argument] && given.strides == nullptr &&
                    given.rank >= 0 && given.rank <= CHIPDOCK_MAX_RANK &&
                    (given.shape != nullptr || given.rank == 0) &&
                    (given.memory == nullptr || given.offset <= given.memory->size);
  if (!fits) bad_tensor(instance, argument, given);
  Tensor tensor;
  tensor.dtype = given.dtype;
  tensor.rank = given.rank;
  tensor.shape = given.shape;
  tensor.layout = given.layout;
  tensor.data = given.memory != nullptr ? given.memory->base + given.offset : given.host;
  return tensor;
}

/// Address of a packed form, a workspace or extents; no dtype rule applies.
inline void* bind_address(const chipdock_tensor* given) {
  if (given == nullptr) return nullptr;
  return given->memory != nullptr ? given->memory->base + given->offset : given->host;
}

/// Views of all tensors of one launch. The desc must outlive it. Up to kSmall arguments need no
/// heap.
class BoundTensors {
 public:
  BoundTensors(const chipdock_kernel_instance& instance, const chipdock_launch_desc& desc) {
    const uint32_t count = desc.input_count + desc.output_count;
    Tensor* tensors = reinterpret_cast<Tensor*>(small_);
    const Tensor** pointers = small_pointers_;
    void** addresses = small_addresses_;
    if (count > kSmall) {
      large_ = std::make_unique<Large>(count);
      tensors = large_->tensors.data();
      pointers = large_->pointers.data();
      addresses = large_->addresses.data();
    }
    for (uint32_t i = 0; i < count; ++i) {
      const bool is_input = i < desc.input_count;
      const uint32_t k = is_input ? i : i - desc.input_count;
      const chipdock_tensor* given = is_input ? desc.inputs[k] : desc.outputs[k];
      pointers[i] = nullptr;
      if (given == nullptr) continue;
      const uint32_t argument = is_input ? k : instance.input_count + k;
      pointers[i] = new (tensors + i) Tensor(bind_tensor(instance, argument, *given));
    }
    inputs = pointers;
    outputs = pointers + desc.input_count;
    if (desc.packed != nullptr) {
      for (uint32_t i = 0; i < desc.input_count; ++i) addresses[i] = bind_address(desc.packed[i]);
      packed = addresses;
    }
    if (desc.extents != nullptr) {
      void** first = addresses + desc.input_count;
      for (uint32_t i = 0; i < desc.output_count; ++i) first[i] = bind_address(desc.extents[i]);
      extents = reinterpret_cast<int64_t* const*>(first);
    }
  }
  BoundTensors(const BoundTensors&) = delete;
  BoundTensors& operator=(const BoundTensors&) = delete;

  const Tensor* const* inputs = nullptr;
  const Tensor* const* outputs = nullptr;
  void* const* packed = nullptr;
  int64_t* const* extents = nullptr;

 private:
  static constexpr uint32_t kSmall = 8;
  struct Large {
    explicit Large(uint32_t count) : tensors(count), pointers(count), addresses(count) {}
    std::vector<Tensor> tensors;
    std::vector<const Tensor*> pointers;
    std::vector<void*> addresses;
  };
  alignas(Tensor) unsigned char small_[kSmall * sizeof(Tensor)];  // Written only as far as used.
  const Tensor* small_pointers_[kSmall];
  void* small_addresses_[kSmall];
  std::unique_ptr<Large> large_;
};

/// Everything of a launch desc but its tensors.
inline Context make_context(const chipdock_kernel_instance& instance,
                            const chipdock_launch_desc& desc) {
  const int most = instance.device.settings.threads;
  Context context;
  context.input_count = desc.input_count;
  context.output_count = desc.output_count;
  context.workspace =
      desc.workspace != nullptr ? desc.workspace->base + desc.workspace_offset : nullptr;
  context.pool = instance.device.pool;
  context.max_threads = desc.max_threads == 0 || desc.max_threads > static_cast<uint32_t>(most)
                            ? most
                            : static_cast<int>(desc.max_threads);
  context.seed = desc.seed;
  context.seed_offset = desc.seed_offset;
  context.deterministic = desc.deterministic != 0;
  return context;
}

/// The task of a launch on a stream: a deep copy of the desc.
class LaunchTask : public Task {
 public:
  LaunchTask(const chipdock_kernel_instance& instance, const chipdock_launch_desc& desc);
  LaunchTask(const LaunchTask& other);

  void run(const RunContext& context) override;
  const char* uncapturable() const override;
  TaskPtr changed(const chipdock_graph_change& change) const override;
  /// Whether an output lies in host memory, which is to be written before launch returns. [KRN-7]
  bool writes_host() const { return writes_host_; }

 private:
  void point();

  const chipdock_kernel_instance& instance_;
  Context context_;
  std::vector<Tensor> tensors_;
  std::vector<bool> given_;
  std::vector<int64_t> shapes_;
  std::vector<std::shared_ptr<char[]>> host_inputs_;
  std::vector<const Tensor*> pointers_;
  std::vector<void*> packed_;
  std::vector<int64_t*> extents_;
  bool writes_host_ = false;
};

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_LAUNCH_HPP_

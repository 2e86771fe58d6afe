// SPDX-License-Identifier: Apache-2.0
// Picks a kernel for a node on one device: version range and dtype rules -> supports -> score ->
// priority -> newest since version; and keeps the instance. Why a kernel was not picked is kept as
// text for explain.
#ifndef CHIPDOCK_RUNTIME_EXEC_KERNEL_REGISTRY_HPP_
#define CHIPDOCK_RUNTIME_EXEC_KERNEL_REGISTRY_HPP_

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "device.hpp"
#include "exec/graph_ir.hpp"

namespace chipdock::runtime {

/// A kernel with its attributes on one device; ended with the last reference.
class KernelInstance {
 public:
  KernelInstance(std::shared_ptr<Device> device, const chipdock_kernel& kernel,
                 chipdock_kernel_instance* handle)
      : device_(std::move(device)), kernel_(kernel), handle_(handle) {}
  ~KernelInstance();
  KernelInstance(const KernelInstance&) = delete;
  KernelInstance& operator=(const KernelInstance&) = delete;
  const std::shared_ptr<Device>& device() const { return device_; }
  const chipdock_kernel& kernel() const { return kernel_; }
  chipdock_kernel_instance* handle() const { return handle_; }

 private:
  std::shared_ptr<Device> device_;
  const chipdock_kernel& kernel_;  ///< Lives until the device is closed. [KRN-1]
  chipdock_kernel_instance* handle_;
};

/// The outcome for one node: an instance, or why there is none.
struct KernelChoice {
  std::shared_ptr<KernelInstance> instance;  ///< NULL: no kernel fits, or needs_shape.
  bool needs_shape = false;                  ///< Ask again when all dims are known.
  std::string reason;                        ///< One line for each kernel that was looked at.
};

/// The flag bits that this host has no name for. A kernel that has any is never used: a newer
/// plugin says by them what must not be missed. [BASE-11]
uint32_t unknown_flags(const chipdock_kernel& kernel);

class KernelRegistry {
 public:
  explicit KernelRegistry(std::shared_ptr<Device> device);

  const std::shared_ptr<Device>& device() const { return device_; }
  /// Throws Error only if a plugin call fails in a way that is not a refusal. Of a node with values
  /// in private layouts no kernel decides later: it accepts now, or not at all.
  KernelChoice choose(const chipdock_node& node) const;
  /// The best score among kernels that accept the node as it is described; none if none does.
  std::optional<double> best_score(const chipdock_node& node) const;
  size_t size() const { return count_; }  ///< Kernels that may be used.

  /// The private layouts that kernels list, in the order in which they do; none without the slot
  /// layout_size.
  const std::vector<uint32_t>& layouts() const { return layouts_; }
  /// The kernels for an operator.
  const std::vector<const chipdock_kernel*>& kernels_for(const IrNode& node) const;

 private:
  struct Candidate {
    const chipdock_kernel* kernel;
    double score;
    bool operator<(const Candidate& other) const;  // best first
  };
  /// Those that accept the node, the best first; what the others say is added to `choice`.
  std::vector<Candidate> candidates(const chipdock_node& node, KernelChoice& choice) const;
  /// Why the kernel is not even asked, or "".
  std::string mismatch(const chipdock_kernel& kernel, const chipdock_node& node) const;
  void note_layouts(const chipdock_kernel& kernel);

  std::shared_ptr<Device> device_;
  size_t count_ = 0;
  std::vector<uint32_t> layouts_;
  std::unordered_map<std::string, std::vector<const chipdock_kernel*>> by_op_;  ///< "domain:op"
};

/// The ABI's view of a node, with what is known of its values. Owns the structs it points to.
class NodeDescription {
 public:
  /// `dims` may be empty for an unknown shape (rank -1).
  struct Value {
    bool given = false;
    chipdock_dtype dtype{};
    bool known = false;
    uint32_t layout = 0;
    Dims dims;
    const void* constant = nullptr;
    uint64_t constant_size = 0;
  };
  NodeDescription(const IrNode& node, std::vector<Value> inputs, std::vector<Value> outputs,
                  int32_t math_mode);
  const chipdock_node& get() const { return node_; }

 private:
  static void fill(std::vector<Value>& from, std::vector<chipdock_value>& values,
                   std::vector<const chipdock_value*>& pointers);
  std::vector<Value> inputs_, outputs_;
  std::vector<chipdock_value> input_values_, output_values_;
  std::vector<const chipdock_value*> input_pointers_, output_pointers_;
  chipdock_node node_{};
};

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_EXEC_KERNEL_REGISTRY_HPP_

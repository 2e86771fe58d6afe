// SPDX-License-Identifier: Apache-2.0
// Operators that the host computes itself, because they read or make values that no device can
// hold (exec/host_object.hpp). One file host_ops/<family>.cpp a family, found by the build through
// its name; it ends with `std::vector<HostOp> <family>_host_ops();`.
#ifndef CHIPDOCK_RUNTIME_HOST_OPS_HOST_OP_HPP_
#define CHIPDOCK_RUNTIME_HOST_OPS_HOST_OP_HPP_

#include <string>
#include <string_view>
#include <vector>

#include "exec/host_object.hpp"
#include "exec/kernel_registry.hpp"
#include "exec/plan.hpp"

namespace chipdock::runtime {

/// One call of a host operator. What it returns shares no memory with plain tensors that came in:
/// those may be scratch memory of the plan. Throws kit::Failure for what does not fit.
class HostCall {
 public:
  HostCall(const Plan& plan, const IrNode& node, const std::vector<const TensorRef*>& inputs);

  kit::NodeView attributes() const { return kit::NodeView(description_.get()); }
  const IrNode& node() const { return node_; }
  size_t input_count() const { return inputs_.size(); }
  size_t output_count() const { return outputs_.size(); }
  bool has_input(size_t i) const { return i < inputs_.size() && inputs_[i] != nullptr; }
  const TensorRef& input(size_t i) const;
  const std::vector<const TensorRef*>& inputs() const { return inputs_; }
  const std::vector<std::string>& strings(size_t i) const;
  const std::vector<TensorRef>& items(size_t i) const;
  /// Elements of an int64 or int32 tensor, widened.
  std::vector<int64_t> integers(size_t i) const;
  /// The one element of such a tensor.
  int64_t integer(size_t i) const;
  /// Dtype that the model gives output i; unset if the model does not ask for it.
  chipdock_dtype output_dtype(size_t i) const;

  /// The same value in memory of its own.
  TensorRef own(const TensorRef& value) const;
  /// A fresh tensor on the plan's device, filled from host memory.
  TensorRef tensor(chipdock_dtype dtype, const Dims& dims, const void* data) const;
  /// See exec/apply_operator.hpp.
  std::vector<TensorRef> apply(const IrNode& node, const std::vector<const TensorRef*>& inputs,
                               const std::vector<chipdock_dtype>& dtypes) const;

  void set(size_t i, TensorRef value);
  std::vector<TensorRef> take() { return std::move(outputs_); }

 private:
  const Plan& plan_;
  const IrNode& node_;
  NodeDescription description_;
  const std::vector<const TensorRef*>& inputs_;
  std::vector<TensorRef> outputs_;
};

struct HostOp {
  const char* name;
  int32_t since;      ///< Oldest since version this entry serves.
  int32_t until = 0;  ///< Newest; 0 = all later ones.
  void (*run)(HostCall& call) = nullptr;
  const char* domain = "";
};

/// Finds the entry for a node, or NULL.
const HostOp* find_host_op(std::string_view domain, std::string_view name, int32_t since_version);

/// Every entry, for tests.
const std::vector<HostOp>& all_host_ops();

/// Runs a kHost step. Errors name the node.
std::vector<TensorRef> run_host_op(const Plan& plan, const Step& step,
                                   const std::vector<const TensorRef*>& inputs);

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_HOST_OPS_HOST_OP_HPP_

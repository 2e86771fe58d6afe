// SPDX-License-Identifier: Apache-2.0
// One operator call from start to end: shapes, memory, launch. The general way, used where nothing
// can be prepared: folding at load, values known per signature, data-dependent shapes, bodies of
// control flow.
#ifndef CHIPDOCK_RUNTIME_EXEC_NODE_RUNNER_HPP_
#define CHIPDOCK_RUNTIME_EXEC_NODE_RUNNER_HPP_

#include <vector>

#include "exec/kernel_registry.hpp"
#include "exec/tensor_ref.hpp"
#include "stream.hpp"

namespace chipdock::runtime {

/// Everything one call needs beside its inputs.
struct NodeCall {
  const IrNode& node;
  const Op& op;
  const KernelInstance& instance;
  const std::vector<std::shared_ptr<Buffer>>* packed = nullptr;
  uint64_t host_inputs = 0;
  uint64_t host_outputs = 0;
  uint32_t max_threads = 0;
  int32_t math_mode = 0;
  bool deterministic = false;
  uint64_t seed = 0;
  uint64_t seed_offset = 0;
  std::shared_ptr<Stream> stream = nullptr;
  std::vector<uint32_t> output_layouts = {};  ///< Empty: all 0.
};

/// Runs the shape function: dtypes come preset in `outputs`. Errors name the node.
void infer_shapes(const IrNode& node, const Op& op, const std::vector<ShapeInput>& inputs,
                  std::vector<ShapeOutput>& outputs);

/// Inputs as a shape function sees them; NULL entries are not given.
std::vector<ShapeInput> shape_inputs(const std::vector<const TensorRef*>& inputs,
                                     uint64_t host_inputs);

/// Computes the node; `dtypes` are those of its outputs. Outputs not wanted by the node come back
/// empty. Inputs must be usable on the instance's device (host_inputs: readable by the host).
std::vector<TensorRef> run_node(const NodeCall& call, const std::vector<const TensorRef*>& inputs,
                                const std::vector<chipdock_dtype>& dtypes);

/// A launch desc over these tensors, which it borrows; what only some launches have stays 0.
chipdock_launch_desc launch_desc(const std::vector<const chipdock_tensor*>& inputs,
                                 const std::vector<const chipdock_tensor*>& outputs,
                                 int32_t math_mode, bool deterministic, uint32_t max_threads);

/// The packed form of an input as a launch takes it: bytes of a layout that only the kernel knows.
chipdock_tensor packed_tensor(const Buffer& form);

/// "Conv node 'name'" for messages.
std::string describe(const IrNode& node);

/// The output of Shape or Size, from the input's dims alone.
std::vector<int64_t> shape_of(const IrNode& node, const Dims& dims);

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_EXEC_NODE_RUNNER_HPP_

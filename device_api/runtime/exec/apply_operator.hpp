// SPDX-License-Identifier: Apache-2.0
// A numeric operator called from inside the executor, as a step towards something that has no
// kernel: the pieces of a sequence, another axis of Scan, tensors of strings.
#ifndef CHIPDOCK_RUNTIME_EXEC_APPLY_OPERATOR_HPP_
#define CHIPDOCK_RUNTIME_EXEC_APPLY_OPERATOR_HPP_

#include <vector>

#include "exec/host_object.hpp"
#include "exec/plan.hpp"

namespace chipdock::runtime {

/// Runs `node` on the plan's device if that has a kernel, else on the host; what comes back is
/// fresh and on the plan's device. Strings are replaced by their ranks among all strings that came
/// in, where "" is 0, and put back where `dtypes` has a host value: whatever an operator does by
/// moving or comparing elements it does to strings too. `dtypes`: one per output of the node, not
/// read where the node does not want the output.
std::vector<TensorRef> apply_operator(const Plan& plan, const IrNode& node,
                                      const std::vector<const TensorRef*>& inputs,
                                      const std::vector<chipdock_dtype>& dtypes);

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_EXEC_APPLY_OPERATOR_HPP_

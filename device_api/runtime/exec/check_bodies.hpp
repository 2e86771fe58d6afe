// SPDX-License-Identifier: Apache-2.0
// If, Loop and Scan before they run: do bodies, inputs and outputs fit each other.
#ifndef CHIPDOCK_RUNTIME_EXEC_CHECK_BODIES_HPP_
#define CHIPDOCK_RUNTIME_EXEC_CHECK_BODIES_HPP_

#include "exec/graph_ir.hpp"

namespace chipdock::runtime {

/// True for If, Loop and Scan of ONNX.
bool is_control(const IrNode& node);

/// Throws INVALID_ARGUMENT unless the node has exactly the bodies that its operator wants, with
/// inputs and outputs that fit its own. Of the node's outputs, the last may be left out.
void check_bodies(const IrNode& node);

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_EXEC_CHECK_BODIES_HPP_

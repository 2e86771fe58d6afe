// SPDX-License-Identifier: Apache-2.0
// What the fused operators of the domain "ai.chipdock" have beside the operators they extend: a
// residual of the output's own shape.
#ifndef CHIPDOCK_RUNTIME_OPS_FUSED_HPP_
#define CHIPDOCK_RUNTIME_OPS_FUSED_HPP_

#include "ops/op.hpp"

namespace chipdock::runtime {

/// The entry of a fused operator, which has the shape function of the operator it extends.
inline Op fused_op(const char* name, void (*shape)(ShapeContext& context)) {
  return {name, 1, 0, shape, 0, 0, "ai.chipdock"};
}

/// Sets output 0, whose shape input 3 must have if it is given. Plain operators have no input 3.
inline void set_with_residual(ShapeContext& context, Dims out) {
  if (context.has_input(3)) {
    const Dims& z = context.input(3).dims;
    kit::require(z == out, context.node().op(), ": Z ", to_string(z), " must have Y's shape ",
                 to_string(out));
  }
  context.set(0, std::move(out));
}

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_OPS_FUSED_HPP_

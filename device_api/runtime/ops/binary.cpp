// SPDX-License-Identifier: Apache-2.0
// Shapes of operators of two tensors: both broadcast. PRelu's slope broadcasts one way only.
#include "ops/op.hpp"

namespace chipdock::runtime {
namespace {

void arithmetic(ShapeContext& context) {
  const ShapeInput& a = context.input(0);
  const ShapeInput& b = context.input(1);
  context.set(0, broadcast(a.dims, b.dims, context.node().op()), a.dtype);
}

void truth(ShapeContext& context) {
  const ShapeInput& a = context.input(0);
  const ShapeInput& b = context.input(1);
  context.set(0, broadcast(a.dims, b.dims, context.node().op()), kit::kBool);
}

void prelu(ShapeContext& context) {
  const ShapeInput& x = context.input(0);
  const ShapeInput& slope = context.input(1);
  kit::require(broadcast(x.dims, slope.dims, "PRelu") == x.dims, "PRelu: slope of shape ",
               to_string(slope.dims), " would enlarge x of shape ", to_string(x.dims),
               ", it must broadcast to x");
  context.set(0, x.dims, x.dtype);
}

}  // namespace

std::vector<Op> binary_ops() {
  return {{"Add", 7, 0, arithmetic},
          {"Sub", 7, 0, arithmetic},
          {"Mul", 7, 0, arithmetic},
          {"Div", 7, 0, arithmetic},
          {"Mod", 10, 0, arithmetic},
          {"PRelu", 7, 0, prelu},
          {"BitwiseAnd", 18, 0, arithmetic},
          {"BitwiseOr", 18, 0, arithmetic},
          {"BitwiseXor", 18, 0, arithmetic},
          {"BitShift", 11, 0, arithmetic},
          {"Equal", 7, 0, truth},
          {"Less", 7, 0, truth},
          {"LessOrEqual", 12, 0, truth},
          {"Greater", 7, 0, truth},
          {"GreaterOrEqual", 12, 0, truth},
          {"And", 7, 0, truth},
          {"Or", 7, 0, truth},
          {"Xor", 7, 0, truth}};
}

}  // namespace chipdock::runtime

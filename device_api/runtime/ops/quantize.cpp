// SPDX-License-Identifier: Apache-2.0
// Shapes of QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear: like the input.
#include "ops/op.hpp"

namespace chipdock::runtime {
namespace {

void like_input(ShapeContext& context) { context.set(0, context.input(0).dims); }

void dynamic_quantize(ShapeContext& context) {
  context.set(0, context.input(0).dims);
  context.set(1, {});
  context.set(2, {});
}

}  // namespace

std::vector<Op> quantize_ops() {
  return {{"QuantizeLinear", 10, 0, like_input},
          {"DequantizeLinear", 10, 0, like_input},
          {"DynamicQuantizeLinear", 11, 0, dynamic_quantize}};
}

}  // namespace chipdock::runtime
